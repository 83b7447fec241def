#include "pages/group_cells.h"

#include <gtest/gtest.h>

#include "small_store.h"
#include "support/allocations.h"

namespace kvasir::pages::test {
namespace {

constexpr PageId kA{0};
constexpr PageId kB{1};

// Three pages of 16 cells, two layers.
GroupCells three_pages() {
  auto cells = GroupCells::create({2}, 16, 3);
  EXPECT_TRUE(cells.has_value());
  return std::move(cells).value();
}

void expect_sound(const GroupCells& cells) {
  const Status status = cells.check();
  EXPECT_TRUE(status.has_value()) << status.error().message();
}

// Opens the next page with its first cells taken.
PageId open_with(GroupCells& cells, std::uint32_t count) {
  static constexpr FrameId kFrames[] = {FrameId{7}, FrameId{8}};
  const PageId page = cells.open_page(kFrames);
  cells.take(page, {0, count}, 0);
  return page;
}

TEST(GroupCells, BeginsWithNoPageInUse) {
  const GroupCells cells = three_pages();
  EXPECT_EQ(cells.page_count(), 3);
  EXPECT_EQ(cells.pages_used(), 0);
  EXPECT_EQ(cells.free_cells(), 0);
  EXPECT_EQ(cells.holes(), 0);
  EXPECT_EQ(cells.layers(), 2);
  EXPECT_FALSE(cells.longest_hole());
  expect_sound(cells);
}

TEST(GroupCells, TakesCellsWithPositionsAndOneHolderEach) {  // C1, C2, C3
  GroupCells cells = three_pages();
  EXPECT_EQ(open_with(cells, 5), kA);
  cells.take(kA, {10, 2}, 40);
  EXPECT_EQ(cells.pages_used(), 1);
  EXPECT_EQ(cells.held_cells(kA), 7);
  EXPECT_EQ(cells.free_cells(), 9);
  EXPECT_EQ(cells.holes(), 9);
  EXPECT_EQ(cells.free_holes(), 9);
  EXPECT_EQ(cells.holders(kA, 4), 1);
  EXPECT_EQ(cells.holders(kA, 5), 0);
  EXPECT_EQ(cells.position(kA, 4), 4);
  EXPECT_EQ(cells.position(kA, 11), 41);
  EXPECT_EQ(cells.frames(kA)[1], FrameId{8});
  expect_sound(cells);
}

TEST(GroupCells, FreesACellWithItsLastHolderAndAPageWithItsLastCell) {  // C1, C2
  GroupCells cells = three_pages();
  static_cast<void>(open_with(cells, 2));
  cells.hold(kA, {0, 1}, Holder::kFirm);
  EXPECT_FALSE(cells.release(kA, {0, 2}, Holder::kFirm));
  EXPECT_EQ(cells.holders(kA, 0), 1);
  EXPECT_EQ(cells.holders(kA, 1), 0);
  EXPECT_EQ(cells.free_cells(), 15);
  EXPECT_TRUE(cells.release(kA, {0, 1}, Holder::kFirm));
  EXPECT_EQ(cells.pages_used(), 0);
  EXPECT_EQ(cells.free_cells(), 0);
  EXPECT_FALSE(cells.longest_hole());
  expect_sound(cells);
  EXPECT_EQ(open_with(cells, 16), kA);  // and serves again
  EXPECT_EQ(cells.free_cells(), 0);
  expect_sound(cells);
}

TEST(GroupCells, FindsTheLongestHoleOfAnyPageButOne) {  // C4
  GroupCells cells = three_pages();
  static_cast<void>(open_with(cells, 6));   // A: a hole of 10
  static_cast<void>(open_with(cells, 12));  // B: a hole of 4
  ASSERT_TRUE(cells.longest_hole());
  EXPECT_EQ(cells.longest_hole()->page, kA);
  EXPECT_EQ(cells.longest_hole()->cells, (CellRange{6, 10}));
  EXPECT_EQ(cells.longest_hole(kA)->page, kB);
  EXPECT_EQ(cells.longest_hole(kA)->cells, (CellRange{12, 4}));
  cells.take(kA, {8, 8}, 0);  // A: a hole of 2
  EXPECT_EQ(cells.longest_hole()->page, kB);
  EXPECT_EQ(cells.longest_hole(kB)->cells, (CellRange{6, 2}));
  cells.take(kB, {12, 4}, 0);
  cells.take(kA, {6, 2}, 0);
  EXPECT_FALSE(cells.longest_hole());
  EXPECT_FALSE(cells.release(kB, {3, 1}, Holder::kFirm));
  EXPECT_EQ(cells.longest_hole()->cells, (CellRange{3, 1}));
  EXPECT_FALSE(cells.longest_hole(kB));
  expect_sound(cells);
}

TEST(GroupCells, MeasuresTheFreeRunBehindACell) {
  GroupCells cells = three_pages();
  static_cast<void>(open_with(cells, 6));
  cells.take(kA, {10, 1}, 0);
  EXPECT_EQ(cells.free_run_at(kA, 6, 100), 4);
  EXPECT_EQ(cells.free_run_at(kA, 6, 3), 3);
  EXPECT_EQ(cells.free_run_at(kA, 11, 100), 5);
  EXPECT_EQ(cells.free_run_at(kA, 5, 100), 0);
  EXPECT_EQ(cells.free_run_at(kA, 16, 100), 0);
}

TEST(GroupCells, CountsAPageThatOnlyYieldingHoldersHoldAsEvictable) {  // C6
  GroupCells cells = three_pages();
  static_cast<void>(open_with(cells, 6));
  cells.hold(kA, {0, 4}, Holder::kSoft);
  EXPECT_EQ(cells.evictable_cells(), 0);
  EXPECT_EQ(cells.holes(), 10);
  EXPECT_FALSE(cells.release(kA, {0, 4}, Holder::kFirm));  // four cells soft only, two firm
  EXPECT_EQ(cells.evictable_cells(), 4);
  EXPECT_EQ(cells.evictable_pages(), 0);
  EXPECT_EQ(cells.holes(), 14);
  EXPECT_EQ(cells.free_holes(), 10);
  EXPECT_TRUE(cells.stays(kA));
  EXPECT_FALSE(cells.release(kA, {4, 2}, Holder::kFirm));  // now the page goes as a whole
  EXPECT_EQ(cells.evictable_cells(), 4);
  EXPECT_EQ(cells.evictable_pages(), 1);
  EXPECT_EQ(cells.holes(), 0);
  EXPECT_EQ(cells.free_holes(), 0);
  EXPECT_EQ(cells.free_cells(), 12);
  EXPECT_FALSE(cells.stays(kA));
  EXPECT_FALSE(cells.longest_hole()) << "C4: a page that goes lends no cell";
  expect_sound(cells);
  cells.hold(kA, {1, 1}, Holder::kFirm);  // and stays again
  EXPECT_EQ(cells.evictable_pages(), 0);
  EXPECT_EQ(cells.evictable_cells(), 3);
  EXPECT_EQ(cells.holes(), 15);
  EXPECT_EQ(cells.longest_hole()->cells, (CellRange{4, 12}));
  expect_sound(cells);
  EXPECT_FALSE(cells.release(kA, {1, 1}, Holder::kFirm));
  EXPECT_TRUE(cells.release(kA, {0, 4}, Holder::kSoft));
  expect_sound(cells);
}

TEST(GroupCells, LetsTwoCellsChangePlacesWithAllThatIsKnownOfThem) {  // C5
  GroupCells cells = three_pages();
  static_cast<void>(open_with(cells, 2));
  static_cast<void>(open_with(cells, 3));
  cells.hold(kA, {1, 1}, Holder::kSoft);
  EXPECT_FALSE(cells.release(kA, {1, 1}, Holder::kFirm));  // evictable
  cells.hold(kB, {2, 1}, Holder::kFirm);
  cells.swap({kA, 1}, {kB, 2});
  EXPECT_EQ(cells.holders(kA, 1), 2);
  EXPECT_EQ(cells.position(kA, 1), 2);
  EXPECT_EQ(cells.soft_holders(kA, 1), 0);
  EXPECT_EQ(cells.holders(kB, 2), 1);
  EXPECT_EQ(cells.soft_holders(kB, 2), 1);
  EXPECT_EQ(cells.position(kB, 2), 1);
  EXPECT_EQ(cells.holes(), 14 + 13 + 1);
  expect_sound(cells);
  cells.swap({kB, 0}, {kB, 2});
  EXPECT_EQ(cells.soft_holders(kB, 0), 1);
  EXPECT_EQ(cells.position(kB, 0), 1);
  EXPECT_EQ(cells.position(kB, 2), 0);
  expect_sound(cells);
}

TEST(GroupCells, MovesHoldersAndPositionsOntoCellsThatWereTaken) {
  GroupCells cells = three_pages();
  static_cast<void>(open_with(cells, 4));
  static_cast<void>(open_with(cells, 1));
  cells.hold(kA, {2, 2}, Holder::kSoft);
  cells.take(kB, {8, 2}, 100);
  EXPECT_FALSE(cells.move({kA, 2}, {kB, 8}, 2));
  EXPECT_EQ(cells.holders(kA, 2), 0);
  EXPECT_EQ(cells.holders(kB, 8), 2);
  EXPECT_EQ(cells.soft_holders(kB, 9), 1);
  EXPECT_EQ(cells.position(kB, 9), 3);
  EXPECT_EQ(cells.held_cells(kA), 2);
  cells.take(kB, {4, 2}, 100);
  EXPECT_TRUE(cells.move({kA, 0}, {kB, 4}, 2)) << "the page is empty now";
  EXPECT_EQ(cells.pages_used(), 1);
  EXPECT_EQ(cells.position(kB, 5), 1);
  expect_sound(cells);
}

TEST(GroupCells, SayThatMemoryIsMissingWhereverItIs) {
  for (std::uint64_t n = 0;; ++n) {
    bool fired = false;
    {
      const kvasir::test::AllocationFault fault(n);
      const auto cells = GroupCells::create({2}, 16, 3);
      fired = fault.fired();
      if (fired == cells.has_value()) {
        ADD_FAILURE() << "allocation " << n;
      } else if (fired && cells.error().code() != Outcome::kOutOfMemory) {
        ADD_FAILURE() << "another error at allocation " << n;
      }
    }
    if (!fired) return;
  }
}

}  // namespace
}  // namespace kvasir::pages::test
