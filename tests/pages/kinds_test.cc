// Windows, recurrent states, encoders' outputs, checkpoints and rewinds, with numbers small enough to follow.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "pages/page_store.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

using Kind = EditOperation::Kind;

std::unique_ptr<PageStore> make_kinds(std::uint32_t frames, const std::vector<GroupSpec>& groups,
                                      std::uint32_t pass_tokens = 512) {
  auto store =
      PageStore::create({.page_cells = 16, .frames = frames, .groups = groups, .pass_tokens = pass_tokens});
  EXPECT_TRUE(store.has_value());
  return std::move(store).value();
}

constexpr GroupSpec kFull{1};
constexpr GroupSpec kWindow{1, GroupKind::kWindow, 10};
constexpr GroupSpec kState{2, GroupKind::kRecurrent};
constexpr GroupSpec kCross{1, GroupKind::kCross};

std::vector<std::uint64_t> checkpoints_of(const PageStore& store, TableId table) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < store.checkpoint_count(table); ++i) all.push_back(store.checkpoint(table, i));
  return all;
}

// A prompt of one step, of which `accepted` tokens are.
void prompt(PageStore& store, TableId table, std::uint64_t count, std::uint64_t accepted) {
  const Growth growth{.table = table, .count = count, .prompt = count};
  auto ticket = store.begin({&growth, 1});
  ASSERT_TRUE(ticket.has_value()) << ticket.error().message();
  ticket->commit({&accepted, 1});
}

// A step of one conversation that is accepted whole or not at all.
void whole(PageStore& store, TableId table, std::uint64_t count) {
  const Growth growth{.table = table, .count = count, .fewest = count};
  auto ticket = store.begin({&growth, 1});
  ASSERT_TRUE(ticket.has_value()) << ticket.error().message();
  ticket->commit({&count, 1});
}

// S7.
TEST(Windows, AreGivenBackBehindTheReleaseLine) {
  const auto store = make_kinds(40, {kFull, kWindow});
  const TableId table = open_with(*store, 70);
  EXPECT_EQ(store->release_line(table, 1), 0U);
  grow(*store, table, 10);
  EXPECT_EQ(store->release_line(table, 1), 80U - 10 - 64);
  EXPECT_EQ(store->runs(table, 1).front().ordinal, 6U);
  EXPECT_EQ(store->runs(table, 0).front().ordinal, 0U);
  EXPECT_EQ(store->first_visible(table, 1, 80), 71U);
  EXPECT_EQ(store->holdings(table).own, 80U + 74);
  expect_sound(*store);
}

TEST(Windows, RewindFreelyWhileTheirCellsAreHeldAndNoFurther) {
  const auto store = make_kinds(40, {kFull, kWindow});
  const TableId table = open_with(*store, 100);
  ASSERT_EQ(store->release_line(table, 1), 26U);
  EXPECT_EQ(store->rewind_cost(table, 36), 0U);
  EXPECT_EQ(store->rewind_cost(table, 35), 35U) << "the checkpoint at 64 is behind it";
  EXPECT_EQ(*store->rewind(table, 36), 0U);
  EXPECT_EQ(store->length(table), 36U);
  EXPECT_EQ(store->release_line(table, 1), 26U) << "the line moves back in a restore alone";
  EXPECT_EQ(store->rewind_cost(table, 35), 35U);
  expect_sound(*store);
}

TEST(Windows, RaiseTheFloorWithAnEditThatMovesTokens) {
  const auto store = make_kinds(40, {kFull, kWindow});
  const TableId table = open_with(*store, 100);
  remove(*store, table, 20, 40);
  EXPECT_EQ(store->floor(table, 1), 90U - 40) << "100 - 10, carried along";
  EXPECT_EQ(store->release_line(table, 1), 20U) << "what was the line is gone with the tokens";
  EXPECT_EQ(store->first_visible(table, 1, 60), 51U);
  EXPECT_EQ(store->first_visible(table, 1, 58), 50U) << "no further than the floor";
  EXPECT_TRUE(checkpoints_of(*store, table).empty()) << "64 lies above what the edit changed";
  EXPECT_EQ(store->rewind_cost(table, 51), 0U);
  EXPECT_EQ(store->rewind_cost(table, 50), 50U);
  expect_sound(*store);
}

