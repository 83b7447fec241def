// Memory refused at every place where a call of the page store asks for it: the call says so, nothing has
// changed, and the same call works afterwards.

#include <gtest/gtest.h>

#include <utility>

#include "missing_memory.h"
#include "pages/compaction.h"
#include "pages/page_store.h"
#include "small_store.h"
#include "support/allocations.h"

namespace kvasir::pages::test {
namespace {

using Kind = EditOperation::Kind;

// A store with all that a call may meet: a fork, holes, shifts, a promise, blocks of the index.
struct Scene {
  std::unique_ptr<PageStore> store = make_store(30, {1, 2});
  TableId scattered = make_checkerboard(*store, 2);
  TableId parent = open_with(*store, 40);
  TableId child = *store->fork(parent);
  TableId empty = open(*store);
  std::vector<TableId> tables = {scattered, parent, child, empty};

  Scene() {
    store->remember(parent, tokens_from(0, 40), 0);
    edit(*store, child, {{Kind::kRemove, 5, 3, 0}, {Kind::kShift, 5, 30, -3}});
    EXPECT_TRUE(store->promise(child, 3));
  }
};

using Call = CallOf<Scene>;

void expect_unharmed_by_missing_memory(const Call& call, Outcome in_the_end = Outcome::kDone) {
  expect_unharmed<Scene>(call, in_the_end);
}

TEST(PageStoreFaults, CreatingOneSaysThatMemoryIsMissing) {
  for (std::uint64_t n = 0;; ++n) {
    bool fired = false;
    Outcome outcome = Outcome::kDone;
    const StoreSpec spec{16, 8, {{1}, {2}}};
    {
      const kvasir::test::AllocationFault fault(n);
      outcome = outcome_of(PageStore::create(spec));
      fired = fault.fired();
    }
    ASSERT_EQ(outcome, fired ? Outcome::kOutOfMemory : Outcome::kDone) << "allocation " << n;
    if (!fired) return;
  }
}

TEST(PageStoreFaults, OpeningAConversationTakesFullEffectOrNone) {
  expect_unharmed_by_missing_memory([](Scene& scene) { return outcome_of(scene.store->open()); });
}

TEST(PageStoreFaults, ForkingTakesFullEffectOrNone) {
  expect_unharmed_by_missing_memory([](Scene& scene) { return outcome_of(scene.store->fork(scene.child)); });
}

TEST(PageStoreFaults, ReservingTakesFullEffectOrNone) {
  expect_unharmed_by_missing_memory([](Scene& scene) {
    const Growth plan[] = {{scene.parent, 5}, {scene.child, 20}, {scene.empty, 50}};
    return outcome_of(scene.store->begin(plan));
  });
}

TEST(PageStoreFaults, EditingTakesFullEffectOrNone) {
  expect_unharmed_by_missing_memory([](Scene& scene) {
    const EditOperation operations[] = {{Kind::kRemove, 2, 3, 0},
                                        {Kind::kDivide, 0, 20, 2},
                                        {Kind::kShift, 4, 6, 7},
                                        {Kind::kDivide, 3, 9, 3}};
    return outcome_of(scene.store->begin_edit(scene.parent, operations));
  });
}

TEST(PageStoreFaults, ExchangingCellsTakesFullEffectOrNone) {
  expect_unharmed_by_missing_memory(
      [](Scene& scene) { return outcome_of(scene.store->swap(scene.parent, 1, 33)); });
}

TEST(PageStoreFaults, AdoptingTakesFullEffectOrNone) {
  // The first call leaves the conversation with a beginning, so a new one asks each time.
  expect_unharmed_by_missing_memory([](Scene& scene) {
    const auto table = scene.store->open();
    if (!table) return table.error().code();
    const Token tokens[48] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                              16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    const auto found = scene.store->adopt(*table, tokens, 48, 0);
    scene.store->close(*table);
    if (found && *found != 32) return Outcome::kInternal;
    return outcome_of(found);
  });
}

TEST(PageStoreFaults, PlanningACompactionTakesFullEffectOrNone) {
  expect_unharmed_by_missing_memory([](Scene& scene) {
    const auto compaction = Compaction::begin(*scene.store, 16);
    if (compaction && *compaction == nullptr) return Outcome::kIdle;
    return outcome_of(compaction);
  });
}

TEST(PageStoreFaults, MovingCellsTakesFullEffectOrNone) {
  for (std::uint64_t n = 0;; ++n) {
    Scene scene;
    const auto compaction = Compaction::begin(*scene.store, 16);
    ASSERT_TRUE(compaction && *compaction != nullptr);
    const auto before = state_of(*scene.store, scene.tables);
    bool fired = false;
    Outcome outcome = Outcome::kDone;
    {
      const kvasir::test::AllocationFault fault(n);
      outcome = outcome_of((*compaction)->commit());
      fired = fault.fired();
    }
    expect_sound(*scene.store);
    if (!fired) {
      EXPECT_EQ(outcome, Outcome::kDone);
      EXPECT_GT(n, 0);
      return;
    }
    ASSERT_EQ(outcome, Outcome::kOutOfMemory) << "allocation " << n;
    ASSERT_EQ(state_of(*scene.store, scene.tables), before) << "allocation " << n;
    ASSERT_TRUE((*compaction)->commit()) << "after allocation " << n;
    expect_sound(*scene.store);
  }
}

TEST(PageStoreFaults, RefusingWithoutMemoryIsAnErrorToo) {
  const std::vector<std::pair<Call, Outcome>> calls = {
      {[](Scene& scene) {
         const Growth growth{scene.empty, 10'000};
         return outcome_of(scene.store->begin({&growth, 1}));
       },
       Outcome::kNoSpace},
      {[](Scene& scene) {
         const Growth growth{scene.empty, 0};
         return outcome_of(scene.store->begin({&growth, 1}));
       },
       Outcome::kInvalidArgument},
      {[](Scene& scene) { return outcome_of(scene.store->promise(scene.empty, 10'000)); }, Outcome::kNoSpace},
      {[](Scene& scene) { return outcome_of(scene.store->swap(scene.parent, 0, 40)); },
       Outcome::kInvalidArgument},
      {[](Scene& scene) {
         const EditOperation operation{Kind::kRemove, 41, 1, 0};
         return outcome_of(scene.store->begin_edit(scene.parent, {&operation, 1}));
       },
       Outcome::kInvalidArgument},
      {[](Scene& scene) { return outcome_of(scene.store->adopt(scene.parent, {}, 0, 0)); },
       Outcome::kWrongState},
  };
  for (const auto& [call, outcome] : calls) expect_unharmed_by_missing_memory(call, outcome);
}

// What cannot be remembered is computed again; nothing else may come of it.
TEST(PageStoreFaults, RememberingLosesNothingButBlocks) {
  const std::vector<Token> tokens = tokens_from(500, 80);
  for (std::uint64_t n = 0;; ++n) {
    const auto store = make_store(20, {1, 1});
    const TableId table = open_with(*store, 80);
    bool fired = false;
    {
      const kvasir::test::AllocationFault fault(n);
      store->remember(table, tokens, 0);
      fired = fault.fired();
    }
    expect_sound(*store);
    const std::uint64_t blocks = store->prefix_blocks();
    EXPECT_EQ(*store->adopt(open(*store), tokens, 80, 0), blocks * 16);
    store->close(table);
    expect_sound(*store);
    if (!fired) {
      EXPECT_EQ(blocks, 5);
      return;
    }
    EXPECT_LT(blocks, 5) << "allocation " << n;
  }
}

// S5, and the end of everything.
TEST(PageStoreFaults, GivingBackWantsNoMemory) {
  Scene scene;
  const Growth plan[] = {{scene.parent, 5}, {scene.empty, 50}};
  auto ticket = scene.store->begin(plan);
  ASSERT_TRUE(ticket);
  const EditOperation operations[] = {{Kind::kDivide, 0, 20, 2}};
  auto kept = scene.store->begin_edit(scene.child, operations);
  auto compaction = Compaction::begin(*scene.store, 16);
  ASSERT_TRUE(kept && compaction);
  bool fired = false;
  {
    const kvasir::test::AllocationFault fault(0);
    static_cast<void>(scene.store->tokens_free());
    static_cast<void>(scene.store->space());
    static_cast<void>(scene.store->holdings(scene.child));
    static_cast<void>(scene.store->fits(scene.child, 7));
    compaction->reset();
    ticket->withdraw(1);
    const std::uint64_t accepted[] = {2, 0};
    ticket->commit(accepted);
    kept->commit();
    scene.store->forget();
    for (const TableId table : scene.tables) scene.store->close(table);
    fired = fault.fired();
  }
  EXPECT_FALSE(fired);
  EXPECT_EQ(scene.store->frames_free(), 30);
  expect_sound(*scene.store);
}

}  // namespace
}  // namespace kvasir::pages::test
