#include "quant/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "quant/block_type.h"

namespace kvasir::quant {

static void PrintTo(const BlockTypeInfo& info, std::ostream* out) {
  *out << info.name;
}

namespace {

std::vector<BlockTypeInfo> unpacking_types() {
  std::vector<BlockTypeInfo> types;
  for (const BlockTypeInfo& info : block_types()) {
    if (info.unpacks) types.push_back(info);
  }
  return types;
}

std::vector<std::byte> drawn(const BlockTypeInfo& info, Spread spread, std::uint64_t key,
                             std::size_t blocks) {
  std::vector<std::byte> bytes(blocks * info.bytes);
  const auto drawer = BlockDrawer::create(info.type, spread, key);
  EXPECT_TRUE(drawer) << info.name;
  if (drawer) drawer->draw(0, bytes);
  return bytes;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments(std::span<const float> values) {
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count - sum / count * sum / count)};
}

class EveryDrawnType : public testing::TestWithParam<BlockTypeInfo> {};
INSTANTIATE_TEST_SUITE_P(All, EveryDrawnType, testing::ValuesIn(unpacking_types()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(EveryDrawnType, HasTheMeanAndDeviationThatWereAskedFor) {
  const BlockTypeInfo& info = GetParam();
  constexpr std::size_t kValues = 1U << 18;
  for (const float deviation : {1.0F, 0.022F, 0.0039F}) {
    std::vector<float> values(kValues);
    ASSERT_TRUE(unpack(info.type, drawn(info, {0.0F, deviation}, 7, kValues / info.values), values));
    const Moments found = moments(values);
    EXPECT_NEAR(found.mean, 0.0, 0.02 * deviation) << deviation;
    EXPECT_NEAR(found.deviation, deviation, 0.05 * deviation) << deviation;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_LT(std::fabs(value), 8 * deviation);
    }
  }
}

TEST_P(EveryDrawnType, GivesTheSameBytesInWhateverPieces) {
  const BlockTypeInfo& info = GetParam();
  const std::vector<std::byte> whole = drawn(info, {0.0F, 0.1F}, 9, 40);
  std::vector<std::byte> pieces(whole.size());
  const auto drawer = BlockDrawer::create(info.type, {0.0F, 0.1F}, 9);
  ASSERT_TRUE(drawer);
  for (const std::size_t first : {39U, 17U, 0U, 5U}) {
    const std::size_t count = first == 39 ? 1 : first == 17 ? 22 : first == 0 ? 5 : 12;
    drawer->draw(first, std::span(pieces).subspan(first * info.bytes, count * info.bytes));
  }
  EXPECT_EQ(pieces, whole);
}

TEST_P(EveryDrawnType, DiffersFromKeyToKeyAndFromBlockToBlock) {
  const BlockTypeInfo& info = GetParam();
  const std::size_t blocks = 256 / info.values;
  const std::vector<std::byte> one = drawn(info, {0.0F, 0.1F}, 1, 2 * blocks);
  EXPECT_NE(one, drawn(info, {0.0F, 0.1F}, 2, 2 * blocks));
  const auto half = static_cast<std::ptrdiff_t>(one.size() / 2);
  EXPECT_FALSE(std::equal(one.begin(), one.begin() + half, one.begin() + half));
}

TEST(BlockDrawer, PlainFloatsMayHaveAMean) {
  const BlockTypeInfo& info = block_type_info(BlockType::kF32);
  std::vector<float> values(1U << 16);
  ASSERT_TRUE(unpack(info.type, drawn(info, {1.0F, 0.1F}, 3, values.size()), values));
  EXPECT_NEAR(moments(values).mean, 1.0, 0.005);
  EXPECT_NEAR(moments(values).deviation, 0.1, 0.005);
}

TEST(BlockDrawer, RefusesWhatCannotBeDrawn) {
  const auto code = [](BlockType type, Spread spread) {
    const auto drawer = BlockDrawer::create(type, spread, 0);
    return drawer ? Outcome::kDone : drawer.error().code();
  };
  EXPECT_EQ(code(BlockType::kIQ1_S, {}), Outcome::kUnsupported);
  EXPECT_EQ(code(BlockType::kI32, {}), Outcome::kUnsupported);
  EXPECT_EQ(code(BlockType::kQ4_0, {1.0F, 1.0F}), Outcome::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kF32, {0.0F, 0.0F}), Outcome::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kF32, {0.0F, std::numeric_limits<float>::infinity()}), Outcome::kInvalidArgument);
  EXPECT_EQ(code(BlockType::kF32, {std::nanf(""), 1.0F}), Outcome::kInvalidArgument);
}

// Bit patterns that no packer of these types makes.
TEST(BlockDrawer, DrawsNoPatternThatStandsForNothing) {
  const BlockTypeInfo& ternary = block_type_info(BlockType::kTQ2_0);
  const std::vector<std::byte> blocks = drawn(ternary, {}, 4, 200);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 66 >= 64) continue;
    const int byte = std::to_integer<int>(blocks[i]);
    ASSERT_EQ(byte & (byte >> 1) & 0x55, 0);
  }
  const BlockTypeInfo& bytes = block_type_info(BlockType::kQ8_0);
  const std::vector<std::byte> eights = drawn(bytes, {}, 4, 500);
  for (std::size_t i = 0; i < eights.size(); ++i) {
    if (i % 34 < 2) continue;
    ASSERT_NE(eights[i], std::byte{0x80});
  }
  std::array<bool, 256> possible{};
  for (int number = 0; number < 243; ++number)
    possible[static_cast<std::size_t>((number * 256 + 242) / 243)] = true;
  const std::vector<std::byte> fifths = drawn(block_type_info(BlockType::kTQ1_0), {}, 4, 200);
  for (std::size_t i = 0; i < fifths.size(); ++i) {
    if (i % 54 >= 52) continue;
    ASSERT_TRUE(possible[std::to_integer<std::size_t>(fifths[i])]);
  }
}

}  // namespace
}  // namespace kvasir::quant
