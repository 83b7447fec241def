#include "tiers/disk_space.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/allocations.h"

namespace kvasir::tiers {
namespace {

constexpr std::uint64_t kUnit = DiskSpace::kUnitBytes;

std::uint64_t sum(const std::vector<Extent>& extents) {
  std::uint64_t units = 0;
  for (const Extent& extent : extents) units += extent.count;
  return units;
}

TEST(DiskSpace, HasWholeUnitsAlone) {
  EXPECT_EQ(DiskSpace(kUnit - 1).units(), 0);
  EXPECT_EQ(DiskSpace(3 * kUnit + 17).units(), 3);
  EXPECT_EQ(DiskSpace::units_of(0), 0);
  EXPECT_EQ(DiskSpace::units_of(1), 1);
  EXPECT_EQ(DiskSpace::units_of(kUnit), 1);
  EXPECT_EQ(DiskSpace::units_of(kUnit + 1), 2);
}

TEST(DiskSpace, WhateverIsFreeServesWhereverItLies) {
  DiskSpace space(10 * kUnit);
  std::vector<std::vector<Extent>> all;
  for (int i = 0; i < 10; ++i) all.push_back(space.take(1));
  for (std::size_t i = 0; i < 10; i += 2) space.give_back(all[i]);
  ASSERT_EQ(space.units_free(), 5);
  const std::vector<Extent> scattered = space.take(5);
  EXPECT_EQ(scattered.size(), 5);
  EXPECT_EQ(sum(scattered), 5);
  EXPECT_EQ(space.units_free(), 0);
}

TEST(DiskSpace, NoUnitIsGivenTwice) {
  std::mt19937_64 random(1);
  DiskSpace space(100 * kUnit);
  std::vector<int> owners(100);
  std::vector<std::vector<Extent>> held;
  for (int step = 0; step < 5000; ++step) {
    const std::uint64_t wanted = 1 + random() % 30;
    if (wanted <= space.units_free() && random() % 2 == 0) {
      held.push_back(space.take(wanted));
      ASSERT_EQ(sum(held.back()), wanted);
      for (const Extent& extent : held.back()) {
        for (std::uint64_t i = 0; i < extent.count; ++i) ASSERT_EQ(++owners.at(extent.first + i), 1);
      }
    } else if (!held.empty()) {
      const std::size_t which = random() % held.size();
      for (const Extent& extent : held[which]) {
        for (std::uint64_t i = 0; i < extent.count; ++i) --owners.at(extent.first + i);
      }
      space.give_back(held[which]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
}

TEST(DiskSpace, MissingMemoryTakesNothing) {
  DiskSpace space(16 * kUnit);
  std::vector<std::vector<Extent>> all;
  for (int i = 0; i < 16; ++i) all.push_back(space.take(1));
  for (std::size_t i = 0; i < 16; i += 2) space.give_back(all[i]);
  for (std::uint64_t n = 0;; ++n) {
    bool refused = false;
    {
      const kvasir::test::AllocationFault fault(n);
      try {
        space.give_back(space.take(8));
      } catch (const std::bad_alloc&) {
        refused = true;
      }
    }
    EXPECT_EQ(space.units_free(), 8);
    if (!refused) {
      EXPECT_GT(n, 0);
      return;
    }
  }
}

}  // namespace
}  // namespace kvasir::tiers
