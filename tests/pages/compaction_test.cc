// Compaction: what it moves, how it yields, and that it ends.

#include "pages/compaction.h"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <utility>

#include "fake_arena.h"
#include "random.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

constexpr PageId kA{0};

std::unique_ptr<Compaction> begin(PageStore& store, std::uint32_t budget = 16,
                                  std::span<const TableId> stay = {}) {
  auto compaction = Compaction::begin(store, budget, stay);
  EXPECT_TRUE(compaction.has_value());
  return std::move(compaction).value();
}

// Spans of all conversations in all groups.
std::uint64_t spans_of(const PageStore& store, const std::vector<TableId>& tables) {
  std::uint64_t spans = 0;
  for (const TableId table : tables) spans += store.holdings(table).spans;
  return spans;
}

// Compacts until nothing is worth moving; answers how often something moved.
int compact(PageStore& store, FakeArena* arena = nullptr, std::uint32_t budget = kPageCellsMax) {
  int moves = 0;
  for (; moves < 100'000; ++moves) {
    const auto compaction = begin(store, budget);
    if (compaction == nullptr) return moves;
    if (arena != nullptr) {
      arena->perform(compaction->copies());
    }
    EXPECT_TRUE(compaction->commit().has_value());
    expect_sound(store);
  }
  ADD_FAILURE() << "compaction does not end";
  return moves;
}

// Two conversations of 16 tokens, each in every second cell of two pages of its own.
std::pair<TableId, TableId> make_scattered(PageStore& store) {
  const TableId a = make_checkerboard(store, 2);
  const TableId b = make_checkerboard(store, 2);
  return {a, b};
}

TEST(Compaction, FindsNothingToDoWhereNothingIsScattered) {
  const auto store = make_store(8, {1, 2});
  EXPECT_EQ(begin(*store), nullptr);
  static_cast<void>(open_with(*store, 30));
  EXPECT_EQ(begin(*store), nullptr);
  EXPECT_TRUE(Compaction::begin(*store, 16).has_value()) << "and is not left open";
}

TEST(Compaction, GathersSpansAndSaysWhatToCopy) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 10);
  remove(*store, table, 2, 2);
  remove(*store, table, 4, 3);  // cells 0 1, 4 5, 9 with holes between them
  EXPECT_EQ(runs_of(*store, table),
            (std::vector<Span>{{kA, 0, 2, 0, 0}, {kA, 4, 2, 2, 0}, {kA, 9, 1, 4, 0}}));
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  // The two behind the first need three cells; the hole behind it has two, so all go where they find room.
  std::uint32_t cells = 0;
  for (const CopyCells& copy : compaction->copies()) cells += copy.count;
  EXPECT_EQ(cells, 5);
  EXPECT_EQ(store->holdings(table).spans, 3) << "M2: nothing shows before commit";
  EXPECT_EQ(*compaction->commit(), 5);
  ASSERT_EQ(store->holdings(table).spans, 1);
  EXPECT_EQ(store->space().held_cells, 5);
  for (std::uint32_t i = 0; const std::uint64_t position : {0, 1, 4, 5, 9}) {
    const Span run = runs_of(*store, table).front();
    EXPECT_EQ(store->position(0, run.page, run.cell + i++), position);
  }
  EXPECT_EQ(begin(*store), nullptr);
  expect_sound(*store);
}

TEST(Compaction, MovesASpanBehindItsPredecessorWhereItFits) {
  const auto store = make_store(1);
  const TableId table = open_with(*store, 10);
  remove(*store, table, 2, 6);  // cells 0 1 and 8 9
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  ASSERT_EQ(compaction->copies().size(), 1);
  EXPECT_EQ(compaction->copies()[0].from, (CellAt{kA, 8}));
  EXPECT_EQ(compaction->copies()[0].to, (CellAt{kA, 2}));
  EXPECT_EQ(*compaction->commit(), 2);
  EXPECT_EQ(runs_of(*store, table), (std::vector<Span>{{kA, 0, 4, 0, 0}}));
  expect_sound(*store);
}

