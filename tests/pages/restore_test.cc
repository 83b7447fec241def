// Conversations described and brought back, with numbers small enough to follow.

#include "pages/restore.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "pages/compaction.h"
#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

using Kind = EditOperation::Kind;

constexpr GroupSpec kFull{1};
constexpr GroupSpec kWindow{1, GroupKind::kWindow, 10};
constexpr GroupSpec kState{2, GroupKind::kRecurrent};
constexpr GroupSpec kCross{1, GroupKind::kCross};

std::unique_ptr<PageStore> make_kinds(std::uint32_t frames, const std::vector<GroupSpec>& groups,
                                      std::uint32_t page_cells = 16, std::uint32_t checkpoints_max = 8) {
  auto store = PageStore::create({.page_cells = page_cells,
                                  .frames = frames,
                                  .groups = groups,
                                  .checkpoint_tokens = page_cells,
                                  .checkpoints_max = checkpoints_max});
  EXPECT_TRUE(store.has_value());
  return std::move(store).value();
}

Layout layout_of(PageStore& store, const std::vector<TableId>& tables) {
  const auto snapshot = store.snapshot(tables);
  EXPECT_TRUE(snapshot.has_value());
  return (*snapshot)->layout();
}

std::vector<TableId> restore(PageStore& store, const Layout& layout) {
  std::vector<TableId> tables;
  for (std::size_t i = 0; i < layout.conversations.size(); ++i) tables.push_back(open(store));
  auto ticket = store.begin_restore(layout, tables);
  EXPECT_TRUE(ticket.has_value()) << ticket.error().message();
  if (ticket) ticket->commit();
  expect_sound(store);
  return tables;
}

// The stored positions of a conversation's cells.
std::vector<std::uint64_t> positions_of(const PageStore& store, TableId table, std::size_t group = 0) {
  std::vector<std::uint64_t> positions;
  for (const Span& run : store.runs(table, group)) {
    for (std::uint32_t i = 0; i < run.count; ++i)
      positions.push_back(store.position(group, run.page, run.cell + i));
  }
  return positions;
}

TEST(Layouts, NumberCellsOnceAndNameThemInOrder) {
  const auto store = make_store(8);
  const TableId parent = open_with(*store, 20);
  const TableId child = *store->fork(parent);
  grow(*store, child, 5);
  edit(*store, parent, {{Kind::kRemove, 4, 6, 0}, {Kind::kShift, 4, 10, -6}});
  const Layout layout = layout_of(*store, {parent, child});
  EXPECT_EQ(layout.conversations[0].length, 14U);
  EXPECT_EQ(layout.conversations[0].clean, 4U);
  EXPECT_EQ(layout.conversations[0].cells[0], (std::vector<CellPiece>{{0, 4, 0}, {4, 10, -6}}));
  EXPECT_EQ(layout.conversations[1].cells[0],
            (std::vector<CellPiece>{{0, 4, 0}, {14, 6, 0}, {4, 10, 0}, {20, 5, 0}}));
  EXPECT_EQ(layout.cells[0], (std::vector<CellStretch>{{4, 0}, {10, 10}, {6, 4}, {5, 20}}));
  expect_sound(*store);
}

TEST(Layouts, ComeBackIntoPagesOfAnotherSizeWithShiftsAndSharedCells) {
  const auto from = make_store(8);
  const TableId parent = open_with(*from, 20);
  const TableId child = *from->fork(parent);
  grow(*from, child, 5);
  edit(*from, parent, {{Kind::kRemove, 4, 6, 0}, {Kind::kShift, 4, 10, -6}});
  const Layout layout = layout_of(*from, {parent, child});

  const auto to = make_store(8, {1}, 32);
  const std::vector<TableId> back = restore(*to, layout);
  EXPECT_EQ(to->length(back[0]), 14U);
  EXPECT_EQ(to->length(back[1]), 25U);
  EXPECT_EQ(to->next_position(back[0]), from->next_position(parent));
  EXPECT_EQ(positions_of(*to, back[0]), positions_of(*from, parent));
  EXPECT_EQ(positions_of(*to, back[1]), positions_of(*from, child));
  EXPECT_EQ(to->holdings(back[0]).shared, 14U);
  EXPECT_EQ(to->holdings(back[1]).own, 11U);
  EXPECT_EQ(to->frames_free(), 7U) << "25 cells are one page";
  // What is described there again is the same.
  Layout again = layout_of(*to, back);
  EXPECT_EQ(again.cells, layout.cells);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(again.conversations[i].cells, layout.conversations[i].cells);
}

