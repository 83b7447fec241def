// Layouts that nobody vouches for: every change that would break an invariant is refused, and so is every
// damaged form in bytes.

#include "pages/layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "pages/page_store.h"
#include "random.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

const StoreSpec kSpec{
    .page_cells = 16,
    .frames = 200,
    .groups = {{1}, {1, GroupKind::kWindow, 10}, {2, GroupKind::kRecurrent}, {1, GroupKind::kCross}},
    .checkpoint_tokens = 16};

// A conversation of 120 tokens and a fork of it.
Layout sample() {
  const auto store = *PageStore::create(kSpec);
  const TableId table = open(*store);
  store->begin_encode(table, 20)->commit();
  for (int step = 0; step < 10; ++step) grow(*store, table, 12);
  const TableId child = *store->fork(table);
  grow(*store, child, 3);
  return (*store->snapshot(std::vector<TableId>{table, child}))->layout();
}

struct Change {
  const char* what;
  std::function<void(Layout&)> make;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"a group less", [](Layout& layout) { layout.cells.pop_back(); }},
      {"a stretch of nothing", [](Layout& layout) { layout.cells[0][0].count = 0; }},
      {"a stretch without end", [](Layout& layout) { layout.cells[0][0].count = UINT64_MAX; }},
      {"a stretch beyond all positions", [](Layout& layout) { layout.cells[0][0].position = UINT64_MAX; }},
      {"one cell less than is named", [](Layout& layout) { --layout.cells[0].back().count; }},
      {"a longer conversation", [](Layout& layout) { ++layout.conversations[0].length; }},
      {"a conversation without end", [](Layout& layout) { layout.conversations[0].length = UINT64_MAX; }},
      {"behind without end", [](Layout& layout) { layout.conversations[0].behind = UINT64_MAX; }},
      {"more clean tokens", [](Layout& layout) { layout.conversations[0].clean = 121; }},
      {"a group less in one", [](Layout& layout) { layout.conversations[0].cells.pop_back(); }},
      {"a piece beyond all cells", [](Layout& layout) { layout.conversations[0].cells[0][0].first += 9; }},
      {"a piece that overflows",
       [](Layout& layout) { layout.conversations[0].cells[0][0].first = UINT64_MAX; }},
      {"a piece of nothing", [](Layout& layout) { layout.conversations[0].cells[0].push_back({0, 0, 0}); }},
      {"a cell twice",
       [](Layout& layout) {
         CellPiece& piece = layout.conversations[0].cells[0][0];
         --piece.count;
         layout.conversations[0].cells[0].push_back({piece.first, 1, 0});
       }},
      {"a shift where nothing moves", [](Layout& layout) { layout.conversations[0].cells[0][0].shift = 1; }},
      {"a floor beyond the end", [](Layout& layout) { layout.conversations[0].floors[1] = 121; }},
      {"a floor without a window", [](Layout& layout) { layout.conversations[0].floors[0] = 1; }},
      {"no window", [](Layout& layout) { layout.conversations[0].cells[1].clear(); }},
      {"no state", [](Layout& layout) { layout.conversations[0].cells[2].clear(); }},
      {"another's state",
       [](Layout& layout) { layout.conversations[0].cells[2] = layout.conversations[1].cells[2]; }},
      {"a state in another group", [](Layout& layout) { layout.conversations[0].cells[2][0].shift = 1; }},
      {"no encoder's output", [](Layout& layout) { layout.conversations[0].cells[3].clear(); }},
      {"an output without a number", [](Layout& layout) { layout.conversations[0].encoded = 0; }},
      {"an output of a wild number", [](Layout& layout) { layout.conversations[0].encoded = 99; }},
      {"two outputs of one number",
       [](Layout& layout) { layout.conversations[1].cells[3] = {{1, 19, 0}, {0, 1, 0}}; }},
      {"a checkpoint that is not there",
       [](Layout& layout) { layout.conversations[0].checkpoints.push_back(1000); }},
      {"a checkpoint twice",
       [](Layout& layout) {
         layout.conversations[0].checkpoints.push_back(layout.conversations[0].checkpoints.back());
       }},
      {"checkpoints out of order",
       [](Layout& layout) {
         std::swap(layout.conversations[0].checkpoints[0], layout.conversations[0].checkpoints[1]);
       }},
      {"a checkpoint beyond the end", [](Layout& layout) { layout.checkpoints.back().ordinal = 200; }},
      {"a checkpoint at the beginning", [](Layout& layout) { layout.checkpoints[0].ordinal = 0; }},
      {"a checkpoint without its window", [](Layout& layout) { layout.checkpoints[0].cells[1].clear(); }},
      {"a checkpoint without its state", [](Layout& layout) { layout.checkpoints[0].cells[2].clear(); }},
      {"a checkpoint of a full group",
       [](Layout& layout) { layout.checkpoints[0].cells[0].push_back({0, 1, 0}); }},
      {"a checkpoint of too few groups", [](Layout& layout) { layout.checkpoints[0].cells.pop_back(); }},
  };
  return all;
}

