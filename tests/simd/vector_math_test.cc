#include "simd/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
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

TEST(LayerNorm, AgreesWithDoublePrecisionAtEveryLength) {
  for (std::size_t size = 1; size < 100; ++size) {
    std::vector<float> x = random_row(size, 1, 3);
    for (float& value : x) value += 5;
    const std::vector<float> weight = random_row(size, 2, 1);
    const std::vector<float> bias = random_row(size, 3, 1);
    std::vector<float> with(size);
    std::vector<float> without(size);
    layer_norm(x, weight, bias, 1e-2f, with);
    layer_norm(x, weight, {}, 1e-2f, without);
    double mean = 0;
    for (const float value : x) mean += static_cast<double>(value) / static_cast<double>(size);
    double squares = 0;
    for (const float value : x) squares += std::pow(static_cast<double>(value) - mean, 2);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(size) + 1e-2);
    for (std::size_t i = 0; i < size; ++i) {
      const double scaled = factor * static_cast<double>(weight[i]);
      const double exact = (static_cast<double>(x[i]) - mean) * scaled;
      // The mean's rounding (sums of up to 7 numbers near 5 in a lane) shows as it is; then as for rms_norm.
      const double bound = (std::fabs(exact) * 20 + std::fabs(scaled) * 14 * 8) * std::ldexp(1, -24);
      ASSERT_NEAR(exact, static_cast<double>(without[i]), bound) << size << ":" << i;
      ASSERT_EQ(with[i], without[i] + bias[i]) << size << ":" << i;
    }
  }
}

// Every activation, by its formula in double precision.
double exactly(Activation activation, double z) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  switch (activation) {
    case Activation::kSilu:
      return z * sigmoid(z);
    case Activation::kGelu:
      return z * sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (z + 0.044715 * z * z * z));
    case Activation::kRelu:
      return std::max(z, 0.0);
    case Activation::kSquaredRelu:
      return std::max(z, 0.0) * std::max(z, 0.0);
    case Activation::kSwishOfSeven:
      return std::min(z, 7.0) * sigmoid(1.702 * std::min(z, 7.0));
  }
  return 0;
}

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGelu, Activation::kRelu,
                                       Activation::kSquaredRelu, Activation::kSwishOfSeven};

TEST(Activations, AgreeWithDoublePrecisionOverTheWholeRange) {
  std::vector<float> x;
  for (float z = -100; z <= 100; z += 0.037f) x.push_back(z);
  for (const Activation activation : kActivations) {
    std::vector<float> out = x;
    activate(activation, out);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double z = static_cast<double>(x[i]);
      const double exact = exactly(activation, z);
      // e^-y within 2 units in the last place and y's own roundings: three for a Gelu, which count y times,
      // and where the result is not tiny y is below 20. Below e^-87 the result is flushed towards 0.
      const double bound = std::fabs(exact) * (8 + 3 * 20) * std::ldexp(1, -24) + 1e-7;
      const bool tight = activation != Activation::kGelu && activation != Activation::kSwishOfSeven;
      ASSERT_NEAR(exact, static_cast<double>(out[i]),
                  tight ? std::fabs(exact) * 6 * std::ldexp(1, -24) + 1e-35 : bound)
          << z;
    }
  }
}

TEST(Activations, GateWhatIsBesideThem) {
  const std::vector<float> x = random_row(77, 9, 4);
  const std::vector<float> up = random_row(77, 10, 6);
  for (const Activation activation : kActivations) {
    std::vector<float> alone = x;
    activate(activation, alone);
    std::vector<float> gate = x;
    activate_gate(activation, gate, up);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float factor =
          activation == Activation::kSwishOfSeven ? std::clamp(up[i], -7.0f, 7.0f) + 1 : up[i];
      ASSERT_EQ(gate[i], alone[i] * factor);
    }
  }
}

TEST(Activations, PassNotANumberThroughAndTouchNoNeighbour) {
  for (const Activation activation : kActivations) {
    std::vector<float> gate(33, 1.0f);
    gate[5] = std::numeric_limits<float>::quiet_NaN();
    gate[6] = -std::numeric_limits<float>::infinity();
    std::vector<float> clean(33, 1.0f);
    const std::vector<float> up(33, 1.0f);
    activate_gate(activation, gate, up);
    activate_gate(activation, clean, up);
    EXPECT_TRUE(std::isnan(gate[5]));
    EXPECT_EQ(clean[4], gate[4]);
    EXPECT_EQ(clean[32], gate[32]);
  }
}

TEST(SoftCap, AgreesWithDoublePrecisionNearZeroAndFarFromIt) {
  std::vector<float> x = {0.0f, -0.0f, 1e-30f, 1e30f, -1e30f};
  for (float z = 1e-6f; z < 1000; z *= 1.01f) x.insert(x.end(), {z, -z});
  for (const float cap : {1.0f, 8.0f, 50.0f}) {
    std::vector<float> out = x;
    soft_cap(out, cap);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = cap * std::tanh(static_cast<double>(x[i]) / static_cast<double>(cap));
      // tanh within 3 units in the last place, and a quotient and a product beside it.
      ASSERT_NEAR(exact, static_cast<double>(out[i]), std::fabs(exact) * 10 * std::ldexp(1, -24)) << x[i];
    }
  }
  std::vector<float> odd = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  soft_cap(odd, 2);
  EXPECT_TRUE(std::isnan(odd[0]));
  EXPECT_EQ(odd[1], 2);
  EXPECT_EQ(odd[2], -2);
}

TEST(Sigmoid, AgreesWithDoublePrecision) {
  const std::vector<float> x = random_row(200, 4, 10);
  std::vector<float> out = x;
  sigmoid(out);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    ASSERT_NEAR(exact, static_cast<double>(out[i]), exact * 6 * std::ldexp(1, -24));
  }
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
