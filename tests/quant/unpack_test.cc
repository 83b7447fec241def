#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "quant/block_type.h"
#include "quant/codebooks.h"
#include "quant/reference.h"

namespace kvasir::quant {
namespace {

class ReferenceBlocks : public testing::TestWithParam<test::Reference> {};

TEST_P(ReferenceBlocks, UnpackToTheFloatsOfTheRecordedDigest) {
  const BlockTypeInfo* info = find_block_type(GetParam().type);
  ASSERT_NE(info, nullptr);
  const auto blocks = test::read_bytes(test::data_path("quant/" + std::string(info->name) + ".blocks"));
  std::vector<float> values(4096);
  ASSERT_TRUE(unpack(info->type, blocks, values));
  EXPECT_EQ(test::digest_of(values), GetParam().digest);
  const auto input = test::read_floats(test::data_path("quant/input.f32"));
  EXPECT_NEAR(test::nmse(values, input) / GetParam().nmse, 1.0, 1e-4);
}

TEST_P(ReferenceBlocks, UnpackToTheRecordedFloatsBitForBit) {
  const std::string name = GetParam().type;
  KVASIR_NEEDS_REFERENCE(folder, "quant/" + name);
  const std::vector<float> expected = test::read_floats(folder + "/dequant.f32");
  std::vector<float> values(expected.size());
  ASSERT_TRUE(unpack(find_block_type(name)->type, test::read_bytes(folder + "/blocks.bin"), values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << "value " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceBlocks, testing::ValuesIn(test::kReferences),
                         [](const auto& tested) { return std::string(tested.param.type); });

TEST(Unpack, EveryTypeThatUnpacksHasARecordedReference) {
  for (const BlockTypeInfo& info : block_types()) {
    if (!info.unpacks || info.type == BlockType::kF32) continue;
    bool found = false;
    for (const test::Reference& reference : test::kReferences) found |= info.name == reference.type;
    EXPECT_TRUE(found) << info.name;
  }
}

TEST(Unpack, FloatsPassUnchangedWhateverTheirBits) {
  const std::vector<std::uint32_t> patterns = {0, 0x8000'0000, 1, 0x7F7F'FFFF, 0x7F80'0000, 0xFFC0'0001};
  std::vector<float> values(patterns.size());
  ASSERT_TRUE(unpack(BlockType::kF32, std::as_bytes(std::span(patterns)), values));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), patterns[i]);
  }
}

TEST(Unpack, AnyBytesAreLegalBlocksOfEveryType) {
  std::mt19937_64 random(20);
  for (const BlockTypeInfo& info : block_types()) {
    if (!info.unpacks) continue;
    for (int round = 0; round < 200; ++round) {
      std::vector<std::byte> block(info.bytes);
      for (std::byte& byte : block) byte = static_cast<std::byte>(random() & 0xFF);
      if (round == 0) std::ranges::fill(block, std::byte{0xFF});
      std::vector<float> values(info.values, 42.5F);
      std::vector<float> again(info.values, -42.5F);
      ASSERT_TRUE(unpack(info.type, block, values));
      ASSERT_TRUE(unpack(info.type, block, again));
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(again[i]))
            << info.name << " leaves value " << i << " unwritten";
      }
    }
  }
}

TEST(Unpack, ReadsBlocksAtAnyAddress) {
  for (const BlockTypeInfo& info : block_types()) {
    if (!info.unpacks) continue;
    std::mt19937_64 random(21);
    std::vector<std::byte> bytes(info.bytes + 1);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3B);  // scales finite
    std::vector<float> odd(info.values);
    ASSERT_TRUE(unpack(info.type, std::span(bytes).subspan(1), odd));
    bytes.erase(bytes.begin());
    std::vector<float> even(info.values);
    ASSERT_TRUE(unpack(info.type, bytes, even));
    EXPECT_EQ(test::digest_of(odd), test::digest_of(even)) << info.name;
  }
}

TEST(Unpack, RefusesCountsThatDoNotAgreeWithTheSizesInNumbers) {
  std::vector<std::byte> blocks(3 * 18);
  std::vector<float> values(64);
  const Status wrong_values = unpack(BlockType::kQ4_0, blocks, values);
  ASSERT_FALSE(wrong_values);
  EXPECT_EQ(wrong_values.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(wrong_values.error().numbers().wanted, 64U);
  EXPECT_EQ(wrong_values.error().numbers().available, 96U);
  const Status torn = unpack(BlockType::kQ4_0, std::span(blocks).first(37), values);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code(), Outcome::kInvalidArgument);
  EXPECT_TRUE(unpack(BlockType::kQ4_0, {}, {}));
}

TEST(Unpack, NamesATypeItDoesNotRead) {
  std::vector<std::byte> block(66);
  std::vector<float> values(256);
  const Status refused = unpack(BlockType::kIQ2_XXS, block, values);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kUnsupported);
  EXPECT_NE(refused.error().message().find("IQ2_XXS"), std::string::npos);
  EXPECT_EQ(unpack(static_cast<BlockType>(999), block, values).error().code(), Outcome::kUnsupported);
}

TEST(Codebooks, GridsAreStrictlyAscendingAndUseOnlyLevelsThatExist) {
  const auto ascending = [](const auto& grid) {
    for (std::size_t i = 1; i < grid.size(); ++i) {
      if (grid[i - 1] >= grid[i]) return false;
    }
    return true;
  };
  EXPECT_TRUE(ascending(kGridIq3Xxs));
  EXPECT_TRUE(ascending(kGridIq3S));
  EXPECT_TRUE(ascending(kGridIq2S));
  for (const std::uint16_t point : kGridIq3Xxs) EXPECT_EQ(point & 0x8888, 0);
  for (const std::uint16_t point : kGridIq3S) EXPECT_EQ(point & 0x8888, 0);
  for (const std::uint16_t point : kGridIq2S) EXPECT_EQ(point & (point >> 1) & 0x5555, 0);
}

TEST(Codebooks, ScalesOfFourBitFloatsAreHalfOfWhatTheirFormatSays) {
  for (int exponent = 0; exponent < 255; ++exponent) {
    EXPECT_EQ(half_power_of_two(static_cast<std::uint8_t>(exponent)), std::ldexp(1.0F, exponent - 128));
  }
  for (int pattern = 0; pattern < 127; ++pattern) {
    const int exponent = pattern >> 3;
    const int fraction = pattern & 7;
    const float whole = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                      : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    EXPECT_EQ(half_float8(static_cast<std::uint8_t>(pattern)), whole / 2) << pattern;
  }
  EXPECT_EQ(half_float8(127), 0.0F);
}

}  // namespace
}  // namespace kvasir::quant
