#include "quant/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace kvasir::quant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What a half says by its definition, in double.
double half_by_definition(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryFiniteHalfIsTheFloatOfItsDefinitionAndComesBack) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    if (((half >> 10) & 31) == 31) continue;
    const float value = half_to_float(static_cast<std::uint16_t>(half));
    ASSERT_EQ(static_cast<double>(value), half_by_definition(static_cast<std::uint16_t>(half))) << half;
    ASSERT_EQ(std::signbit(value), half >= 0x8000) << half;
    ASSERT_EQ(float_to_half(value), half);
  }
}

TEST(Half, RoundsEveryMidpointToTheEvenNeighbourAndItsSidesToTheNearer) {
  for (std::uint32_t half = 0; half < 0x7BFF; ++half) {
    const float below = half_to_float(static_cast<std::uint16_t>(half));
    const float above = half_to_float(static_cast<std::uint16_t>(half + 1));
    const float middle = (below + above) / 2;  // exact: one more bit than a half has
    const std::uint32_t even = half % 2 == 0 ? half : half + 1;
    ASSERT_EQ(float_to_half(middle), even) << half;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0F)), half);
    ASSERT_EQ(float_to_half(std::nextafter(middle, kInfinity)), half + 1);
    ASSERT_EQ(float_to_half(-middle), 0x8000U | even);
  }
}

TEST(Half, OverflowsToInfinityFromTheMidpointAboveTheLargest) {
  EXPECT_EQ(float_to_half(65519.996F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::max()), 0xFC00);
  EXPECT_EQ(float_to_half(kInfinity), 0x7C00);
  EXPECT_EQ(half_to_float(0xFC00), -kInfinity);
}

TEST(Half, NaNStaysNaNWithItsSign) {
  for (std::uint32_t fraction = 1; fraction < 1024; ++fraction) {
    const float value = half_to_float(static_cast<std::uint16_t>(0xFC00U | fraction));
    ASSERT_TRUE(std::isnan(value) && std::signbit(value));
    ASSERT_EQ(float_to_half(value), 0xFC00U | 0x0200U | fraction);
  }
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::bit_cast<float>(0x7F80'0001U)))));
}

TEST(Half, FloatDenormalsRoundToZeroOfTheirSign) {
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(Bfloat, EveryPatternComesBackAndNaNBecomesQuiet) {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const float value = bfloat_to_float(static_cast<std::uint16_t>(pattern));
    const std::uint32_t expected = std::isnan(value) ? pattern | 0x40U : pattern;
    ASSERT_EQ(float_to_bfloat(value), expected);
  }
}

TEST(Bfloat, RoundsToNearestTiesToEven) {
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0x3F80'8000U)), 0x3F80);
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0x3F80'8001U)), 0x3F81);
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0x3F81'8000U)), 0x3F82);
  EXPECT_EQ(float_to_bfloat(std::bit_cast<float>(0xBF81'7FFFU)), 0xBF81);
  EXPECT_EQ(float_to_bfloat(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(std::bit_cast<float>(0xFFFF'FFFFU)))));
}

}  // namespace
}  // namespace kvasir::quant
