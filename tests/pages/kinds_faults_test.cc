// Memory refused at every place where a call asks for it, in stores of windows, states and encoders' outputs.

#include <gtest/gtest.h>

#include <utility>

#include "missing_memory.h"
#include "pages/compaction.h"
#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

using Kind = EditOperation::Kind;

// A store with all that a call may meet: forks, floors, checkpoints, a promise, blocks of the index, a
// conversation that is behind.
struct MixedScene {
  std::unique_ptr<PageStore> store;
  TableId parent{};
  TableId child{};
  TableId behind{};
  TableId empty{};
  std::vector<TableId> tables;

  explicit MixedScene(bool with_states) {
    StoreSpec spec{.page_cells = 16,
                   .frames = 120,
                   .groups = {{1}, {2, GroupKind::kWindow, 10}, {1, GroupKind::kCross}},
                   .pass_tokens = 16,
                   .checkpoint_tokens = 16};
    if (with_states) spec.groups.push_back({2, GroupKind::kRecurrent});
    store = *PageStore::create(spec);
    parent = open(*store);
    store->begin_encode(parent, 20)->commit();
    for (int step = 0; step < 9; ++step) grow(*store, parent, 12);
    store->remember(parent, tokens_from(0, 108), 0);
    child = *store->fork(parent);
    if (!with_states) edit(*store, child, {{Kind::kRemove, 50, 3, 0}, {Kind::kShift, 60, 30, -3}});
    behind = *store->fork(parent);
    EXPECT_EQ(*store->rewind(behind, 20), 4U);
    empty = open(*store);
    EXPECT_TRUE(store->promise(child, 3));
    tables = {parent, child, behind, empty};
  }
};
struct Windows : MixedScene {
  Windows() : MixedScene(false) {}
};
struct Hybrids : MixedScene {
  Hybrids() : MixedScene(true) {}
};

void expect_unharmed_in_both(const CallOf<MixedScene>& call, Outcome in_the_end = Outcome::kDone) {
  expect_unharmed<Windows>(call, in_the_end);
  expect_unharmed<Hybrids>(call, in_the_end);
}

template <class T>
Outcome outcome_of(const Result<T>& result) {
  return result ? Outcome::kDone : result.error().code();
}

TEST(KindsFaults, ReservingTakesFullEffectOrNone) {
  expect_unharmed_in_both([](MixedScene& scene) {
    const Growth plan[] = {{.table = scene.parent, .count = 40, .prompt = 40},
                           {.table = scene.behind, .count = 20},
                           {.table = scene.empty, .count = 150, .fewest = 150, .prompt = 150}};
    return outcome_of(scene.store->begin(plan));
  });
}

TEST(KindsFaults, EncodingTakesFullEffectOrNone) {
  expect_unharmed_in_both(
      [](MixedScene& scene) { return outcome_of(scene.store->begin_encode(scene.empty, 200)); });
}

TEST(KindsFaults, ForkingTakesFullEffectOrNone) {
  expect_unharmed_in_both([](MixedScene& scene) {
    const auto fork = scene.store->fork(scene.behind);
    if (fork) static_cast<void>(scene.store->close(*fork));
    return outcome_of(fork);
  });
}

TEST(KindsFaults, RewindingTakesFullEffectOrNone) {
  // The rewind of a fork, so that it can be asked for again and again.
  expect_unharmed_in_both([](MixedScene& scene) {
    const auto fork = scene.store->fork(scene.parent);
    if (!fork) return fork.error().code();
    const auto rewound = scene.store->rewind(*fork, 20);
    static_cast<void>(scene.store->close(*fork));
    return outcome_of(rewound);
  });
}

TEST(KindsFaults, EditingTakesFullEffectOrNone) {
  const CallOf<Windows> call = [](Windows& scene) {
    const EditOperation operations[] = {
        {Kind::kRemove, 2, 3, 0}, {Kind::kDivide, 0, 100, 2}, {Kind::kShift, 90, 6, 7}};
    return outcome_of(scene.store->begin_edit(scene.parent, operations));
  };
  expect_unharmed<Windows>(call);
}

TEST(KindsFaults, ExchangingAndMovingCellsTakeFullEffectOrNone) {
  expect_unharmed_in_both(
      [](MixedScene& scene) { return outcome_of(scene.store->swap(scene.parent, 70, 100)); });
}

TEST(KindsFaults, AdoptingTakesFullEffectOrNone) {
  expect_unharmed_in_both([](MixedScene& scene) {
    const auto table = scene.store->fork(scene.parent);
    if (!table) return table.error().code();
    const auto rewound = scene.store->rewind(*table, 0);
    if (!rewound) {
      static_cast<void>(scene.store->close(*table));
      return rewound.error().code();
    }
    Token tokens[108];
    for (Token i = 0; i < 108; ++i) tokens[i] = i;
    const auto found = scene.store->adopt(*table, tokens, 107, 0);
    static_cast<void>(scene.store->close(*table));
    if (found && *found != 96) return Outcome::kInternal;
    return outcome_of(found);
  });
}

TEST(KindsFaults, RefusingWithoutMemoryIsAnErrorToo) {
  expect_unharmed_in_both(
      [](MixedScene& scene) { return outcome_of(scene.store->rewind(scene.parent, 1000)); },
      Outcome::kInvalidArgument);
  expect_unharmed_in_both(
      [](MixedScene& scene) { return outcome_of(scene.store->begin_encode(scene.parent, 5)); },
      Outcome::kWrongState);
  expect_unharmed_in_both(
      [](MixedScene& scene) { return outcome_of(scene.store->begin_encode(scene.empty, 5000)); },
      Outcome::kNoSpace);
  expect_unharmed_in_both(
      [](MixedScene& scene) { return outcome_of(scene.store->promise(scene.empty, 5000)); },
      Outcome::kNoSpace);
}

// S5, and the end of everything.
TEST(KindsFaults, GivingBackWantsNoMemory) {
  Hybrids scene;
  PageStore& store = *scene.store;
  const Growth plan[] = {{.table = scene.parent, .count = 40, .prompt = 40},
                         {.table = scene.child, .count = 150, .fewest = 150},
                         {.table = scene.behind, .count = 30}};
  auto ticket = store.begin(plan);
  auto encode = store.begin_encode(scene.empty, 30);
  ASSERT_TRUE(ticket && encode);
  bool fired = false;
  {
    const kvasir::test::AllocationFault fault(0);
    static_cast<void>(store.tokens_free());
    static_cast<void>(store.space());
    static_cast<void>(store.fits(scene.child, 700));
    static_cast<void>(store.rewind_cost(scene.child, 20));
    ticket->open_pass(1, 70);
    ticket->open_pass(1, 150);
    const std::uint64_t accepted[] = {39, 150, 30};
    ticket->commit(accepted);
    encode->commit();
    store.forget();
    for (const TableId table : scene.tables) EXPECT_EQ(store.close(table), Outcome::kDone);
    fired = fault.fired();
  }
  EXPECT_FALSE(fired);
  EXPECT_EQ(store.frames_free(), 120U);
  expect_sound(store);
}

}  // namespace
}  // namespace kvasir::pages::test
