#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "quant/block_type.h"
#include "support/paths.h"

namespace kvasir::quant {
namespace {

std::vector<std::byte> read(const std::string& path) {
  auto bytes = base::read_whole(base::system_files(), path, 1U << 20);
  EXPECT_TRUE(bytes) << path;
  return bytes ? *std::move(bytes) : std::vector<std::byte>{};
}

std::vector<std::uint32_t> words(const std::vector<std::byte>& bytes) {
  std::vector<std::uint32_t> result(bytes.size() / 4);
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t k = 0; k < 4; ++k) {
      result[i] |= std::to_integer<std::uint32_t>(bytes[4 * i + k]) << (8 * k);
    }
  }
  return result;
}

class ReferenceBlocks : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceBlocks, UnpackToTheRecordedFloatsBitForBit) {
  const std::string name = GetParam();
  KVASIR_NEEDS_REFERENCE(folder, "quant/" + name);
  const BlockTypeInfo* info = find_block_type(name);
  ASSERT_NE(info, nullptr);
  const std::vector<std::byte> blocks = read(folder + "/blocks.bin");
  const std::vector<std::uint32_t> expected = words(read(folder + "/dequant.f32"));
  std::vector<float> values(expected.size());
  ASSERT_TRUE(unpack(info->type, blocks, values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), expected[i]) << "value " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceBlocks,
                         testing::Values("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K",
                                         "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ2_S", "IQ3_S", "IQ3_XXS",
                                         "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "TQ1_0", "TQ2_0"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace kvasir::quant
