// Files that are sound GGUF and no sound model: each is refused with a sentence that names what is wrong, in
// little memory.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/model.h"
#include "support/allocations.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace kvasir::model {
namespace {

using gguf::Value;
using kvasir::test::GgufDraft;
using kvasir::test::tiny_model;
using kvasir::test::TinyShape;
using kvasir::test::try_load;
using quant::BlockType;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TinyShape experts() {
  return {.experts = 4, .experts_used = 2};
}

// The file does not load, the message holds `named`, and loading took little memory beyond the file itself.
void expect_refused(const GgufDraft& draft, Outcome code, const std::string& named) {
  const auto pool = *parallel::ThreadPool::create(1);
  const gguf::File file = draft.open();
  const kvasir::test::AllocationMeter meter;
  const auto loaded = Model::load(file, *pool);
  ASSERT_FALSE(loaded) << "a model with a bad " << named << " loads";
  EXPECT_EQ(loaded.error().code(), code) << loaded.error().message();
  EXPECT_NE(loaded.error().message().find(named), std::string::npos)
      << "'" << named << "' is not in: " << loaded.error().message();
  EXPECT_LT(meter.peak(), 2 * kMiB);
}

// A key that takes each of these values in turn.
void expect_key_refused(const TinyShape& shape, const std::string& key, const std::vector<Value>& values,
                        Outcome code = Outcome::kCorrupt) {
  GgufDraft draft = tiny_model(shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    SCOPED_TRACE(key + ", value " + std::to_string(i));
    draft.set(shape.architecture + "." + key, values[i]);
    expect_refused(draft, code, key);
  }
}

void expect_key_needed(const TinyShape& shape, const std::string& key) {
  GgufDraft draft = tiny_model(shape);
  draft.erase(shape.architecture + "." + key);
  expect_refused(draft, Outcome::kCorrupt, key);
}

// Values that no count may have, whatever it counts.
std::vector<Value> no_counts() {
  return {Value::scalar<std::uint32_t>(0),
          Value::scalar<std::uint32_t>(1U << 31),
          Value::scalar<std::uint32_t>(UINT32_MAX),
          Value::scalar<std::uint64_t>(std::uint64_t{1} << 32),
          Value::scalar<std::uint64_t>(UINT64_MAX),
          Value::scalar<std::int32_t>(-1),
          Value::scalar<std::int64_t>(std::numeric_limits<std::int64_t>::min()),
          Value::scalar<float>(2.0F),
          Value::scalar<bool>(true),
          Value::string("2"),
          Value::array<float>(std::vector<float>{2.0F})};
}

TEST(HostileModels, CountsThatCannotBeAreRefusedByKey) {
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
                          "attention.head_count_kv", "attention.key_length", "attention.value_length"}) {
    expect_key_refused({}, key, no_counts());
  }
  expect_key_refused(experts(), "expert_used_count", no_counts());
}

TEST(HostileModels, KeysWithoutADefaultAreNeeded) {
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
                          "context_length", "attention.layer_norm_rms_epsilon"}) {
    expect_key_needed({}, key);
  }
  expect_key_needed(experts(), "expert_used_count");
}

TEST(HostileModels, CountsThatDoNotFitTogetherAreRefusedByKey) {
  const auto number = [](std::uint32_t value) { return std::vector<Value>{Value::scalar(value)}; };
  expect_key_refused({}, "attention.head_count", number(3));      // of 64, and no multiple of 2
  expect_key_refused({}, "attention.head_count_kv", number(3));   // of 4
  expect_key_refused({}, "attention.head_count_kv", number(8));   // more than query heads
  expect_key_refused(experts(), "expert_used_count", number(5));  // of 4
  expect_key_refused({}, "expert_count",
                     {Value::scalar(4097U), Value::scalar(UINT32_MAX), Value::string("4")});
}