TEST(Windows, LeaveTheFloorWhereAnEndIsCut) {
  const auto store = make_kinds(40, {kFull, kWindow});
  const TableId table = open_with(*store, 100);
  remove(*store, table, 90, 10);
  EXPECT_EQ(store->floor(table, 1), 0U);
  const EditOperation deep{Kind::kRemove, 30, 60, 0};
  const auto refused = store->begin_edit(table, {&deep, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kWrongState);
}

TEST(Windows, NeedNoMoreForALongLineThanTheyKeep) {
  const auto store = make_kinds(8, {kWindow}, 16);
  EXPECT_GE(store->tokens_free(), 100'000U);
  const TableId table = open(*store);
  const Growth growth{.table = table, .count = 200, .fewest = 200};
  auto ticket = store->begin({&growth, 1});
  ASSERT_TRUE(ticket) << ticket.error().message();
  std::vector<CellAt> written(200);
  for (std::uint64_t end = 16; end <= 208; end += 16) {
    ticket->open_pass(0, end);
    std::uint64_t cells = 0;
    for (const Span& run : ticket->new_runs(0, 0)) {
      for (std::uint32_t i = 0; i < run.count; ++i, ++cells) {
        EXPECT_LT(run.ordinal + i, 200U);
        const CellAt at{run.page, run.cell + i};
        const std::uint64_t position = store->position(0, at.page, at.cell);
        if (run.ordinal + i + 16 < end) {
          EXPECT_EQ(at, written[run.ordinal + i]) << "what is still seen has moved";
        }
        if (run.ordinal + i < end) {
          EXPECT_EQ(position, run.ordinal + i);
        }
        written[run.ordinal + i] = at;
      }
    }
    EXPECT_EQ(cells, 10U + 64 + 16);
  }
  ticket->commit({&growth.count, 1});
  EXPECT_EQ(store->length(table), 200U);
  EXPECT_EQ(store->release_line(table, 0), 126U);
  for (std::uint64_t ordinal = 126; ordinal < 200; ++ordinal) {
    bool found = false;
    for (const Span& run : store->runs(table, 0)) {
      if (ordinal < run.ordinal || ordinal >= run.end()) continue;
      found =
          CellAt{run.page, run.cell + static_cast<std::uint32_t>(ordinal - run.ordinal)} == written[ordinal];
    }
    EXPECT_TRUE(found) << ordinal;
  }
  expect_sound(*store);
}

TEST(Windows, KeepTheirPromiseWhateverIsForked) {
  const auto store = make_kinds(8, {kWindow}, 16);  // 128 cells, of which a long prompt wants 90
  const TableId table = open(*store);
  ASSERT_TRUE(store->promise(table, 1000));
  grow(*store, table, 16);
  const auto child = store->fork(table);
  ASSERT_TRUE(child) << "90 + 16 fit";
  for (int step = 0; step < 40; ++step) {
    grow(*store, table, 16);
    expect_sound(*store);
    const auto other = store->fork(table);
    if (!other) {
      EXPECT_EQ(other.error().code(), Outcome::kNoSpace);
      continue;
    }
    EXPECT_EQ(store->close(*other), Outcome::kDone);
  }
}

// S8.
TEST(States, AreTakenByATicketAndExchangedByItsCommit) {
  const auto store = make_kinds(20, {kState});
  const TableId table = open(*store);
  EXPECT_EQ(store->state(table, 0), std::nullopt);
  const Growth growth{table, 10};
  auto ticket = store->begin({&growth, 1});
  ASSERT_TRUE(ticket);
  ASSERT_EQ(ticket->states(0, 0).size(), 1U);
  const StateWrite first = ticket->states(0, 0).front();
  EXPECT_EQ(first.ordinal, 10U);
  ticket->commit({&growth.count, 1});
  EXPECT_EQ(store->state(table, 0), first.state);
  EXPECT_EQ(store->frames_free(), 18U);
  grow(*store, table, 5);
  EXPECT_NE(store->state(table, 0), first.state);
  EXPECT_EQ(store->frames_free(), 18U) << "the old one went back";
  expect_sound(*store);
}

TEST(States, AreSharedByForksAndHeldWhileAnyoneHasThem) {
  const auto store = make_kinds(20, {kState});
  const TableId table = open_with(*store, 10);
  const TableId child = *store->fork(table);
  EXPECT_EQ(store->state(table, 0), store->state(child, 0));
  EXPECT_EQ(store->frames_free(), 18U);
  grow(*store, child, 1);
  EXPECT_NE(store->state(table, 0), store->state(child, 0));
  EXPECT_EQ(store->frames_free(), 16U);
  EXPECT_EQ(store->close(table), Outcome::kDone);
  EXPECT_EQ(store->frames_free(), 18U);
  expect_sound(*store);
}

TEST(States, LeaveAConversationBehindWhereALineIsAcceptedInPart) {
  const auto store = make_kinds(60, {kFull, kState});
  const TableId table = open_with(*store, 10);
  const auto before = store->state(table, 1);
  const Growth growth{table, 20};
  const std::uint64_t accepted = 7;
  store->begin({&growth, 1})->commit({&accepted, 1});
  EXPECT_EQ(store->length(table), 10U);
  EXPECT_EQ(store->behind(table), 7U);
  EXPECT_EQ(store->holdings(table).promised, 7U);
  EXPECT_EQ(store->state(table, 1), before);
  grow(*store, table, 7);
  EXPECT_EQ(store->behind(table), 0U);
  EXPECT_EQ(store->holdings(table).promised, 0U);
  expect_sound(*store);
}

TEST(States, AreKeptWhereOneWasReservedAtTheAcceptedOrdinal) {
  const auto store = make_kinds(60, {kFull, kState});
  const TableId table = open(*store);
  prompt(*store, table, 100, 64);
  EXPECT_EQ(store->length(table), 64U);
  EXPECT_EQ(store->behind(table), 0U);
  EXPECT_EQ(checkpoints_of(*store, table), std::vector<std::uint64_t>{64});
  expect_sound(*store);
}

// K1 and K2.
TEST(Checkpoints, AreKeptEverySomeTokensAndAtPromptEndsAndLastPages) {
  const auto store = make_kinds(100, {kFull, kWindow, kState});
  const TableId table = open(*store);
  prompt(*store, table, 150, 150);
  EXPECT_EQ(checkpoints_of(*store, table), (std::vector<std::uint64_t>{64, 128, 144, 150}));
  grow(*store, table, 50);
  EXPECT_EQ(checkpoints_of(*store, table), (std::vector<std::uint64_t>{64, 128, 144, 150, 192}));
  EXPECT_EQ(store->space().checkpoints, 5U);
  expect_sound(*store);
}

TEST(Checkpoints, AreThinnedFromTheOldest) {
  const auto store = PageStore::create({.page_cells = 16,
                                        .frames = 200,
                                        .groups = {kFull, kState},
                                        .checkpoint_tokens = 16,
                                        .checkpoints_max = 2});
  ASSERT_TRUE(store);
  const TableId table = open(**store);
  for (int step = 0; step < 4; ++step) grow(**store, table, 16);
  EXPECT_EQ(checkpoints_of(**store, table), (std::vector<std::uint64_t>{48, 64}));
  expect_sound(**store);
}

TEST(Checkpoints, StayAtRegularDistancesUnderManyShortPrompts) {
  const auto store = PageStore::create({.page_cells = 16,
                                        .frames = 200,
                                        .groups = {kFull, kState},
                                        .checkpoint_tokens = 16,
                                        .checkpoints_max = 4});
  ASSERT_TRUE(store);
  const TableId table = open(**store);
  for (int step = 0; step < 20; ++step) prompt(**store, table, 3, 3);
  EXPECT_EQ(checkpoints_of(**store, table), (std::vector<std::uint64_t>{32, 48, 57, 60}));
  expect_sound(**store);
}

TEST(Checkpoints, AreRestoredByADeeperRewindThatLeavesTheConversationBehind) {
  const auto store = make_kinds(100, {kFull, kWindow, kState});
  const TableId table = open(*store);
  prompt(*store, table, 150, 150);
  EXPECT_EQ(store->rewind_cost(table, 150), 0U);
  EXPECT_EQ(store->rewind_cost(table, 144), 0U);
  EXPECT_EQ(store->rewind_cost(table, 140), 12U);
  EXPECT_EQ(store->rewind_cost(table, 60), 60U);
  EXPECT_EQ(*store->rewind(table, 140), 12U);
  EXPECT_EQ(store->length(table), 128U);
  EXPECT_EQ(store->behind(table), 12U);
  EXPECT_EQ(store->holdings(table).promised, 12U);
  EXPECT_EQ(checkpoints_of(*store, table), (std::vector<std::uint64_t>{64, 128}));
  EXPECT_EQ(store->release_line(table, 1), 128U - 74);
  expect_sound(*store);
  // Behind survives a fork, and is promised to the child once that asks.
  const TableId child = *store->fork(table);
  EXPECT_EQ(store->behind(child), 12U);
  EXPECT_EQ(store->holdings(child).promised, 0U);
  EXPECT_TRUE(store->promise(child, 5));
  EXPECT_EQ(store->holdings(child).promised, 17U);
  // Meanwhile nothing else is taken.
  const EditOperation shift{Kind::kShift, 0, 1, 1};
  EXPECT_EQ(store->begin_edit(table, {&shift, 1}).error().code(), Outcome::kWrongState);
  EXPECT_EQ(store->swap(table, 0, 1).error().code(), Outcome::kWrongState);
  EXPECT_EQ(*store->rewind(table, 130), 2U) << "of what is missing less is wanted";
  grow(*store, table, 2);
  EXPECT_EQ(store->behind(table), 0U);
  expect_sound(*store);
}

TEST(Checkpoints, GiveWayToWhoeverNeedsTheirStates) {
  const auto store = make_kinds(12, {kState});  // room for six states
  const TableId table = open(*store);
  prompt(*store, table, 70, 70);
  ASSERT_EQ(checkpoints_of(*store, table), (std::vector<std::uint64_t>{64, 70}));
  for (int i = 0; i < 4; ++i) whole(*store, open(*store), 5);
  EXPECT_EQ(checkpoints_of(*store, table), (std::vector<std::uint64_t>{64, 70}));
  const TableId last = open(*store);
  whole(*store, last, 5);
  EXPECT_EQ(checkpoints_of(*store, table), std::vector<std::uint64_t>{70}) << "its state is held in any case";
  EXPECT_EQ(store->checkpoints_evicted(), 1U);
  EXPECT_EQ(store->length(last), 5U);
  expect_sound(*store);
}

TEST(Checkpoints, AreNotKeptAtTheCostOfWhatWasPromised) {
  const auto store = make_kinds(6, {kState});  // room for three states
  const TableId other = open(*store);
  ASSERT_TRUE(store->promise(other, 1));
  const TableId table = open(*store);
  const Growth growth{.table = table, .count = 130, .fewest = 130};
  auto ticket = store->begin({&growth, 1});
  ASSERT_TRUE(ticket);
  ASSERT_EQ(ticket->states(0, 0).size(), 2U) << "that at 128 and the last; there is none for 64";
  EXPECT_EQ(ticket->states(0, 0).front().ordinal, 128U);
  ticket->commit({&growth.count, 1});
  EXPECT_EQ(checkpoints_of(*store, table), std::vector<std::uint64_t>{128});
  grow(*store, other, 1);
  expect_sound(*store);
}

// K3.
TEST(Checkpoints, LiveAsLongAsAnyForkHasThem) {
  const auto store = make_kinds(40, {kFull, kState});
  const TableId table = open(*store);
  prompt(*store, table, 64, 64);
  const TableId child = *store->fork(table);
  EXPECT_EQ(store->space().checkpoints, 1U);
  EXPECT_EQ(store->close(table), Outcome::kDone);
  EXPECT_EQ(checkpoints_of(*store, child), std::vector<std::uint64_t>{64});
  EXPECT_EQ(*store->rewind(child, 0), 0U);
  EXPECT_EQ(store->space().checkpoints, 0U);
  EXPECT_EQ(store->frames_free(), 40U);
  expect_sound(*store);
}

TEST(Rewind, IsRefusedWithNothingChangedWhereAForkKeepsTheRoom) {
  const auto store = make_kinds(12, {kFull, kState});  // 80 tokens and two states
  const TableId table = open_with(*store, 60);
  const TableId child = *store->fork(table);
  const TableId tables[] = {table, child};
  const auto before = state_of(*store, tables);
  const auto refused = store->rewind(table, 50);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 50U);
  EXPECT_EQ(state_of(*store, tables), before);
  EXPECT_EQ(store->close(child), Outcome::kDone);
  EXPECT_EQ(*store->rewind(table, 50), 50U);
  expect_sound(*store);
}

TEST(Edit, IsUnsupportedWhereTokensCannotMove) {
  const auto recurrent = make_kinds(40, {kFull, kState});
  auto fixed = PageStore::create(
      {.page_cells = 16, .frames = 20, .groups = {kFull}, .pass_tokens = 512, .positions_can_move = false});
  ASSERT_TRUE(fixed);
  const EditOperation shift{Kind::kShift, 2, 3, 1};
  const EditOperation divide{Kind::kDivide, 2, 3, 2};
  const EditOperation middle{Kind::kRemove, 2, 3, 0};
  for (const EditOperation& operation : {shift, divide, middle}) {
    const TableId table = open_with(*recurrent, 10);
    EXPECT_EQ(recurrent->begin_edit(table, {&operation, 1}).error().code(), Outcome::kUnsupported);
  }
  const TableId table = open_with(**fixed, 10);
  EXPECT_EQ((*fixed)->begin_edit(table, {&shift, 1}).error().code(), Outcome::kUnsupported);
  EXPECT_EQ((*fixed)->begin_edit(table, {&divide, 1}).error().code(), Outcome::kUnsupported);
  EXPECT_TRUE((*fixed)->begin_edit(table, {&middle, 1}));
}

TEST(Encoding, StaysWhereABeginningIsGivenBack) {
  const auto store = make_kinds(20, {kFull, kCross});
  const TableId table = open(*store);
  store->begin_encode(table, 20)->commit();
  const TableId waiting = *store->fork(table);
  grow(*store, table, 40);
  store->remember(table, tokens_from(0, 40), 0);
  const std::vector<TableId> all = {table, waiting};
  const auto before = state_of(*store, all);
  ASSERT_EQ(*store->adopt(waiting, tokens_from(0, 40), 39, 0), 32U);
  // Who is forked meanwhile has the source alone.
  const TableId child = *store->fork_source(waiting);
  EXPECT_EQ(store->length(child), 0U);
  EXPECT_EQ(runs_of(*store, child, 1), runs_of(*store, table, 1));
  EXPECT_EQ(*store->adopt(child, tokens_from(0, 40), 39, 0), 32U) << "of the same source";
  store->return_beginning(child);
  store->return_beginning(waiting);
  EXPECT_EQ(runs_of(*store, child, 1), runs_of(*store, table, 1));
  EXPECT_EQ(store->close(child), Outcome::kDone);
  EXPECT_EQ(state_of(*store, all), before);
  expect_sound(*store);
}

TEST(Encoding, IsSharedByForksAndReplacedAtOnce) {
  const auto store = make_kinds(20, {kFull, kCross});
  const TableId table = open(*store);
  auto first = store->begin_encode(table, 40);
  ASSERT_TRUE(first);
  EXPECT_TRUE(store->runs(table, 1).empty()) << "nothing shows before commit";
  first->commit();
  EXPECT_EQ(store->runs(table, 1).back().end(), 40U);
  const TableId child = *store->fork(table);
  EXPECT_EQ(store->frames_free(), 17U);
  {
    auto dropped = store->begin_encode(table, 50);
    ASSERT_TRUE(dropped);
  }
  EXPECT_EQ(runs_of(*store, table, 1), runs_of(*store, child, 1));
  auto second = store->begin_encode(table, 16);
  ASSERT_TRUE(second);
  second->commit();
  EXPECT_EQ(store->runs(table, 1).back().end(), 16U);
  EXPECT_EQ(store->runs(child, 1).back().end(), 40U);
  grow(*store, table, 5);
  EXPECT_EQ(store->begin_encode(table, 10).error().code(), Outcome::kWrongState);
  EXPECT_EQ(store->begin_encode(child, 400).error().code(), Outcome::kNoSpace);
  EXPECT_EQ(make_kinds(10, {kFull})->begin_encode(TableId{0}, 1).error().code(), Outcome::kUnsupported);
  expect_sound(*store);
}

TEST(Encoding, TellsBeginningsApart) {
  const auto store = make_kinds(20, {kFull, kCross});
  const std::vector<Token> tokens = tokens_from(0, 20);
  const TableId table = open(*store);
  store->begin_encode(table, 10)->commit();
  const TableId same = *store->fork(table);
  const TableId other = open(*store);
  store->begin_encode(other, 10)->commit();
  grow(*store, table, 20);
  store->remember(table, tokens, 0);
  EXPECT_EQ(*store->adopt(other, tokens, 20, 0), 0U);
  EXPECT_EQ(*store->adopt(same, tokens, 20, 0), 16U);
}

TEST(HybridHit, IsTheLongestThatEveryGroupCanServe) {
  const auto store = make_kinds(100, {kFull, kWindow, kState});
  const std::vector<Token> tokens = tokens_from(0, 200);
  const TableId table = open(*store);
  prompt(*store, table, 150, 150);
  store->remember(table, std::span(tokens).first(150), 0);
  const TableId hit = open(*store);
  EXPECT_EQ(*store->adopt(hit, tokens, 149, 0), 144U) << "of which there is a state";
  EXPECT_EQ(store->release_line(hit, 1), 144U - 64) << "its window, as far as the index has it";
  EXPECT_EQ(*store->adopt(open(*store), tokens, 143, 0), 128U);
  EXPECT_EQ(*store->adopt(open(*store), tokens, 127, 0), 0U) << "the window of 64 is gone";
  expect_sound(*store);
}

// S9.
TEST(OneTicket, IsAllThatAConversationCanBeIn) {
  const auto store = make_kinds(40, {kFull, kWindow, kCross});
  const TableId table = open_with(*store, 20);
  const TableId tables[] = {table};
  const Growth growth{table, 1};
  const EditOperation cut{Kind::kRemove, 10, 10, 0};
  const auto expect_busy = [&] {
    const auto before = state_of(*store, tables);
    EXPECT_EQ(store->begin({&growth, 1}).error().code(), Outcome::kBusy);
    EXPECT_EQ(store->begin_edit(table, {&cut, 1}).error().code(), Outcome::kBusy);
    EXPECT_EQ(store->begin_encode(table, 1).error().code(), Outcome::kBusy);
    EXPECT_EQ(store->rewind(table, 10).error().code(), Outcome::kBusy);
    EXPECT_EQ(store->swap(table, 0, 1).error().code(), Outcome::kBusy);
    EXPECT_EQ(store->adopt(table, {}, 0, 0).error().code(), Outcome::kBusy);
    EXPECT_EQ(store->close(table), Outcome::kBusy);
    EXPECT_EQ(state_of(*store, tables), before);
  };
  {
    auto ticket = store->begin({&growth, 1});
    ASSERT_TRUE(ticket);
    expect_busy();
    ticket->withdraw(0);
    EXPECT_TRUE(store->begin_edit(table, {&cut, 1})) << "a withdrawn line is in no ticket";
  }
  {
    const auto edit = store->begin_edit(table, {&cut, 1});
    ASSERT_TRUE(edit);
    expect_busy();
  }
  EXPECT_EQ(*store->rewind(table, 0), 0U);
  const auto encode = store->begin_encode(table, 5);
  ASSERT_TRUE(encode);
  EXPECT_EQ(store->begin({&growth, 1}).error().code(), Outcome::kBusy);
  EXPECT_EQ(store->close(table), Outcome::kBusy);
}

TEST(Kinds, NameTheGeometryThatMakesNoSense) {
  const auto refused = [](const StoreSpec& spec) {
    const auto store = PageStore::create(spec);
    return !store && store.error().code() == Outcome::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.frames = 8, .groups = {{1, GroupKind::kWindow, 0}}}));
  EXPECT_TRUE(refused({.frames = 8, .groups = std::vector<GroupSpec>(kGroupsMax + 1, kFull)}));
  EXPECT_TRUE(refused({.frames = 8, .groups = {kFull}, .pass_tokens = 0}));
  EXPECT_TRUE(refused({.frames = 8, .groups = {kFull}, .checkpoint_tokens = 40}));
}

}  // namespace
}  // namespace kvasir::pages::test
