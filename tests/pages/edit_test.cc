// Edits: what becomes of spans, positions and holders, and what must be done to bytes.

#include <gtest/gtest.h>

#include <utility>

#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

using Kind = EditOperation::Kind;

constexpr PageId kA{0};
constexpr PageId kB{1};

// The logical positions of a conversation in a group.
std::vector<std::int64_t> positions_of(const PageStore& store, TableId table, std::size_t group = 0) {
  std::vector<std::int64_t> positions;
  for (const Span& run : store.runs(table, group)) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      positions.push_back(static_cast<std::int64_t>(store.position(group, run.page, run.cell + i)) +
                          run.shift);
    }
  }
  return positions;
}

Outcome refusal(PageStore& store, TableId table, const std::vector<EditOperation>& operations) {
  const auto ticket = store.begin_edit(table, operations);
  return ticket ? Outcome::kDone : ticket.error().code();
}

TEST(Edit, RewindsByTakingTheEndOut) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 20);
  remove(*store, table, 6, 14);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 6, 0, 0}}));
  EXPECT_EQ(store->length(table), 6);
  EXPECT_EQ(store->next_position(table), 6);
  EXPECT_EQ(store->frames_free(), 3);
  grow(*store, table, 2);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 8, 0, 0}}));
  expect_sound(*store);
}

TEST(Edit, TakesTokensOutAndLeavesTheirPositionsEmpty) {
  const auto store = make_store(4, {1, 2});
  const TableId table = open_with(*store, 6);
  remove(*store, table, 1, 3);
  for (std::size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(runs_of(*store, table, group), (std::vector<Span>{{kA, 0, 1, 0, 0}, {kA, 4, 2, 1, 0}}));
    EXPECT_EQ(positions_of(*store, table, group), (std::vector<std::int64_t>{0, 4, 5}));
  }
  EXPECT_EQ(store->next_position(table), 6);
  expect_sound(*store);
}

TEST(Edit, ShiftsWithoutTouchingACell) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 6);
  const TableId child = *store->fork(table);
  edit(*store, table, {{Kind::kShift, 2, 4, 10}});
  EXPECT_EQ(positions_of(*store, table), (std::vector<std::int64_t>{0, 1, 12, 13, 14, 15}));
  EXPECT_EQ(positions_of(*store, child), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(store->holdings(table).shared, 6) << "forks keep sharing";
  EXPECT_EQ(store->position(0, kA, 2), 2) << "the storage position stays";
}

TEST(Edit, RollsAWindowWithTwoShiftsForEver) {
  const auto store = make_store(3);
  const TableId table = open_with(*store, 32);
  for (int roll = 0; roll < 50; ++roll) {
    edit(*store, table, {{Kind::kRemove, 4, 10, 0}, {Kind::kShift, 4, 18, -10}});
    grow(*store, table, 10);
    std::vector<std::int64_t> shifts;
    for (const Span& run : store->runs(table, 0)) shifts.push_back(run.shift);
    EXPECT_EQ(shifts.front(), 0);
    EXPECT_EQ(std::vector<std::int64_t>(shifts.size() - 1, shifts.back()),
              std::vector<std::int64_t>(shifts.begin() + 1, shifts.end()));
    for (std::int64_t i = 0; const std::int64_t position : positions_of(*store, table)) {
      EXPECT_EQ(position, i++);
    }
  }
  expect_sound(*store);
}

