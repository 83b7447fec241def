// Draws against exact probabilities, and everything a draw must not depend on.

#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "support/allocations.h"

namespace kvasir::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Nothing is cut.
SamplerSettings uncut(float temperature = 1) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
}

Token draw(const std::vector<float>& logits, const SamplerSettings& settings, std::uint64_t seed,
           std::uint64_t accepted) {
  const Result<Token> token = Sampler(settings, seed).sample(logits, accepted);
  EXPECT_TRUE(token.has_value());
  return token.value_or(-1);
}

// Which tokens `count` draws give, and how often.
std::map<Token, int> draws(const std::vector<float>& logits, const SamplerSettings& settings, int count) {
  Sampler sampler(settings, 4);
  std::map<Token, int> seen;
  for (int i = 0; i < count; ++i) ++seen[*sampler.sample(logits, static_cast<std::uint64_t>(i))];
  return seen;
}

std::set<Token> drawn(const std::vector<float>& logits, const SamplerSettings& settings) {
  std::set<Token> tokens;
  for (const auto& [token, count] : draws(logits, settings, 4000)) tokens.insert(token);
  return tokens;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// Pearson's statistic of the counts against the probabilities.
double chi_square(const std::map<Token, int>& seen, const std::vector<double>& probabilities, int count) {
  double sum = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const auto found = seen.find(static_cast<Token>(i));
    const double expected = probabilities[i] * count;
    const double difference = (found == seen.end() ? 0 : found->second) - expected;
    sum += difference * difference / expected;
  }
  return sum;
}

// Where a chi-square variable with `freedom` degrees lies above once in 10,000 times: the Wilson-Hilferty
// approximation at 3.72 standard deviations.
double chi_square_limit(double freedom) {
  const double spread = 2 / (9 * freedom);
  return freedom * std::pow(1 - spread + 3.72 * std::sqrt(spread), 3);
}

// Softmax of `logits` over a temperature, in double.
std::vector<double> exact(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) sum += p.emplace_back(std::exp(double{logit} / temperature));
  for (double& value : p) value /= sum;
  return p;
}

TEST(Sampler, DrawsWithTheExactProbabilitiesAtAnyTemperature) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> logits(30);
  for (float& logit : logits) logit = normal(random);
  constexpr int kDraws = 200'000;
  for (const float temperature : {0.5F, 1.0F, 2.0F}) {
    const double statistic =
        chi_square(draws(logits, uncut(temperature), kDraws), exact(logits, double{temperature}), kDraws);
    EXPECT_LT(statistic, chi_square_limit(29)) << "temperature " << temperature;
    // The test can tell: the same draws against a temperature 5 % away.
    const double wrong = chi_square(draws(logits, uncut(temperature), kDraws),
                                    exact(logits, double{temperature} * 1.05), kDraws);
    EXPECT_GT(wrong, chi_square_limit(29)) << "temperature " << temperature;
  }
}

TEST(Sampler, DrawsWithTheExactProbabilitiesOverSeedsToo) {
  const std::vector<double> probabilities = {0.4, 0.3, 0.2, 0.1};
  const std::vector<float> logits = logs(probabilities);
  constexpr int kDraws = 100'000;
  std::map<Token, int> seen;
  for (int seed = 0; seed < kDraws; ++seed)
    ++seen[draw(logits, uncut(), static_cast<std::uint64_t>(seed), 17)];
  EXPECT_LT(chi_square(seen, probabilities, kDraws), chi_square_limit(3));
}

TEST(Sampler, CutDistributionsAreRenormalized) {
  const std::vector<float> logits = logs({0.4, 0.3, 0.2, 0.1});
  constexpr int kDraws = 100'000;
  SamplerSettings settings = uncut();
  settings.top_k = 2;
  const std::vector<double> kept = {4.0 / 7, 3.0 / 7};
  EXPECT_LT(chi_square(draws(logits, settings, kDraws), kept, kDraws), chi_square_limit(1));
}