TEST(HostileModels, MoreThanTheTensorsHoldIsRefusedByTensor) {
  const auto refused = [](const char* key, std::uint32_t value, const char* tensor) {
    GgufDraft draft = tiny_model({});
    draft.set(std::string("llama.") + key, value);
    expect_refused(draft, Outcome::kCorrupt, tensor);
  };
  refused("block_count", 3, "blk.2.");
  refused("block_count", 4096, "blk.2.");
  refused("embedding_length", 128, "token_embd.weight");
  refused("embedding_length", 1 << 20, "token_embd.weight");
  refused("feed_forward_length", 81, "ffn_gate.weight");
  refused("feed_forward_length", 1 << 20, "ffn_gate.weight");
  refused("attention.head_count", 8, "attn_k.weight");
  refused("attention.key_length", 512, "attn_q.weight");
  refused("attention.value_length", 17, "attn_v.weight");
  refused("expert_count", 2, "expert_used_count");
}

TEST(HostileModels, CountsMayBeArraysOfOneNumberForEachLayer) {
  const auto array = [](std::vector<std::int32_t> values) {
    return std::vector<Value>{Value::array<std::int32_t>(values)};
  };
  for (const char* key : {"attention.head_count", "attention.head_count_kv", "feed_forward_length"}) {
    expect_key_refused({}, key, array({}));
    expect_key_refused({}, key, array({4}));  // of two layers
    expect_key_refused({}, key, array({0, 0}));
    expect_key_refused({}, key, array({2, 0}));
    expect_key_refused({}, key, array({-4, -4}));
    expect_key_refused({}, key, array({1 << 30, 1 << 30}));
  }
  GgufDraft draft = tiny_model({});
  draft.set("llama.attention.head_count", array({4, 4})[0])
      .set("llama.attention.head_count_kv", array({2, 2})[0])
      .set("llama.feed_forward_length", array({80, 80, 7})[0]);  // more than there are layers
  EXPECT_TRUE(try_load(draft));
  draft.set("llama.attention.head_count", array({4, 2})[0]);
  expect_refused(draft, Outcome::kCorrupt, "blk.1.attn_q.weight");
}

TEST(HostileModels, NumbersThatCannotBeAreRefusedByKey) {
  const auto number = [](float value) { return std::vector<Value>{Value::scalar(value)}; };
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const char* key : {"attention.layer_norm_rms_epsilon", "attention.scale", "rope.freq_base",
                            "rope.scaling.factor", "rope.scaling.attn_factor"}) {
      expect_key_refused({}, key, number(bad));
    }
    for (const char* key : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_beta_fast",
                            "rope.scaling.yarn_beta_slow", "rope.scaling.original_context_length"}) {
      expect_key_refused({.rope_scaling = "yarn", .rope_factor = 4}, key, number(bad));
    }
  }
  expect_key_refused({}, "attention.layer_norm_rms_epsilon", number(-1e-5F));
  expect_key_refused({}, "attention.layer_norm_rms_epsilon", {Value::string("1e-5")});
  for (const float bad : {0.0F, -10000.0F, 1.0F}) expect_key_refused({}, "rope.freq_base", number(bad));
  expect_key_refused({}, "rope.scaling.factor", number(-2));
  expect_key_refused({}, "rope.scaling.attn_factor", number(0));
  const TinyShape yarn{.rope_scaling = "yarn", .rope_factor = 4};
  for (const float bad : {0.0F, -1.0F}) {
    expect_key_refused(yarn, "rope.scaling.original_context_length", number(bad));
    expect_key_refused(yarn, "rope.scaling.yarn_beta_fast", number(bad));
    expect_key_refused(yarn, "rope.scaling.yarn_beta_slow", number(bad));
  }
}

