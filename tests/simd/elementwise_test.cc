#include "simd/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace kvasir::simd {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Units in the last place.
double ulps(double count) {
  return count * std::ldexp(1, -24);
}

double exact_curve(Curve curve, double x) {
  switch (curve) {
    case Curve::kExp:
      return std::exp(x);
    case Curve::kTanh:
      return std::tanh(x);
    case Curve::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case Curve::kExpOfMinusExp:
      return std::exp(-std::exp(x));
    case Curve::kSlowDecay:
      return std::exp(-0.606531 / (1 + std::exp(-x)));
  }
  return 0;
}

// How far a curve's result may be from the exact one, relative to it: the roundings of its steps, and for
// e^(-e^x) the inner result's error times its size.
double bound_of(Curve curve, double x) {
  if (curve == Curve::kExpOfMinusExp) return ulps(6 + 5 * std::exp(x));
  return ulps(12);
}

constexpr Curve kCurves[] = {Curve::kExp, Curve::kTanh, Curve::kSoftplus, Curve::kExpOfMinusExp,
                             Curve::kSlowDecay};

std::vector<float> random_row(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> row(size);
  std::ranges::generate(row, [&] { return normal(random); });
  return row;
}

TEST(Curves, AgreeWithDoublePrecisionOverTheWholeRange) {
  std::vector<float> points;
  for (float x = -100; x <= 100; x += 0.0937f) points.push_back(x);
  for (float x = 1e-30f; x < 1; x *= 1.7f) {
    points.push_back(x);
    points.push_back(-x);
  }
  for (const Curve curve : kCurves) {
    std::vector<float> got = points;
    apply_curve(curve, got);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (curve == Curve::kExp && points[i] > 88.7f) {
        ASSERT_EQ(kInfinity, got[i]);
        continue;
      }
      const double exact = exact_curve(curve, static_cast<double>(points[i]));
      // Below e^-87 results are flushed towards 0.
      const double room = std::fabs(exact) * bound_of(curve, static_cast<double>(points[i])) + 1e-35;
      ASSERT_NEAR(exact, static_cast<double>(got[i]), room) << static_cast<int>(curve) << " of " << points[i];
    }
  }
}

TEST(Curves, EndWhereTheyMustAndPassNotANumberThrough) {
  const auto at = [](Curve curve, float x) {
    std::vector<float> one = {x};
    apply_curve(curve, one);
    return one[0];
  };
  EXPECT_EQ(0.0f, at(Curve::kExp, -kInfinity));
  EXPECT_EQ(kInfinity, at(Curve::kExp, kInfinity));
  EXPECT_EQ(-1.0f, at(Curve::kTanh, -kInfinity));
  EXPECT_EQ(1.0f, at(Curve::kTanh, kInfinity));
  EXPECT_EQ(0.0f, at(Curve::kTanh, 0.0f));
  EXPECT_EQ(0.0f, at(Curve::kSoftplus, -kInfinity));
  EXPECT_EQ(kInfinity, at(Curve::kSoftplus, kInfinity));
  EXPECT_EQ(1.0f, at(Curve::kExpOfMinusExp, -kInfinity));
  EXPECT_EQ(0.0f, at(Curve::kExpOfMinusExp, kInfinity));
  for (const Curve curve : kCurves) EXPECT_TRUE(std::isnan(at(curve, std::nanf(""))));
}

TEST(Elementwise, GivesEveryElementTheSameBitsAtEveryLengthAndTouchesNoNeighbour) {
  const std::vector<float> x = random_row(100, 1);
  const std::vector<float> y = random_row(100, 2);
  const std::vector<float> part = random_row(100, 3);
  std::vector<float> scaled = y;
  add_scaled(0.75f, x, scaled);
  std::vector<float> mixed(100);
  mix(x, y, part, mixed);
  const auto check = [&](const std::vector<float>& got, const std::vector<float>& changed,
                         const std::vector<float>& kept, std::size_t size) {
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(i < size ? changed[i] : kept[i], got[i]) << size;
  };
  std::vector<float> product(100);
  std::ranges::transform(x, y, product.begin(), std::multiplies<>());
  for (std::size_t size = 0; size < 100; ++size) {
    for (const Curve curve : kCurves) {
      std::vector<float> whole = x;
      apply_curve(curve, whole);
      std::vector<float> some = x;
      apply_curve(curve, std::span(some).first(size));
      check(some, whole, x, size);
    }
    std::vector<float> some = x;
    multiply_by(std::span(some).first(size), std::span(y).first(size));
    check(some, product, x, size);
    some = y;
    add_scaled(0.75f, std::span(x).first(size), std::span(some).first(size));
    check(some, scaled, y, size);
    some = part;
    const std::span<float> lerp = std::span(some).first(size);
    mix(std::span(x).first(size), std::span(y).first(size), lerp, lerp);
    check(some, mixed, part, size);
  }
}

TEST(Elementwise, AgreesWithDoublePrecision) {
  const std::vector<float> x = random_row(100, 1);
  const std::vector<float> y = random_row(100, 2);
  const std::vector<float> part = random_row(100, 3);
  std::vector<float> scaled = y;
  add_scaled(0.75f, x, scaled);
  std::vector<float> mixed(100);
  mix(x, y, part, mixed);
  for (std::size_t i = 0; i < 100; ++i) {
    const auto a = static_cast<double>(x[i]);
    const auto b = static_cast<double>(y[i]);
    const auto by = static_cast<double>(part[i]);
    ASSERT_NEAR(b + 0.75 * a, static_cast<double>(scaled[i]), (std::fabs(a) + std::fabs(b)) * ulps(2));
    ASSERT_NEAR(a + (b - a) * by, static_cast<double>(mixed[i]),
                (std::fabs(a) + std::fabs(b)) * (1 + std::fabs(by)) * ulps(3));
  }
}

TEST(Dot, AgreesWithDoublePrecisionAtEveryLength) {
  for (std::size_t size = 0; size < 200; ++size) {
    const std::vector<float> a = random_row(size, 4);
    const std::vector<float> b = random_row(size, 5);
    const std::vector<float> weight = random_row(size, 7);
    double exact = 0;
    double magnitude = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double term =
          static_cast<double>(a[i]) * static_cast<double>(b[i]) * static_cast<double>(weight[i]);
      exact += term;
      magnitude += std::fabs(term);
    }
    // At most thirteen terms in a lane, a rounding each and two for its product, then four halvings.
    ASSERT_NEAR(exact, static_cast<double>(dot(a, b, weight)), magnitude * ulps(20)) << size;
  }
}

TEST(L2Normalize, MakesARowOfTheWantedLengthAndLeavesZerosZero) {
  for (std::size_t size = 1; size < 100; ++size) {
    std::vector<float> x = random_row(size, 6);
    l2_normalize(x, 0.0f, 0.25f);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    ASSERT_NEAR(0.25, std::sqrt(squares), ulps(20));
  }
  std::vector<float> zeros(33, 0.0f);
  l2_normalize(zeros, 1e-6f, 1.0f);
  EXPECT_EQ(std::vector<float>(33, 0.0f), zeros);
}

}  // namespace
}  // namespace kvasir::simd
