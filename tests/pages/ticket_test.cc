// Steps: where new cells come from, what they cost, and how they go back.

#include "pages/ticket.h"

#include <gtest/gtest.h>

#include <utility>

#include "small_store.h"
#include "support/allocations.h"

namespace kvasir::pages::test {
namespace {

constexpr PageId kA{0};
constexpr PageId kB{1};
constexpr PageId kC{2};

// A ticket for one conversation.
Ticket reserve(PageStore& store, TableId table, std::uint64_t count) {
  const Growth growth{table, count};
  auto ticket = store.begin({&growth, 1});
  EXPECT_TRUE(ticket.has_value());
  return std::move(ticket).value();
}

Outcome refusal(PageStore& store, const std::vector<Growth>& plan) {
  const auto ticket = store.begin(plan);
  return ticket ? Outcome::kDone : ticket.error().code();
}

TEST(PageStore, RefusesAGeometryThatMakesNoSense) {
  const auto code = [](std::uint32_t page_cells, const std::vector<GroupSpec>& groups) {
    const auto store = PageStore::create({page_cells, 8, groups});
    return store ? Outcome::kDone : store.error().code();
  };
  for (const std::uint32_t page_cells : {0, 1, 8, 24, 272, 512}) {
    EXPECT_EQ(code(page_cells, {{1}}), Outcome::kInvalidArgument) << page_cells;
  }
  EXPECT_EQ(code(16, {}), Outcome::kInvalidArgument);
  EXPECT_EQ(code(16, {{1}, {0}}), Outcome::kInvalidArgument);
  EXPECT_EQ(code(16, {{4097}}), Outcome::kInvalidArgument);
  EXPECT_EQ(code(256, {{1}}), Outcome::kDone);
  EXPECT_EQ(code(16, {{4096}}), Outcome::kDone) << "no page fits, which is a pool of nothing";
}

TEST(PageStore, NamesTheSettingOfAGeometryThatMakesNoSense) {
  const auto store = PageStore::create({24, 8, {{1}}});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().numbers().wanted, 24);
  EXPECT_EQ(store.error().numbers().limit, 256);
  EXPECT_EQ(store.error().numbers().setting, "--page");
}

TEST(Ticket, TakesAFreshPageForANewConversation) {
  const auto store = make_store(8, {2});
  const TableId table = open(*store);
  {
    const Ticket ticket = reserve(*store, table, 20);
    ASSERT_EQ(ticket.new_runs(0, 0).size(), 2);
    EXPECT_EQ(ticket.new_runs(0, 0)[0], (Span{kA, 0, 16, 0, 0}));
    EXPECT_EQ(ticket.new_runs(0, 0)[1], (Span{kB, 0, 4, 16, 0}));
    EXPECT_EQ(ticket.plan().front().count, 20);
    EXPECT_EQ(store->length(table), 0) << "nothing shows before commit";
    EXPECT_EQ(store->frames_free(), 4);
    EXPECT_EQ(store->position(0, kB, 3), 19);
  }
  EXPECT_EQ(store->frames_free(), 8) << "a ticket without commit gives everything back";
  expect_sound(*store);
}

TEST(Ticket, TakesTheFreeCellsBehindThePredecessorFirst) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 5);
  grow(*store, table, 3);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 8, 0, 0}}));
  grow(*store, table, 10);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 16, 0, 0}, {kB, 0, 2, 16, 0}}));
  EXPECT_EQ(store->next_position(table), 18);
  expect_sound(*store);
}

TEST(Ticket, TakesHolesLongestFirstWhenNoPageIsLeft) {
  const auto store = make_store(3);
  const TableId full = open_with(*store, 16);
  const TableId holes = open_with(*store, 32);  // pages B and C
  remove(*store, holes, 20, 6);                 // 6 free in C
  remove(*store, holes, 3, 4);                  // 4 free in B
  remove(*store, holes, 1, 1);                  // 1 free in B
  ASSERT_EQ(store->frames_free(), 0);
  grow(*store, full, 9);
  EXPECT_EQ(runs_of(*store, full),
            (std::vector<Span>{{kA, 0, 16, 0, 0}, {kC, 4, 6, 16, 0}, {kB, 4, 3, 22, 0}}));
  grow(*store, full, 2);
  EXPECT_EQ(store->tokens_free(), 0);
  expect_sound(*store);
}

TEST(Ticket, LeavesThoseThatGrowSideBySideRoomInOneHole) {
  const auto store = make_store(3);
  std::vector<TableId> growing;
  for (int at = 0; at < 3; ++at) growing.push_back(open_with(*store, 2 + at));  // a page each
  const TableId last = open(*store);
  for (int step = 0; step < 6; ++step) {
    grow(*store, last, 1);
    for (const TableId table : growing) grow(*store, table, 1);
    expect_sound(*store);
  }
  // It began behind the middle of the longest hole, and nobody came between.
  EXPECT_EQ(runs_of(*store, last), (std::vector<Span>{{kA, 9, 6, 0, 0}}));
  for (const TableId table : growing) EXPECT_EQ(store->runs(table, 0).size(), 1);
  while (store->tokens_free() > 0) grow(*store, last, 1);
  expect_sound(*store);
}