// K10.
TEST(Restores, SucceedExactlyWhereFreeAndEvictableCellsSuffice) {
  const Layout layout = [] {
    const auto other = make_store(20);
    return layout_of(*other, {open_with(*other, 32)});
  }();
  for (const std::uint64_t extra : {0, 1}) {
    const auto store = make_store(4);
    const TableId board = make_checkerboard(*store, 4);
    ASSERT_EQ(store->frames_free(), 0U);
    ASSERT_EQ(store->tokens_free(), 32U);
    Layout wanted = layout;
    wanted.conversations[0].length += extra;
    wanted.conversations[0].cells[0][0].count += extra;
    wanted.cells[0][0].count += extra;
    const TableId table = open(*store);
    const auto before = state_of(*store, std::vector<TableId>{board, table});
    auto ticket = store->begin_restore(wanted, {&table, 1});
    if (extra == 0) {
      ASSERT_TRUE(ticket.has_value());
      EXPECT_EQ(store->tokens_free(), 0U);
      ticket->commit();
      EXPECT_EQ(store->runs(table, 0).size(), 32U) << "every second cell";
    } else {
      ASSERT_FALSE(ticket.has_value());
      EXPECT_EQ(ticket.error().code(), Outcome::kNoSpace);
      EXPECT_EQ(ticket.error().numbers().wanted, 33U);
      EXPECT_EQ(ticket.error().numbers().available, 32U);
      EXPECT_EQ(state_of(*store, std::vector<TableId>{board, table}), before);
    }
    expect_sound(*store);
  }
}

TEST(Restores, EvictWhatTheIndexHoldsAndLeavePromisesAlone) {
  const auto store = make_store(4);
  const TableId first = open_with(*store, 48);
  store->remember(first, tokens_from(0, 48), 0);
  const Layout layout = layout_of(*store, {first});
  ASSERT_EQ(store->close(first), Outcome::kDone);
  const TableId other = open(*store);
  ASSERT_TRUE(store->promise(other, 16));
  const std::vector<TableId> back = restore(*store, layout);
  EXPECT_EQ(store->prefix_blocks(), 1U) << "which the promise may still evict";
  EXPECT_EQ(store->holdings(other).promised, 16U);
  ASSERT_EQ(store->close(back[0]), Outcome::kDone);
  ASSERT_TRUE(store->promise(other, 17));
  const TableId table = open(*store);
  EXPECT_EQ(store->begin_restore(layout, {&table, 1}).error().code(), Outcome::kNoSpace);
  expect_sound(*store);
}

TEST(Restores, GiveEverythingBackWithoutCommit) {
  const auto store = make_kinds(60, {kFull, kWindow, kState, kCross});
  const TableId source = open(*store);
  store->begin_encode(source, 20)->commit();
  for (int step = 0; step < 8; ++step) grow(*store, source, 12);
  const Layout layout = layout_of(*store, {source});
  const TableId table = open(*store);
  const std::vector<TableId> both = {source, table};
  const auto before = state_of(*store, both);
  {
    const auto ticket = store->begin_restore(layout, {&table, 1});
    ASSERT_TRUE(ticket.has_value()) << ticket.error().message();
    EXPECT_EQ(store->close(table), Outcome::kBusy);
    EXPECT_NE(state_of(*store, both), before);
  }
  EXPECT_EQ(state_of(*store, both), before);
  EXPECT_EQ(store->close(table), Outcome::kDone);
  expect_sound(*store);
}

