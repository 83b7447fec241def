// How much fits: the rule, promises, and the worst layouts.

#include <gtest/gtest.h>

#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

Outcome try_to_grow(PageStore& store, TableId table, std::uint64_t count) {
  const Growth growth{table, count};
  auto ticket = store.begin({&growth, 1});
  if (!ticket) return ticket.error().code();
  ticket->commit({&count, 1});
  return Outcome::kDone;
}

TEST(Space, OfAnEmptyStoreIsAllWholePagesOfAllGroupsTogether) {
  EXPECT_EQ(make_store(10)->tokens_free(), 160);
  EXPECT_EQ(make_store(10, {3})->tokens_free(), 48) << "one frame is left over";
  EXPECT_EQ(make_store(10, {1, 2})->tokens_free(), 48);
  EXPECT_EQ(make_store(10, {1, 4}, 64)->tokens_free(), 128);
  EXPECT_EQ(make_store(2, {3})->tokens_free(), 0);
  EXPECT_EQ(make_store(0)->tokens_free(), 0);
}

TEST(Space, CountsHolesOfEachGroupAndFramesOnceForAll) {
  const auto store = make_store(9, {1, 2});
  const TableId table = open_with(*store, 20);  // two pages of each group: 6 frames, 12 holes each
  EXPECT_EQ(store->frames_free(), 3);
  EXPECT_EQ(store->tokens_free(), 12 + 16);
  const SpaceReport space = store->space();
  EXPECT_EQ(space.free, 28);
  EXPECT_EQ(space.frames, 9);
  EXPECT_EQ(space.frames_free, 3);
  EXPECT_EQ(space.held_cells, 40);
  EXPECT_EQ(space.hole_cells, 24);
  EXPECT_EQ(space.evictable_cells, 0);
  EXPECT_EQ(space.promised, 0);
  EXPECT_EQ(try_to_grow(*store, open(*store), 29), Outcome::kNoSpace);
  EXPECT_EQ(try_to_grow(*store, open(*store), 28), Outcome::kDone);
  EXPECT_EQ(store->tokens_free(), 0);
  store->close(table);
  EXPECT_EQ(store->tokens_free(), 20);
  expect_sound(*store);
}

TEST(Space, CountsWhatTheIndexAloneHoldsAsFree) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 40);
  store->remember(table, tokens_from(0, 40), 0);
  EXPECT_EQ(store->tokens_free(), 24);
  remove(*store, table, 8, 32);  // 24 cells of the blocks are evictable, 8 of the first page
  EXPECT_EQ(store->space().evictable_cells, 24);
  EXPECT_EQ(store->tokens_free(), 56);
  EXPECT_EQ(store->frames_free(), 2);
  grow(*store, open(*store), 56);
  EXPECT_EQ(store->prefix_blocks(), 0);
  EXPECT_EQ(store->space().held_cells, 64);
  expect_sound(*store);
}

TEST(Space, IsPromisedAsANumberAndUsedUpByGrowing) {
  const auto store = make_store(4);
  const TableId a = open(*store);
  const TableId b = open(*store);
  ASSERT_TRUE(store->promise(a, 40));
  EXPECT_EQ(store->tokens_free(), 24);
  EXPECT_EQ(store->frames_free(), 4) << "no page is set aside";
  EXPECT_TRUE(store->fits(a, 64));
  EXPECT_FALSE(store->fits(a, 65));
  EXPECT_TRUE(store->fits(b, 24));
  EXPECT_FALSE(store->fits(b, 25));
  EXPECT_EQ(try_to_grow(*store, b, 25), Outcome::kNoSpace);
  EXPECT_EQ(try_to_grow(*store, a, 10), Outcome::kDone);
  EXPECT_EQ(store->holdings(a).promised, 30);
  EXPECT_EQ(store->tokens_free(), 24);
  EXPECT_EQ(try_to_grow(*store, a, 35), Outcome::kDone) << "beyond the promise";
  EXPECT_EQ(store->holdings(a).promised, 0);
  EXPECT_EQ(store->space().promised, 0);
  EXPECT_EQ(store->tokens_free(), 19);
  expect_sound(*store);
}

TEST(Space, PromisedToOneIsNotPromisedToAnother) {  // S6
  const auto store = make_store(4);
  const TableId a = open(*store);
  const TableId b = open(*store);
  ASSERT_TRUE(store->promise(a, 40));
  const Status refused = store->promise(b, 25);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 25);
  EXPECT_EQ(refused.error().numbers().available, 24);
  EXPECT_EQ(store->space().promised, 40);
  EXPECT_TRUE(store->promise(b, 24));
  EXPECT_TRUE(store->promise(a, 20)) << "in place of the 40";
  EXPECT_TRUE(store->promise(b, 44));
  EXPECT_FALSE(store->promise(a, UINT64_MAX));
  store->close(a);
  EXPECT_EQ(store->space().promised, 44);
  EXPECT_TRUE(store->promise(b, 0));
  EXPECT_EQ(store->tokens_free(), 64);
}

