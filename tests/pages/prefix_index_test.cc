// The index of beginnings: by itself, and as conversations share through it.

#include "pages/prefix_index.h"

#include <gtest/gtest.h>

#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

using BlockId = PrefixIndex::BlockId;

BlockId insert(PrefixIndex& index, BlockId parent, Token first, std::uint64_t salt = 0) {
  return index.insert(parent, {salt, 0}, tokens_from(first, 16), std::vector<PageTable>(1));
}

// A conversation of these tokens, remembered and closed.
void remember_and_close(PageStore& store, const std::vector<Token>& tokens, std::uint64_t salt = 0) {
  const TableId table = open_with(store, tokens.size());
  store.remember(table, tokens, salt);
  store.close(table);
}

std::vector<Token> joined(std::vector<Token> first, const std::vector<Token>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(PrefixIndex, FindsABlockByAllTokensBeforeAndInIt) {
  PrefixIndex index;
  const BlockId a = insert(index, PrefixIndex::kRoot, 0);
  const BlockId b = insert(index, a, 100);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(0, 16)), a);
  EXPECT_EQ(index.find(a, {0, 0}, tokens_from(100, 16)), b);
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(100, 16))) << "not behind the root";
  EXPECT_FALSE(index.find(b, {0, 0}, tokens_from(100, 16))) << "not behind another block";
  EXPECT_FALSE(index.find(a, {0, 0}, tokens_from(101, 16)));
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(0, 15)));
  EXPECT_EQ(index.size(), 2);
}

TEST(PrefixIndex, KeepsWhatHasAnotherSaltApart) {
  PrefixIndex index;
  const BlockId a = insert(index, PrefixIndex::kRoot, 0, 7);
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(0, 16)));
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {7, 0}, tokens_from(0, 16)), a);
  const BlockId b = insert(index, PrefixIndex::kRoot, 0, 8);
  EXPECT_NE(a, b);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {8, 0}, tokens_from(0, 16)), b);
}

TEST(PrefixIndex, GivesUpTheLeastRecentlyUsedTailFirst) {  // I1, I2
  PrefixIndex index;
  const BlockId a = insert(index, PrefixIndex::kRoot, 0);
  const BlockId a_tail = insert(index, a, 16);
  const BlockId b = insert(index, PrefixIndex::kRoot, 100);
  const BlockId b_tail = insert(index, b, 116);
  EXPECT_EQ(index.oldest(), a_tail);
  index.touch(a_tail);
  EXPECT_EQ(index.oldest(), b_tail);
  index.touch(b);  // its tail stays the oldest
  const std::vector<BlockId> expected = {b_tail, a_tail, a, b};
  for (const BlockId block : expected) {
    ASSERT_EQ(index.oldest(), block);
    index.erase(block);
  }
  EXPECT_FALSE(index.oldest());
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.counters().evictions, 4);
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(0, 16)));
}

TEST(PrefixIndex, UsesTheIdsOfErasedBlocksAgain) {
  PrefixIndex index;
  const BlockId a = insert(index, PrefixIndex::kRoot, 0);
  index.erase(a);
  EXPECT_EQ(insert(index, PrefixIndex::kRoot, 50), a);
  EXPECT_EQ(index.blocks(), std::vector<BlockId>{a});
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(0, 16)));
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {0, 0}, tokens_from(50, 16)), a);
}

