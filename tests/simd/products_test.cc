// Products against a scalar loop with the same order of sums: equality of bits, for every kind of panel.
// Those of codes: tests/simd/byte_products_test.cc.

#include "simd/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "random_weights.h"
#include "simd/panels.h"

namespace kvasir::simd {
namespace {

using quant::BlockType;
using test::random_weights;
using test::Weights;

std::vector<float> random_activations(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

// Whether this machine's products fuse multiply and add; targets without it round twice and have their own
// numerics id.
bool fuses() {
  return instruction_set() == "AVX3" || instruction_set() == "AVX2" || instruction_set() == "NEON";
}

class EveryKind : public testing::TestWithParam<BlockType> {};

TEST_P(EveryKind, MultipliesInTheOrderOfAScalarLoop) {
  if (!fuses()) return;  // nothing to compare with: the scalar loop fuses
  for (const std::size_t rows : {1, 16, 37, 130}) {
    for (const std::size_t count : {1, 2, 3, 4, 9}) {
      const std::size_t columns = 768;
      const Weights weights = random_weights(GetParam(), rows, columns, 2);
      const std::vector<float> x = random_activations(count * columns, 3);
      const std::size_t stride = weights.panels.panel_count() * kPanelRows;
      std::vector<float> out(count * stride, 7.0f);
      multiply(weights.panels, 0, weights.panels.panel_count(), {x.data(), count, columns, columns},
               {out.data(), stride});
      for (std::size_t c = 0; c < count; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
          float sum = 0;
          for (std::size_t k = 0; k < columns; ++k)
            sum = std::fma(weights.values[r * columns + k], x[c * columns + k], sum);
          ASSERT_EQ(sum, out[c * stride + r])
              << "row " << r << " of " << rows << ", column " << c << " of " << count;
        }
        for (std::size_t r = rows; r < stride; ++r)
          ASSERT_EQ(0.0f, out[c * stride + r]) << "padding row " << r;
      }
    }
  }
}

TEST_P(EveryKind, GivesAColumnTheSameBitsInAnyBatchAndAnySplitOfPanels) {
  const std::size_t rows = 150;
  const std::size_t columns = 256;
  const std::size_t count = 11;
  const Weights weights = random_weights(GetParam(), rows, columns, 4);
  const std::vector<float> x = random_activations(count * columns, 5);
  const std::size_t panels = weights.panels.panel_count();
  const std::size_t stride = panels * kPanelRows;
  std::vector<float> whole(count * stride);
  multiply(weights.panels, 0, panels, {x.data(), count, columns, columns}, {whole.data(), stride});
  std::vector<float> single(stride);
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t p = 0; p < panels; ++p) {
      multiply(weights.panels, p, p + 1, {x.data() + c * columns, 1, columns, columns},
               {single.data(), stride});
    }
    ASSERT_EQ(0, std::memcmp(single.data(), whole.data() + c * stride, stride * 4)) << "column " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Panels, EveryKind,
                         testing::Values(BlockType::kF32, BlockType::kF16, BlockType::kBF16),
                         [](const auto& kind) {
                           return std::string(quant::block_type_info(kind.param).name);
                         });

TEST(Panels, TakeRowsOfAnyLengthWhereBlocksAllowIt) {
  const Weights weights = random_weights(BlockType::kF32, 5, 77, 6);
  const std::vector<float> x = random_activations(77, 7);
  std::vector<float> out(16);
  multiply(weights.panels, 0, 1, {x.data(), 1, 77, 77}, {out.data(), 16});
  double sum = 0;
  double magnitude = 0;
  for (std::size_t k = 0; k < 77; ++k) {
    sum += static_cast<double>(weights.values[k]) * static_cast<double>(x[k]);
    magnitude += std::fabs(static_cast<double>(weights.values[k]) * static_cast<double>(x[k]));
  }
  // Each of 77 fused steps rounds once: the error is at most 77 x 2^-24 of the sum of magnitudes.
  EXPECT_NEAR(sum, static_cast<double>(out[0]), 77 * std::ldexp(magnitude, -24));
}

TEST(Panels, RefuseWhatTheyCannotHold) {
  EXPECT_EQ(Outcome::kInvalidArgument, Panels::allocate(BlockType::kQ4_0, 4, 48).error().code());
  EXPECT_EQ(Outcome::kInvalidArgument, Panels::allocate(BlockType::kF32, 0, 48).error().code());
  EXPECT_EQ(Outcome::kInvalidArgument,
            Panels::allocate(BlockType::kF32, std::size_t{1} << 40, std::size_t{1} << 40).error().code());
  EXPECT_EQ(Outcome::kUnsupported, Panels::allocate(BlockType::kIQ1_S, 4, 256).error().code());
  auto panels = Panels::allocate(BlockType::kF32, 4, 8);
  ASSERT_TRUE(panels.has_value());
  std::vector<std::byte> bytes(4 * 8 * 4);
  EXPECT_EQ(Outcome::kInvalidArgument, panels->fill(1, bytes).error().code());
  EXPECT_EQ(Outcome::kInvalidArgument, panels->fill(0, std::span(bytes).first(100)).error().code());
}

}  // namespace
}  // namespace kvasir::simd
