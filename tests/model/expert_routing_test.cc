// The choice of experts against a sort, and the bookkeeping of their loads.

#include "model/expert_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvasir::model {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Chosen = std::vector<std::uint32_t>;

Chosen choose(const std::vector<float>& scores, std::size_t used) {
  Chosen chosen(used, 99);
  choose_experts(scores, chosen);
  return chosen;
}

// The same by a full sort.
Chosen choose_by_sorting(const std::vector<float>& scores, std::size_t used) {
  Chosen order;
  for (std::uint32_t expert = 0; expert < scores.size(); ++expert) order.push_back(expert);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    if (std::isnan(scores[a]) != std::isnan(scores[b])) return std::isnan(scores[b]);
    if (std::isnan(scores[a]) || scores[a] == scores[b]) return a < b;
    return scores[a] > scores[b];
  });
  order.resize(used);
  std::ranges::sort(order);
  return order;
}

TEST(ChooseExperts, AgreesWithASortWhateverTheScores) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<float> scores(1 + random() % 12);
    for (float& score : scores) {
      // Few values, so that ties are common.
      constexpr float kValues[] = {0, -0.0F, 1, 2, 0.5F, kNan, kInfinity, -kInfinity};
      score = kValues[random() % 8];
    }
    const std::size_t used = 1 + random() % scores.size();
    ASSERT_EQ(choose(scores, used), choose_by_sorting(scores, used));
  }
}

TEST(ChooseExperts, GivesTiesAndNanToTheLowerIndex) {
  EXPECT_EQ(choose({1, 1, 1, 1}, 2), (Chosen{0, 1}));
  EXPECT_EQ(choose({1, 2, 1, 2, 1}, 3), (Chosen{0, 1, 3}));
  EXPECT_EQ(choose({kNan, -kInfinity, kNan, 0}, 2), (Chosen{1, 3}));
  EXPECT_EQ(choose({kNan, kNan, kNan}, 2), (Chosen{0, 1}));
  EXPECT_EQ(choose({3, 1, 2}, 3), (Chosen{0, 1, 2})) << "all of them, in ascending index";
}

// Scratch with `rows` rows of random scores.
ExpertScratch scratch_of(std::size_t rows, std::size_t experts, std::size_t used, std::mt19937& random) {
  ExpertScratch scratch;
  scratch.router = *FloatRows::allocate(rows, experts);
  scratch.choice = *FloatRows::allocate(rows, experts);
  scratch.assignments.resize(rows * used);
  scratch.of_row.resize(rows * used);
  scratch.chosen.resize(rows * used);
  std::normal_distribution<float> normal;
  for (std::size_t row = 0; row < rows; ++row) {
    for (float& score : scratch.router.row(row)) score = normal(random);
  }
  return scratch;
}

TEST(Route, AssignsEveryRowToItsExpertsSortedByExpert) {
  std::mt19937 random(2);
  for (const std::size_t rows : {1U, 2U, 7U, 40U}) {
    const std::size_t experts = 6;
    const std::size_t used = 3;
    ExpertScratch scratch = scratch_of(rows, experts, used, random);
    std::vector<Chosen> expected;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto scores = scratch.router.row(row);
      expected.push_back(choose({scores.begin(), scores.end()}, used));
    }
    route(scratch, rows, experts, {.used = 3});
    std::uint32_t next = 0;
    std::vector<std::vector<std::uint32_t>> rows_of(experts);
    for (const ExpertLoad& load : scratch.loads) {
      ASSERT_EQ(load.first, next) << "loads follow one another";
      ASSERT_GT(load.count, 0U);
      next += load.count;
      for (std::uint32_t i = load.first; i < next; ++i) {
        rows_of[load.expert].push_back(scratch.assignments[i].row);
      }
    }
    ASSERT_EQ(next, rows * used);
    for (std::uint32_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < used; ++i) {
        const std::uint32_t expert = expected[row][i];
        EXPECT_EQ(scratch.chosen[row * used + i], expert);
        EXPECT_EQ(std::ranges::count(rows_of[expert], row), 1);
        const Assignment& assignment = scratch.assignments[scratch.of_row[row * used + i]];
        EXPECT_EQ(assignment.row, row);
        EXPECT_GT(assignment.weight, 0);
        sum += double{assignment.weight};
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

TEST(Route, WeighsByProbabilityAmongTheChosen) {
  std::mt19937 random(3);
  ExpertScratch scratch = scratch_of(1, 4, 2, random);
  const std::vector<float> scores = {0.5F, 2.0F, -1.0F, 1.0F};
  std::ranges::copy(scores, scratch.router.row(0).begin());
  route(scratch, 1, 4, {.used = 2});
  const double first = std::exp(2.0) / (std::exp(2.0) + std::exp(1.0));
  EXPECT_NEAR(scratch.assignments[scratch.of_row[0]].weight, first, 1e-6);
  EXPECT_NEAR(scratch.assignments[scratch.of_row[1]].weight, 1 - first, 1e-6);
}

TEST(Route, ARowOfNanDisturbsNoOther) {
  std::mt19937 random(4);
  ExpertScratch clean = scratch_of(3, 5, 2, random);
  ExpertScratch dirty = scratch_of(3, 5, 2, random);
  for (const std::size_t row : {0U, 2U})
    std::ranges::copy(clean.router.row(row), dirty.router.row(row).begin());
  std::ranges::fill(dirty.router.row(1), kNan);
  route(clean, 3, 5, {.used = 2});
  route(dirty, 3, 5, {.used = 2});
  for (const std::size_t row : {0U, 2U}) {
    for (std::size_t i = row * 2; i < row * 2 + 2; ++i) {
      EXPECT_EQ(dirty.chosen[i], clean.chosen[i]);
      EXPECT_EQ(dirty.assignments[dirty.of_row[i]].weight, clean.assignments[clean.of_row[i]].weight);
    }
  }
  EXPECT_EQ(dirty.chosen[2], 0U);
  EXPECT_EQ(dirty.chosen[3], 1U);
}

}  // namespace
}  // namespace kvasir::model