TEST(Edit, DividesPositionsIntoNewCellsAndSaysHowToTurnTheKeys) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 6);
  auto ticket = store->begin_edit(table, std::vector<EditOperation>{{Kind::kDivide, 1, 4, 3}});
  ASSERT_TRUE(ticket);
  ASSERT_EQ(ticket->jobs().size(), 1);
  const RotateCells& job = ticket->jobs().front();
  EXPECT_EQ(job.cells.from, (CellAt{kA, 1}));
  EXPECT_EQ(job.cells.to, (CellAt{kB, 0}));
  EXPECT_EQ(job.cells.count, 4);
  EXPECT_EQ(job.turns, (std::vector<std::int64_t>{-1, -2, -2, -3}));  // 1 2 3 4 become 0 0 1 1
  EXPECT_EQ(ticket->first_changed(), 1);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 6, 0, 0}})) << "nothing shows before commit";
  ticket->commit();
  EXPECT_EQ(runs_of(*store, table),
            (std::vector<Span>{{kA, 0, 1, 0, 0}, {kB, 0, 4, 1, 0}, {kA, 5, 1, 5, 0}}));
  EXPECT_EQ(positions_of(*store, table), (std::vector<std::int64_t>{0, 0, 0, 1, 1, 5}));
  EXPECT_EQ(store->position(0, kB, 3), 1) << "it is stored at the divided position";
  EXPECT_EQ(store->space().held_cells, 6);
  expect_sound(*store);
}

TEST(Edit, DividesWhatWasShiftedAndWhatWasDivided) {
  const auto store = make_store(8, {1, 1});
  const TableId table = open_with(*store, 4);
  auto ticket = store->begin_edit(
      table, std::vector<EditOperation>{
                 {Kind::kShift, 0, 4, 20}, {Kind::kDivide, 0, 4, 2}, {Kind::kDivide, 2, 2, 5}});
  ASSERT_TRUE(ticket);
  // 20 21 22 23, then 10 10 11 11, then 10 10 2 2.
  ASSERT_EQ(ticket->jobs().size(), 4) << "two for each group";
  EXPECT_EQ(ticket->jobs()[0].turns, (std::vector<std::int64_t>{10, 9, 9, 8}));
  EXPECT_EQ(ticket->jobs()[1].turns, (std::vector<std::int64_t>{-9, -9}));
  EXPECT_EQ(ticket->jobs()[1].cells.from, (CellAt{ticket->jobs()[0].cells.to.page, 2}));
  EXPECT_EQ(ticket->jobs()[2].cells.group, 1);
  ticket->commit();
  for (std::size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(positions_of(*store, table, group), (std::vector<std::int64_t>{10, 10, 2, 2}));
  }
  EXPECT_EQ(store->space().held_cells, 8);
  expect_sound(*store);
}

TEST(Edit, GivesTheNewCellsBackWhereItIsNotCommitted) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 6);
  const auto before = state_of(*store, {&table, 1});
  {
    const auto ticket = store->begin_edit(
        table, std::vector<EditOperation>{{Kind::kDivide, 0, 6, 2}, {Kind::kRemove, 0, 3, 0}});
    ASSERT_TRUE(ticket);
    EXPECT_NE(state_of(*store, {&table, 1}), before);
  }
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
  EXPECT_TRUE(store->swap(table, 0, 1)) << "no ticket is open any more";
}

TEST(Edit, MayMove) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 6);
  auto first = store->begin_edit(table, std::vector<EditOperation>{{Kind::kDivide, 0, 6, 2}});
  ASSERT_TRUE(first);
  EditTicket second = std::move(*first);
  EXPECT_EQ(second.jobs().size(), 1);
  second.commit();
  EXPECT_EQ(positions_of(*store, table), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2}));
  expect_sound(*store);
}