TEST(SharedBeginning, IsFoundInWholeBlocksBelowTheLimit) {
  const auto store = make_store(16);
  remember_and_close(*store, tokens_from(0, 40));  // two blocks of 16, a rest of 8
  EXPECT_EQ(store->prefix_blocks(), 2);
  EXPECT_EQ(store->space().held_cells, 32);
  const std::vector<Token> wanted = tokens_from(0, 40);
  EXPECT_EQ(*store->adopt(open(*store), wanted, 40, 0), 32);
  EXPECT_EQ(*store->adopt(open(*store), wanted, 32, 0), 32);
  EXPECT_EQ(*store->adopt(open(*store), wanted, 31, 0), 16) << "the last row wants to be computed";
  EXPECT_EQ(*store->adopt(open(*store), wanted, 15, 0), 0);
  EXPECT_EQ(*store->adopt(open(*store), tokens_from(0, 20), 40, 0), 16);
  EXPECT_EQ(*store->adopt(open(*store), {}, 40, 0), 0);
  EXPECT_EQ(*store->adopt(open(*store), wanted, 40, 1), 0) << "another salt";
  std::vector<Token> other = wanted;
  other[16] = 999;
  EXPECT_EQ(*store->adopt(open(*store), other, 40, 0), 16);
  other[0] = 999;
  EXPECT_EQ(*store->adopt(open(*store), other, 40, 0), 0);
  EXPECT_EQ(store->prefix_counters().lookups, 9);
  EXPECT_EQ(store->prefix_counters().hits, 5);
  EXPECT_EQ(store->prefix_counters().tokens_found, 32 + 32 + 16 + 16 + 16);
  expect_sound(*store);
}

TEST(SharedBeginning, IsGivenBackWithoutATrace) {
  const auto store = make_store(8, {1, 1});
  remember_and_close(*store, tokens_from(0, 40));
  const TableId table = open(*store);
  const TableId other = open_with(*store, 20);
  ASSERT_TRUE(store->promise(table, 5));
  const auto before = state_of(*store, std::vector{table, other});
  const std::uint64_t free = store->tokens_free();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(*store->adopt(table, tokens_from(0, 40), 39, 0), 32);
    EXPECT_NE(state_of(*store, std::vector{table, other}), before);
    store->return_beginning(table);
    EXPECT_EQ(state_of(*store, std::vector{table, other}), before);
    EXPECT_EQ(store->tokens_free(), free);
    EXPECT_EQ(store->promised(table), 5U);
    EXPECT_EQ(store->prefix_counters().lookups + store->prefix_counters().hits, 0U);
    EXPECT_EQ(store->prefix_counters().tokens_found, 0U);
    expect_sound(*store);
  }
  EXPECT_EQ(*store->adopt(table, tokens_from(0, 40), 39, 0), 32);
  grow(*store, table, 5);
  expect_sound(*store);
}

TEST(SharedBeginning, SharesTheCellsInEveryGroup) {
  const auto store = make_store(12, {1, 2});
  const TableId first = open_with(*store, 33);
  store->remember(first, tokens_from(0, 33), 0);
  const TableId second = open(*store);
  ASSERT_EQ(*store->adopt(second, tokens_from(0, 33), 32, 0), 32);
  for (std::size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(runs_of(*store, second, group),
              (std::vector<Span>{{PageId{0}, 0, 16, 0, 0}, {PageId{1}, 0, 16, 16, 0}}));
    EXPECT_EQ(store->group(group).holders(PageId{1}, 15), 3);
    EXPECT_EQ(store->group(group).soft_holders(PageId{1}, 15), 1);
  }
  EXPECT_EQ(store->length(second), 32);
  EXPECT_EQ(store->next_position(second), 32);
  EXPECT_EQ(store->holdings(second).own, 0);
  expect_sound(*store);
}

TEST(SharedBeginning, IsRefusedByAConversationThatHoldsSomething) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 1);
  const auto before = state_of(*store, {&table, 1});
  const auto refused = store->adopt(table, tokens_from(0, 16), 16, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kWrongState);
  EXPECT_EQ(state_of(*store, {&table, 1}), before);
}

