#include "pages/cell_mask.h"

#include <gtest/gtest.h>

namespace kvasir::pages::test {
namespace {

TEST(CellMask, HoldsWhatWasInsertedAndNotErased) {
  CellMask mask = CellMask::all(100);
  EXPECT_EQ(mask.size(), 100);
  EXPECT_TRUE(mask.contains(0));
  EXPECT_TRUE(mask.contains(99));
  EXPECT_FALSE(mask.contains(100));
  mask.erase(64);
  EXPECT_FALSE(mask.contains(64));
  EXPECT_EQ(mask.size(), 99);
  mask.insert(64);
  EXPECT_EQ(mask.size(), 100);
}

TEST(CellMask, MeasuresARunAcrossWordsUpToTheEnd) {
  CellMask mask = CellMask::all(256);
  EXPECT_EQ(mask.run_at(0, 256), 256);
  EXPECT_EQ(mask.run_at(60, 200), 140);
  EXPECT_EQ(mask.run_at(255, 256), 1);
  mask.erase(130);
  EXPECT_EQ(mask.run_at(60, 256), 70);
  EXPECT_EQ(mask.run_at(130, 256), 0);
  EXPECT_EQ(mask.run_at(131, 256), 125);
  mask.erase(64);
  EXPECT_EQ(mask.run_at(63, 256), 1);
  EXPECT_EQ(mask.run_at(70, 72), 2);
}

TEST(CellMask, FindsTheFirstOfTheLongestRuns) {
  CellMask mask;
  EXPECT_EQ(mask.longest_run(256).count, 0);
  for (const std::uint32_t cell : {3, 4, 62, 63, 64, 70, 71, 72}) mask.insert(cell);
  EXPECT_EQ(mask.longest_run(256), (CellRange{62, 3}));
  EXPECT_EQ(mask.longest_run(64), (CellRange{3, 2}));
  mask.insert(73);
  EXPECT_EQ(mask.longest_run(256), (CellRange{70, 4}));
}

}  // namespace
}  // namespace kvasir::pages::test