TEST(Restores, BringWindowsStatesCheckpointsAndEncodersOutputsBack) {
  const auto from = make_kinds(80, {kFull, kWindow, kState, kCross});
  const TableId source = open(*from);
  from->begin_encode(source, 20)->commit();
  for (int step = 0; step < 10; ++step) grow(*from, source, 12);
  ASSERT_EQ(*from->rewind(source, 100), 4U);
  const TableId child = *from->fork(source);
  const Layout layout = layout_of(*from, {source, child});
  EXPECT_EQ(layout.conversations[0].behind, 4U);

  const auto to = make_kinds(80, {kFull, kWindow, kState, kCross}, 48);
  const std::vector<TableId> back = restore(*to, layout);
  for (const TableId table : back) {
    EXPECT_EQ(to->length(table), 96U);
    EXPECT_EQ(to->behind(table), 4U);
    EXPECT_EQ(to->holdings(table).promised, 0U);
    EXPECT_EQ(to->release_line(table, 1), from->release_line(source, 1));
    EXPECT_EQ(positions_of(*to, table, 1), positions_of(*from, source, 1));
    EXPECT_EQ(to->position(2, *to->state(table, 2), 0), 96U);
    EXPECT_EQ(positions_of(*to, table, 3).size(), 20U);
    ASSERT_EQ(to->checkpoint_count(table), from->checkpoint_count(source));
    for (std::size_t i = 0; i < to->checkpoint_count(table); ++i)
      EXPECT_EQ(to->checkpoint(table, i), from->checkpoint(source, i));
  }
  EXPECT_EQ(to->space().checkpoints, from->space().checkpoints) << "shared ones are kept once";
  EXPECT_EQ(*to->rewind(back[0], 70), from->rewind_cost(child, 70));
  EXPECT_EQ(to->release_line(back[0], 1), 0U);
  expect_sound(*to);
}

TEST(Restores, KeepNoMoreCheckpointsThanTheStoreDoes) {
  const auto from = make_kinds(80, {kFull, kState});
  const TableId source = open_with(*from, 16);
  for (int step = 0; step < 5; ++step) grow(*from, source, 16);
  ASSERT_EQ(from->checkpoint_count(source), 6U);
  const auto to = make_kinds(80, {kFull, kState}, 16, 2);
  const TableId back = restore(*to, layout_of(*from, {source}))[0];
  ASSERT_EQ(to->checkpoint_count(back), 2U);
  EXPECT_EQ(to->checkpoint(back, 0), 80U);
  EXPECT_EQ(to->checkpoint(back, 1), 96U);
}

TEST(Restores, GoWithoutTheOldestCheckpointsWhereThereIsNoRoomForAll) {
  const auto from = make_kinds(80, {kFull, kState});
  const TableId source = open_with(*from, 16);
  for (int step = 0; step < 5; ++step) grow(*from, source, 16);
  const Layout layout = layout_of(*from, {source});
  // Six pages of cells, the state of the end, which its checkpoint has too, and two more of two frames each.
  const auto to = make_kinds(6 + 3 * 2 + 1, {kFull, kState});
  const TableId back = restore(*to, layout)[0];
  ASSERT_EQ(to->checkpoint_count(back), 3U);
  EXPECT_EQ(to->checkpoint(back, 0), 64U);
  const auto none = make_kinds(6 + 1, {kFull, kState});
  const TableId table = open(*none);
  EXPECT_EQ(none->begin_restore(layout, {&table, 1}).error().code(), Outcome::kNoSpace);
}

TEST(Restores, NeverLetLoadedCellsServeOthers) {
  const auto store = make_store(20);
  Layout layout = layout_of(*store, {open_with(*store, 32)});
  layout.conversations[0].clean = 0;
  const TableId back = restore(*store, layout)[0];
  store->remember(back, tokens_from(0, 32), 0);
  EXPECT_EQ(store->prefix_blocks(), 0U);
  ASSERT_EQ(*store->rewind(back, 0), 0U);
  grow(*store, back, 32);
  store->remember(back, tokens_from(0, 32), 0);
  EXPECT_EQ(store->prefix_blocks(), 2U) << "what was computed here may";
}

