#include "pages/page_table.h"

#include <gtest/gtest.h>

#include "small_store.h"
#include "support/allocations.h"

namespace kvasir::pages::test {
namespace {

constexpr PageId kA{0};
constexpr PageId kB{1};

PageTable table_of(const std::vector<Span>& runs) {
  PageTable table;
  for (const Span& run : runs) table.append(run);
  return table;
}

std::vector<Span> runs_in(const PageTable& table) {
  return {table.runs().begin(), table.runs().end()};
}

TEST(PageTable, JoinsCellsThatGoOnInOnePageWithOneShift) {
  PageTable table = table_of({{kA, 0, 4}, {kA, 4, 3}});
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 7, 0, 0}}));
  table.append({kA, 8, 1});         // a cell is left out
  table.append({kB, 9, 2});         // another page
  table.append({kB, 11, 2, 0, 5});  // another shift
  table.append({kB, 13, 3, 0, 5});  // goes on
  EXPECT_EQ(runs_in(table),
            (std::vector<Span>{{kA, 0, 7, 0, 0}, {kA, 8, 1, 7, 0}, {kB, 9, 2, 8, 0}, {kB, 11, 5, 10, 5}}));
  EXPECT_EQ(table.length(), 15);
}

TEST(PageTable, FindsTheSpanAndTheCellOfEveryOrdinal) {
  const PageTable table = table_of({{kA, 3, 2}, {kB, 0, 3}});
  EXPECT_EQ(table.at(0), (Span{kA, 3, 2, 0, 0}));
  EXPECT_EQ(table.at(1), (Span{kA, 3, 2, 0, 0}));
  EXPECT_EQ(table.at(2), (Span{kB, 0, 3, 2, 0}));
  EXPECT_EQ(table.at(4), (Span{kB, 0, 3, 2, 0}));
  EXPECT_EQ(table.cell_at(1), (CellAt{kA, 4}));
  EXPECT_EQ(table.cell_at(2), (CellAt{kB, 0}));
  EXPECT_EQ(table.cell_at(4), (CellAt{kB, 2}));
}

TEST(PageTable, CutsASpanWhereItsMiddleIsRemoved) {
  PageTable table = table_of({{kA, 0, 10}});
  std::vector<Span> removed;
  table.remove(3, 2, removed);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 3, 0, 0}, {kA, 5, 5, 3, 0}}));
  EXPECT_EQ(removed, (std::vector<Span>{{kA, 3, 2, 3, 0}}));
}

TEST(PageTable, RemovesAcrossSpansFromTheBeginningAndFromTheEnd) {
  PageTable table = table_of({{kA, 0, 4}, {kB, 0, 4}, {kA, 8, 4}});
  std::vector<Span> removed;
  table.remove(3, 6, removed);  // one of the first, all of the second, one of the third
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 3, 0, 0}, {kA, 9, 3, 3, 0}}));
  EXPECT_EQ(removed, (std::vector<Span>{{kA, 3, 1, 3, 0}, {kB, 0, 4, 4, 0}, {kA, 8, 1, 8, 0}}));
  removed.clear();
  table.remove(0, 1, removed);
  table.remove(4, 1, removed);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 1, 2, 0, 0}, {kA, 9, 2, 2, 0}}));
  table.remove(0, 4, removed);
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.length(), 0);
}

TEST(PageTable, JoinsWhatARemovalBringsTogether) {
  PageTable table = table_of({{kA, 0, 4}, {kB, 0, 2}, {kA, 4, 4}});
  std::vector<Span> removed;
  table.remove(4, 2, removed);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 8, 0, 0}}));
}

TEST(PageTable, IsUnchangedByOperationsOnNoTokens) {
  PageTable table = table_of({{kA, 0, 4}});
  std::vector<Span> list;
  table.remove(2, 0, list);
  table.shift(2, 0, 7);
  table.replace(2, {}, list);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 4, 0, 0}}));
  EXPECT_TRUE(list.empty());
}

