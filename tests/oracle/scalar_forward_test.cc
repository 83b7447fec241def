// The engine against its scalar twin over models made here: every way in which the known architectures
// differ.

#include "scalar_forward.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace kvasir::oracle::test {
namespace {

using kvasir::test::GgufDraft;
using kvasir::test::load;
using kvasir::test::LoadedModel;
using kvasir::test::normalized_error;
using kvasir::test::random_tokens;
using kvasir::test::take;
using kvasir::test::Taken;
using kvasir::test::tiny_model;
using kvasir::test::TinyShape;
using quant::BlockType;

// More than an attention tile, and positions far enough for every rotation to show.
constexpr std::size_t kTokens = 150;

struct Comparison {
  std::vector<float> found;
  std::vector<float> wanted;
  std::size_t vocabulary = 0;
};

Comparison compare_with_twin(const GgufDraft& draft) {
  const LoadedModel model = load(draft);
  const std::vector<Token> tokens = random_tokens(model.vocabulary(), kTokens, 7);
  Taken taken = take(model, tokens, {.threads = 2, .pass_tokens = 60});
  return {std::move(taken.logits), scalar_forward(model.model->network(), *model.file, tokens),
          model.vocabulary()};
}

double distance_from_twin(const GgufDraft& draft) {
  const Comparison both = compare_with_twin(draft);
  return normalized_error(both.found, both.wanted);
}

// Of how many tokens the logits are within the bound of the twin's, each by itself.
std::size_t rows_near_twin(const Comparison& both) {
  std::size_t near = 0;
  for (std::size_t at = 0; at < both.found.size(); at += both.vocabulary) {
    const auto row = [&](const std::vector<float>& logits) {
      return std::vector<float>(logits.begin() + static_cast<std::ptrdiff_t>(at),
                                logits.begin() + static_cast<std::ptrdiff_t>(at + both.vocabulary));
    };
    near += normalized_error(row(both.found), row(both.wanted)) <= kTwinBound ? 1 : 0;
  }
  return near;
}

bool is_of_codes(BlockType type) {
  const auto panels = simd::Panels::allocate(type, simd::kPanelRows, 256);
  return panels.has_value() && panels->takes_bytes();
}

struct Case {
  std::string name;
  TinyShape shape;
};

class EveryShape : public testing::TestWithParam<Case> {};

TEST_P(EveryShape, AgreesWithTheScalarTwin) {
  const Comparison both = compare_with_twin(tiny_model(GetParam().shape));
  const double distance = normalized_error(both.found, both.wanted);
  if (!is_of_codes(GetParam().shape.type)) {
    EXPECT_LE(distance, kTwinBound);
    return;
  }
  EXPECT_LE(distance, kTwinBoundOfSteps);
  EXPECT_GE(rows_near_twin(both), kTokens / 10);
}

// The reference must be able to tell: one weight changed by a thousandth shows; where activations go in
// steps, one changed by more than a step.
TEST_P(EveryShape, ShowsASmallChangeOfOneTensor) {
  const LoadedModel model = load(tiny_model(GetParam().shape));
  GgufDraft changed = tiny_model(GetParam().shape);
  std::vector<float> norm(GetParam().shape.embedding, 1.0F);
  norm[3] = is_of_codes(GetParam().shape.type) ? 1.1F : 1.001F;
  changed.floats("blk.0.ffn_norm.weight", {norm.size()}, norm);
  GgufDraft plain = changed;
  norm[3] = 1.0F;
  plain.floats("blk.0.ffn_norm.weight", {norm.size()}, norm);
  const std::vector<Token> tokens = random_tokens(model.vocabulary(), 20, 7);
  const Taken taken = take(load(plain), tokens, {});
  const LoadedModel other = load(changed);
  const auto twin = scalar_forward(other.model->network(), *other.file, tokens);
  EXPECT_GT(normalized_error(taken.logits, twin), kTwinBound);
}

std::vector<Case> cases() {
  return {
      {"MultiHead", {.heads = 4, .kv_heads = 4}},
      {"GroupedQuery", {.heads = 4, .kv_heads = 2}},
      {"MultiQuery", {.heads = 4, .kv_heads = 1}},
      {"MoreQueryHeadsThanAKernelTakesAtOnce", {.heads = 12, .kv_heads = 1, .key_dims = 16}},
      {"HeadsOfTheirOwnSize", {.key_dims = 24}},
      {"ValuesOfTheirOwnSize", {.key_dims = 16, .value_dims = 40}},
      {"OneHeadOfTwoDimensions", {.heads = 1, .kv_heads = 1, .key_dims = 2}},
      {"WidthsThatFillNoPanel",
       {.embedding = 52, .heads = 2, .kv_heads = 1, .feed_forward = 33, .vocabulary = 61}},
      {"OneLayer", {.layers = 1}},
      {"FusedQueryKeyValue", {.fused = true}},
      {"Biases", {.biases = true}},
      {"FusedWithBiases", {.fused = true, .biases = true}},
      {"TiedEmbeddings", {.tied = true}},
      {"LargeEpsilon", {.epsilon = 0.1F}},
      {"Experts", {.experts = 5, .experts_used = 2}},
      {"AllExpertsUsed", {.experts = 3, .experts_used = 3}},
      {"OneExpertUsed", {.experts = 4, .experts_used = 1}},
      {"Qwen2", {.architecture = "qwen2", .biases = true}},
      {"Qwen2Tied", {.architecture = "qwen2", .biases = true, .tied = true}},
      {"Qwen3", {.architecture = "qwen3", .key_dims = 32, .head_norms = true}},
      {"RopeBase", {.rope_base = 500000.0F}},
      {"RopeLinear", {.rope_scaling = "linear", .rope_factor = 4.0F}},
      {"RopeFactorWithoutAType", {.rope_factor = 4.0F}},
      {"RopeFactorSwitchedOff", {.rope_scaling = "none", .rope_factor = 4.0F}},
      {"RopeYarn", {.context = 512, .rope_scaling = "yarn", .rope_factor = 8.0F}},
      {"RopeYarnOfHalves",
       {.architecture = "qwen2", .context = 512, .rope_scaling = "yarn", .rope_factor = 8.0F}},
      {"RopeFactorTensor", {.rope_factors = {1, 1, 1.5F, 2, 3, 5, 8, 8}}},
      {"WeightsF16", {.type = BlockType::kF16}},
      {"WeightsBF16", {.type = BlockType::kBF16}},
      {"WeightsQ8_0", {.feed_forward = 96, .type = BlockType::kQ8_0}},
      {"WeightsQ4_0", {.feed_forward = 96, .type = BlockType::kQ4_0}},
      {"WeightsQ4_K", {.embedding = 256, .feed_forward = 256, .type = BlockType::kQ4_K}},
      {"WeightsQ6_K", {.embedding = 256, .feed_forward = 256, .type = BlockType::kQ6_K}},
      {"WeightsIQ4_XS", {.embedding = 256, .feed_forward = 256, .type = BlockType::kIQ4_XS}},
      {"WeightsIQ3_XXS", {.embedding = 256, .feed_forward = 256, .type = BlockType::kIQ3_XXS}},
      {"WeightsIQ2_S", {.embedding = 256, .feed_forward = 256, .type = BlockType::kIQ2_S}},
      {"WeightsNVFP4", {.feed_forward = 192, .type = BlockType::kNVFP4}},
      {"WeightsTQ2_0", {.embedding = 256, .feed_forward = 256, .type = BlockType::kTQ2_0}},
      {"ExpertsOfQ4_0", {.feed_forward = 96, .experts = 4, .experts_used = 2, .type = BlockType::kQ4_0}},
  };
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryShape, testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

// A partial rotation: the dimensions behind rope.dimension_count stay.
TEST(ScalarTwin, AgreesWhereOnlyPartOfAHeadTurns) {
  for (const char* architecture : {"llama", "qwen2"}) {
    GgufDraft draft = tiny_model({.architecture = architecture});
    draft.set(std::string(architecture) + ".rope.dimension_count", 6U);
    EXPECT_LE(distance_from_twin(draft), kTwinBound) << architecture;
  }
}

TEST(ScalarTwin, AgreesOnEveryYarnSetting) {
  GgufDraft draft = tiny_model({.context = 2048, .rope_scaling = "yarn", .rope_factor = 16.0F});
  draft.set("llama.rope.scaling.original_context_length", 128U)
      .set("llama.rope.scaling.yarn_ext_factor", 0.75F)
      .set("llama.rope.scaling.yarn_beta_fast", 24.0F)
      .set("llama.rope.scaling.yarn_beta_slow", 2.0F)
      .set("llama.rope.scaling.attn_factor", 1.25F);
  EXPECT_LE(distance_from_twin(draft), kTwinBound);
}

TEST(ScalarTwin, AgreesOnAnAttentionScaleOfTheFile) {
  GgufDraft draft = tiny_model({});
  const double before = distance_from_twin(draft);
  draft.set("llama.attention.scale", 0.5F);
  EXPECT_LE(before, kTwinBound);
  EXPECT_LE(distance_from_twin(draft), kTwinBound);
  const std::vector<Token> tokens = random_tokens(96, 20, 7);
  const Taken scaled = take(load(draft), tokens, {});
  const Taken plain = take(load(tiny_model({})), tokens, {});
  EXPECT_GT(normalized_error(scaled.logits, plain.logits), 1e-4);
}

}  // namespace
}  // namespace kvasir::oracle::test
