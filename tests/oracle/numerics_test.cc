// The numerics id: bits change only together with the kernel revision, and not with the instruction set.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <string>
#include <vector>

#include "model/fingerprint.h"
#include "simd/products.h"
#include "support/engine_run.h"
#include "support/instruction_sets.h"
#include "support/tiny_model.h"

namespace kvasir::oracle::test {
namespace {

using kvasir::test::load;
using kvasir::test::LoadedModel;
using kvasir::test::random_tokens;
using kvasir::test::take;
using kvasir::test::tiny_model;
using kvasir::test::TinyShape;
using quant::BlockType;

// Sets of instructions that fuse multiply and add; others round twice and have a numerics id of their own.
bool fuses() {
  return simd::instruction_set() == "AVX3" || simd::instruction_set() == "AVX2" ||
         simd::instruction_set() == "NEON";
}

// A hash of the logits of models with weights of every way to be multiplied, over caches of every element.
std::string digest_of_all() {
  std::vector<float> all;
  const auto add = [&](const TinyShape& shape, const kv::CacheTypes& types) {
    const LoadedModel model = load(tiny_model(shape));
    const std::vector<Token> tokens = random_tokens(model.vocabulary(), 150, 11);
    const std::vector<float> logits = take(model, tokens, {.types = types}).logits;
    all.insert(all.end(), logits.begin(), logits.end());
  };
  for (const BlockType type :
       {BlockType::kF32, BlockType::kF16, BlockType::kBF16, BlockType::kQ8_0, BlockType::kQ4_0,
        BlockType::kQ5_1, BlockType::kQ2_K, BlockType::kQ4_K, BlockType::kQ6_K, BlockType::kIQ4_XS,
        BlockType::kMXFP4, BlockType::kNVFP4, BlockType::kIQ3_XXS, BlockType::kIQ3_S, BlockType::kIQ2_S,
        BlockType::kTQ1_0, BlockType::kTQ2_0}) {
    add({.embedding = 256, .feed_forward = 256, .type = type}, {});
  }
  add({.experts = 4, .experts_used = 2}, {});
  for (const kv::CacheTypes& types : kvasir::test::all_cache_types()) add({}, types);
  return fmt::format("{:016x}", XXH3_64bits(all.data(), all.size() * sizeof(float)));
}

TEST(Numerics, ChangeOnlyWithTheKernelRevision) {
  if (!fuses()) return;
  // Where this fails on purpose, raise kKernelRevision in src/model/fingerprint.cc and enter both.
  EXPECT_EQ(model::numerics_id().substr(0, 2), "4 ");
  EXPECT_EQ(digest_of_all(), "79bf48a7a9a2aa30");
}

TEST(Numerics, AreTheSameOnEveryInstructionSetThatFuses) {
  std::vector<std::string> digests;
  kvasir::test::with_each_instruction_set([&](std::int64_t) {
    if (fuses()) digests.push_back(digest_of_all());
  });
  for (const std::string& digest : digests) EXPECT_EQ(digest, digests.front());
  EXPECT_EQ(digests.empty(), !fuses());
  RecordProperty("instruction_sets", static_cast<int>(digests.size()));
}

}  // namespace
}  // namespace kvasir::oracle::test