TEST(PageTable, ShiftsAPartAndJoinsAgainWhenTheShiftIsTakenBack) {
  PageTable table = table_of({{kA, 0, 10}});
  table.shift(2, 3, -1);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 2, 0, 0}, {kA, 2, 3, 2, -1}, {kA, 5, 5, 5, 0}}));
  table.shift(4, 6, -1);
  EXPECT_EQ(runs_in(table),
            (std::vector<Span>{{kA, 0, 2, 0, 0}, {kA, 2, 2, 2, -1}, {kA, 4, 1, 4, -2}, {kA, 5, 5, 5, -1}}));
  table.shift(2, 8, 1);
  table.shift(4, 1, 1);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 10, 0, 0}}));
}

TEST(PageTable, PutsOtherCellsInThePlaceOfSome) {
  PageTable table = table_of({{kA, 0, 10, 0, 3}});
  std::vector<Span> replaced;
  const Span with[] = {{kB, 4, 1}, {kB, 6, 3}};
  table.replace(2, with, replaced);
  EXPECT_EQ(runs_in(table),
            (std::vector<Span>{{kA, 0, 2, 0, 3}, {kB, 4, 1, 2, 0}, {kB, 6, 3, 3, 0}, {kA, 6, 4, 6, 3}}));
  EXPECT_EQ(replaced, (std::vector<Span>{{kA, 2, 4, 2, 3}}));
}

// The table with `count` cells from `from` on found at `to`.
PageTable moved(const PageTable& table, CellAt from, CellAt to, std::uint32_t count) {
  const CopyCells copy{0, from, to, count};
  const PageTable::Patch patch = table.patch_for(Moves({&copy, 1}), table.start(), table.length());
  PageTable result = table;
  result.apply(patch);
  EXPECT_EQ(static_cast<std::int64_t>(result.runs().size()),
            static_cast<std::int64_t>(table.runs().size()) + patch.growth());
  return result;
}

TEST(PageTable, FollowsCellsThatMove) {
  const PageTable table = table_of({{kA, 0, 10, 0, 2}, {kB, 0, 1}});
  // The middle, the beginning, more than it holds, cells of others.
  EXPECT_EQ(runs_in(moved(table, {kA, 3}, {kB, 8}, 4)),
            (std::vector<Span>{{kA, 0, 3, 0, 2}, {kB, 8, 4, 3, 2}, {kA, 7, 3, 7, 2}, {kB, 0, 1, 10, 0}}));
  EXPECT_EQ(runs_in(moved(table, {kA, 0}, {kB, 8}, 2)),
            (std::vector<Span>{{kB, 8, 2, 0, 2}, {kA, 2, 8, 2, 2}, {kB, 0, 1, 10, 0}}));
  EXPECT_EQ(runs_in(moved(table, {kA, 8}, {kB, 8}, 8)),
            (std::vector<Span>{{kA, 0, 8, 0, 2}, {kB, 8, 2, 8, 2}, {kB, 0, 1, 10, 0}}));
  EXPECT_EQ(moved(table, {kA, 10}, {kB, 8}, 2), table);
  EXPECT_EQ(moved(table, {PageId{9}, 0}, {kB, 8}, 16), table);
}

TEST(PageTable, JoinsCellsThatMoveBehindTheirPredecessor) {
  const PageTable table = table_of({{kA, 0, 3}, {kB, 5, 2}, {kB, 9, 1}});
  const PageTable once = moved(table, {kB, 5}, {kA, 3}, 2);
  EXPECT_EQ(runs_in(once), (std::vector<Span>{{kA, 0, 5, 0, 0}, {kB, 9, 1, 5, 0}}));
  EXPECT_EQ(runs_in(moved(once, {kB, 9}, {kA, 5}, 1)), (std::vector<Span>{{kA, 0, 6, 0, 0}}));
}

