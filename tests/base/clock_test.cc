#include "base/clock.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <vector>

#include "base/cpu.h"

namespace kvasir::base {
namespace {

TEST(SystemClock, NeverGoesBack) {
  std::int64_t before = system_clock().now_ns();
  for (int i = 0; i < 100000; ++i) {
    const std::int64_t now = system_clock().now_ns();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(SystemClock, GoesOn) {
  const std::int64_t start = system_clock().now_ns();
  while (system_clock().now_ns() == start) {
  }
  EXPECT_GT(system_clock().now_ns(), start);
}

TEST(SystemEntropy, FillsAllOfWhatItIsGiven) {
  // More than one call of the system delivers at once, in sizes that are no power of two.
  for (const std::size_t size : {1UL, 7UL, 257UL, 1000003UL}) {
    std::vector<std::byte> bytes(size + 1);
    bytes.back() = std::byte{0xA5};
    bool last_changed = false;
    for (int attempt = 0; attempt < 64 && !last_changed; ++attempt) {
      ASSERT_TRUE(system_entropy().fill(std::span(bytes).first(size)));
      last_changed = bytes[size - 1] != std::byte{0};
    }
    EXPECT_TRUE(last_changed) << size;
    EXPECT_EQ(bytes.back(), std::byte{0xA5}) << "beyond the end";
  }
  EXPECT_TRUE(system_entropy().fill({}));
}

TEST(SystemEntropy, DoesNotRepeatItself) {
  std::set<std::array<std::byte, 16>> seen;
  for (int i = 0; i < 1000; ++i) {
    std::array<std::byte, 16> bytes{};
    ASSERT_TRUE(system_entropy().fill(bytes));
    EXPECT_TRUE(seen.insert(bytes).second);
  }
}

TEST(Machine, GivesAtLeastOneProcessorAndSomeMemory) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_GT(available_memory(), 0U);
}

}  // namespace
}  // namespace kvasir::base