TEST(Compaction, PatchesEveryHolder) {  // M2
  const auto store = make_store(10, {1, 1});
  const TableId parent = open_with(*store, 8);
  for (int turn = 0; turn < 2; ++turn) {  // a fork takes the cells behind, so the parent goes on elsewhere
    const TableId fork = *store->fork(parent);
    grow(*store, fork, 16);
    grow(*store, parent, 4);
    store->close(fork);
  }
  const TableId child = *store->fork(parent);
  store->remember(parent, tokens_from(0, 16), 0);
  FakeArena arena(*store);
  for (std::size_t group = 0; group < 2; ++group) {
    for (const Span& run : store->runs(parent, group)) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        arena.write(group, {run.page, run.cell + i}, run.ordinal + i);
      }
    }
  }
  ASSERT_EQ(store->holdings(parent).spans, 2 * 3);
  EXPECT_GT(compact(*store, &arena), 0);
  EXPECT_EQ(store->holdings(parent).spans, 2);
  EXPECT_EQ(runs_of(*store, child), runs_of(*store, parent));
  EXPECT_EQ(runs_of(*store, child, 1), runs_of(*store, parent, 1));
  store->close(parent);
  store->close(child);
  arena.poison_free_cells();
  const TableId again = open(*store);
  ASSERT_EQ(*store->adopt(again, tokens_from(0, 16), 16, 0), 16) << "the index has followed";
  for (std::size_t group = 0; group < 2; ++group) {
    for (const Span& run : store->runs(again, group)) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        EXPECT_TRUE(arena.holds(group, {run.page, run.cell + i}, run.ordinal + i, 0));
      }
    }
  }
  expect_sound(*store);
}

TEST(Compaction, LeavesWhatStaysWhereItIs) {
  const auto store = make_store(8);
  const auto [a, b] = make_scattered(*store);
  const TableId child = *store->fork(a);
  const std::vector<Span> before = runs_of(*store, a);
  const TableId stay[] = {a};
  while (const auto compaction = begin(*store, 16, stay)) EXPECT_TRUE(compaction->commit());
  EXPECT_EQ(runs_of(*store, a), before);
  EXPECT_EQ(runs_of(*store, child), before) << "its cells are those of one that stays";
  EXPECT_EQ(store->holdings(b).spans, 1);
  expect_sound(*store);
}

TEST(Compaction, KeepsToItsBudget) {
  const auto store = make_store(8);
  const auto [a, b] = make_scattered(*store);
  const std::uint64_t before = spans_of(*store, {a, b});
  EXPECT_EQ(begin(*store, 0), nullptr);
  for (const std::uint32_t budget : {1, 3, 16, 1000}) {
    const auto compaction = begin(*store, budget);
    ASSERT_NE(compaction, nullptr);
    EXPECT_LE(*compaction->commit(), std::min<std::uint32_t>(budget, 16));
  }
  EXPECT_LT(spans_of(*store, {a, b}), before);
  expect_sound(*store);
}

TEST(Compaction, IsOneAtATimeAndMayBeDropped) {
  const auto store = make_store(8);
  const auto [a, b] = make_scattered(*store);
  const TableId tables[] = {a, b};
  const auto before = state_of(*store, tables);
  {
    const auto compaction = begin(*store);
    ASSERT_NE(compaction, nullptr);
    EXPECT_EQ(Compaction::begin(*store, 16).error().code(), Outcome::kWrongState);
    expect_sound(*store);
  }
  EXPECT_EQ(state_of(*store, tables), before);
  EXPECT_NE(begin(*store), nullptr);
}