TEST(Space, PromisedIsUsedUpWhileATicketIsOpenAndPromisedAgainWhenItIsNotAccepted) {
  const auto store = make_store(4);
  const TableId a = open(*store);
  ASSERT_TRUE(store->promise(a, 40));
  const Growth growth{a, 30};
  {
    const auto ticket = store->begin({&growth, 1});
    ASSERT_TRUE(ticket);
    EXPECT_EQ(store->holdings(a).promised, 10);
    EXPECT_EQ(store->tokens_free(), 24) << "as before: nothing is counted twice";
  }
  EXPECT_EQ(store->holdings(a).promised, 40);
  EXPECT_EQ(store->tokens_free(), 24);
  auto ticket = store->begin({&growth, 1});
  ASSERT_TRUE(ticket);
  const std::uint64_t accepted = 12;
  ticket->commit({&accepted, 1});
  EXPECT_EQ(store->holdings(a).promised, 28);
  EXPECT_EQ(store->tokens_free(), 24);
  ASSERT_TRUE(store->promise(a, 5));
  auto longer = store->begin({&growth, 1});
  ASSERT_TRUE(longer);
  longer->withdraw(0);
  EXPECT_EQ(store->holdings(a).promised, 5);
  const std::uint64_t none = 0;
  longer->commit({&none, 1});
  EXPECT_EQ(store->holdings(a).promised, 5);
  expect_sound(*store);
}

// A store with free frames whose groups have holes of different number: 21 and 5, and two frames.
std::unique_ptr<PageStore> make_uneven() {
  auto store = make_store(5, {1, 1});
  const TableId a = open_with(*store, 16);
  const TableId b = open_with(*store, 16);
  remove(*store, a, 0, 8);
  static_cast<void>(open_with(*store, 3));  // group 0 in the page left over, group 1 in holes
  EXPECT_EQ(store->frames_free(), 0);
  store->close(b);
  EXPECT_EQ(store->frames_free(), 2);
  EXPECT_EQ(store->group(0).holes(), 21);
  EXPECT_EQ(store->group(1).holes(), 5);
  return store;
}

// Group 0 has holes enough; a fresh page for it would take the frame that the promise needs in group 1.
TEST(Space, PromisedIsNotSpentOnAFreshPageWhereHolesWouldDo) {  // S6
  const auto store = make_uneven();
  const TableId waiting = open(*store);
  ASSERT_TRUE(store->promise(waiting, 18));
  const Growth plan[] = {{open(*store), 1}, {open(*store), 1}};
  auto ticket = store->begin(plan);
  ASSERT_TRUE(ticket);
  EXPECT_EQ(store->group(0).pages_used(), 3) << "one fresh page, since one frame is left over";
  const std::uint64_t accepted[] = {1, 1};
  ticket->commit(accepted);
  expect_sound(*store);
  grow(*store, waiting, 18);
  EXPECT_EQ(store->frames_free(), 0);
  expect_sound(*store);
}

// The only free cells lie in a page that the index alone holds, which is worth a frame of any group.
TEST(Space, PromisedIsNotSpentOnHolesOfAPageThatWouldGo) {  // S6
  const auto store = make_store(3, {1, 1});
  const TableId known = open_with(*store, 16);
  store->remember(known, tokens_from(0, 16), 0);
  store->close(known);
  EXPECT_EQ(store->tokens_free(), 16);
  EXPECT_EQ(store->space().evictable_cells, 32);
  const TableId table = open(*store);
  ASSERT_TRUE(store->promise(table, 16));
  grow(*store, table, 1);
  expect_sound(*store);
  grow(*store, table, 15);
  EXPECT_EQ(store->prefix_blocks(), 0);
  expect_sound(*store);
}

// K27: every second cell is free, and no page.
TEST(Space, OfACheckerboardIsTakenToTheLastCell) {
  for (const std::vector<std::uint32_t>& layers : {std::vector<std::uint32_t>{1}, {2, 1}, {1, 3, 2}}) {
    std::uint32_t frames = 0;
    for (const std::uint32_t count : layers) frames += 10 * count;
    const auto store = make_store(frames, layers);
    const TableId board = make_checkerboard(*store, 10);
    ASSERT_EQ(store->frames_free(), 0);
    ASSERT_EQ(store->length(board), 80);
    ASSERT_EQ(store->tokens_free(), 80);
    const TableId table = open(*store);
    const TableId tables[] = {board, table};
    const auto before = state_of(*store, tables);
    EXPECT_FALSE(store->fits(table, 81));
    EXPECT_EQ(try_to_grow(*store, table, 81), Outcome::kNoSpace);
    EXPECT_EQ(state_of(*store, tables), before) << "nothing is written";
    EXPECT_EQ(try_to_grow(*store, table, 80), Outcome::kDone);
    EXPECT_EQ(store->length(table), 80);
    EXPECT_EQ(store->runs(table, 0).size(), 80);
    EXPECT_EQ(store->tokens_free(), 0);
    expect_sound(*store);
  }
}

