#include "simd/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvasir::simd {
namespace {

std::vector<float> random_row(std::size_t size, unsigned seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> row(size);
  for (float& value : row) value = normal(random);
  return row;
}

TEST(RmsNorm, AgreesWithDoublePrecisionAtEveryLength) {
  for (std::size_t size = 1; size < 100; ++size) {
    const std::vector<float> x = random_row(size, 1, 3);
    const std::vector<float> weight = random_row(size, 2, 1);
    std::vector<float> out(size);
    rms_norm(x, weight, 1e-5f, out);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(size) + 1e-5);
    for (std::size_t i = 0; i < size; ++i) {
      const double exact = static_cast<double>(x[i]) * factor * static_cast<double>(weight[i]);
      // Seven rounded steps in a lane's sum at most, then the root, the quotient and two products: 16 x
      // 2^-24.
      ASSERT_NEAR(exact, static_cast<double>(out[i]), std::fabs(exact) * 16 * std::ldexp(1, -24))
          << size << ":" << i;
    }
  }
}

TEST(SiluGate, AgreesWithDoublePrecisionOverTheWholeRange) {
  std::vector<float> gate;
  for (float x = -100; x <= 100; x += 0.37f) gate.push_back(x);
  const std::vector<float> up(gate.size(), 1.5f);
  std::vector<float> out = gate;
  silu_gate(out, up);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double z = static_cast<double>(gate[i]);
    const double exact = z / (1 + std::exp(-z)) * 1.5;
    // e^-z within 2 units in the last place, then three roundings; below -87 the result is flushed towards 0.
    ASSERT_NEAR(exact, static_cast<double>(out[i]), std::fabs(exact) * 6 * std::ldexp(1, -24) + 1e-35) << z;
  }
}

TEST(SiluGate, PassesNotANumberThroughAndTouchesNoNeighbour) {
  std::vector<float> gate(33, 1.0f);
  gate[5] = std::numeric_limits<float>::quiet_NaN();
  gate[6] = -std::numeric_limits<float>::infinity();
  std::vector<float> clean(33, 1.0f);
  const std::vector<float> up(33, 1.0f);
  silu_gate(gate, up);
  silu_gate(clean, up);
  EXPECT_TRUE(std::isnan(gate[5]));
  EXPECT_EQ(clean[4], gate[4]);
  EXPECT_EQ(clean[32], gate[32]);
}

TEST(Softmax, SumsToOneAndKeepsTheRatios) {
  for (const std::size_t size : {1, 7, 16, 128, 1000}) {
    const std::vector<float> x = random_row(size, 5, 10);
    std::vector<float> p = x;
    softmax(p);
    double max = -1e30;
    for (const float value : x) max = std::max(max, static_cast<double>(value));
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value) - max);
    for (std::size_t i = 0; i < size; ++i) {
      const double exact = std::exp(static_cast<double>(x[i]) - max) / sum;
      // The argument's own rounding is up to 64 x 2^-24 in the exponent; the sum has size / 16 + 4 roundings.
      const double bound = (70.0 + static_cast<double>(size) / 16) * std::ldexp(1, -24);
      ASSERT_NEAR(exact, static_cast<double>(p[i]), exact * bound + 1e-37);
    }
  }
}

}  // namespace
}  // namespace kvasir::simd