TEST(Compaction, TakesNothingFromWhatIsFree) {
  const auto store = make_store(10, {1, 1});
  const auto [a, b] = make_scattered(*store);
  const std::uint64_t free = store->tokens_free();
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(store->tokens_free(), free);
  EXPECT_EQ(store->holdings(a).shared + store->holdings(b).shared, 0) << "its holders yield";
}

TEST(Compaction, GivesWayToAReservationThatNeedsItsCells) {
  const auto store = make_store(4);
  static_cast<void>(make_scattered(*store));
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  const TableId late = open(*store);
  ASSERT_EQ(store->tokens_free(), 4 * 16 - 2 * 16);
  grow(*store, late, 32);
  EXPECT_TRUE(compaction->copies().empty());
  const auto moved = compaction->commit();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code(), Outcome::kWrongState);
  EXPECT_EQ(store->tokens_free(), 0);
  expect_sound(*store);
  EXPECT_EQ(begin(*store), nullptr) << "another may begin, and finds no room";
}

TEST(Compaction, GivesWayToATicketOfAConversationWhoseCellsItCopies) {
  const auto store = make_store(8);
  const auto [a, b] = make_scattered(*store);
  const TableId stay[] = {b};
  auto compaction = begin(*store, 16, stay);
  ASSERT_NE(compaction, nullptr);
  grow(*store, b, 1);
  EXPECT_FALSE(compaction->copies().empty()) << "it copies no cell of this one";
  EXPECT_TRUE(store->begin_edit(b, {}));
  EXPECT_FALSE(compaction->copies().empty());
  EXPECT_TRUE(store->begin_edit(a, {}));
  EXPECT_EQ(compaction->commit().error().code(), Outcome::kWrongState);
  compaction = begin(*store, 16, stay);
  ASSERT_NE(compaction, nullptr);
  grow(*store, a, 1);
  EXPECT_EQ(compaction->commit().error().code(), Outcome::kWrongState);
  expect_sound(*store);
}

// The cells of a ticket that commits while a compaction goes on change hands without a count changing.
TEST(Compaction, FindsWhatATicketHasCommittedMeanwhile) {  // M3
  const auto store = make_store(8);
  const auto [a, b] = make_scattered(*store);
  const TableId c = open_with(*store, 5);
  {
    const Growth growth{c, 20};
    auto ticket = store->begin({&growth, 1});
    ASSERT_TRUE(ticket.has_value());
    const auto compaction = begin(*store);
    ASSERT_NE(compaction, nullptr);
    ASSERT_TRUE(compaction->commit());
    const std::uint64_t accepted = 20;
    ticket->commit({&accepted, 1});
  }
  expect_sound(*store);
  EXPECT_GT(compact(*store), 0);
  EXPECT_EQ(store->holdings(a).spans + store->holdings(b).spans, 2);
  EXPECT_EQ(store->length(c), 25);
}

// Where spans do not fit a page evenly the last one is split, so that the page is full.
TEST(Compaction, FillsThePageThatItGathersInto) {
  const auto store = make_store(5);
  const TableId table = open_with(*store, 48);
  for (const std::uint64_t page : {2, 1, 0}) remove(*store, table, page * 16 + 6, 10);  // three spans of 6
  const TableId elsewhere = open_with(*store, 32);
  const TableId between = open_with(*store, 30);  // takes the holes
  store->close(elsewhere);
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(*compaction->commit(), 16);
  ASSERT_EQ(store->holdings(table).spans, 2);
  EXPECT_EQ(runs_of(*store, table)[0].count, 16);
  EXPECT_EQ(runs_of(*store, table)[1].count, 2);
  EXPECT_EQ(store->length(between), 30);
  expect_sound(*store);
}

TEST(Compaction, GivesWayToASwap) {
  const auto store = make_store(8);
  const TableId table = make_scattered(*store).first;
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  ASSERT_TRUE(store->swap(table, 7, 8));
  EXPECT_EQ(compaction->commit().error().code(), Outcome::kWrongState);
  expect_sound(*store);
}

