// The planner as a pure function: bounds, order and fairness, over random demands and by hand.

#include "engine/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace kvasir::engine {
namespace {

using Shares = std::vector<std::uint32_t>;

Shares plan_pass(const std::vector<Demand>& demands, const PassBounds& bounds, std::size_t first) {
  PassPlan plan;
  plan.shares.assign(3, 99);  // of a pass before
  engine::plan_pass(demands, bounds, first, plan);
  return plan.shares;
}

// A random number from 1 to `most`.
std::uint32_t up_to(std::mt19937& random, std::uint32_t most) {
  return 1 + static_cast<std::uint32_t>(random() % most);
}

struct Sums {
  std::uint64_t tokens = 0;
  std::uint64_t rows = 0;
};

Sums sums_of(const std::vector<Demand>& demands, const Shares& shares) {
  Sums sums;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sums.tokens += shares[i];
    if (demands[i].every_logit) {
      sums.rows += shares[i];
    } else if (shares[i] > 0 && shares[i] == demands[i].queued) {
      ++sums.rows;
    }
  }
  return sums;
}

TEST(Planner, NeverExceedsABoundAndNeverIdlesWhileSomethingIsQueued) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<Demand> demands(random() % 9);
    std::uint64_t queued = 0;
    for (Demand& demand : demands) {
      demand = {random() % 4 == 0 ? 0 : random() % (random() % 2 == 0 ? 2 : 60), random() % 3 == 0};
      queued += demand.queued;
    }
    const PassBounds bounds{up_to(random, 40), up_to(random, 40)};
    const Shares shares = plan_pass(demands, bounds, random() % 20);
    ASSERT_EQ(shares.size(), demands.size());
    for (std::size_t i = 0; i < shares.size(); ++i) ASSERT_LE(shares[i], demands[i].queued);
    const Sums sums = sums_of(demands, shares);
    ASSERT_LE(sums.tokens, bounds.tokens);
    ASSERT_LE(sums.rows, bounds.logit_rows);
    ASSERT_EQ(sums.tokens == 0, queued == 0);
  }
}

// Where rows of logits are no bound, a pass is full or takes everything.
TEST(Planner, FillsThePassWhereEnoughIsQueued) {
  std::mt19937 random(2);
  for (int round = 0; round < 5'000; ++round) {
    std::vector<Demand> demands(1 + random() % 8);
    std::uint64_t queued = 0;
    for (Demand& demand : demands) queued += demand.queued = random() % 50;
    const PassBounds bounds{up_to(random, 60), 1'000};
    const Sums sums = sums_of(demands, plan_pass(demands, bounds, random() % 8));
    ASSERT_EQ(sums.tokens, std::min<std::uint64_t>(queued, bounds.tokens));
  }
}

TEST(Planner, GivesGenerationItsTokenBeforeLongPrompts) {
  const std::vector<Demand> demands = {{1'000}, {1}, {1'000}, {1}, {1}};
  const Shares shares = plan_pass(demands, {9, 9}, 0);
  EXPECT_EQ(shares, (Shares{3, 1, 3, 1, 1}));
}

TEST(Planner, SharesEvenlyAndDealsOutAgainWhatSomeDoNotUse) {
  EXPECT_EQ(plan_pass(std::vector<Demand>{{100}, {100}, {100}}, {30, 30}, 0), (Shares{10, 10, 10}));
  EXPECT_EQ(plan_pass(std::vector<Demand>{{2}, {100}, {100}}, {30, 30}, 0), (Shares{2, 14, 14}));
  EXPECT_EQ(plan_pass(std::vector<Demand>{{100}, {0}, {3}}, {30, 30}, 0), (Shares{27, 0, 3}));
}

TEST(Planner, CountsARowForEveryTokenThatWantsOne) {
  EXPECT_EQ(plan_pass(std::vector<Demand>{{100, true}}, {64, 10}, 0), (Shares{10}));
  // The last token of a prompt wants a row: without one it waits, the tokens before it do not.
  EXPECT_EQ(plan_pass(std::vector<Demand>{{5, true}, {20}}, {64, 5}, 0), (Shares{5, 19}));
}

TEST(Planner, RotatesSoThatNoneIsLeftOut) {
  // More conversations than a pass has tokens, each always waiting for one.
  constexpr std::size_t kConversations = 13;
  const std::vector<Demand> demands(kConversations, Demand{1});
  std::vector<int> served(kConversations);
  for (std::size_t pass = 0; pass < kConversations; ++pass) {
    const Shares shares = plan_pass(demands, {4, 4}, pass);
    for (std::size_t i = 0; i < kConversations; ++i) served[i] += static_cast<int>(shares[i]);
  }
  for (const int count : served) EXPECT_EQ(count, 4) << "the same for all over a whole turn";
}

TEST(Planner, TakesAnyFirstAndNoConversationAtAll) {
  EXPECT_TRUE(plan_pass({}, {4, 4}, 7).empty());
  EXPECT_EQ(plan_pass(std::vector<Demand>{{3}, {3}}, {4, 4}, SIZE_MAX - 1).size(), 2U);
}

TEST(Planner, TakesQueuesBeyondThirtyTwoBits) {
  const std::vector<Demand> demands = {{UINT64_MAX}, {std::uint64_t{1} << 40, true}};
  EXPECT_EQ(plan_pass(demands, {16, 16}, 0), (Shares{8, 8}));
}

// Passes from one piece of a conversation to the next, at worst, over a random course of events.
std::uint64_t worst_wait(std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::vector<Demand> demands(1 + random() % 24);
  const std::uint32_t priorities = 1 + random() % 3;
  for (Demand& demand : demands) {
    demand.queued = random() % 2 == 0 ? 1 : 100'000;
    demand.priority = static_cast<int>(random() % priorities);
  }
  const PassBounds bounds{priorities + up_to(random, 12), 1'000, up_to(random, 12)};
  std::vector<std::uint64_t> bound(demands.size());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    bound[i] = std::max<std::uint64_t>(
        8, static_cast<std::uint64_t>(std::ranges::count(demands, demands[i].priority, &Demand::priority)));
  }
  std::uint64_t excess = 0;
  for (std::size_t pass = 0; pass < 300; ++pass) {
    const Shares shares = plan_pass(demands, bounds, pass);
    for (std::size_t i = 0; i < demands.size(); ++i) {
      demands[i].waited = shares[i] > 0 ? 0 : demands[i].waited + 1;
      if (demands[i].waited >= bound[i]) excess = std::max(excess, demands[i].waited + 1 - bound[i]);
    }
  }
  return excess;
}

TEST(Planner, GivesEachOfNConversationsOfOnePriorityAPieceEveryMaxOfEightAndNPasses) {
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    ASSERT_EQ(worst_wait(seed), 0U) << "beyond the bound, seed " << seed;
  }
}

TEST(Planner, ServesAHigherPriorityFirst) {
  std::vector<Demand> demands = {{100}, {100, false, 5}, {100}};
  EXPECT_EQ(plan_pass(demands, {30, 30, 30}, 0), (Shares{0, 30, 0}));
  demands[1].queued = 20;
  EXPECT_EQ(plan_pass(demands, {30, 30, 30}, 0), (Shares{5, 20, 5}));
}

TEST(Planner, CutsPromptsShortOnlyWhileOthersGenerate) {
  EXPECT_EQ(plan_pass(std::vector<Demand>{{100}, {1}}, {64, 64, 20}, 0), (Shares{20, 1}));
  EXPECT_EQ(plan_pass(std::vector<Demand>{{100}}, {64, 64, 20}, 0), (Shares{64}));
}

}  // namespace
}  // namespace kvasir::engine