// A patch of some ordinals reaches to the spans beside them and leaves the rest as it is.
TEST(PageTable, IsPatchedInPlace) {
  const PageTable table = table_of({{kA, 0, 2}, {kB, 0, 1}, {kA, 4, 1}, {kB, 2, 1}, {kA, 8, 3}});
  const std::vector<CopyCells> copies = {{0, {kB, 2}, {kA, 3}, 1}, {0, {kB, 0}, {kA, 2}, 1}};
  const Moves moves(copies);
  const PageTable::Patch first = table.patch_for(moves, 2, 3);
  EXPECT_EQ(std::make_pair(first.first, first.last), std::make_pair(std::size_t{0}, std::size_t{3}));
  EXPECT_EQ(first.growth(), -1);
  const PageTable::Patch all = table.patch_for(moves, 2, 5);
  EXPECT_EQ(std::make_pair(all.first, all.last), std::make_pair(std::size_t{0}, std::size_t{5}));
  PageTable result = table;
  result.apply(first);
  EXPECT_EQ(runs_in(result),
            (std::vector<Span>{{kA, 0, 3, 0, 0}, {kA, 4, 1, 3, 0}, {kB, 2, 1, 4, 0}, {kA, 8, 3, 5, 0}}));
  result.apply(result.patch_for(moves, 4, 5));
  EXPECT_EQ(runs_in(result),
            (std::vector<Span>{{kA, 0, 3, 0, 0}, {kA, 4, 1, 3, 0}, {kA, 3, 1, 4, 0}, {kA, 8, 3, 5, 0}}));
}

TEST(PageTable, GrowsByAPatchWithinWhatWasReservedWithoutAllocating) {
  PageTable table = table_of({{kA, 0, 16}, {kB, 0, 1}});
  const std::vector<CopyCells> copies = {{0, {kA, 9}, {kB, 9}, 1}, {0, {kA, 3}, {kB, 3}, 2}};
  const PageTable::Patch patch = table.patch_for(Moves(copies), 3, 10);
  ASSERT_EQ(patch.growth(), 4);
  table.reserve(4);
  bool refused = false;
  {
    const kvasir::test::AllocationFault fault(0);
    table.apply(patch);
    refused = fault.fired();
  }
  EXPECT_FALSE(refused);
  EXPECT_EQ(runs_in(table), (std::vector<Span>{{kA, 0, 3, 0, 0},
                                               {kB, 3, 2, 3, 0},
                                               {kA, 5, 4, 5, 0},
                                               {kB, 9, 1, 9, 0},
                                               {kA, 10, 6, 10, 0},
                                               {kB, 0, 1, 16, 0}}));
}

TEST(PageTable, ExchangesTwoOfItsCellsOrOneWithAStranger) {
  const PageTable table = table_of({{kA, 0, 4, 0, 1}});
  EXPECT_EQ(runs_in(table.exchanged({kA, 1}, {kA, 3})),
            (std::vector<Span>{{kA, 0, 1, 0, 1}, {kA, 3, 1, 1, 1}, {kA, 2, 1, 2, 1}, {kA, 1, 1, 3, 1}}));
  EXPECT_EQ(runs_in(table.exchanged({kB, 7}, {kA, 3})),
            (std::vector<Span>{{kA, 0, 3, 0, 1}, {kB, 7, 1, 3, 1}}));
  EXPECT_EQ(table.exchanged({kB, 7}, {kB, 3}), table);
}

TEST(PageTable, KnowsWhichCellsItNames) {
  const PageTable table = table_of({{kA, 4, 4}});
  EXPECT_TRUE(table.names_any({kA, 0}, 5));
  EXPECT_FALSE(table.names_any({kA, 0}, 4));
  EXPECT_TRUE(table.names_any({kA, 7}, 9));
  EXPECT_FALSE(table.names_any({kA, 8}, 8));
  EXPECT_TRUE(table.names_any({kA, 5}, 1));
  EXPECT_FALSE(table.names_any({kB, 4}, 4));
}

TEST(PageTable, AppendsWithinWhatWasReservedWithoutAllocating) {
  PageTable table = table_of({{kA, 0, 1}});
  table.reserve(3);
  bool refused = false;
  {
    const kvasir::test::AllocationFault fault(0);
    for (std::uint32_t i = 1; i <= 3; ++i) table.append({kB, 2 * i, 1});
    refused = fault.fired();
  }
  EXPECT_FALSE(refused);
  EXPECT_EQ(table.runs().size(), 4);
}

}  // namespace
}  // namespace kvasir::pages::test