TEST(Ticket, LetsWhoeverAppendsFirstHaveTheNextCellsOfASharedPage) {
  const auto store = make_store(4);
  const TableId parent = open_with(*store, 5);
  const TableId child = *store->fork(parent);
  EXPECT_EQ(store->frames_free(), 3) << "a fork copies nothing";
  grow(*store, child, 2);
  grow(*store, parent, 3);
  EXPECT_EQ(runs_of(*store, child), (std::vector<Span>{{kA, 0, 7, 0, 0}}));
  EXPECT_EQ(runs_of(*store, parent), (std::vector<Span>{{kA, 0, 5, 0, 0}, {kB, 0, 3, 5, 0}}));
  EXPECT_EQ(store->group(0).holders(kA, 4), 2);
  EXPECT_EQ(store->group(0).holders(kA, 5), 1);
  EXPECT_EQ(store->position(0, kB, 0), 5);
  store->close(parent);
  EXPECT_EQ(store->group(0).holders(kA, 4), 1);
  EXPECT_EQ(store->frames_free(), 3);
  expect_sound(*store);  // S3
}

TEST(Ticket, GivesNewCellsTheShiftOfTheirPredecessor) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 10);
  edit(*store, table, {{EditOperation::Kind::kRemove, 2, 3, 0}, {EditOperation::Kind::kShift, 2, 5, -3}});
  grow(*store, table, 2);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 2, 0, 0}, {kA, 5, 7, 2, -3}}));
  EXPECT_EQ(store->position(0, kA, 11), 11);
  EXPECT_EQ(store->next_position(table), 9);
}

TEST(Ticket, TakesOneLineOutAndLeavesTheOthers) {  // S4
  const auto store = make_store(4);
  const TableId a = open(*store);
  const TableId b = open(*store);
  const TableId c = open(*store);
  const Growth plan[] = {{a, 4}, {b, 17}, {c, 3}};
  auto ticket = store->begin(plan);
  ASSERT_TRUE(ticket);
  ticket->withdraw(1);
  EXPECT_TRUE(ticket->new_runs(1, 0).empty());
  EXPECT_EQ(ticket->new_runs(2, 0).front().count, 3);
  const std::uint64_t accepted[] = {4, 0, 3};
  ticket->commit(accepted);
  EXPECT_EQ(store->length(a), 4);
  EXPECT_EQ(store->length(b), 0);
  EXPECT_EQ(store->length(c), 3);
  EXPECT_EQ(store->space().held_cells, 7);
  expect_sound(*store);
}

TEST(Ticket, KeepsOnlyTheAcceptedCells) {
  const auto store = make_store(4, {1, 1});
  const TableId a = open(*store);
  const TableId b = open_with(*store, 14);
  const Growth plan[] = {{a, 10}, {b, 4}};
  auto ticket = store->begin(plan);
  ASSERT_TRUE(ticket);
  const std::uint64_t accepted[] = {7, 2};
  ticket->commit(accepted);
  EXPECT_EQ(store->length(a), 7);
  EXPECT_EQ(store->length(b), 16);
  EXPECT_EQ(store->space().held_cells, 2 * (7 + 16));
  EXPECT_EQ(store->frames_free(), 0);
  const std::uint64_t none = 0;
  Ticket rejected = reserve(*store, a, 5);
  rejected.commit({&none, 1});
  EXPECT_EQ(store->length(a), 7);
  expect_sound(*store);
}

TEST(Ticket, CommitsWithoutAllocating) {  // S5
  const auto store = make_store(40);
  const TableId table = open_with(*store, 16);
  const TableId other = open_with(*store, 1);
  bool refused = false;
  std::uint64_t count = 16 * 20;
  {
    Ticket ticket = reserve(*store, table, count);
    const kvasir::test::AllocationFault fault(0);
    ticket.commit({&count, 1});
    refused = fault.fired();
  }
  EXPECT_FALSE(refused);
  EXPECT_EQ(store->length(table), 16 * 21);
  {
    const Ticket ticket = reserve(*store, table, 40);
    const kvasir::test::AllocationFault fault(0);
    store->close(other);
    refused = fault.fired();
  }
  EXPECT_FALSE(refused);
  expect_sound(*store);
}

