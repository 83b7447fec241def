// Cells that leave the pool for a tier and come back, on stores that one can follow in one's head.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "missing_memory.h"
#include "pages/compaction.h"
#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

using Kind = EditOperation::Kind;

// Which conversations are idle, by the ids of their tables.
std::vector<std::uint8_t> idle_ones(std::initializer_list<TableId> tables) {
  std::vector<std::uint8_t> idle;
  for (const TableId table : tables) {
    const auto id = static_cast<std::size_t>(table);
    if (idle.size() <= id) idle.resize(id + 1);
    idle[id] = 1;
  }
  return idle;
}

// Spills all of a conversation's cells that may go; answers how many runs.
std::size_t spill_all(PageStore& store, TableId table, const std::vector<std::uint8_t>& idle) {
  std::size_t runs = 0;
  while (const auto run = store.next_to_spill(table, idle)) {
    EXPECT_TRUE(store.spill(*run, TierBlock{100 + runs}, idle));
    ++runs;
  }
  expect_sound(store);
  return runs;
}

void bring_back(PageStore& store, TableId table) {
  auto ticket = store.begin_return(table, 0);
  ASSERT_TRUE(ticket) << ticket.error().message();
  ASSERT_TRUE(ticket->commit());
  expect_sound(store);
}

// L2
TEST(Spilling, FreesTheCellsOfAnIdleConversationAndNoOthers) {
  const auto store = make_store(8);
  const TableId idle = open_with(*store, 40);
  const TableId other = open_with(*store, 20);
  EXPECT_EQ(store->tokens_free(), 128 - 60);
  EXPECT_EQ(spill_all(*store, idle, idle_ones({idle})), 3);
  EXPECT_EQ(store->tokens_free(), 128 - 20);
  EXPECT_EQ(store->length(idle), 40);
  EXPECT_EQ(store->cells_in_tiers(idle), 40);
  EXPECT_EQ(store->holdings(idle).spilled, 40);
  EXPECT_EQ(store->holdings(idle).own, 0);
  EXPECT_EQ(store->next_position(idle), 40);
  EXPECT_EQ(store->cells_in_tiers(other), 0);
  EXPECT_FALSE(store->next_to_spill(other, idle_ones({idle})));
}

TEST(Spilling, SharedCellsStayAsLongAsSomebodyUsesThem) {
  const auto store = make_store(8);
  const TableId parent = open_with(*store, 32);
  const TableId child = *store->fork(parent);
  grow(*store, child, 8);
  EXPECT_EQ(spill_all(*store, child, idle_ones({child})), 1);
  EXPECT_EQ(store->cells_in_tiers(child), 8);
  EXPECT_EQ(spill_all(*store, parent, idle_ones({child, parent})), 2);
  EXPECT_EQ(store->cells_in_tiers(parent), 32);
  EXPECT_EQ(store->cells_in_tiers(child), 40);
  EXPECT_EQ(store->tier_runs().held_cells(), 40);  // what both hold is there once
  EXPECT_EQ(store->tokens_free(), 128);
}

// L1
TEST(Spilling, WhatReturnsReturnsForAllWhoShareIt) {
  const auto store = make_store(8);
  const TableId parent = open_with(*store, 32);
  const TableId child = *store->fork(parent);
  grow(*store, child, 8);
  static_cast<void>(spill_all(*store, child, idle_ones({child, parent})));
  bring_back(*store, parent);
  EXPECT_EQ(store->cells_in_tiers(parent), 0);
  EXPECT_EQ(store->cells_in_tiers(child), 8);
  EXPECT_EQ(store->tokens_free(), 128 - 32);
  EXPECT_EQ(store->tier_runs().gone().size(), 2);
  bring_back(*store, child);
  EXPECT_EQ(store->tokens_free(), 128 - 40);
  EXPECT_EQ(store->tier_runs().size(), 0);
  EXPECT_EQ(store->tier_runs().gone().size(), 3);
}