TEST(KeyedUniform, IsEvenlySpreadAndSuccessiveNumbersAreIndependent) {
  constexpr int kCells = 16;
  constexpr int kDraws = 256'000;
  std::map<Token, int> pairs;
  double before = keyed_uniform(9, 0);
  for (int i = 1; i <= kDraws; ++i) {
    const double now = keyed_uniform(9, static_cast<std::uint64_t>(i));
    ASSERT_GE(now, 0);
    ASSERT_LT(now, 1);
    ++pairs[static_cast<Token>(static_cast<int>(before * kCells) * kCells + static_cast<int>(now * kCells))];
    before = now;
  }
  const std::vector<double> even(kCells * kCells, 1.0 / (kCells * kCells));
  EXPECT_LT(chi_square(pairs, even, kDraws), chi_square_limit(kCells * kCells - 1));
}

TEST(KeyedUniform, NeighbouringSeedsAndCountersGiveDifferentNumbers) {
  std::set<double> numbers;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    for (std::uint64_t counter = 0; counter < 64; ++counter) numbers.insert(keyed_uniform(seed, counter));
  }
  EXPECT_EQ(numbers.size(), 64U * 64U);
}

// The bits are a promise: a seed that somebody wrote down draws the same tokens in every build.
TEST(KeyedUniform, StaysWhatItIs) {
  EXPECT_EQ(keyed_uniform(0, 0), 0x1.4e0dba5e9a32fp-1);
  EXPECT_EQ(keyed_uniform(42, 7), 0x1.782d47a99890cp-1);
  EXPECT_EQ(keyed_uniform(UINT64_MAX, UINT64_MAX), 0x1.1140638c16042p-2);
}

TEST(Sampler, ADrawDependsOnSeedAndCountAlone) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> logits(500);
  for (float& logit : logits) logit = normal(random);
  std::vector<Token> in_order;
  Sampler sampler(uncut(), 77);
  for (std::uint64_t i = 0; i < 200; ++i) in_order.push_back(*sampler.sample(logits, i));
  // Backwards, from a sampler that was used for other rows in between.
  Sampler other(uncut(), 77);
  for (std::uint64_t i = 200; i-- > 0;) {
    (void)other.sample(std::vector<float>(3 + i % 7, 0.5F), i * 31);
    ASSERT_EQ(*other.sample(logits, i), in_order[i]) << "count " << i;
  }
  std::size_t equal = 0;
  for (std::uint64_t i = 0; i < 200; ++i) equal += draw(logits, uncut(), 78, i) == in_order[i] ? 1 : 0;
  EXPECT_LT(equal, 20U) << "another seed draws other tokens";
}

TEST(Sampler, LeavesTheRowAsItWas) {
  const std::vector<float> row = {1, kNan, -kInfinity, 2, 0.5F};
  std::vector<float> given = row;
  Sampler sampler({}, 1);
  ASSERT_TRUE(sampler.sample(given, 0));
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_TRUE(given[i] == row[i] || (std::isnan(given[i]) && std::isnan(row[i])));
  }
}

TEST(Sampler, TopKKeepsTheMostLikelyAndOfEqualOnesTheLowerIds) {
  SamplerSettings settings = uncut();
  settings.top_k = 3;
  EXPECT_EQ(drawn({1, 5, 4, 5, 4, 4}, settings), (std::set<Token>{1, 2, 3}));
  settings.top_k = 1;
  EXPECT_EQ(drawn({1, 5, 4, 5}, settings), (std::set<Token>{1}));
  settings.top_k = 0;
  EXPECT_EQ(drawn({1, 1, 1, 1}, settings).size(), 4U);
  settings.top_k = UINT32_MAX;
  EXPECT_EQ(drawn({1, 1, 1, 1}, settings).size(), 4U);
}

TEST(Sampler, TopPKeepsTheFewestThatReachTheProbability) {
  const std::vector<float> logits = logs({0.1, 0.5, 0.15, 0.25});
  SamplerSettings settings = uncut();
  const auto kept = [&](float top_p) {
    settings.top_p = top_p;
    return drawn(logits, settings);
  };
  EXPECT_EQ(kept(0.01F), (std::set<Token>{1}));
  EXPECT_EQ(kept(0.49F), (std::set<Token>{1}));
  EXPECT_EQ(kept(0.51F), (std::set<Token>{1, 3}));
  EXPECT_EQ(kept(0.74F), (std::set<Token>{1, 3}));
  EXPECT_EQ(kept(0.76F), (std::set<Token>{1, 2, 3}));
  EXPECT_EQ(kept(0.91F), (std::set<Token>{0, 1, 2, 3}));
  EXPECT_EQ(kept(1.0F), (std::set<Token>{0, 1, 2, 3}));
}