TEST(Space, OfTwoGroupsOfDifferentGeometryIsTakenToTheLastCell) {
  for (std::uint32_t frames = 4; frames < 60; ++frames) {
    const auto store = make_store(frames, {1, 3});
    const TableId first = open(*store);
    const std::uint64_t some = store->tokens_free() / 3 + 1;
    grow(*store, first, some);
    const TableId second = open(*store);
    const std::uint64_t rest = store->tokens_free();
    EXPECT_EQ(some + rest, std::uint64_t{frames / 4 * 16});
    EXPECT_EQ(try_to_grow(*store, second, rest + 1), Outcome::kNoSpace);
    if (rest > 0) {
      EXPECT_EQ(try_to_grow(*store, second, rest), Outcome::kDone);
    }
    EXPECT_EQ(store->tokens_free(), 0);
    expect_sound(*store);
  }
}

// Each takes cells of both groups; together they fill both to the last frame, wherever frames lie.
TEST(Space, OfOneGroupDoesNotLieIdleWhileSixtyShortConversationsWait) {
  const auto store = make_store(60 * 3, {1, 2});
  std::vector<TableId> tables;
  for (int i = 0; i < 60; ++i) {
    tables.push_back(open(*store));
    ASSERT_EQ(try_to_grow(*store, tables.back(), 9), Outcome::kDone) << i;
  }
  EXPECT_EQ(store->frames_free(), 0) << "each has its own page of each group";
  EXPECT_EQ(store->tokens_free(), 60 * 7);
  for (const TableId table : tables) ASSERT_EQ(try_to_grow(*store, table, 7), Outcome::kDone);
  EXPECT_EQ(store->tokens_free(), 0);
  // With a third of the frames they share pages, and still all fit.
  const auto small = make_store(34 * 3, {1, 2});
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(try_to_grow(*small, open(*small), 9), Outcome::kDone) << i;
  }
  EXPECT_EQ(small->tokens_free(), 34 * 16 - 540);
  expect_sound(*small);
}

TEST(Space, IsLeftToTheGroupsThatNeedPages) {
  const auto store = make_uneven();
  EXPECT_EQ(store->tokens_free(), 21) << "group 0 in its holes, group 1 in 5 and a page";
  const TableId table = open(*store);
  EXPECT_EQ(try_to_grow(*store, table, 22), Outcome::kNoSpace);
  EXPECT_EQ(try_to_grow(*store, table, 21), Outcome::kDone);
  EXPECT_EQ(store->frames_free(), 0) << "the other served group 0";
  EXPECT_EQ(store->tokens_free(), 0);
  expect_sound(*store);
}

TEST(Space, FragmentationIsNoneWhereEveryConversationLiesInAsFewSpansAsItCan) {
  const auto store = make_store(8);
  EXPECT_EQ(store->space().fragmentation, 0);
  const TableId a = open_with(*store, 40);
  EXPECT_EQ(store->space().fragmentation, 0);
  const TableId b = *store->fork(a);
  EXPECT_EQ(store->space().fragmentation, 0);
  remove(*store, a, 10, 1);
  remove(*store, a, 20, 1);  // 38 tokens in 5 spans, where 3 would do; b lies in 3
  EXPECT_EQ(store->holdings(a).spans, 5);
  EXPECT_DOUBLE_EQ(store->space().fragmentation, 1 - 6.0 / 8);
  store->close(a);
  EXPECT_EQ(store->space().fragmentation, 0);
  EXPECT_EQ(store->holdings(b).spans, 3);
}

TEST(Space, HoldingsTellOwnCellsFromSharedOnes) {
  const auto store = make_store(12, {1, 1});
  const TableId a = open_with(*store, 20);
  store->remember(a, tokens_from(0, 20), 0);
  EXPECT_EQ(store->holdings(a).own, 40) << "the index shares with nobody";
  EXPECT_EQ(store->holdings(a).shared, 0);
  const TableId b = *store->fork(a);
  grow(*store, b, 3);
  ASSERT_TRUE(store->promise(b, 7));
  const Holdings holdings = store->holdings(b);
  EXPECT_EQ(holdings.own, 6);
  EXPECT_EQ(holdings.shared, 40);
  EXPECT_EQ(holdings.spans, 4);
  EXPECT_EQ(holdings.promised, 7);
  EXPECT_EQ(store->holdings(a).own, 0);
  EXPECT_EQ(store->holdings(a).promised, 0);
}

}  // namespace
}  // namespace kvasir::pages::test
