#include "base/checksum.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstddef>
#include <vector>

namespace kvasir::base {
namespace {

// Of the xxHash specification's own vectors: of nothing, without a seed.
TEST(Checksums, OfNothingIsThatOfTheSpecification) {
  EXPECT_EQ(checksum({}), 0x2D06800538D394C2U);
}

// Whatever instructions are chosen: those of the library's plain function.
TEST(Checksums, AreTheSameByWhateverInstructions) {
  std::vector<std::byte> bytes(70'000);
  std::uint32_t value = 7;
  for (std::byte& byte : bytes) {
    value = value * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(value >> 24);
  }
  for (std::size_t size = 0; size <= bytes.size(); size = size < 700 ? size + 1 : size + 997) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
      ASSERT_EQ(checksum(std::span(bytes).first(size), seed), XXH3_64bits_withSeed(bytes.data(), size, seed));
    }
    ASSERT_EQ(checksum(std::span(bytes).first(size)), XXH3_64bits(bytes.data(), size)) << size;
  }
}

}  // namespace
}  // namespace kvasir::base