TEST(HostileModels, RotationsThatCannotBeAreRefusedByKey) {
  expect_key_refused({}, "rope.dimension_count", no_counts());
  expect_key_refused({}, "rope.dimension_count", {Value::scalar(1U), Value::scalar(7U), Value::scalar(18U)});
  expect_key_refused({}, "rope.scaling.type",
                     {Value::string("longrope"), Value::string("Linear"), Value::string("")},
                     Outcome::kUnsupported);
  expect_key_refused({}, "rope.scaling.type", {Value::scalar(1U)});
  // Heads of an odd size, all of which is to turn.
  expect_refused(tiny_model({.key_dims = 15}), Outcome::kCorrupt, "rope.dimension_count");
  for (const std::vector<float>& factors :
       std::vector<std::vector<float>>{{1, 1, 1},
                                       std::vector<float>(9, 1),
                                       {0, 1, 1, 1, 1, 1, 1, 1},
                                       {1, 1, 1, -1, 1, 1, 1, 1},
                                       {1, 1, 1, kNan, 1, 1, 1, 1},
                                       {1, 1, 1, kInfinity, 1, 1, 1, 1}}) {
    expect_refused(tiny_model({.rope_factors = factors}), Outcome::kCorrupt, "rope_freqs.weight");
  }
}

// K72: a claim costs nothing before it is used.
TEST(HostileModels, AContextOfTwoToTheThirtyFirstLoadsInLittleMemory) {
  GgufDraft draft = tiny_model({});
  for (const std::uint64_t context : {std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{UINT32_MAX}}) {
    draft.set("llama.context_length", Value::scalar(context));
    const kvasir::test::AllocationMeter meter;
    const auto model = try_load(draft);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ((*model)->sizes().context, context);
    EXPECT_LT(meter.peak(), 4 * kMiB);
  }
  expect_key_refused({}, "context_length",
                     {Value::scalar<std::uint32_t>(0), Value::scalar<std::uint64_t>(std::uint64_t{1} << 32),
                      Value::scalar<std::uint64_t>(UINT64_MAX), Value::scalar<std::int32_t>(-1)});
}

