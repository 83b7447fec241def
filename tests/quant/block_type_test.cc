#include "quant/block_type.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace kvasir::quant {
namespace {

TEST(BlockTypes, AreListedInTheOrderOfTheirNumbersAndFoundByNumberAndName) {
  std::int64_t last = -1;
  for (const BlockTypeInfo& info : block_types()) {
    const auto number = static_cast<std::uint32_t>(info.type);
    EXPECT_GT(static_cast<std::int64_t>(number), last);
    last = number;
    EXPECT_EQ(find_block_type(number), &info);
    EXPECT_EQ(find_block_type(info.name), &info);
    EXPECT_EQ(&block_type_info(info.type), &info);
    std::string lower(info.name);
    for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
    EXPECT_EQ(find_block_type(lower), &info);
  }
  EXPECT_EQ(block_types().size(), 33U);
}

TEST(BlockTypes, NumbersThatWereTakenBackAndUnknownOnesAreNotFound) {
  for (const std::uint32_t number : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 1000U, 0xFFFF'FFFFU}) {
    EXPECT_EQ(find_block_type(number), nullptr) << number;
  }
  EXPECT_EQ(find_block_type("Q4_2"), nullptr);
  EXPECT_EQ(find_block_type(""), nullptr);
  EXPECT_EQ(find_block_type("Q4_0 "), nullptr);
}

// Bits of a value times the values, plus the bytes of scales, as the specification describes each layout.
TEST(BlockTypes, SizesFollowFromTheirLayouts) {
  struct Layout {
    const char* name;
    std::uint32_t values, number_bits, sign_bits, scale_bits;
  };
  constexpr Layout kLayouts[] = {
      {"F32", 1, 32, 0, 0},
      {"F16", 1, 16, 0, 0},
      {"BF16", 1, 16, 0, 0},
      {"F64", 1, 64, 0, 0},
      {"I8", 1, 8, 0, 0},
      {"I16", 1, 16, 0, 0},
      {"I32", 1, 32, 0, 0},
      {"I64", 1, 64, 0, 0},
      {"Q4_0", 32, 4, 0, 16},
      {"Q4_1", 32, 4, 0, 32},
      {"Q5_0", 32, 5, 0, 16},
      {"Q5_1", 32, 5, 0, 32},
      {"Q8_0", 32, 8, 0, 16},
      {"Q8_1", 32, 8, 0, 32},
      {"Q2_K", 256, 2, 0, 16 * 8 + 32},
      {"Q3_K", 256, 3, 0, 16 * 6 + 16},
      {"Q4_K", 256, 4, 0, 8 * 12 + 32},
      {"Q5_K", 256, 5, 0, 8 * 12 + 32},
      {"Q6_K", 256, 6, 0, 16 * 8 + 16},
      {"Q8_K", 256, 8, 0, 32 + 16 * 16},
      {"IQ4_NL", 32, 4, 0, 16},
      {"IQ4_XS", 256, 4, 0, 16 + 8 * 6},
      {"MXFP4", 32, 4, 0, 8},
      {"NVFP4", 64, 4, 0, 4 * 8},
      {"TQ2_0", 256, 2, 0, 16},
      {"IQ3_XXS", 256, 2, 1, 16 + 0},
      {"IQ2_S", 256, 1, 1, 16 + 8 * 8 + 64},
  };
  for (const Layout& layout : kLayouts) {
    const BlockTypeInfo* info = find_block_type(layout.name);
    ASSERT_NE(info, nullptr) << layout.name;
    EXPECT_EQ(info->values, layout.values) << layout.name;
    EXPECT_EQ(info->bytes * 8, layout.values * (layout.number_bits + layout.sign_bits) + layout.scale_bits)
        << layout.name;
  }
}

}  // namespace
}  // namespace kvasir::quant