TEST(SharedBeginning, EndsBeforeTheFirstCellThatWasRemovedMovedOrDivided) {
  using Kind = EditOperation::Kind;
  const std::vector<EditOperation> edits = {
      {Kind::kRemove, 20, 1, 0}, {Kind::kShift, 20, 1, 1}, {Kind::kDivide, 20, 1, 2}};
  for (const EditOperation& operation : edits) {
    const auto store = make_store(8);
    const TableId table = open_with(*store, 49);
    edit(*store, table, {operation});
    store->remember(table, tokens_from(0, store->length(table)), 0);
    EXPECT_EQ(store->prefix_blocks(), 1) << static_cast<int>(operation.kind);
    const TableId child = *store->fork(table);
    store->remember(child, tokens_from(0, store->length(child)), 3);
    EXPECT_EQ(store->prefix_blocks(), 1) << "a fork is no cleaner, and has offered as much already";
    remove(*store, table, 20, store->length(table) - 20);
    grow(*store, table, 12);  // what follows a clean beginning is clean again
    store->remember(table, tokens_from(0, 32), 0);
    EXPECT_EQ(store->prefix_blocks(), 2);
    grow(*store, child, 20);
    store->remember(child, tokens_from(0, store->length(child)), 0);
    EXPECT_EQ(store->prefix_blocks(), 2);
    expect_sound(*store);
  }
}

TEST(SharedBeginning, IsCleanUpToARemovedEnd) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 40);
  remove(*store, table, 35, 5);
  store->remember(table, tokens_from(0, 35), 0);
  EXPECT_EQ(store->prefix_blocks(), 2);
}

TEST(SharedBeginning, IsOfferedAgainWhereItWasRewoundAndWrittenAnew) {
  const auto store = make_store(8);
  const TableId table = open_with(*store, 32);
  store->remember(table, tokens_from(0, 32), 0);
  remove(*store, table, 10, 22);
  grow(*store, table, 22);
  const std::vector<Token> tokens = joined(tokens_from(0, 10), tokens_from(500, 22));
  store->remember(table, tokens, 0);
  EXPECT_EQ(store->prefix_blocks(), 4);
  store->close(table);
  EXPECT_EQ(*store->adopt(open(*store), tokens, 32, 0), 32);
  EXPECT_EQ(*store->adopt(open(*store), tokens_from(0, 32), 32, 0), 32);
  expect_sound(*store);
}

TEST(SharedBeginning, LeavesTheCellsOfATwinToTheTwin) {
  const auto store = make_store(8);
  const TableId a = open_with(*store, 16);
  const TableId b = open_with(*store, 16);
  store->remember(a, tokens_from(0, 16), 0);
  store->remember(b, tokens_from(0, 16), 0);
  EXPECT_EQ(store->prefix_blocks(), 1);
  store->close(a);
  EXPECT_EQ(store->space().evictable_cells, 16);
  store->close(b);
  EXPECT_EQ(store->space().held_cells, 16) << "the twin's cells are free";
  expect_sound(*store);
}

TEST(SharedBeginning, HoldsNoMoreThanLeavesRoomForWhatIsPromised) {  // S6
  const auto store = make_store(4);
  remember_and_close(*store, tokens_from(0, 48));
  const TableId waiting = open(*store);
  ASSERT_TRUE(store->promise(waiting, 32));
  const TableId table = open(*store);
  EXPECT_EQ(*store->adopt(table, tokens_from(0, 48), 48, 0), 32) << "64 in all, 32 promised";
  EXPECT_EQ(store->tokens_free(), 0);
  grow(*store, waiting, 32);
  EXPECT_EQ(store->prefix_blocks(), 2) << "the third gave way";
  expect_sound(*store);
}

TEST(SharedBeginning, IsForgottenAtOnce) {
  const auto store = make_store(4);
  const TableId table = open_with(*store, 16);
  store->remember(table, tokens_from(0, 16), 0);
  remember_and_close(*store, tokens_from(100, 32));
  store->forget();
  EXPECT_EQ(store->prefix_blocks(), 0);
  EXPECT_EQ(store->space().held_cells, 16);
  EXPECT_EQ(store->length(table), 16);
  EXPECT_EQ(*store->adopt(open(*store), tokens_from(0, 16), 16, 0), 0);
  expect_sound(*store);
}

}  // namespace
}  // namespace kvasir::pages::test