TEST(Spilling, AStepWaitsForWhatLiesInATier) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 20);
  static_cast<void>(spill_all(*store, table, idle_ones({table})));
  const Growth growth{table, 1};
  const auto refused = store->begin({&growth, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kWrongState);
  const EditOperation divide{Kind::kDivide, 0, 20, 2};
  EXPECT_EQ(store->begin_edit(table, {&divide, 1}).error().code(), Outcome::kWrongState);
  EXPECT_EQ(store->swap(table, 0, 1).error().code(), Outcome::kWrongState);
  bring_back(*store, table);
  EXPECT_TRUE(store->begin({&growth, 1}));
}

TEST(Spilling, WhatLiesInATierIsForkedRewoundShiftedAndClosedAsItIs) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 40);
  static_cast<void>(spill_all(*store, table, idle_ones({table})));
  const TableId child = *store->fork(table);
  remove(*store, table, 30, 10);
  edit(*store, child, {{Kind::kRemove, 4, 8, 0}, {Kind::kShift, 4, 28, -8}});
  EXPECT_EQ(store->next_position(table), 30);
  EXPECT_EQ(store->next_position(child), 32);
  expect_sound(*store);
  bring_back(*store, child);
  EXPECT_EQ(store->holdings(child).own + store->holdings(child).shared, 32);
  EXPECT_EQ(store->cells_in_tiers(table), 8);  // those that the child had dropped
  EXPECT_EQ(store->next_position(child), 32);
  EXPECT_EQ(store->close(child), Outcome::kDone);
  EXPECT_EQ(store->close(table), Outcome::kDone);
  expect_sound(*store);
  EXPECT_EQ(store->tier_runs().size(), 0);
  EXPECT_EQ(store->tokens_free(), 128);
}

// L3
TEST(Spilling, TheIndexLetsGoFirst) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 48);
  store->remember(table, tokens_from(0, 48), 0);
  EXPECT_EQ(store->prefix_blocks(), 3);
  const std::vector<std::uint8_t> idle = idle_ones({table});
  const auto first = store->next_to_spill(table, idle);
  ASSERT_TRUE(first);
  ASSERT_TRUE(store->spill(*first, TierBlock{1}, idle));
  EXPECT_EQ(store->prefix_blocks(), 0);  // without its beginning a block serves nobody
  expect_sound(*store);
  store->remember(table, tokens_from(0, 48), 0);
  EXPECT_EQ(store->prefix_blocks(), 0);
  bring_back(*store, table);
  store->remember(table, tokens_from(0, 48), 0);
  EXPECT_EQ(store->prefix_blocks(), 3);
}

TEST(Spilling, AReturnNeedsRoomAndSaysHowMuch) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 40);
  static_cast<void>(spill_all(*store, table, idle_ones({table})));
  const TableId other = open_with(*store, 30);
  const auto before = state_of(*store, {{table, other}});
  const auto refused = store->begin_return(table, 5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 45);
  EXPECT_EQ(refused.error().numbers().available, 34);
  EXPECT_EQ(state_of(*store, {{table, other}}), before);
  remove(*store, other, 19, 11);
  EXPECT_TRUE(store->begin_return(table, 5));
  EXPECT_FALSE(store->begin_return(table, 6));
}

TEST(Spilling, AReturnThatIsDroppedLeavesNoTrace) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 40);
  ASSERT_TRUE(store->promise(table, 3));
  static_cast<void>(spill_all(*store, table, idle_ones({table})));
  const auto before = state_of(*store, {{table}});
  const std::uint32_t frames = store->frames_free();
  for (int i = 0; i < 1000; ++i) {
    auto ticket = store->begin_return(table, 20);
    ASSERT_TRUE(ticket);
    EXPECT_EQ(store->holdings(table).promised, 20);
    EXPECT_LT(store->frames_free(), frames);
  }
  EXPECT_EQ(store->frames_free(), frames);
  EXPECT_EQ(state_of(*store, {{table}}), before);
  expect_sound(*store);
  bring_back(*store, table);
}

