#include "base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

// In a sanitizer's build too, memory that cannot be had is refused instead of ending the process.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizers chose the names
extern "C" {
const char* __asan_default_options();
const char* __tsan_default_options();
const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace kvasir::base {
namespace {

std::uintptr_t address(const Buffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data());
}

bool all_zero(const Buffer& buffer) {
  return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(Buffer, IsZeroedAndAligned) {
  for (const std::size_t bytes :
       {1UL, 63UL, 64UL, 65UL, 4096UL, (2UL << 20) - 1, 2UL << 20, (2UL << 20) + 1, 5UL << 20}) {
    const auto buffer = Buffer::allocate(bytes);
    ASSERT_TRUE(buffer) << bytes;
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(address(*buffer) % (bytes >= 2UL << 20 ? 2UL << 20 : 64), 0U) << bytes;
    EXPECT_TRUE(all_zero(*buffer)) << bytes;
  }
}

TEST(Buffer, MayBeEmpty) {
  const auto empty = Buffer::allocate(0);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->size(), 0U);
  EXPECT_TRUE(empty->as<int>().empty());
  EXPECT_EQ(Buffer().size(), 0U);
}

TEST(Buffer, RefusesWhatTheSystemCannotGive) {
  for (const std::size_t bytes : {std::size_t{1} << 62, SIZE_MAX / 2, SIZE_MAX - 63, SIZE_MAX}) {
    const auto refused = Buffer::allocate(bytes);
    ASSERT_FALSE(refused) << bytes;
    EXPECT_EQ(refused.error().code(), Outcome::kOutOfMemory);
    EXPECT_EQ(refused.error().numbers().wanted, bytes);
  }
}

TEST(Buffer, KeepsItsBytesWhereTheyAreWhenItMoves) {
  Buffer first = *Buffer::allocate(100);
  first.as<std::uint32_t>()[3] = 77;
  const std::uintptr_t where = address(first);
  Buffer second = std::move(first);
  EXPECT_EQ(address(second), where);
  EXPECT_EQ(second.as<std::uint32_t>()[3], 77U);
  EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move)
  Buffer third = *Buffer::allocate(10);
  third = std::move(second);
  EXPECT_EQ(address(third), where);
  EXPECT_EQ(third.size(), 100U);
}

TEST(Buffer, ShowsWholeElementsOnly) {
  const Buffer buffer = *Buffer::allocate(10);
  EXPECT_EQ(buffer.as<std::uint32_t>().size(), 2U);
  EXPECT_EQ(buffer.as<std::byte>().size(), 10U);
}

TEST(Buffer, OnTouchIsZeroedAndAlignedTooAndKeepsWhatIsWrittenBesideATouch) {
  for (const std::size_t bytes : {1UL, 65UL, 4097UL, (2UL << 20) + 1, 5UL << 20}) {
    auto buffer = Buffer::allocate_on_touch(bytes);
    ASSERT_TRUE(buffer) << bytes;
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(address(*buffer) % (bytes >= 2UL << 20 ? 2UL << 20 : 64), 0U) << bytes;
    const std::size_t half = bytes / 2 / 4096 * 4096;
    std::fill_n(buffer->data(), half, std::byte{7});
    buffer->touch(half, bytes);
    EXPECT_TRUE(std::all_of(buffer->data(), buffer->data() + half,
                            [](std::byte byte) { return byte == std::byte{7}; }));
    std::fill_n(buffer->data(), half, std::byte{0});
    EXPECT_TRUE(all_zero(*buffer)) << bytes;
  }
}

TEST(Buffer, OnTouchIsZeroedWhereFreedMemoryIsUsedAgain) {
  for (int round = 0; round < 8; ++round) {
    for (const std::size_t bytes : {100UL, 70'000UL, 3UL << 20}) {
      auto buffer = Buffer::allocate_on_touch(bytes);
      ASSERT_TRUE(buffer);
      ASSERT_TRUE(all_zero(*buffer)) << bytes;
      std::fill_n(buffer->data(), bytes, std::byte{0xFF});
    }
  }
}

TEST(Buffer, RefusesOnTouchWhatTheSystemCannotGive) {
  for (const std::size_t bytes : {std::size_t{1} << 62, PTRDIFF_MAX - 63UL, SIZE_MAX - 63, SIZE_MAX}) {
    const auto refused = Buffer::allocate_on_touch(bytes);
    ASSERT_FALSE(refused) << bytes;
    EXPECT_EQ(refused.error().code(), Outcome::kOutOfMemory);
    EXPECT_EQ(refused.error().numbers().wanted, bytes);
  }
}

// Every part is written whole with a number of its own, and all are read when the last is there.
TEST(Slab, HandsOutPartsThatAreAlignedAndApartAndOutliveIt) {
  std::vector<Buffer> parts;
  {
    Slab slab;
    for (std::size_t i = 0; i < 200; ++i) {
      const std::size_t bytes = i % 7 == 0 ? (i << 16) + 5 : i * 37 + 1;
      auto part = slab.take(bytes);
      ASSERT_TRUE(part) << i;
      ASSERT_EQ(part->size(), bytes);
      ASSERT_EQ(address(*part) % 64, 0U);
      std::fill_n(part->data(), bytes, static_cast<std::byte>(i));
      parts.push_back(*std::move(part));
    }
  }
  std::swap(parts[3], parts[150]);
  parts.erase(parts.begin() + 20, parts.begin() + 60);
  for (const Buffer& part : parts) {
    EXPECT_TRUE(std::all_of(part.data(), part.data() + part.size(),
                            [&](std::byte byte) { return byte == part.data()[0]; }));
  }
}

TEST(Slab, WastesNoPagesBetweenParts) {
  Slab slab;
  const Buffer first = *slab.take(100);
  const Buffer second = *slab.take(1UL << 20);
  const Buffer third = *slab.take((1UL << 19) + 1);
  const Buffer fourth = *slab.take(64);
  EXPECT_EQ(address(second), address(first) + 128);
  EXPECT_EQ(address(third), address(second) + (1UL << 20));
  EXPECT_EQ(address(fourth), address(third) + (1UL << 19) + 64);
}

TEST(Slab, RefusesWhatTheSystemCannotGiveAndGoesOn) {
  Slab slab;
  const Buffer first = *slab.take(100);
  for (const std::size_t bytes : {std::size_t{1} << 62, SIZE_MAX - 63, SIZE_MAX}) {
    const auto refused = slab.take(bytes);
    ASSERT_FALSE(refused) << bytes;
    EXPECT_EQ(refused.error().code(), Outcome::kOutOfMemory);
    EXPECT_EQ(refused.error().numbers().wanted, bytes);
  }
  const Buffer second = *slab.take(100);
  EXPECT_EQ(address(second), address(first) + 128);
  EXPECT_EQ(slab.take(0)->size(), 0U);
}

}  // namespace
}  // namespace kvasir::base