TEST(LayoutChecks, TakeWhatAStoreDescribes) {
  const Status status = check_layout(sample(), kSpec);
  EXPECT_TRUE(status.has_value()) << status.error().message();
}

TEST(LayoutChecks, RefuseEveryChangeThatBreaksAnInvariant) {
  for (const Change& change : changes()) {
    Layout layout = sample();
    change.make(layout);
    const Status status = check_layout(layout, kSpec);
    ASSERT_FALSE(status.has_value()) << change.what;
    EXPECT_EQ(status.error().code(), Outcome::kCorrupt) << change.what;
  }
}

TEST(LayoutChecks, RefuseATokenWithTwoPositions) {
  const StoreSpec spec{.page_cells = 16, .frames = 40, .groups = {{1}, {1, GroupKind::kWindow, 10}}};
  const auto store = *PageStore::create(spec);
  Layout layout = (*store->snapshot(std::vector<TableId>{open_with(*store, 40)}))->layout();
  ASSERT_TRUE(check_layout(layout, spec).has_value());
  layout.conversations[0].cells[0][0].shift = 7;
  EXPECT_FALSE(check_layout(layout, spec).has_value());
  layout.conversations[0].cells[1][0].shift = 7;
  EXPECT_TRUE(check_layout(layout, spec).has_value());
  layout.conversations[0].cells[0][0].shift = -7;
  layout.conversations[0].cells[1][0].shift = -7;
  EXPECT_FALSE(check_layout(layout, spec).has_value()) << "a position below 0";
}

TEST(LayoutBytes, ComeBackAsTheyWere) {
  const Layout layout = sample();
  std::vector<std::byte> bytes;
  append_layout(layout, bytes);
  const auto back = parse_layout(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(*back, layout);
}

TEST(LayoutBytes, AreRefusedWhereverTheyAreCut) {
  std::vector<std::byte> bytes;
  append_layout(sample(), bytes);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto cut = parse_layout(std::span(bytes).first(length));
    ASSERT_FALSE(cut.has_value()) << length;
    ASSERT_EQ(cut.error().code(), Outcome::kCorrupt) << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(parse_layout(bytes).has_value()) << "a byte too many";
}

// Whatever the bytes say, the answer is a layout that keeps every invariant, or a refusal.
TEST(LayoutBytes, NeverHarmAStoreWhateverByteIsChanged) {
  std::vector<std::byte> bytes;
  append_layout(sample(), bytes);
  Random random(7);
  std::size_t taken = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> damaged = bytes;
    damaged[at] ^= static_cast<std::byte>(1U << random.below(8));
    const auto layout = parse_layout(damaged);
    if (!layout) continue;
    const auto store = *PageStore::create(kSpec);
    std::vector<TableId> into;
    for (std::size_t i = 0; i < layout->conversations.size(); ++i) into.push_back(open(*store));
    auto ticket = store->begin_restore(*layout, into);
    if (!ticket) continue;
    ticket->commit();
    ++taken;
    expect_sound(*store);
    for (const TableId table : into) {
      static_cast<void>(store->rewind(table, store->length(table) / 2));
      grow(*store, table, 5);
      expect_sound(*store);
    }
  }
  EXPECT_GT(taken, 0U) << "changes of what is as good as it was";
}

}  // namespace
}  // namespace kvasir::pages::test
