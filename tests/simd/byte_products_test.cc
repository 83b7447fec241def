// Products over codes: the portable path against exact arithmetic with a derived bound, and every path that
// runs here against the portable one, bit for bit.

#include "simd/byte_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/checked.h"
#include "random_weights.h"
#include "simd/panel_lane.h"

namespace kvasir::simd {
namespace {

using quant::BlockType;
using test::random_weights;
using test::Weights;

ByteRows random_columns(std::size_t count, std::size_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  auto rows = ByteRows::allocate(count, width);
  EXPECT_TRUE(rows.has_value());
  std::vector<float> numbers(width);
  for (std::size_t c = 0; c < count; ++c) {
    for (float& number : numbers) number = normal(random);
    rows->pack(c, numbers);
  }
  return std::move(*rows);
}

std::vector<float> product(const BytePath& path, const Panels& weights, const ByteColumns& x) {
  const std::size_t stride = weights.panel_count() * kPanelRows;
  std::vector<float> out(x.count * stride, 7.0F);
  path.multiply(weights, 0, weights.panel_count(), x, {out.data(), stride});
  return out;
}

// A sum in double, and the sum of the magnitudes that enter it.
struct Exact {
  double sum = 0;
  double magnitude = 0;
};

Exact exact_product(const Panels& weights, std::size_t row, const ByteColumns& x, std::size_t column) {
  const CodeRecipe recipe = recipe_of(weights.kind());
  const auto* panel = reinterpret_cast<const std::uint8_t*>(weights.panel(row / kPanelRows));
  Exact exact;
  SubBlock block;
  for (std::size_t k = 0; k < x.width; ++k) {
    if (k % recipe.sub == 0) read_sub_block({panel, weights.kind(), row % kPanelRows}, k / recipe.sub, block);
    const std::size_t at = column * x.stride + k;
    const double activation = double{x.scales[at / kByteBlock]} * x.bytes[at];
    const double scaled = double{block.scale} * block.codes[k % recipe.sub];
    exact.sum += (scaled + double{block.offset}) * activation;
    exact.magnitude += (std::fabs(scaled) + std::fabs(double{block.offset})) * std::fabs(activation);
  }
  return exact;
}

// Widths of whole blocks of activations and, where the type allows it, others; the last are longer than what
// a path goes through at once.
std::vector<std::size_t> widths_of(BlockType type) {
  if (quant::block_type_info(type).values == 32) return {512, 32, 928, 8192 + 32};
  if (quant::block_type_info(type).values == 64) return {512, 64, 960, 8192 + 64};
  return {512, 8192 + 256};
}

class EveryCode : public testing::TestWithParam<BlockType> {};

void expect_exact_but_for_rounding(BlockType type, std::size_t width) {
  constexpr std::size_t kRows = 21;
  const Weights weights = random_weights(type, kRows, width, 2);
  const ByteRows rows = random_columns(3, width, 3);
  const ByteColumns x = rows.columns(0, 3, width);
  const std::vector<float> out = product(kPortableBytes, weights.panels, x);
  // A term passes at most through two roundings for each sub-block of its block and three for each block.
  const std::size_t subs = kByteBlock / recipe_of(weights.panels.kind()).sub;
  const auto steps = static_cast<double>(2 * subs + 3 * base::div_up(width, kByteBlock));
  for (std::size_t c = 0; c < x.count; ++c) {
    for (std::size_t r = 0; r < weights.panels.panel_count() * kPanelRows; ++r) {
      const float found = out[c * weights.panels.panel_count() * kPanelRows + r];
      if (r >= kRows) {
        ASSERT_EQ(found, 0.0F) << "padding row " << r;
        continue;
      }
      const Exact exact = exact_product(weights.panels, r, x, c);
      ASSERT_NEAR(double{found}, exact.sum, std::ldexp(steps * exact.magnitude, -24))
          << "row " << r << " of width " << width;
    }
  }
}

TEST_P(EveryCode, MultipliesExactlyButForTheRoundingOfItsSteps) {
  for (const std::size_t width : widths_of(GetParam())) expect_exact_but_for_rounding(GetParam(), width);
}

// Of one path, in batches of every size and in pieces.
void expect_same_bits(const BytePath& path, const Weights& weights, const ByteRows& rows, std::size_t count,
                      std::size_t width, const std::vector<float>& wanted) {
  const std::size_t stride = weights.panels.panel_count() * kPanelRows;
  for (std::size_t some = 1; some <= count; ++some) {
    const std::size_t first = count - some;
    const std::vector<float> found = product(path, weights.panels, rows.columns(first, some, width));
    ASSERT_EQ(0, std::memcmp(found.data(), wanted.data() + first * stride, some * stride * 4))
        << path.name << ", " << some << " columns of width " << width;
  }
  std::vector<float> pieces(count * stride);
  for (std::size_t panel = 0; panel < weights.panels.panel_count(); panel += 3) {
    path.multiply(weights.panels, panel, std::min(panel + 3, weights.panels.panel_count()),
                  rows.columns(0, count, width), {pieces.data(), stride});
  }
  ASSERT_EQ(pieces, wanted) << path.name;
}

TEST_P(EveryCode, HasTheSameBitsOnEveryPathInAnyBatchAndAnySplitOfPanels) {
  constexpr std::size_t kCount = 11;
  for (const std::size_t width : widths_of(GetParam())) {
    const Weights weights = random_weights(GetParam(), 150, width, 4);
    const ByteRows rows = random_columns(kCount, width, 5);
    const std::vector<float> wanted = product(kPortableBytes, weights.panels, rows.columns(0, kCount, width));
    std::size_t ran = 0;
    for (const BytePath& path : byte_paths()) {
      if (!path.runs_here()) continue;
      ++ran;
      expect_same_bits(path, weights, rows, kCount, width, wanted);
    }
    EXPECT_GE(ran, 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Panels, EveryCode,
    testing::Values(BlockType::kQ8_0, BlockType::kQ4_0, BlockType::kQ4_1, BlockType::kQ5_0, BlockType::kQ5_1,
                    BlockType::kQ2_K, BlockType::kQ3_K, BlockType::kQ4_K, BlockType::kQ5_K, BlockType::kQ6_K,
                    BlockType::kIQ4_NL, BlockType::kIQ4_XS, BlockType::kMXFP4, BlockType::kNVFP4,
                    BlockType::kIQ3_XXS, BlockType::kIQ3_S, BlockType::kIQ2_S, BlockType::kTQ1_0,
                    BlockType::kTQ2_0),
    [](const auto& kind) { return std::string(quant::block_type_info(kind.param).name); });

// Codes and bytes of the greatest magnitude everywhere: no path may saturate.
TEST(ByteProducts, HoldTheGreatestSumsThatThereCanBe) {
  constexpr std::size_t kColumns = 256;
  std::vector<std::byte> raw(kColumns / 32 * 34);
  for (std::size_t block = 0; block < kColumns / 32; ++block) {
    raw[block * 34 + 1] = std::byte{0x3C};  // a scale of 1
    for (std::size_t i = 0; i < 32; ++i) raw[block * 34 + 2 + i] = std::byte{0x80};
  }
  auto weights = Panels::allocate(BlockType::kQ8_0, 1, kColumns);
  ASSERT_TRUE(weights.has_value());
  ASSERT_TRUE(weights->fill(0, raw).has_value());
  for (const float sign : {1.0F, -1.0F}) {
    auto rows = ByteRows::allocate(1, kColumns);
    ASSERT_TRUE(rows.has_value());
    rows->pack(0, std::vector<float>(kColumns, 127.0F * sign));
    for (const BytePath& path : byte_paths()) {
      if (!path.runs_here()) continue;
      EXPECT_EQ(product(path, *weights, rows->columns(0, 1, kColumns))[0], -128.0F * 127.0F * 256.0F * sign)
          << path.name;
    }
  }
}

// One row whose codes and sub-scales are the greatest of their type, with a scale of 1 and no offset.
Panels greatest_codes(BlockType type, std::size_t scale, std::size_t columns) {
  const quant::BlockTypeInfo& info = quant::block_type_info(type);
  std::vector<std::byte> raw(columns / info.values * info.bytes, std::byte{0xFF});
  for (std::size_t block = 0; block < columns / info.values; ++block) {
    std::byte* const at = raw.data() + block * info.bytes + scale;
    at[0] = at[2] = at[3] = std::byte{0};
    at[1] = std::byte{0x3C};
  }
  auto weights = Panels::allocate(type, 1, columns);
  EXPECT_TRUE(weights.has_value());
  EXPECT_TRUE(weights->fill(0, raw).has_value());
  return std::move(*weights);
}

// The numbers of a block whose bytes they are, each 32 of them with the sum that is told.
std::vector<float> reaching(const std::array<int, 8>& sums) {
  std::vector<float> numbers(kByteBlock);
  for (std::size_t index = 0; index < sums.size(); ++index) {
    int left = std::abs(sums[index]);
    for (std::size_t k = index * 32; left > 0; ++k) {
      const int some = std::min(left, 127);
      numbers[k] = static_cast<float>(sums[index] < 0 ? -some : some);
      left -= some;
    }
  }
  return numbers;
}

// The sums of two sub-blocks share a lane where sixteen bits hold them. Codes of 15 do that up to a reach of
// 2184, those of 3 always; beside one that reaches further, in a batch, nothing else may change.
TEST(ByteProducts, AreTheSameWhetherSumsOfSubBlocksFitIntoSixteenBitsOrNot) {
  struct Greatest {
    BlockType type;
    std::size_t scale;
    double product;  // of a code and a sub-scale
  };
  std::vector<std::array<int, 8>> blocks;
  for (const int one : {127, -127, 2184, -2184, 2185, -2185, 4064, -4064}) {
    for (const int other : {0, 127, 2184, -2184, 2185, -4064}) {
      blocks.push_back({one, other, 0, 0, 0, 0, 0, 0});
      blocks.push_back({0, 127, 0, 0, other, one, 0, 0});
    }
    blocks.push_back({one, one, one, one, one, one, one, one});
    blocks.push_back({one, one, one, one, -one, -one, -one, -one});
  }
  auto rows = ByteRows::allocate(blocks.size(), kByteBlock);
  ASSERT_TRUE(rows.has_value());
  for (std::size_t c = 0; c < blocks.size(); ++c) rows->pack(c, reaching(blocks[c]));
  for (const Greatest& of :
       {Greatest{BlockType::kQ4_K, 0, 15 * 63}, Greatest{BlockType::kQ2_K, 80, 3 * 15}}) {
    const Panels weights = greatest_codes(of.type, of.scale, kByteBlock);
    for (const BytePath& path : byte_paths()) {
      if (!path.runs_here()) continue;
      const ByteColumns x = rows->columns(0, blocks.size(), kByteBlock);
      const std::vector<float> together = product(path, weights, x);
      for (std::size_t c = 0; c < blocks.size(); ++c) {
        const double sum = std::accumulate(blocks[c].begin(), blocks[c].end(), 0.0);
        // Those of 2^24 and more are rounded on their way, the same on each path.
        const float portable = product(kPortableBytes, weights, x.from(c, 1))[0];
        if (std::fabs(of.product * sum) < 0x1p24) {
          EXPECT_EQ(portable, of.product * sum);
        }
        EXPECT_EQ(together[c * kPanelRows], portable) << path.name << ", column " << c;
        EXPECT_EQ(product(path, weights, x.from(c, 1))[0], portable) << path.name << ", column " << c;
      }
    }
  }
}

// Random weights and columns some of whose blocks reach too far, in a row that takes two stretches.
TEST(ByteProducts, AreTheSameBesideBlocksThatReachFurther) {
  constexpr std::size_t kWidth = 8192 + 2 * kByteBlock;
  constexpr std::size_t kCount = 11;
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  auto rows = ByteRows::allocate(kCount, kWidth);
  ASSERT_TRUE(rows.has_value());
  for (std::size_t c = 0; c < kCount; ++c) {
    std::vector<float> numbers(kWidth);
    for (std::size_t k = 0; k < kWidth; ++k) {
      const bool far = (k / kByteBlock + c) % 5 == 0;
      numbers[k] = far ? 1.0F + 0.1F * normal(random) : normal(random);
    }
    rows->pack(c, numbers);
  }
  for (const BlockType type : {BlockType::kQ4_K, BlockType::kQ2_K, BlockType::kQ5_K}) {
    const Weights weights = random_weights(type, 48, kWidth, 7);
    const std::vector<float> wanted =
        product(kPortableBytes, weights.panels, rows->columns(0, kCount, kWidth));
    for (const BytePath& path : byte_paths())
      if (path.runs_here()) expect_same_bits(path, weights, *rows, kCount, kWidth, wanted);
  }
}

// A first block whose sum is too small for a float, and -0, and a second whose sums are below 0 and whose
// sub-scales are 0: the product of these is -0 as a float, and 0 as an integer.
TEST(ByteProducts, HaveZerosOfTheSameSignWhetherSumsFitIntoSixteenBitsOrNot) {
  constexpr std::size_t kWidth = 2 * kByteBlock;
  std::vector<std::byte> raw(2 * 144, std::byte{0});
  raw[0] = std::byte{1};   // a scale of 2^-24
  raw[4] = std::byte{1};   // a sub-scale of 1
  raw[16] = std::byte{1};  // a code of 1
  raw[144 + 1] = std::byte{0x3C};
  std::fill_n(raw.begin() + 144 + 16, 128, std::byte{0xFF});
  auto weights = Panels::allocate(BlockType::kQ4_K, 1, kWidth);
  ASSERT_TRUE(weights.has_value());
  ASSERT_TRUE(weights->fill(0, raw).has_value());
  auto rows = ByteRows::allocate(2, kWidth);
  ASSERT_TRUE(rows.has_value());
  constexpr float kGreatest = 3.8e-37F;
  std::vector<float> numbers(kWidth, 0.0F);
  numbers[0] = -kGreatest / 127;
  numbers[255] = kGreatest;
  for (std::size_t k = 256; k < kWidth; k += 32) numbers[k] = -1;
  rows->pack(0, numbers);
  std::fill(numbers.begin() + 256, numbers.end(), -1.0F);
  rows->pack(1, numbers);  // reaches further in the second block
  const std::vector<float> wanted = product(kPortableBytes, *weights, rows->columns(0, 2, kWidth));
  EXPECT_EQ(wanted[0], 0.0F);
  for (const BytePath& path : byte_paths()) {
    if (!path.runs_here()) continue;
    const std::vector<float> together = product(path, *weights, rows->columns(0, 2, kWidth));
    const std::vector<float> alone = product(path, *weights, rows->columns(0, 1, kWidth));
    EXPECT_EQ(std::signbit(together[0]), std::signbit(wanted[0])) << path.name;
    EXPECT_EQ(std::signbit(alone[0]), std::signbit(wanted[0])) << path.name;
  }
}

}  // namespace
}  // namespace kvasir::simd