TEST(Compaction, SurvivesTheEndOfThoseWhoseCellsItMoves) {
  const auto store = make_store(8);
  const auto [a, b] = make_scattered(*store);
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  store->close(a);
  store->close(b);
  expect_sound(*store);
  EXPECT_TRUE(compaction->commit());
  EXPECT_EQ(store->frames_free(), 8);
  EXPECT_EQ(store->space().held_cells, 0);
  expect_sound(*store);
}

TEST(Compaction, NeverSpendsTheFramesOfAPromise) {  // S6
  const auto store = make_store(9, {1, 1});
  static_cast<void>(make_scattered(*store));  // four pages of each group, and a frame left over
  ASSERT_EQ(store->frames_free(), 1);
  const TableId waiting = open(*store);
  ASSERT_TRUE(store->promise(waiting, store->tokens_free()));
  while (const auto compaction = begin(*store)) {
    expect_sound(*store);
    EXPECT_TRUE(compaction->commit());
    expect_sound(*store);
  }
  grow(*store, waiting, store->holdings(waiting).promised);
  expect_sound(*store);
}

// What is promised while a compaction is open comes first.
TEST(Compaction, GivesWayToAPromiseThatItsFramesWouldServe) {  // S6
  const auto store = make_store(7, {1, 1});
  static_cast<void>(make_checkerboard(*store, 3));  // 24 holes in each group, and a frame that serves none
  const auto compaction = begin(*store);
  ASSERT_NE(compaction, nullptr);
  const TableId waiting = open(*store);
  ASSERT_TRUE(store->promise(waiting, store->tokens_free()));
  const auto moved = compaction->commit();
  expect_sound(*store);
  if (!moved) {
    EXPECT_EQ(moved.error().code(), Outcome::kWrongState);
  }
  grow(*store, waiting, store->holdings(waiting).promised);
  EXPECT_EQ(store->tokens_free(), 0);
  expect_sound(*store);
}

// Of two conversations that lie cell by cell in each other's gaps no two spans fit anywhere; a page must be
// emptied first.
TEST(Compaction, FindsItsWayWithoutAFreePage) {
  const auto store = make_store(10);
  const TableId board = make_checkerboard(*store, 10);
  const TableId other = open(*store);
  grow(*store, other, 60);
  ASSERT_EQ(store->frames_free(), 0);
  ASSERT_EQ(store->holdings(board).spans + store->holdings(other).spans, 140);
  const std::uint64_t free = store->tokens_free();
  EXPECT_GT(compact(*store), 0);
  EXPECT_LT(store->holdings(board).spans + store->holdings(other).spans, 20);
  EXPECT_EQ(store->tokens_free(), free);
  expect_sound(*store);
}

TEST(Compaction, SaysThatNothingCanBeDoneWhereNoCellIsFree) {
  const auto store = make_store(10);
  const TableId board = make_checkerboard(*store, 10);
  grow(*store, open(*store), 80);
  const double before = store->space().fragmentation;
  EXPECT_GT(before, 0.9);
  EXPECT_EQ(begin(*store), nullptr);
  EXPECT_EQ(store->space().fragmentation, before);
  static_cast<void>(board);
}

// A store filled by conversations that come, grow by turns and go. `shared` lets them fork and be edited.
std::vector<TableId> scatter(PageStore& store, Random& random, bool shared) {
  const std::uint64_t spare = random.below(100);
  std::vector<TableId> tables;
  for (int turn = 0; turn < 400; ++turn) {
    const std::uint64_t what = random.below(20);
    if (tables.empty() || (what < 2 && tables.size() < 12)) {
      tables.push_back(open(store));
    } else if (what == 2) {
      const std::size_t which = random.below(tables.size());
      store.close(tables[which]);
      tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(which));
    } else if (shared && what == 3 && tables.size() < 12) {
      tables.push_back(*store.fork(random.one_of(tables)));
    } else if (shared && what == 4) {
      const TableId table = random.one_of(tables);
      const std::uint64_t first = random.below(store.length(table) + 1);
      const std::uint64_t count = random.below(store.length(table) - first + 1);
      const auto left = store.length(table) - first - count;
      edit(store, table,
           {{EditOperation::Kind::kRemove, first, count, 0},
            {EditOperation::Kind::kShift, first, left, -static_cast<std::int64_t>(count)}});
    } else {
      const TableId table = random.one_of(tables);
      const std::uint64_t count = random.between(1, 9);
      if (store.fits(table, count + spare)) grow(store, table, count);
    }
  }
  return tables;
}

