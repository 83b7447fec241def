// Activations as blocks of signed bytes, against plain loops.

#include "simd/byte_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "support/instruction_sets.h"

namespace kvasir::simd {
namespace {

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers)
    number = normal(random) * std::ldexp(1.0F, static_cast<int>(random() % 20) - 10);
  return numbers;
}

ByteRows packed(std::span<const float> numbers) {
  auto rows = ByteRows::allocate(2, numbers.size());
  EXPECT_TRUE(rows.has_value());
  rows->pack(1, numbers);
  return std::move(*rows);
}

void expect_packed_as_defined(std::span<const float> numbers) {
  const ByteRows rows = packed(numbers);
  const std::size_t width = (numbers.size() + kByteBlock - 1) / kByteBlock * kByteBlock;
  const ByteColumns column = rows.columns(1, 1, width);
  for (std::size_t k = 0; k < width; ++k) {
    const std::size_t first = k / kByteBlock * kByteBlock;
    float greatest = 0;
    for (std::size_t i = first; i < std::min(first + kByteBlock, numbers.size()); ++i)
      greatest = std::max(greatest, std::fabs(numbers[i]));
    const float number = k < numbers.size() ? numbers[k] : 0.0F;
    EXPECT_EQ(column.bytes[k], std::lrint(number * (127.0F / greatest))) << k;
    EXPECT_EQ(column.scales[k / kByteBlock], greatest / 127.0F) << k;
  }
  for (std::size_t k = 0; k < width; k += 16) {
    int sum = 0;
    for (std::size_t i = k; i < k + 16; ++i) sum += column.bytes[i];
    EXPECT_EQ(column.sums16[k / 16], sum);
    if (k % 32 == 16) {
      EXPECT_EQ(column.sums32[k / 32], sum + column.sums16[k / 16 - 1]);
    }
  }
  for (std::size_t block = 0; block < width; block += kByteBlock) {
    int reach = 0;
    for (std::size_t k = block; k < block + kByteBlock; k += 32) {
      int positive = 0;
      int negative = 0;
      for (std::size_t i = k; i < k + 32; ++i) {
        (column.bytes[i] < 0 ? negative : positive) += std::abs(column.bytes[i]);
      }
      reach = std::max({reach, positive, negative});
    }
    EXPECT_EQ(column.reaches[block / kByteBlock], reach) << block;
  }
}

TEST(ByteColumns, RoundToTheNearestStepOfTheirBlockWithEachInstructionSet) {
  kvasir::test::with_each_instruction_set([](std::int64_t) {
    expect_packed_as_defined(random_numbers(1024, 1));
    expect_packed_as_defined(random_numbers(256 + 7, 2));
    expect_packed_as_defined(random_numbers(96, 2));
  });
}

// Of a column that held numbers which reach further, and was packed in pieces.
TEST(ByteColumns, AreTheSameWhetherPackedWholeOrInPieces) {
  constexpr std::size_t kWidth = 1024 + 96;
  constexpr std::size_t kBlocks = (kWidth + kByteBlock - 1) / kByteBlock;
  const std::vector<float> numbers = random_numbers(kWidth, 5);
  const ByteRows whole = packed(numbers);
  ByteRows pieces = packed(std::vector<float>(kWidth, 1.0F));
  for (const std::size_t first : {512U, 0U, 768U}) {
    const std::size_t last = first == 0 ? 512 : first == 512 ? 768 : kWidth;
    pieces.pack(1, std::span(numbers).subspan(first, last - first), first);
  }
  const ByteColumns a = whole.columns(1, 1, kWidth);
  const ByteColumns b = pieces.columns(1, 1, kWidth);
  EXPECT_TRUE(std::equal(a.bytes, a.bytes + kBlocks * kByteBlock, b.bytes));
  EXPECT_TRUE(std::equal(a.sums16, a.sums16 + kBlocks * 16, b.sums16));
  EXPECT_TRUE(std::equal(a.sums32, a.sums32 + kBlocks * 8, b.sums32));
  EXPECT_TRUE(std::equal(a.scales, a.scales + kBlocks, b.scales));
  EXPECT_TRUE(std::equal(a.reaches, a.reaches + kBlocks, b.reaches));
}

TEST(ByteColumns, ReachAtMostAsFarAs32OfTheGreatestBytes) {
  std::vector<float> numbers(512, 3.0F);
  std::fill(numbers.begin() + 256, numbers.end(), -0.5F);
  expect_packed_as_defined(numbers);
  const ByteRows rows = packed(numbers);
  EXPECT_EQ(rows.columns(1, 1, 512).reaches[0], kMostReach);
  EXPECT_EQ(rows.columns(1, 1, 512).reaches[1], kMostReach);
}

TEST(ByteColumns, AreZerosWhereAllNumbersAreZeroOrTooSmallToDivideBy) {
  std::vector<float> numbers(512, 0.0F);
  std::fill(numbers.begin() + 256, numbers.end(), std::numeric_limits<float>::denorm_min());
  const ByteRows rows = packed(numbers);
  const ByteColumns column = rows.columns(1, 1, 512);
  for (std::size_t k = 0; k < 512; ++k) EXPECT_EQ(column.bytes[k], 0);
  EXPECT_EQ(column.scales[0], 0.0F);
  EXPECT_EQ(column.scales[1], 0.0F);
  EXPECT_EQ(column.reaches[0], 0);
  EXPECT_EQ(column.reaches[1], 0);
}

TEST(ByteColumns, ShowANumberThatIsNotFiniteInTheScaleOfItsBlockAlone) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> numbers = random_numbers(768, 3);
    numbers[300] = bad;
    const ByteRows rows = packed(numbers);
    const ByteColumns column = rows.columns(1, 1, 768);
    EXPECT_TRUE(std::isfinite(column.scales[0]));
    EXPECT_TRUE(std::isnan(column.scales[1]));
    EXPECT_TRUE(std::isfinite(column.scales[2]));
    EXPECT_EQ(column.reaches[1], 0);
    for (std::size_t k = 256; k < 512; ++k) EXPECT_EQ(column.bytes[k], 0);
  }
}

TEST(ByteColumns, NeverHoldTheByteThatHasNoOpposite) {
  std::vector<float> numbers = random_numbers(4096, 4);
  for (std::size_t k = 0; k < numbers.size(); k += 32) numbers[k] = -100.0F * static_cast<float>(k + 1);
  const ByteRows rows = packed(numbers);
  const ByteColumns column = rows.columns(1, 1, numbers.size());
  EXPECT_EQ(*std::min_element(column.bytes, column.bytes + numbers.size()), -127);
}

}  // namespace
}  // namespace kvasir::simd
