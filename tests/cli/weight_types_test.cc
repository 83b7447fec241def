#include "cli/weight_types.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "quant/block_type.h"

namespace kvasir::cli {
namespace {

using quant::BlockType;

constexpr std::array<std::uint64_t, 2> kMatrix = {4096, 4096};
constexpr std::array<std::uint64_t, 1> kVector = {4096};

WeightTarget target(const char* name) {
  const auto found = find_weight_target(name);
  EXPECT_TRUE(found) << name;
  return found ? *found : WeightTarget{};
}

// The matrices of a model of `layers` layers with separate query, key and value.
class Names {
 public:
  explicit Names(std::uint64_t layers, bool tied = false) {
    names_.emplace_back("token_embd.weight");
    if (!tied) names_.emplace_back("output.weight");
    for (std::uint64_t i = 0; i < layers; ++i) {
      for (const char* part :
           {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
        names_.push_back("blk." + std::to_string(i) + "." + part + ".weight");
      }
    }
  }
  [[nodiscard]] std::vector<TensorOutline> outlines() const {
    std::vector<TensorOutline> outlines;
    for (const std::string& name : names_) outlines.push_back({name, kMatrix});
    return outlines;
  }

 private:
  std::vector<std::string> names_;
};

std::vector<int> blocks_of_type(const TypeChooser& chooser, const std::string& part, int layers,
                                BlockType type) {
  std::vector<int> blocks;
  for (int i = 0; i < layers; ++i) {
    const std::string name = "blk." + std::to_string(i) + "." + part + ".weight";
    if (chooser.choose({name, kMatrix}).type == type) blocks.push_back(i);
  }
  return blocks;
}

TEST(WeightTargets, AreFoundInAnyLetterCase) {
  EXPECT_EQ(target("q4_k_m").name, "Q4_K_M");
  EXPECT_TRUE(target("Q4_K_M").mixed);
  EXPECT_EQ(target("bf16").base, BlockType::kBF16);
  EXPECT_FALSE(target("Q4_K").mixed);
}

TEST(WeightTargets, EveryTypeThatUnpacksIsOne) {
  for (const quant::BlockTypeInfo& info : quant::block_types()) {
    const auto found = find_weight_target(info.name);
    ASSERT_EQ(found.has_value(), info.unpacks) << info.name;
    if (found) {
      EXPECT_EQ(found->base, info.type);
    } else {
      EXPECT_EQ(found.error().code(), Outcome::kUnsupported);
      EXPECT_NE(found.error().message().find(info.name), std::string::npos);
    }
  }
}

TEST(WeightTargets, AnUnknownNameIsRefusedWithThoseThereAre) {
  const auto found = find_weight_target("Q9_0");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Outcome::kInvalidArgument);
  EXPECT_NE(found.error().message().find("Q4_K_M"), std::string::npos);
  EXPECT_NE(known_weight_type("Q9_0"), "");
  EXPECT_EQ(known_weight_type("IQ1_S"), "");  // known, and refused later by name
}

TEST(WeightTargets, TypesThatOnlyUnpackAreNotOfferedForPacking) {
  const std::string packing = " " + weight_target_names(true) + " ";
  EXPECT_NE(packing.find(" Q4_K_M "), std::string::npos);
  EXPECT_EQ(packing.find(" IQ3_S "), std::string::npos);
  EXPECT_NE(weight_target_names(false).find("IQ3_S"), std::string::npos);
}

TEST(TypeChooser, GivesOneTypeToEveryMatrixUnlessItIsAMix) {
  const Names model(4);
  const auto outlines = model.outlines();
  const TypeChooser chooser(target("Q5_0"), {"llama", 4, 0}, outlines);
  for (const TensorOutline& outline : outlines) {
    const TypeChoice choice = chooser.choose(outline);
    EXPECT_EQ(choice.type, BlockType::kQ5_0) << outline.name;
    EXPECT_EQ(choice.reason, Reason::kAsAsked) << outline.name;
  }
}

// The layers of a 32-layer model that published Q4_K_M and Q5_K_M files keep in Q6_K.
TEST(TypeChooser, TheMixesGiveMoreBitsToTheLayersThatPublishedFilesDo) {
  const std::vector<int> expected = {0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};
  for (const auto& [name, base] :
       {std::pair{"Q4_K_M", BlockType::kQ4_K}, std::pair{"Q5_K_M", BlockType::kQ5_K}}) {
    const Names model(32);
    const auto outlines = model.outlines();
    const TypeChooser chooser(target(name), {"llama", 32, 0}, outlines);
    EXPECT_EQ(blocks_of_type(chooser, "attn_v", 32, BlockType::kQ6_K), expected);
    EXPECT_EQ(blocks_of_type(chooser, "ffn_down", 32, BlockType::kQ6_K), expected);
    EXPECT_EQ(blocks_of_type(chooser, "attn_v", 32, base).size(), 16U);
    for (const char* part : {"attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up"}) {
      EXPECT_EQ(blocks_of_type(chooser, part, 32, base).size(), 32U) << part;
    }
    EXPECT_EQ(chooser.choose({"output.weight", kMatrix}).type, BlockType::kQ6_K);
    EXPECT_EQ(chooser.choose({"output.weight", kMatrix}).reason, Reason::kMix);
    EXPECT_EQ(chooser.choose({"token_embd.weight", kMatrix}).type, base);
  }
}

TEST(TypeChooser, AMixCountsTheLayersItselfWhereTheFileDoesNot) {
  const Names model(32);
  const auto outlines = model.outlines();
  const TypeChooser chooser(target("Q4_K_M"), {"llama", 0, 0}, outlines);
  EXPECT_EQ(blocks_of_type(chooser, "ffn_down", 32, BlockType::kQ6_K).size(), 16U);
}

TEST(TypeChooser, ValueMatricesAreCountedAmongThoseThereAre) {
  std::vector<std::string> names;
  for (int i = 3; i < 64; i += 4)
    names.push_back("blk." + std::to_string(i) + ".attn_v.weight");  // 16 of 64 blocks
  std::vector<TensorOutline> outlines;
  for (const std::string& name : names) outlines.push_back({name, kMatrix});
  const TypeChooser chooser(target("Q4_K_M"), {"qwen3next", 64, 0}, outlines);
  std::vector<std::string> more;
  for (const TensorOutline& outline : outlines) {
    if (chooser.choose(outline).type == BlockType::kQ6_K) more.emplace_back(outline.name.substr(4, 2));
  }
  EXPECT_EQ(more, (std::vector<std::string>{"3.", "7.", "19", "31", "43", "55", "59", "63"}));
}

TEST(TypeChooser, ATiedEmbeddingCountsAsOutputMatrixInAMix) {
  const Names model(8, true);
  const auto outlines = model.outlines();
  EXPECT_EQ(
      TypeChooser(target("Q4_K_M"), {"llama", 8, 0}, outlines).choose({"token_embd.weight", kMatrix}).type,
      BlockType::kQ6_K);
  EXPECT_EQ(
      TypeChooser(target("Q4_K"), {"llama", 8, 0}, outlines).choose({"token_embd.weight", kMatrix}).type,
      BlockType::kQ4_K);
}

TEST(TypeChooser, AMixKnowsEightExpertsFusedAttentionAndFalcon) {
  const Names model(32);
  const auto outlines = model.outlines();
  const TypeChooser experts(target("Q4_K_M"), {"llama", 32, 8}, outlines);
  EXPECT_EQ(experts.choose({"blk.5.attn_v.weight", kMatrix}).type, BlockType::kQ8_0);
  EXPECT_EQ(experts.choose({"blk.5.attn_k.weight", kMatrix}).type, BlockType::kQ8_0);
  EXPECT_EQ(experts.choose({"blk.5.attn_output.weight", kMatrix}).type, BlockType::kQ5_K);
  EXPECT_EQ(experts.choose({"blk.6.ffn_down_exps.weight", kMatrix}).type, BlockType::kQ6_K);
  const TypeChooser fused(target("Q4_K_M"), {"phi3", 32, 0}, outlines);
  EXPECT_EQ(fused.choose({"blk.5.attn_qkv.weight", kMatrix}).type, BlockType::kQ5_K);
  const TypeChooser fused5(target("Q5_K_M"), {"phi3", 32, 0}, outlines);
  EXPECT_EQ(fused5.choose({"blk.5.attn_qkv.weight", kMatrix}).type, BlockType::kQ6_K);
  const TypeChooser falcon(target("Q4_K_M"), {"falcon", 32, 0}, outlines);
  EXPECT_EQ(falcon.choose({"output.weight", kMatrix}).type, BlockType::kQ8_0);
  EXPECT_EQ(falcon.choose({"blk.1.ffn_down.weight", kMatrix}).type, BlockType::kQ6_K);
  EXPECT_EQ(falcon.choose({"blk.3.ffn_down.weight", kMatrix}).type, BlockType::kQ5_K);
  EXPECT_EQ(falcon.choose({"blk.5.ffn_down.weight", kMatrix}).type, BlockType::kQ4_K);
}

TEST(TypeChooser, KeepsWhatIsSmallOrDelicate) {
  const TypeChooser chooser(target("Q4_0"), {"llama", 4, 0}, {});
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight", "blk.0.attn_q_norm.weight", "position_embd.weight", "token_types.weight",
        "blk.0.ssm_conv1d.weight", "blk.0.shortconv.conv.weight", "enc.blk.0.attn_rel_b.weight",
        "blk.0.time_mix_w1.weight", "blk.0.ssm_a", "blk.0.ssm_d"}) {
    EXPECT_EQ(chooser.choose({name, kMatrix}).reason, Reason::kKept) << name;
  }
  EXPECT_EQ(chooser.choose({"blk.0.attn_q.weight", kVector}).reason, Reason::kKept);
  EXPECT_EQ(chooser.choose({"blk.0.attn_q.bias", kMatrix}).reason, Reason::kKept);
  constexpr std::array<std::uint64_t, 3> kOneRow = {4096, 1, 1};
  EXPECT_EQ(chooser.choose({"blk.0.attn_q.weight", kOneRow}).reason, Reason::kKept);
  constexpr std::array<std::uint64_t, 3> kExperts = {4096, 64, 8};
  EXPECT_EQ(chooser.choose({"blk.0.ffn_up_exps.weight", kExperts}).type, BlockType::kQ4_0);
}