// K28, M1.
TEST(Compaction, EndsAndBringsTheFragmentationOfUnsharedConversationsToAHalfAtMost) {
  double worst_before = 0;
  double worst_after = 0;
  int reached = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto store = make_store(static_cast<std::uint32_t>(random.between(8, 60)), {1, 1});
    const std::vector<TableId> tables = scatter(*store, random, false);
    const SpaceReport before = store->space();
    const std::uint64_t free = store->tokens_free();
    const int moves = compact(*store);
    const SpaceReport after = store->space();
    EXPECT_LE(after.fragmentation, before.fragmentation) << "seed " << seed;
    EXPECT_EQ(after.held_cells, before.held_cells);
    if (moves == 0) {
      EXPECT_EQ(after.fragmentation, before.fragmentation);
    }
    if (after.frames_free > 0) {
      ++reached;
      EXPECT_LE(after.fragmentation, 0.5) << "seed " << seed;
      worst_after = std::max(worst_after, after.fragmentation);
    }
    worst_before = std::max(worst_before, before.fragmentation);
    static_cast<void>(free);
    expect_sound(*store);
  }
  std::cout << reached << " stores with a page left over; fragmentation at most " << worst_before
            << " before, " << worst_after << " after\n";
  EXPECT_GT(reached, 50);
  EXPECT_GT(worst_before, 0.6);
}

TEST(Compaction, EndsWhateverIsSharedAndShifted) {  // M1
  double before = 0;
  double after = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto store = make_store(static_cast<std::uint32_t>(random.between(6, 60)), {1, 2});
    const std::vector<TableId> tables = scatter(*store, random, true);
    const std::uint64_t spans = spans_of(*store, tables);
    before += store->space().fragmentation;
    static_cast<void>(compact(*store, nullptr, random.percent(50) ? 16 : 5));
    after += store->space().fragmentation;
    EXPECT_LE(spans_of(*store, tables), spans);
    expect_sound(*store);
  }
  std::cout << "mean fragmentation " << before / 200 << " before, " << after / 200 << " after\n";
  EXPECT_LT(after, before);
}

// Compacts by a budget of a page after the other; answers how many cells moved.
std::uint64_t compact_by_pages(PageStore& store) {
  std::uint64_t moved = 0;
  for (std::uint64_t before = ~std::uint64_t{0}; before != moved && moved < 100'000;) {
    before = moved;
    for (std::uint64_t left = 16; left > 0;) {
      const auto compaction = begin(store, static_cast<std::uint32_t>(left));
      if (compaction == nullptr) break;
      const auto some = compaction->commit();
      EXPECT_TRUE(some.has_value());
      moved += *some;
      left -= std::min<std::uint64_t>(left, *some);
    }
  }
  return moved;
}

// A page is emptied for what can be gathered then; what is left of a budget may gather something else
// instead.
TEST(Compaction, EndsWhereBudgetsAreUsedUp) {  // M1
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto store = make_store(static_cast<std::uint32_t>(random.between(6, 40)), {1});
    const std::vector<TableId> tables = scatter(*store, random, true);
    EXPECT_LT(compact_by_pages(*store), 20'000U) << "seed " << seed;
    expect_sound(*store);
  }
}

}  // namespace
}  // namespace kvasir::pages::test
