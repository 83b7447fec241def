// Memory refused at every place where a snapshot or a restore asks for it.

#include <gtest/gtest.h>

#include <utility>

#include "missing_memory.h"
#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

// Conversations of every kind, two of them sharing, and empty tables to come back into.
struct Scene {
  std::unique_ptr<PageStore> store;
  std::vector<TableId> sources;
  std::vector<TableId> into;
  std::vector<TableId> tables;
  Layout layout;
  Layout broken;

  Scene() {
    store = *PageStore::create(
        {.page_cells = 16,
         .frames = 200,
         .groups = {{1}, {2, GroupKind::kWindow, 10}, {1, GroupKind::kCross}, {2, GroupKind::kRecurrent}},
         .pass_tokens = 16,
         .checkpoint_tokens = 16});
    const TableId parent = open(*store);
    store->begin_encode(parent, 20)->commit();
    for (int step = 0; step < 9; ++step) grow(*store, parent, 12);
    const TableId child = *store->fork(parent);
    grow(*store, child, 5);
    store->remember(parent, tokens_from(0, 108), 0);
    sources = {parent, child};
    into = {open(*store), open(*store)};
    tables = {parent, child, into[0], into[1]};
    layout = (*store->snapshot(sources))->layout();
    broken = layout;
    ++broken.conversations[0].length;
  }
};

TEST(RestoreFaults, TakingASnapshotTakesFullEffectOrNone) {
  expect_unharmed<Scene>([](Scene& scene) { return outcome_of(scene.store->snapshot(scene.sources)); });
}

TEST(RestoreFaults, ReservingARestoreTakesFullEffectOrNone) {
  expect_unharmed<Scene>(
      [](Scene& scene) { return outcome_of(scene.store->begin_restore(scene.layout, scene.into)); });
}

TEST(RestoreFaults, RefusingARestoreSaysSoWithWhateverMemory) {
  expect_unharmed<Scene>(
      [](Scene& scene) { return outcome_of(scene.store->begin_restore(scene.broken, scene.into)); },
      Outcome::kCorrupt);
}

TEST(RestoreFaults, CommittingARestoreWantsNoMemory) {
  Scene scene;
  auto ticket = scene.store->begin_restore(scene.layout, scene.into);
  ASSERT_TRUE(ticket.has_value());
  const kvasir::test::AllocationCount count;
  ticket->commit();
  EXPECT_EQ(count.count(), 0U);
  expect_sound(*scene.store);
}

}  // namespace
}  // namespace kvasir::pages::test