TEST(Edit, DividesOnlyWhereThereIsRoom) {
  const auto store = make_store(2);
  const TableId table = open_with(*store, 20);  // 12 cells free
  const auto before = state_of(*store, {&table, 1});
  const auto refused = store->begin_edit(table, std::vector<EditOperation>{{Kind::kDivide, 0, 13, 2}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 13);
  EXPECT_EQ(refused.error().numbers().available, 12);
  EXPECT_EQ(refusal(*store, table, {{Kind::kDivide, 0, 7, 2}, {Kind::kDivide, 3, 6, 2}}), Outcome::kNoSpace);
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
  edit(*store, table, {{Kind::kDivide, 0, 6, 2}, {Kind::kDivide, 3, 6, 2}});
  expect_sound(*store);
}

TEST(Edit, DividesSeveralRangesWhereThereIsJustRoomForAll) {
  const auto store = make_store(4, {1, 1});
  const TableId a = open_with(*store, 16);
  const TableId b = open_with(*store, 16);
  remove(*store, a, 0, 12);  // 12 cells free in a page of each group
  ASSERT_EQ(store->tokens_free(), 12);
  edit(*store, b, {{Kind::kDivide, 0, 6, 2}, {Kind::kDivide, 10, 6, 2}});
  EXPECT_EQ(store->length(b), 16);
  expect_sound(*store);
}

TEST(Edit, RefusesARangeOutsideTheConversationAsTheOperationBeforeLeftIt) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 10);
  const auto before = state_of(*store, {&table, 1});
  for (const Kind kind : {Kind::kRemove, Kind::kShift, Kind::kDivide}) {
    EXPECT_EQ(refusal(*store, table, {{kind, 11, 0, 1}}), Outcome::kInvalidArgument);
    EXPECT_EQ(refusal(*store, table, {{kind, 4, 7, 1}}), Outcome::kInvalidArgument);
    EXPECT_EQ(refusal(*store, table, {{kind, 1, UINT64_MAX, 1}}), Outcome::kInvalidArgument);
    EXPECT_EQ(refusal(*store, table, {{Kind::kRemove, 0, 4, 0}, {kind, 4, 3, 1}}), Outcome::kInvalidArgument);
    EXPECT_EQ(refusal(*store, table, {{Kind::kRemove, 0, 4, 0}, {kind, 3, 3, 1}}), Outcome::kDone);
  }
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
}

TEST(Edit, RefusesADivisorBelowOne) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 10);
  for (const std::int64_t divisor : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    EXPECT_EQ(refusal(*store, table, {{Kind::kDivide, 0, 10, divisor}}), Outcome::kInvalidArgument);
  }
}

TEST(Edit, RefusesAPositionOutsideTheRange) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 10);
  const auto before = state_of(*store, {&table, 1});
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, -4}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, -3}}), Outcome::kDone);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, kPositionMax - 3}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, kPositionMax - 4}}), Outcome::kDone);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, INT64_MAX}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, INT64_MIN}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 2, -3}, {Kind::kShift, 2, 2, -1}}),
            Outcome::kInvalidArgument)
      << "a position of 0 goes below it with the second operation";
  EXPECT_EQ(refusal(*store, table, {{Kind::kDivide, 8, 2, 4}, {Kind::kShift, 8, 2, -2}}), Outcome::kDone);
  EXPECT_EQ(refusal(*store, table, {{Kind::kDivide, 8, 2, 4}, {Kind::kShift, 8, 2, -3}}),
            Outcome::kInvalidArgument);
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
}

TEST(Edit, CostsTheIndexNothingWhenItIsRefused) {
  const auto store = make_store(2);
  const TableId known = open_with(*store, 16);
  store->remember(known, tokens_from(0, 16), 0);
  store->close(known);
  const TableId table = open_with(*store, 16);
  const std::vector<EditOperation> operations = {{Kind::kDivide, 0, 16, 2}, {Kind::kDivide, 0, 16, 0}};
  EXPECT_EQ(refusal(*store, table, operations), Outcome::kInvalidArgument);
  EXPECT_EQ(store->prefix_blocks(), 1);
}

TEST(Edit, NamesTheFirstOrdinalItChanges) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 10);
  const auto first_changed = [&](const std::vector<EditOperation>& operations) {
    return store->begin_edit(table, operations)->first_changed();
  };
  EXPECT_EQ(first_changed({}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kRemove, 4, 0, 0}}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kRemove, 10, 0, 0}, {Kind::kRemove, 0, 0, 0}}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kShift, 0, 10, 0}}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kDivide, 0, 10, 1}}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kDivide, 0, 1, 7}}), UINT64_MAX) << "0 / 7 is 0";
  EXPECT_EQ(first_changed({{Kind::kShift, 2, 8, 4}, {Kind::kShift, 2, 8, -4}}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kShift, 0, 1, 9}, {Kind::kDivide, 0, 1, 10}}), UINT64_MAX);
  EXPECT_EQ(first_changed({{Kind::kDivide, 3, 7, 1}, {Kind::kShift, 5, 1, 0}, {Kind::kRemove, 8, 1, 0}}), 8);
  EXPECT_EQ(first_changed({{Kind::kShift, 7, 1, 1}, {Kind::kRemove, 5, 1, 0}}), 5);
}

