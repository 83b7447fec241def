#include "simd/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kvasir::simd {
namespace {

TEST(CosSin, AgreesWithTheLibraryFromZeroToAMillionTurns) {
  std::mt19937_64 random(1);
  for (const double range : {1.0, 100.0, 1e4, 1e6, 1e8}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (int i = 0; i < 20000; ++i) {
      const double angle = uniform(random);
      const CosSin turn = cos_sin(angle);
      ASSERT_NEAR(std::cos(angle), turn.cos, 5e-16) << angle;
      ASSERT_NEAR(std::sin(angle), turn.sin, 5e-16) << angle;
    }
  }
}

TEST(RotaryTable, TurnsByPositionTimesFrequency) {
  for (const RopePairing pairing : {RopePairing::kAdjacent, RopePairing::kHalves}) {
    RotarySpec spec;
    spec.dims = 8;
    spec.pairing = pairing;
    const auto table = RotaryTable::make(spec);
    ASSERT_TRUE(table.has_value());
    std::vector<float> cosines(4);
    std::vector<float> sines(4);
    table->turn_at(1'000'003, cosines, sines);
    std::vector<float> head = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};  // the last two do not turn
    const std::vector<float> before = head;
    table->rotate(head, cosines, sines);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t a = pairing == RopePairing::kAdjacent ? 2 * i : i;
      const std::size_t b = pairing == RopePairing::kAdjacent ? 2 * i + 1 : i + 4;
      const double angle = 1'000'003 * std::pow(10000.0, -2.0 * static_cast<double>(i) / 8);
      const double exact_a =
          static_cast<double>(before[a]) * std::cos(angle) - static_cast<double>(before[b]) * std::sin(angle);
      const double exact_b =
          static_cast<double>(before[a]) * std::sin(angle) + static_cast<double>(before[b]) * std::cos(angle);
      EXPECT_NEAR(exact_a, static_cast<double>(head[a]), 4e-6);
      EXPECT_NEAR(exact_b, static_cast<double>(head[b]), 4e-6);
    }
    EXPECT_EQ(9, head[8]);
    EXPECT_EQ(10, head[9]);
  }
}

TEST(RotaryTable, KeepsHighFrequenciesAndScalesLowOnesUnderYarn) {
  RotarySpec spec;
  spec.dims = 128;
  spec.frequency_scale = 0.25;
  spec.yarn = YarnSpec{.original_context = 4096, .extrapolation = 1, .beta_fast = 32, .beta_slow = 1};
  const auto table = RotaryTable::make(spec);
  ASSERT_TRUE(table.has_value());
  std::vector<float> cosines(64);
  std::vector<float> sines(64);
  table->turn_at(1, cosines, sines);
  const double magnitude = 1 + 0.1 * std::log(4.0);
  EXPECT_NEAR(std::cos(1.0) * magnitude, static_cast<double>(cosines[0]), 1e-6);
  const double slowest = std::pow(10000.0, -126.0 / 128) * 0.25;
  EXPECT_NEAR(std::sin(slowest) * magnitude, static_cast<double>(sines[63]), 1e-9);
}

TEST(RotaryTable, TurnsPurelyByDistancesOfEitherSignWhateverTheAttentionFactor) {
  RotarySpec plain;
  plain.dims = 32;
  plain.frequency_scale = 0.25;
  plain.yarn = YarnSpec{.original_context = 4096, .extrapolation = 0};
  RotarySpec scaled = plain;
  scaled.attention_factor = 1.75;
  const auto pure = RotaryTable::make(plain);
  const auto table = RotaryTable::make(scaled);
  ASSERT_TRUE(pure && table);
  for (const std::int64_t distance : {0, 1, -1, 77, -77, 1'000'003, -1'000'003}) {
    std::vector<float> cosines(16), sines(16), expected_cosines(16), expected_sines(16);
    table->pure_turn_at(distance, cosines, sines);
    pure->turn_at(static_cast<double>(distance), expected_cosines, expected_sines);
    EXPECT_EQ(expected_cosines, cosines) << distance;
    EXPECT_EQ(expected_sines, sines) << distance;
    std::vector<float> back_cosines(16), back_sines(16);
    table->pure_turn_at(-distance, back_cosines, back_sines);
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(cosines[i], back_cosines[i]);
      EXPECT_EQ(sines[i], -back_sines[i]);
    }
  }
}

TEST(RotaryTable, RefusesNumbersThatCannotTurn) {
  const auto refused = [](const RotarySpec& spec) {
    const auto table = RotaryTable::make(spec);
    return !table && table.error().code() == Outcome::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.dims = 7}));
  EXPECT_TRUE(refused({.dims = 0}));
  EXPECT_TRUE(refused({.dims = 8, .base = 0}));
  EXPECT_TRUE(refused({.dims = 8, .base = NAN}));
  EXPECT_TRUE(refused({.dims = 8, .frequency_scale = INFINITY}));
  EXPECT_TRUE(refused({.dims = 8, .factors = {1, 1, 1}}));
  EXPECT_TRUE(refused({.dims = 8, .factors = {1, 1, 0, 1}}));
  EXPECT_TRUE(refused({.dims = 8, .yarn = YarnSpec{}}));
  EXPECT_FALSE(refused({.dims = 8, .factors = {1, 2, 3, 4}}));
}

}  // namespace
}  // namespace kvasir::simd