TEST(Restores, AreRefusedForTablesThatHoldSomethingOrAreInUse) {
  const auto store = make_store(20);
  const TableId source = open_with(*store, 16);
  const Layout layout = layout_of(*store, {source});
  const TableId table = open(*store);
  const auto code = [&](const std::vector<TableId>& into) {
    const auto ticket = store->begin_restore(layout, into);
    return ticket ? Outcome::kDone : ticket.error().code();
  };
  EXPECT_EQ(code({source}), Outcome::kWrongState);
  EXPECT_EQ(code({}), Outcome::kInvalidArgument);
  EXPECT_EQ(code({table, table}), Outcome::kInvalidArgument);
  EXPECT_EQ(code({TableId{99}}), Outcome::kInvalidArgument);
  ASSERT_TRUE(store->promise(table, 1));
  EXPECT_EQ(code({table}), Outcome::kWrongState);
  ASSERT_TRUE(store->promise(table, 0));
  const Growth growth{table, 1};
  {
    const auto ticket = store->begin({&growth, 1});
    EXPECT_EQ(code({table}), Outcome::kBusy);
  }
  EXPECT_EQ(code({table}), Outcome::kDone);
}

TEST(Snapshots, KeepTheirCellsWhileConversationsGoAndCellsMove) {
  const auto store = make_store(8);
  const TableId first = open_with(*store, 24);
  const TableId second = open_with(*store, 8);
  grow(*store, first, 8);
  const std::vector<std::uint64_t> positions = positions_of(*store, first);
  auto snapshot = *store->snapshot(std::vector<TableId>{first});
  ASSERT_EQ(store->close(second), Outcome::kDone);
  while (true) {
    const auto compaction = *Compaction::begin(*store, 16);
    if (compaction == nullptr) break;
    ASSERT_TRUE(compaction->commit().has_value());
    expect_sound(*store);
  }
  EXPECT_EQ(snapshot->cells(0).runs().size(), store->runs(first, 0).size()) << "it follows its cells";
  ASSERT_EQ(store->close(first), Outcome::kDone);
  std::vector<std::uint64_t> seen;
  for (std::uint64_t number = 0; number < 32; ++number) {
    const CellAt at = snapshot->cells(0).cell_at(number);
    EXPECT_EQ(store->group(0).holders(at.page, at.cell), 1U);
    seen.push_back(store->position(0, at.page, at.cell));
  }
  EXPECT_EQ(seen, positions);
  expect_sound(*store);
  snapshot.reset();
  EXPECT_EQ(store->frames_free(), 8U);
  expect_sound(*store);
}

TEST(Snapshots, AreRefusedWhereAPromiseCountsOnTheirCells) {
  const auto store = make_kinds(6 + 9, {kFull, kWindow});
  const TableId table = open_with(*store, 80);
  ASSERT_EQ(store->frames_free(), 15U - 5 - 5);
  // A window passes cells on: what it gives back is promised.
  StoreSpec spec = store->spec();
  ASSERT_FALSE(store->promise(table, 200)) << "the full group has no room for so many";
  const auto windows =
      PageStore::create({.page_cells = 16, .frames = 7, .groups = {kWindow}, .pass_tokens = 16});
  const TableId rolling = open(**windows);
  for (int step = 0; step < 5; ++step) grow(**windows, rolling, 16);
  ASSERT_TRUE((*windows)->promise(rolling, 300));
  const std::vector<TableId> all = {rolling};
  const auto before = state_of(**windows, all);
  const auto snapshot = (*windows)->snapshot(all);
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_EQ(snapshot.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(state_of(**windows, all), before);
  ASSERT_TRUE((*windows)->promise(rolling, 0));
  EXPECT_TRUE((*windows)->snapshot(all).has_value());
}

}  // namespace
}  // namespace kvasir::pages::test