TEST(Ticket, MayMove) {
  const auto store = make_store(4);
  const TableId table = open(*store);
  Ticket first = reserve(*store, table, 3);
  Ticket second = std::move(first);
  EXPECT_EQ(second.new_runs(0, 0).front().count, 3);
  const std::uint64_t accepted = 3;
  second.commit({&accepted, 1});
  EXPECT_EQ(store->length(table), 3);
  expect_sound(*store);
}

TEST(Ticket, IsRefusedForAPlanThatMakesNoSense) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 3);
  const TableId closed = open(*store);
  store->close(closed);
  const auto before = state_of(*store, {&table, 1});
  EXPECT_EQ(refusal(*store, {{table, 0}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, {{table, 1}, {table, 1}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, {{table, 1}, {closed, 1}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(*store, {{TableId{99}, 1}}), Outcome::kInvalidArgument);
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
  EXPECT_EQ(refusal(*store, {}), Outcome::kDone) << "a plan of nothing is fulfilled at once";
}

TEST(Ticket, IsRefusedWithTheExactShortage) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 20);  // 12 cells free behind it, and two pages
  const TableId other = open(*store);
  const TableId tables[] = {table, other};
  const auto before = state_of(*store, tables);
  const Growth plan[] = {{table, 30}, {other, 15}};
  const auto ticket = store->begin(plan);
  ASSERT_FALSE(ticket);
  EXPECT_EQ(ticket.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(ticket.error().numbers().wanted, 45);
  EXPECT_EQ(ticket.error().numbers().available, 44);
  EXPECT_EQ(ticket.error().numbers().setting, "--pool");
  EXPECT_EQ(state_of(*store, tables), before);
  for (const std::uint64_t huge : {std::uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(refusal(*store, {{table, huge}, {other, huge}}), Outcome::kNoSpace);
  }
  EXPECT_EQ(state_of(*store, tables), before);
  EXPECT_EQ(refusal(*store, {{table, 30}, {other, 14}}), Outcome::kDone);
}

TEST(Ticket, IsRefusedBeyondTheLastPosition) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 2);
  edit(*store, table, {{EditOperation::Kind::kShift, 1, 1, kPositionMax - 4}});  // to kPositionMax - 3
  EXPECT_EQ(store->next_position(table), kPositionMax - 2);
  EXPECT_EQ(refusal(*store, {{table, 4}}), Outcome::kInvalidArgument);
  grow(*store, table, 3);
  EXPECT_EQ(store->next_position(table), kPositionMax + 1);
  EXPECT_EQ(refusal(*store, {{table, 1}}), Outcome::kInvalidArgument);
}

TEST(Ticket, LeavesTheCommittedStateToEveryoneElseWhileItIsOpen) {
  const auto store = make_store(6);
  const TableId table = open_with(*store, 10);
  const TableId other = open_with(*store, 4);
  Ticket ticket = reserve(*store, table, 4);
  const TableId child = *store->fork(table);
  EXPECT_EQ(store->length(child), 10);
  store->close(other);
  const TableId late = open(*store);
  grow(*store, late, 3);
  grow(*store, child, 1);
  const std::uint64_t accepted = 4;
  ticket.commit({&accepted, 1});
  EXPECT_EQ(store->length(table), 14);
  EXPECT_EQ(store->length(child), 11);
  EXPECT_EQ(store->length(late), 3);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 14, 0, 0}}));
  EXPECT_NE(runs_of(*store, child).back().page, kA);
  expect_sound(*store);
}

TEST(Ticket, EvictsNoMoreThanItNeeds) {
  const auto store = make_store(4);
  for (const Token first : {0, 100, 200}) {
    const TableId table = open_with(*store, 16);
    store->remember(table, tokens_from(first, 16), 0);
    store->close(table);
  }
  EXPECT_EQ(store->frames_free(), 1);
  EXPECT_EQ(store->tokens_free(), 64);
  const TableId table = open(*store);
  grow(*store, table, 17);
  EXPECT_EQ(store->prefix_blocks(), 2);
  EXPECT_EQ(*store->adopt(open(*store), tokens_from(0, 16), 16, 0), 0) << "the least recently used went";
  EXPECT_EQ(*store->adopt(open(*store), tokens_from(100, 16), 16, 0), 16);
  expect_sound(*store);
}

TEST(Ticket, EvictsNothingWhenItIsRefused) {
  const auto store = make_store(2);
  const TableId table = open_with(*store, 16);
  store->remember(table, tokens_from(0, 16), 0);
  store->close(table);
  const TableId other = open(*store);
  EXPECT_EQ(refusal(*store, {{other, 33}}), Outcome::kNoSpace);
  EXPECT_EQ(store->prefix_blocks(), 1);
  EXPECT_EQ(refusal(*store, {{other, 32}}), Outcome::kDone);
  EXPECT_EQ(store->prefix_blocks(), 0);
}

}  // namespace
}  // namespace kvasir::pages::test
