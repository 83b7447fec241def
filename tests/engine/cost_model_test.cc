// What the model of a pass's time learns, and how it errs where it knows little.

#include "engine/cost_model.h"

#include <gtest/gtest.h>

#include <random>

namespace kvasir::engine {
namespace {

TEST(CostModel, KnowsNothingAtFirst) {
  const CostModel model;
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.predict(100), 0);
  EXPECT_EQ(model.tokens_within(1, 4, 512), 512U);
}

TEST(CostModel, LearnsWhatAPassAndWhatATokenTakes) {
  CostModel model;
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t tokens = 1 + random() % 512;
    model.observe(tokens, 5'000'000 + static_cast<std::int64_t>(tokens) * 70'000);
  }
  EXPECT_NEAR(static_cast<double>(model.predict(100)), 12e6, 1e4);
  EXPECT_NEAR(static_cast<double>(model.tokens_within(8'500'000, 1, 512)), 50, 1);
  EXPECT_EQ(model.tokens_within(1'000, 17, 512), 17U);
  EXPECT_EQ(model.tokens_within(1'000'000'000, 17, 512), 512U);
}

TEST(CostModel, FollowsAMachineThatBecomesSlower) {
  CostModel model;
  for (int i = 0; i < 300; ++i) {
    for (const std::uint64_t tokens : {1U, 64U}) {
      model.observe(tokens, (i < 200 ? 1 : 3) * static_cast<std::int64_t>(1'000'000 + tokens * 10'000));
    }
  }
  EXPECT_NEAR(static_cast<double>(model.predict(64)), 3 * 1.64e6, 0.1e6);
}

// One size of pass says nothing about larger ones: they must not be thought free.
TEST(CostModel, TakesAPassToGrowWithItsTokensUntilItKnowsBetter) {
  CostModel model;
  for (int i = 0; i < 20; ++i) model.observe(8, 4'000'000);
  EXPECT_NEAR(static_cast<double>(model.predict(16)), 8e6, 2);
  EXPECT_EQ(model.tokens_within(6'100'000, 1, 512), 12U);
}

TEST(CostModel, NeverPredictsLessForMoreTokens) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    CostModel model;
    for (int i = 0; i < 20; ++i)
      model.observe(1 + random() % 100, static_cast<std::int64_t>(random() % 1'000'000));
    for (std::uint64_t tokens = 1; tokens < 200; ++tokens) {
      ASSERT_LE(model.predict(tokens), model.predict(tokens + 1));
      ASSERT_GE(model.predict(tokens), 0);
    }
  }
}

}  // namespace
}  // namespace kvasir::engine
