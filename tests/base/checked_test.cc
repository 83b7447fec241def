#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace kvasir::base {
namespace {

constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

// Every pair of small numbers, against arithmetic that cannot overflow.
template <class T>
void expect_what_wide_arithmetic_gives() {
  constexpr int kHigh = (1 << std::numeric_limits<T>::digits) - 1;
  constexpr int kLow = std::numeric_limits<T>::is_signed ? -kHigh - 1 : 0;
  for (int a = kLow; a <= kHigh; ++a) {
    for (int b = kLow; b <= kHigh; ++b) {
      const auto fits = [](int value) -> std::optional<T> {
        if (value < kLow || value > kHigh) return std::nullopt;
        return static_cast<T>(value);
      };
      ASSERT_EQ(checked_add(static_cast<T>(a), static_cast<T>(b)), fits(a + b)) << a << " + " << b;
      ASSERT_EQ(checked_mul(static_cast<T>(a), static_cast<T>(b)), fits(a * b)) << a << " * " << b;
    }
  }
}

TEST(Checked, AddsAndMultipliesWhereTheResultFits) {
  expect_what_wide_arithmetic_gives<std::uint8_t>();
  expect_what_wide_arithmetic_gives<std::int8_t>();
}

TEST(Checked, KnowsTheEdgesOf64Bits) {
  EXPECT_EQ(checked_add(kMost, std::uint64_t{0}), kMost);
  EXPECT_EQ(checked_add(kMost, std::uint64_t{1}), std::nullopt);
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1),
            kMost - ((std::uint64_t{1} << 32) - 1));
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()), std::nullopt);
}

TEST(Checked, MultipliesManyFactorsAndStaysOverflownOnceItIs) {
  EXPECT_EQ(checked_product(std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{7}), 42U);
  EXPECT_EQ(checked_product(std::uint64_t{5}), 5U);
  EXPECT_EQ(checked_product(kMost, std::uint64_t{2}, std::uint64_t{0}), std::nullopt);
  EXPECT_EQ(checked_product(std::uint64_t{0}, kMost, kMost), 0U);
}

TEST(Checked, CastsWhatTheTargetHolds) {
  EXPECT_EQ(checked_cast<std::uint8_t>(255), std::uint8_t{255});
  EXPECT_EQ(checked_cast<std::uint8_t>(256), std::nullopt);
  EXPECT_EQ(checked_cast<std::uint8_t>(-1), std::nullopt);
  EXPECT_EQ(checked_cast<std::int32_t>(std::uint32_t{0x80000000}), std::nullopt);
  EXPECT_EQ(checked_cast<std::int64_t>(kMost), std::nullopt);
  EXPECT_EQ(checked_cast<std::uint64_t>(std::int8_t{-1}), std::nullopt);
}

TEST(Checked, RoundsUpToMultiples) {
  for (std::uint8_t step = 1; step <= 40; ++step) {
    for (int value = 0; value <= 255; ++value) {
      const int expected = (value + step - 1) / step * step;
      const auto rounded = checked_round_up(static_cast<std::uint8_t>(value), step);
      if (expected <= 255) {
        ASSERT_EQ(rounded, static_cast<std::uint8_t>(expected)) << value << " to " << int{step};
      } else {
        ASSERT_EQ(rounded, std::nullopt) << value << " to " << int{step};
      }
    }
  }
  EXPECT_EQ(checked_round_up(kMost, std::uint64_t{32}), std::nullopt);
  EXPECT_EQ(checked_round_up(kMost - 31, std::uint64_t{32}), kMost - 31);
}

TEST(Checked, DividesRoundingUpWithoutOverflow) {
  EXPECT_EQ(div_up(std::uint64_t{0}, std::uint64_t{7}), 0U);
  EXPECT_EQ(div_up(std::uint64_t{7}, std::uint64_t{7}), 1U);
  EXPECT_EQ(div_up(std::uint64_t{8}, std::uint64_t{7}), 2U);
  EXPECT_EQ(div_up(kMost, std::uint64_t{2}), std::uint64_t{1} << 63);
}

}  // namespace
}  // namespace kvasir::base