// Wherever it is allowed, and where nothing may move as well: no cell is rewritten and none is taken.
TEST(Edit, ThatLeavesEveryPositionAsItWasTakesNoCellAndKeepsWhatIsClean) {
  auto fixed = PageStore::create(
      {.page_cells = 16, .frames = 2, .groups = {{1}}, .pass_tokens = 512, .positions_can_move = false});
  ASSERT_TRUE(fixed);
  const TableId still = open_with(**fixed, 32);
  edit(**fixed, still, {{Kind::kShift, 3, 20, 0}, {Kind::kDivide, 0, 32, 1}, {Kind::kRemove, 9, 0, 0}});
  (*fixed)->remember(still, tokens_from(0, 32), 0);
  EXPECT_EQ((*fixed)->prefix_blocks(), 2) << "all is as clean as it was";
  const auto store = make_store(2);  // which is full
  const TableId table = open_with(*store, 32);
  const auto before = state_of(*store, {&table, 1});
  edit(*store, table, {{Kind::kDivide, 0, 32, 1}});
  edit(*store, table, {{Kind::kShift, 1, 31, 31}, {Kind::kDivide, 0, 1, 5}, {Kind::kShift, 1, 31, -31}});
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
  EXPECT_EQ(refusal(*store, table, {{Kind::kDivide, 0, 32, 2}}), Outcome::kNoSpace);
  EXPECT_EQ(refusal(*store, table, {{Kind::kShift, 3, 30, 0}}), Outcome::kInvalidArgument);
  expect_sound(*store);
}

TEST(Edit, ExchangesTheCellsOfTwoTokensForAllWhoHoldThem) {
  const auto store = make_store(4, {1, 1});
  const TableId table = open_with(*store, 18);
  const TableId child = *store->fork(table);
  const auto swaps = store->swap(table, 2, 17);
  ASSERT_TRUE(swaps);
  ASSERT_EQ(swaps->size(), 2) << "in each group";
  EXPECT_EQ((*swaps)[1].group, 1);
  EXPECT_EQ((*swaps)[1].a, (CellAt{kA, 2}));
  EXPECT_EQ((*swaps)[1].b, (CellAt{kB, 1}));
  const std::vector<Span> expected = {
      {kA, 0, 2, 0, 0}, {kB, 1, 1, 2, 0}, {kA, 3, 13, 3, 0}, {kB, 0, 1, 16, 0}, {kA, 2, 1, 17, 0}};
  EXPECT_EQ(runs_of(*store, table), expected);
  EXPECT_EQ(runs_of(*store, child, 1), expected);
  EXPECT_EQ(store->position(0, kA, 2), 17) << "C5";
  EXPECT_EQ(store->position(0, kB, 1), 2);
  EXPECT_EQ(positions_of(*store, table)[17], 17);
  EXPECT_EQ(store->next_position(table), 18);
  expect_sound(*store);
}

TEST(Edit, ExchangesNothingForATokenThatIsNotThereOrWhileATicketIsOpen) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 5);
  EXPECT_EQ(store->swap(table, 1, 5).error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(store->swap(table, 5, 1).error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(store->swap(open(*store), 0, 0).error().code(), Outcome::kInvalidArgument);
  EXPECT_TRUE(store->swap(table, 3, 3)->empty());
  const Growth growth{table, 1};
  {
    const auto ticket = store->begin({&growth, 1});
    EXPECT_EQ(store->swap(table, 1, 2).error().code(), Outcome::kBusy);
  }
  EXPECT_TRUE(store->swap(table, 1, 2));
  expect_sound(*store);
}

}  // namespace
}  // namespace kvasir::pages::test