// At temperature 20 the second token is drawn almost every other time, however unlikely it was before.
TEST(Sampler, TopPOfOneKeepsAlsoWhatRoundsToNothing) {
  EXPECT_EQ(drawn({40, 20}, uncut(20)), (std::set<Token>{0, 1}));
}

TEST(Sampler, MinPKeepsWhatIsLikelyEnoughBesideTheMostLikely) {
  const std::vector<float> logits = logs({0.1, 0.5, 0.15, 0.25});
  SamplerSettings settings = uncut();
  const auto kept = [&](float min_p) {
    settings.min_p = min_p;
    return drawn(logits, settings);
  };
  EXPECT_EQ(kept(0.19F), (std::set<Token>{0, 1, 2, 3}));
  EXPECT_EQ(kept(0.21F), (std::set<Token>{1, 2, 3}));
  EXPECT_EQ(kept(0.31F), (std::set<Token>{1, 3}));
  EXPECT_EQ(kept(0.51F), (std::set<Token>{1}));
  EXPECT_EQ(kept(1.0F), (std::set<Token>{1}));
  settings.min_p = 1;
  EXPECT_EQ(drawn({3, 3, 2}, settings), (std::set<Token>{0, 1})) << "as likely as the most likely";
}

// Top-k first: top-p then counts probabilities among the k. And the temperature last: it flattens what is
// left, it brings nothing back.
TEST(Sampler, CutsInTheDocumentedOrder) {
  const std::vector<float> logits = logs({0.4, 0.3, 0.2, 0.1});
  SamplerSettings settings = uncut();
  settings.top_k = 2;
  settings.top_p = 0.56F;  // of all: two tokens; of the two: 0.571 is enough
  EXPECT_EQ(drawn(logits, settings), (std::set<Token>{0}));
  settings = uncut(100);
  settings.top_p = 0.65F;
  EXPECT_EQ(drawn(logits, settings), (std::set<Token>{0, 1}));
}

TEST(Sampler, TemperatureZeroTakesTheMostLikelyAndOfEqualOnesTheLowerId) {
  SamplerSettings settings;
  settings.temperature = 0;
  EXPECT_EQ(draw({1, 3, 2, 3}, settings, 1, 0), 1);
  EXPECT_EQ(draw({0.0F, -0.0F}, settings, 1, 0), 0);
  EXPECT_EQ(draw({-0.0F, 0.0F}, settings, 1, 0), 0) << "zeros of either sign are equal";
  EXPECT_EQ(draw({kNan, -kInfinity, 1}, settings, 1, 0), 2);
  EXPECT_EQ(draw({kNan, -kInfinity}, settings, 1, 0), 1) << "a NaN is lower than anything";
  EXPECT_EQ(draw({kNan, kNan}, settings, 1, 0), 0);
  EXPECT_EQ(draw({1, kInfinity, kInfinity}, settings, 1, 0), 1);
  EXPECT_EQ(most_likely({}), 0);
}

TEST(Sampler, ANanIsNeverDrawnWhereAnythingElseIsThere) {
  EXPECT_EQ(drawn({kNan, 1, kNan, 1}, uncut()), (std::set<Token>{1, 3}));
  EXPECT_EQ(drawn({kNan, -kInfinity}, uncut()), (std::set<Token>{1}));
  EXPECT_EQ(drawn({kNan, kNan, kNan}, uncut()), (std::set<Token>{0}));
  SamplerSettings settings = uncut();
  settings.top_k = 2;
  EXPECT_EQ(drawn({kNan, kNan, kNan, 1}, settings), (std::set<Token>{3}));
}