TEST(TypeChooser, RowsThatDoNotDivideBecomeQ8OrF16) {
  const TypeChooser chooser(target("Q4_K"), {"llama", 4, 0}, {});
  constexpr std::array<std::uint64_t, 2> kBy32 = {896, 64};
  constexpr std::array<std::uint64_t, 2> kByNothing = {40, 64};
  const TypeChoice eight = chooser.choose({"blk.0.attn_q.weight", kBy32});
  EXPECT_EQ(eight.type, BlockType::kQ8_0);
  EXPECT_EQ(eight.wished, BlockType::kQ4_K);
  EXPECT_EQ(eight.reason, Reason::kRowLength);
  EXPECT_EQ(chooser.choose({"blk.0.attn_q.weight", kByNothing}).type, BlockType::kF16);
  const TypeChooser plain(target("BF16"), {"llama", 4, 0}, {});
  EXPECT_EQ(plain.choose({"blk.0.attn_q.weight", kByNothing}).type, BlockType::kBF16);
}

TEST(RowLengthNotes, SayEachLengthAndTypeOnceWithAFewNames) {
  std::vector<std::string> sentences;
  const WorkHooks hooks{.begin = [](std::uint64_t) {},
                        .progress = [](std::uint64_t, std::string_view) {},
                        .note = [&](std::string_view sentence) { sentences.emplace_back(sentence); },
                        .stop = [] { return false; }};
  RowLengthNotes notes;
  const TypeChoice unfit{BlockType::kQ8_0, BlockType::kQ4_K, Reason::kRowLength};
  for (const char* name : {"a", "b", "c", "d", "e"}) notes.add(name, 896, unfit);
  notes.add("f", 256, {BlockType::kQ4_K, BlockType::kQ4_K, Reason::kAsAsked});
  notes.add("g", 40, {BlockType::kF16, BlockType::kQ4_K, Reason::kRowLength});
  notes.tell(hooks);
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0],
            "rows of 40 do not divide into the blocks of Q4_K (256 values), so these become F16: g");
  EXPECT_EQ(sentences[1],
            "rows of 896 do not divide into the blocks of Q4_K (256 values), so these become Q8_0: a, b, c "
            "and 2 more");
}

}  // namespace
}  // namespace kvasir::cli