TEST(Spilling, TwoReturnsOfWhatIsSharedBringItBackOnce) {
  const auto store = make_store(16);
  const TableId parent = open_with(*store, 32);
  const TableId child = *store->fork(parent);
  grow(*store, child, 8);
  static_cast<void>(spill_all(*store, child, idle_ones({child, parent})));
  auto first = store->begin_return(parent, 0);
  auto second = store->begin_return(child, 0);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  ASSERT_TRUE(first->commit());
  ASSERT_TRUE(second->commit());
  expect_sound(*store);
  EXPECT_EQ(store->tokens_free(), 256 - 40);
  EXPECT_EQ(store->holdings(child).shared, 32);
}

TEST(Spilling, WhatCouldFitCountsIdleCellsAndThoseInTiers) {
  const auto store = make_store(4);
  const TableId away = open_with(*store, 40);
  static_cast<void>(spill_all(*store, away, idle_ones({away})));
  const TableId idle = open_with(*store, 30);
  const TableId used = open_with(*store, 16);
  EXPECT_FALSE(store->fits(used, 20));
  const auto without = store->supply_beside_idle({});
  EXPECT_FALSE(store->could_fit(used, 20, without));
  EXPECT_TRUE(store->could_fit(used, 18, without));
  EXPECT_FALSE(store->could_fit(away, 0, without));
  const auto supply = store->supply_beside_idle(idle_ones({idle}));
  EXPECT_TRUE(store->could_fit(used, 48, supply));
  EXPECT_FALSE(store->could_fit(used, 49, supply));
  EXPECT_TRUE(store->could_fit(away, 8, supply));
  EXPECT_FALSE(store->could_fit(away, 9, supply));
}

TEST(Spilling, ACompactionGivesWay) {
  const auto store = make_store(12);
  const TableId scattered = make_checkerboard(*store, 4);
  auto compaction = Compaction::begin(*store, 16);
  ASSERT_TRUE(compaction && *compaction != nullptr);
  static_cast<void>(spill_all(*store, scattered, idle_ones({scattered})));
  EXPECT_EQ((*compaction)->commit().error().code(), Outcome::kWrongState);
  expect_sound(*store);
}

struct Scene {
  std::unique_ptr<PageStore> store = make_store(30, {1, 2});
  TableId parent = open_with(*store, 40);
  TableId child = *store->fork(parent);
  TableId away = open_with(*store, 30);
  std::vector<TableId> tables = {parent, child, away};
  std::vector<std::uint8_t> idle = idle_ones({parent, child, away});

  Scene() {
    store->remember(parent, tokens_from(0, 40), 0);
    EXPECT_TRUE(store->promise(child, 3));
    while (const auto run = store->next_to_spill(away, idle))
      EXPECT_TRUE(store->spill(*run, TierBlock{7}, idle));
  }
};

TEST(SpillingFaults, SpillingTakesFullEffectOrNone) {
  expect_unharmed<Scene>([](Scene& scene) {
    const auto run = scene.store->next_to_spill(scene.parent, scene.idle);
    return outcome_of(scene.store->spill(*run, TierBlock{8}, scene.idle));
  });
}

TEST(SpillingFaults, AReturnReservesAllOrNothing) {
  expect_unharmed<Scene>([](Scene& scene) { return outcome_of(scene.store->begin_return(scene.away, 12)); });
}

TEST(SpillingFaults, AReturnEndsForEverybodyOrNobody) {
  for (std::uint64_t n = 0;; ++n) {
    Scene scene;
    auto ticket = scene.store->begin_return(scene.away, 12);
    ASSERT_TRUE(ticket);
    bool fired = false;
    Outcome outcome = Outcome::kDone;
    {
      const kvasir::test::AllocationFault fault(n);
      outcome = outcome_of(ticket->commit());
      fired = fault.fired();
    }
    if (!fired) {
      EXPECT_EQ(outcome, Outcome::kDone);
      EXPECT_GT(n, 0);
      return;
    }
    ASSERT_EQ(outcome, Outcome::kOutOfMemory) << "allocation " << n;
    EXPECT_EQ(scene.store->cells_in_tiers(scene.away), 60);
    ASSERT_TRUE(ticket->commit()) << "after allocation " << n;
    expect_sound(*scene.store);
    EXPECT_EQ(scene.store->cells_in_tiers(scene.away), 0);
  }
}

}  // namespace
}  // namespace kvasir::pages::test