TEST(Sampler, MinusInfinityIsNeverDrawnBesideAFiniteLogit) {
  EXPECT_EQ(drawn({-kInfinity, 1, -kInfinity, 1, -kInfinity}, uncut()), (std::set<Token>{1, 3}));
  EXPECT_EQ(drawn({-kInfinity, -kInfinity}, uncut()), (std::set<Token>{0}));
  EXPECT_EQ(drawn({1, kInfinity, 2}, uncut()), (std::set<Token>{1}));
  EXPECT_EQ(drawn({1, kInfinity, kInfinity}, uncut()), (std::set<Token>{1})) << "the lower id";
}

// Rounded probabilities of many tokens add up to a little less than one; here to 1 - 7.7e-7. What is behind
// that must go to a token that can be drawn, not to the last one in the row.
TEST(Sampler, ADrawAtTheVeryEndOfTheDistributionIsATokenThatCanBeDrawn) {
  std::vector<float> logits(100'000);
  std::mt19937 random(36);
  std::normal_distribution<float> normal;
  for (float& logit : logits) logit = normal(random);
  for (std::size_t i = 60'000; i < logits.size(); ++i) logits[i] = -1e30F;
  std::uint64_t nearest_to_one = 0;
  for (std::uint64_t i = 1; i < 4'000'000; ++i) {
    if (keyed_uniform(11, i) > keyed_uniform(11, nearest_to_one)) nearest_to_one = i;
  }
  ASSERT_GT(keyed_uniform(11, nearest_to_one), 1 - 4e-7);
  EXPECT_LT(draw(logits, uncut(), 11, nearest_to_one), 60'000);
}

TEST(Sampler, ExtremeTemperaturesGiveTheLimits) {
  const std::vector<float> logits = {3, 1, 2.9F, -50};
  EXPECT_EQ(drawn(logits, uncut(1e-40F)), (std::set<Token>{0}));
  EXPECT_EQ(drawn(logits, uncut(1e-3F)), (std::set<Token>{0}));
  EXPECT_EQ(drawn(logits, uncut(1e30F)).size(), 4U);
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_EQ(drawn({kLargest, -kLargest}, uncut(1)), (std::set<Token>{0}));
}

TEST(Sampler, RefusesAnEmptyRow) {
  const Result<Token> refused = Sampler({}, 1).sample({}, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
}

TEST(SamplerSettings, OutOfRangeAreRefusedByName) {
  const auto refused = [](SamplerSettings settings, const char* name) {
    const Status status = check(settings);
    EXPECT_FALSE(status) << name;
    if (status) return;
    EXPECT_EQ(status.error().code(), Outcome::kInvalidArgument);
    EXPECT_NE(status.error().message().find(name), std::string::npos) << status.error().message();
  };
  for (const float bad : {-0.001F, -kInfinity, kInfinity, kNan}) {
    refused({.temperature = bad}, "temperature");
    refused({.top_p = bad}, "top-p");
    refused({.min_p = bad}, "min-p");
  }
  refused({.top_p = 0}, "top-p");
  refused({.top_p = 1.001F}, "top-p");
  refused({.min_p = 1.001F}, "min-p");
  EXPECT_TRUE(check({}));
  EXPECT_TRUE(check({.temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0}));
  EXPECT_TRUE(check({.temperature = 1000, .top_k = UINT32_MAX, .top_p = 1e-6F, .min_p = 1}));
}

TEST(Sampler, ARefusedAllocationIsOutOfMemoryAndTheNextDrawIsRight) {
  const std::vector<float> logits(1000, 1.0F);
  for (std::uint64_t n = 0;; ++n) {
    Sampler sampler(uncut(), 3);
    bool fired = false;
    {
      const kvasir::test::AllocationFault fault(n);
      const Result<Token> token = sampler.sample(logits, 5);
      fired = fault.fired();
      ASSERT_NE(token.has_value(), fired);
      if (fired) {
        EXPECT_EQ(token.error().code(), Outcome::kOutOfMemory);
      }
    }
    EXPECT_EQ(*sampler.sample(logits, 5), draw(logits, uncut(), 3, 5));
    if (fired) continue;
    EXPECT_GE(n, 2U);
    return;
  }
}

}  // namespace
}  // namespace kvasir::sample