TEST(HostileModels, AnUnknownArchitectureIsNamedBesideTheKnownOnes) {
  for (const std::string name : {"gpt9", "", "LLAMA", "llama "}) {
    GgufDraft draft = tiny_model({});
    draft.set("general.architecture", name);
    expect_refused(draft, Outcome::kUnsupported, "'" + name + "'");
    expect_refused(draft, Outcome::kUnsupported, "llama, ");
  }
  GgufDraft draft = tiny_model({});
  draft.set("general.architecture", std::string(60'000, 'x'));
  expect_refused(draft, Outcome::kUnsupported, "xxx");
  EXPECT_LT(try_load(draft).error().message().size(), 600U);
  draft.erase("general.architecture");
  expect_refused(draft, Outcome::kCorrupt, "general.architecture");
  draft.set("general.architecture", 7U);
  expect_refused(draft, Outcome::kCorrupt, "general.architecture");
}

// Every tensor in turn is missing, of another shape, or of a type that cannot be weights.
TEST(HostileModels, EveryTensorIsHeldToItsShapeAndType) {
  const std::vector<TinyShape> shapes = {{.biases = true},
                                         {.fused = true, .biases = true},
                                         {.architecture = "qwen3", .head_norms = true},
                                         experts()};
  for (const TinyShape& shape : shapes) {
    const GgufDraft sound = tiny_model(shape);
    ASSERT_TRUE(try_load(sound));
    for (const std::string& name : sound.tensor_names()) {
      // Without a bias there is none, without an output matrix the embedding serves.
      const bool optional =
          name.ends_with(".bias") || name == "output.weight" || name.ends_with("q_norm.weight");
      GgufDraft draft = sound;
      draft.erase_tensor(name);
      if (optional) {
        EXPECT_TRUE(try_load(draft)) << name;
      } else {
        // Where query, key and value are not one, they are looked for one by one.
        const bool fused = name.ends_with("attn_qkv.weight");
        expect_refused(draft, Outcome::kCorrupt, fused ? "attn_q.weight" : name);
      }
      for (const std::vector<std::uint64_t>& dims :
           std::vector<std::vector<std::uint64_t>>{{1}, {63}, {64, 3}, {32, 64}, {64, 64, 2}, {2, 2, 2, 2}}) {
        draft = sound;
        draft.tensor(name, dims);
        // The embedding's rows are the vocabulary, to which the output matrix is held.
        const bool only_rows = name == "token_embd.weight" && dims[0] == 64 && dims.size() == 2;
        expect_refused(draft, Outcome::kCorrupt, only_rows ? "output.weight" : name);
      }
    }
  }
}

TEST(HostileModels, TypesThatAreNoWeightsAreRefusedByTensor) {
  for (const char* name : {"token_embd.weight", "blk.1.attn_norm.weight", "blk.0.ffn_up.weight"}) {
    const bool vector = std::string(name).find("norm") != std::string::npos;
    GgufDraft draft = tiny_model({.vocabulary = 80});
    draft.zeros(name, vector ? std::vector<std::uint64_t>{64} : std::vector<std::uint64_t>{64, 80},
                BlockType::kI32);
    expect_refused(draft, Outcome::kUnsupported, name);
  }
}

// Weights may be anything: what is computed is then no number, and nothing ends.
TEST(HostileModels, WeightsThatAreNoNumbersRunToTheirEnd) {
  for (const TinyShape& shape : {TinyShape{}, experts()}) {
    for (const float poison : {kNan, kInfinity, -kInfinity, 3e38F}) {
      for (const char* name : {"blk.0.attn_norm.weight", "blk.1.ffn_norm.weight", "output_norm.weight"}) {
        GgufDraft draft = tiny_model(shape);
        draft.floats(name, {64}, std::vector<float>(64, poison));
        const auto model = kvasir::test::load(draft);
        const auto taken = take(model, kvasir::test::random_tokens(model.vocabulary(), 20, 1), {.beside = 1});
        EXPECT_EQ(taken.logits.size(), 20U * model.vocabulary());
      }
    }
  }
}

// A NaN of one conversation stays with it: only the token whose embedding is poisoned brings it in.
TEST(HostileModels, APoisonedTokenDisturbsNoOtherConversation) {
  for (const TinyShape& shape : {TinyShape{}, experts()}) {
    const auto clean = kvasir::test::load(tiny_model(shape));
    std::vector<float> embedding(std::size_t{64} * 96);
    for (std::size_t row = 0; row < 96; ++row) {
      clean.model->network().token_embedding.read_row(row, std::span(embedding).subspan(row * 64, 64));
    }
    for (std::size_t i = 0; i < 64; ++i) embedding[5 * 64 + i] = i % 2 == 0 ? kNan : kInfinity;
    GgufDraft draft = tiny_model(shape);
    draft.floats("token_embd.weight", {64, 96}, embedding);
    const auto poisoned = kvasir::test::load(draft);
    const auto host = kvasir::test::make_engine(
        poisoned, {.pool = 256, .types = {kv::CacheElement::kF32, kv::CacheElement::kF32}});
    std::vector<Token> tokens = kvasir::test::random_tokens(90, 20, 1);
    for (Token& token : tokens) token += 6;  // none is the poisoned one
    const auto ours = *host->open();
    const auto other = *host->open();
    ASSERT_TRUE(host->prompt(ours, tokens, engine::LogitsWanted::kLast));
    ASSERT_TRUE(host->prompt(other, std::vector<Token>(20, 5), engine::LogitsWanted::kLast));
    const auto report = host->step();
    ASSERT_EQ(report->shared_passes.at(0).size(), 2U);
    EXPECT_TRUE(kvasir::test::same_bits(*host->last_logits(ours), take(clean, tokens, {}).last));
    EXPECT_TRUE(std::isnan((*host->last_logits(other))[0]));
  }
}

}  // namespace
}  // namespace kvasir::model
