// Forks and edits through the engine: who holds which cells, that no byte moves, and the bits that follow.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/load_job.h"
#include "engine/save_job.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::cold_logits;
using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using kvasir::test::logits_of;
using kvasir::test::open_with;
using kvasir::test::same_bits;
using kvasir::test::say;
using kvasir::test::status_of;
using kvasir::test::step_until_idle;
using pages::EditOperation;
using Kind = pages::EditOperation::Kind;
using Tokens = std::vector<Token>;

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Tokens beginning(const Tokens& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

// What is left of `all` when `count` tokens behind the first `keep` are gone.
Tokens without(const Tokens& all, std::size_t keep, std::size_t count) {
  return joined(beginning(all, keep), {all.begin() + static_cast<std::ptrdiff_t>(keep + count), all.end()});
}

class Edits : public testing::Test {
 protected:
  [[nodiscard]] EngineHost host(std::uint64_t pool = 512) const {
    return kvasir::test::make_engine(model_, {.pool = pool, .pass_tokens = 64, .logit_rows = 16});
  }
  [[nodiscard]] Tokens tokens(std::size_t count, std::uint64_t seed = 1) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }
  [[nodiscard]] std::vector<float> cold(const Tokens& all) const { return cold_logits(model_, all); }

  LoadedModel model_ = kvasir::test::load_file(kvasir::test::data_path("models/llama/model.gguf"));
};

// `call` is refused with `code` and nothing has changed.
void expect_refused(const EngineHost& host, Outcome code, const std::function<Status()>& call) {
  const std::uint64_t before = *host->digest();
  const Status status = call();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), code) << status.error().message();
  EXPECT_EQ(*host->digest(), before);
}

TEST_F(Edits, AForkSharesEveryCellAndMovesNoByte) {
  const EngineHost engine = host();
  const ConversationId parent = open_with(engine, tokens(75));
  const std::uint64_t free = engine->tokens_free();
  const ConversationId child = *engine->fork(parent);
  for (const ConversationId id : {parent, child}) {
    EXPECT_EQ(engine->holdings(id)->shared, 75U);
    EXPECT_EQ(engine->holdings(id)->own, 0U);
  }
  EXPECT_EQ(engine->tokens_free(), free);
  EXPECT_EQ(engine->bytes_moved(), 0U);
  EXPECT_TRUE(same_bits(logits_of(engine, child), logits_of(engine, parent)));
  EXPECT_TRUE(std::ranges::equal(*engine->tokens(child), *engine->tokens(parent)));
  ASSERT_TRUE(engine->close(parent));
  EXPECT_EQ(engine->holdings(child)->own, 75U);
  EXPECT_EQ(engine->tokens_free(), free) << "the child holds every cell";
  ASSERT_TRUE(engine->close(child));
  EXPECT_EQ(engine->tokens_free(), 512U);
}

// Whoever appends first takes the rest of the shared last page; both orders, and a parent that ends first.
TEST_F(Edits, AForkAndItsParentGoOnWithTheBitsOfColdRuns) {
  const Tokens shared = tokens(41);
  for (const bool child_first : {false, true}) {
    const EngineHost engine = host();
    const ConversationId parent = open_with(engine, shared);
    const ConversationId child = *engine->fork(parent);
    Tokens of_parent = shared;
    Tokens of_child = shared;
    for (std::uint64_t turn = 0; turn < 6; ++turn) {
      const bool is_child = child_first == (turn % 2 == 0);
      Tokens& held = is_child ? of_child : of_parent;
      const Tokens more = tokens(3 + turn, 100 + turn + (child_first ? 50 : 0));
      held = joined(held, more);
      EXPECT_TRUE(same_bits(say(engine, is_child ? child : parent, more), cold(held))) << turn;
    }
    EXPECT_EQ(engine->holdings(child)->shared, 41U);
    ASSERT_TRUE(engine->close(parent));
    of_child = joined(of_child, tokens(20, 7));
    EXPECT_TRUE(same_bits(say(engine, child, tokens(20, 7)), cold(of_child)));
    EXPECT_EQ(engine->bytes_moved(), 0U) << "nothing is copied, now or later";
  }
}

TEST_F(Edits, TwentyForksOfForksGoOnInOnePass) {
  const EngineHost engine = host();
  const Tokens shared = tokens(37);
  std::vector<ConversationId> ids = {open_with(engine, shared)};
  while (ids.size() < 20) ids.push_back(*engine->fork(ids[ids.size() / 2]));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(engine->prompt(ids[i], tokens(2, i), LogitsWanted::kLast));
  }
  step_until_idle(engine);
  EXPECT_EQ(engine->space().held_cells, 37U + 20U * 2U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_TRUE(same_bits(logits_of(engine, ids[i]), cold(joined(shared, tokens(2, i))))) << i;
  }
}

TEST_F(Edits, AForkTakesTheQueueAlong) {
  const EngineHost engine = host();
  const ConversationId parent = open_with(engine, tokens(20));
  ASSERT_TRUE(engine->prompt(parent, tokens(9, 2), LogitsWanted::kLast));
  const ConversationId child = *engine->fork(parent);
  EXPECT_EQ(*engine->queued(child), 9U);
  ASSERT_TRUE(engine->cancel(parent));
  EXPECT_EQ(*engine->queued(child), 9U);
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, parent), cold(tokens(20))));
  EXPECT_TRUE(same_bits(logits_of(engine, child), cold(joined(tokens(20), tokens(9, 2)))));
}

TEST_F(Edits, AForkWhileTheStepIsOpenIsWhatIsCommitted) {
  const EngineHost engine = host();
  const ConversationId parent = open_with(engine, tokens(20));
  ASSERT_TRUE(engine->prompt(parent, tokens(9, 2), LogitsWanted::kLast));
  int jobs = 0;
  const auto suspended = engine->step(
      {.between_jobs = [&](const JobView&) { return ++jobs == 8 ? Verdict::kSuspend : Verdict::kGoOn; }});
  ASSERT_EQ(suspended->outcome, Outcome::kSuspended);
  const ConversationId child = *engine->fork(parent);
  EXPECT_EQ(engine->tokens(child)->size(), 20U);
  EXPECT_EQ(*engine->queued(child), 9U) << "the step's tokens count as still queued";
  ASSERT_EQ(engine->step()->outcome, Outcome::kDone);
  EXPECT_EQ(engine->tokens(child)->size(), 20U) << "the fork is no part of the step that was open";
  step_until_idle(engine);
  const std::vector<float> expected = cold(joined(tokens(20), tokens(9, 2)));
  EXPECT_TRUE(same_bits(logits_of(engine, parent), expected));
  EXPECT_TRUE(same_bits(logits_of(engine, child), expected));
}

TEST_F(Edits, ARewindIsAsIfTheRestHadNeverBeen) {
  const Tokens all = tokens(90);
  for (const std::size_t kept : {0U, 1U, 31U, 32U, 33U, 64U, 89U}) {
    const EngineHost engine = host();
    const ConversationId id = open_with(engine, all);
    ASSERT_TRUE(engine->rewind(id, kept));
    EXPECT_EQ(engine->tokens_free(), 512U - kept);
    EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNeedsPrompt);
    const EngineHost never = host();
    const ConversationId same = *never->open();
    if (kept > 0) say(never, same, beginning(all, kept));
    const Tokens more = tokens(12, 9);
    EXPECT_TRUE(same_bits(say(engine, id, more), say(never, same, more))) << kept;
    EXPECT_EQ(*engine->digest(), *never->digest()) << "kept " << kept << ": bytes, positions or space differ";
    EXPECT_EQ(engine->bytes_moved(), 0U);
  }
}

TEST_F(Edits, ThatChangeNothingKeepTheLastLogits) {
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, tokens(40));
  const std::uint64_t before = *engine->digest();
  ASSERT_TRUE(engine->rewind(id, 40));
  ASSERT_TRUE(engine->shift_left(id, 4, 0));  // K19
  ASSERT_TRUE(engine->shift_left(id, 40, 0));
  ASSERT_TRUE(engine->edit(id, {}));
  const std::vector<std::vector<EditOperation>> edits = {
      {{Kind::kShift, 0, 40, 0}},
      {{Kind::kDivide, 3, 30, 1}},
      {{Kind::kRemove, 7, 0, 0}},
      {{Kind::kDivide, 0, 1, 4}},
      {{Kind::kShift, 5, 9, 100}, {Kind::kDivide, 2, 3, 1}, {Kind::kShift, 5, 9, -100}},
  };
  for (const std::vector<EditOperation>& operations : edits) ASSERT_TRUE(engine->edit(id, operations));
  EXPECT_EQ(engine->bytes_moved(), 0U);
  EXPECT_EQ(*engine->digest(), before);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(tokens(40))));
}

// Rows that were asked for belong to their tokens: they go with them, and what comes in their place has none.
TEST_F(Edits, ForgetTheRowsOfWhatIsGoneAndKeepThoseBefore) {
  const EngineHost engine = host();
  const Tokens all = tokens(40);
  const ConversationId id = *engine->open();
  ASSERT_TRUE(engine->prompt(id, all, LogitsWanted::kEvery));
  step_until_idle(engine);
  ASSERT_TRUE(engine->rewind(id, 25));
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(beginning(all, 25)))) << "the row was kept";
  say(engine, id, tokens(5, 2));
  for (const std::uint64_t back : {1U, 4U}) {
    EXPECT_EQ(engine->row(id, back).error().code(), Outcome::kNeedsPrompt) << back;
  }
  EXPECT_TRUE(same_bits(**engine->row(id, 5), cold(beginning(all, 25))));
  EXPECT_TRUE(same_bits(**engine->row(id, 20), cold(beginning(all, 10))));
  const std::size_t vocabulary = model_.vocabulary();
  const std::vector<float> rows = *engine->take_logits(id);
  ASSERT_EQ(rows.size(), 25 * vocabulary);
  EXPECT_TRUE(same_bits(std::span(rows).last(vocabulary), cold(beginning(all, 25))));
}

TEST_F(Edits, OfSeveralOperationsTakeEffectTogetherOrNotAtAll) {
  const EngineHost engine = host();
  const ConversationId together = open_with(engine, tokens(80));
  const ConversationId one_by_one = *engine->fork(together);
  const EditOperation operations[] = {{Kind::kRemove, 70, 4, 0},
                                      {Kind::kRemove, 5, 20, 0},
                                      {Kind::kShift, 5, 51, -20},
                                      {Kind::kDivide, 10, 30, 3},
                                      {Kind::kRemove, 0, 1, 0}};
  ASSERT_TRUE(engine->edit(together, operations));
  for (const EditOperation& operation : operations) ASSERT_TRUE(engine->edit(one_by_one, {&operation, 1}));
  EXPECT_TRUE(std::ranges::equal(*engine->tokens(together), *engine->tokens(one_by_one)));
  EXPECT_EQ(engine->tokens(together)->size(), 55U);
  EXPECT_TRUE(same_bits(say(engine, together, tokens(3, 5)), say(engine, one_by_one, tokens(3, 5))));

  std::vector<EditOperation> last_is_wrong(std::begin(operations), std::end(operations));
  last_is_wrong.push_back({Kind::kRemove, 30, 1000, 0});
  expect_refused(engine, Outcome::kInvalidArgument, [&] { return engine->edit(together, last_is_wrong); });
}

// Keys are rewritten into new cells, and spans get a shift of their own: the parent sees neither.
TEST_F(Edits, OfAForkLeaveItsParentAsItWas) {
  const EngineHost engine = host();
  const Tokens all = tokens(60);
  const ConversationId parent = open_with(engine, all);
  const ConversationId shifted = *engine->fork(parent);
  const ConversationId divided = *engine->fork(parent);
  ASSERT_TRUE(engine->shift_left(shifted, 4, 10));
  EXPECT_EQ(engine->bytes_moved(), 0U);
  EXPECT_EQ(engine->holdings(shifted)->shared, 50U) << "forks keep sharing";
  const EditOperation divide{Kind::kDivide, 0, 60, 2};
  ASSERT_TRUE(engine->edit(divided, {&divide, 1}));
  EXPECT_GT(engine->bytes_moved(), 0U);
  EXPECT_EQ(engine->holdings(divided)->own, 60U);
  const Tokens more = tokens(5, 4);
  const std::vector<float> expected = cold(joined(all, more));
  const std::vector<float> of_shifted = say(engine, shifted, more);
  const std::vector<float> of_divided = say(engine, divided, more);
  EXPECT_TRUE(same_bits(say(engine, parent, more), expected));
  EXPECT_FALSE(same_bits(of_shifted, expected)) << "the edits must show in the forks";
  EXPECT_FALSE(same_bits(of_divided, expected));
}

TEST_F(Edits, ThatCannotBeAreRefusedAndChangeNothing) {
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, tokens(40));
  ASSERT_TRUE(engine->prompt(id, tokens(3, 3), LogitsWanted::kLast));
  const auto edit = [&](const EditOperation& operation) { return engine->edit(id, {&operation, 1}); };
  const auto refused = [&](const std::function<Status()>& call) {
    expect_refused(engine, Outcome::kInvalidArgument, call);
  };
  refused([&] { return engine->rewind(id, 41); });
  refused([&] { return engine->rewind(id, UINT64_MAX); });
  refused([&] { return engine->shift_left(id, 41, 0); });
  refused([&] { return engine->shift_left(id, 4, 37); });
  refused([&] { return engine->shift_left(id, UINT64_MAX, UINT64_MAX); });
  refused([&] { return edit({Kind::kRemove, 39, 2, 0}); });
  refused([&] { return edit({Kind::kRemove, UINT64_MAX, 2, 0}); });
  refused([&] { return edit({Kind::kShift, 10, 5, -11}); });
  refused([&] { return edit({Kind::kShift, 0, 40, INT64_MAX}); });
  refused([&] { return edit({Kind::kShift, 0, 40, INT64_MIN}); });
  refused([&] { return edit({Kind::kDivide, 0, 40, 0}); });
  refused([&] { return edit({Kind::kDivide, 0, 40, -2}); });
  refused([&] { return engine->swap_cells(id, 40, 0); });
  const Status refusal = engine->rewind(id, 41);
  EXPECT_EQ(refusal.error().numbers().wanted, 41U);
  EXPECT_EQ(refusal.error().numbers().limit, 40U);
  const ConversationId nobody{17};
  expect_refused(engine, Outcome::kNotFound, [&] { return engine->rewind(nobody, 0); });
  expect_refused(engine, Outcome::kNotFound, [&] { return engine->shift_left(nobody, 0, 0); });
  expect_refused(engine, Outcome::kNotFound, [&] { return status_of(engine->fork(nobody)); });
  expect_refused(engine, Outcome::kNotFound, [&] { return status_of(engine->prompt_to(nobody, tokens(1))); });
}

// Rewriting needs new cells beside the old ones.
TEST_F(Edits, WithoutRoomForNewKeysAreRefusedWithTheNumbers) {
  const EngineHost engine = host(64);
  const ConversationId id = open_with(engine, tokens(40));
  const EditOperation all{Kind::kDivide, 0, 40, 2};
  expect_refused(engine, Outcome::kNoSpace, [&] { return engine->edit(id, {&all, 1}); });
  EXPECT_EQ(engine->edit(id, {&all, 1}).error().numbers().wanted, 40U);
  EXPECT_EQ(engine->edit(id, {&all, 1}).error().numbers().available, 24U);
  const EditOperation some{Kind::kDivide, 16, 24, 2};
  EXPECT_TRUE(engine->edit(id, {&some, 1}));
}

TEST_F(Edits, OfAConversationInAnOpenStepAreBusy) {
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, tokens(40));
  const ConversationId other = open_with(engine, tokens(40, 2));
  ASSERT_TRUE(engine->prompt(id, tokens(3, 3), LogitsWanted::kLast));
  ASSERT_EQ(engine->step({.between_jobs = [](const JobView&) { return Verdict::kSuspend; }})->outcome,
            Outcome::kSuspended);
  expect_refused(engine, Outcome::kBusy, [&] { return engine->rewind(id, 20); });
  expect_refused(engine, Outcome::kBusy, [&] { return engine->shift_left(id, 4, 4); });
  expect_refused(engine, Outcome::kBusy, [&] { return status_of(engine->prompt_to(id, tokens(9))); });
  expect_refused(engine, Outcome::kBusy, [&] { return engine->swap_cells(other, 0, 1); });
  ASSERT_TRUE(engine->shift_left(other, 4, 4)) << "beside an open step others are edited at once";
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(joined(tokens(40), tokens(3, 3)))));
}

// Wherever two cells lie, what they hold is what it was; every holder follows.
TEST_F(Edits, ThatSwapCellsChangeNoBitForAnyHolder) {
  const EngineHost engine = host();
  const Tokens all = tokens(70);
  const ConversationId id = open_with(engine, all);
  const ConversationId child = *engine->fork(id);
  const std::uint64_t before = *engine->digest();
  for (const std::uint64_t other : {69U, 1U, 33U, 0U, 31U}) ASSERT_TRUE(engine->swap_cells(id, 0, other));
  EXPECT_GT(engine->bytes_moved(), 0U);
  EXPECT_EQ(*engine->digest(), before);
  const Tokens more = tokens(4, 6);
  const std::vector<float> expected = cold(joined(all, more));
  EXPECT_TRUE(same_bits(say(engine, id, more), expected));
  EXPECT_TRUE(same_bits(say(engine, child, more), expected));
}

TEST_F(Edits, PromptToKeepsTheLongestCommonBeginning) {
  const EngineHost engine = host();
  const Tokens first = tokens(50);
  const ConversationId id = *engine->open();
  EXPECT_EQ(*engine->prompt_to(id, first), 0U);
  step_until_idle(engine);
  Tokens second = joined(beginning(first, 30), tokens(25, 8));
  second[30] = (first[30] + 1) % static_cast<Token>(model_.vocabulary());
  ASSERT_TRUE(engine->prompt(id, tokens(5, 11), LogitsWanted::kLast)) << "a queue that is given up";
  EXPECT_EQ(*engine->prompt_to(id, second), 30U);
  EXPECT_EQ(engine->tokens(id)->size(), 30U);
  EXPECT_EQ(*engine->queued(id), 25U);
  step_until_idle(engine);
  EXPECT_TRUE(std::ranges::equal(*engine->tokens(id), second));
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(second)));
}

// K25: the logits are those of the last requested token, never those left over from something longer.
TEST_F(Edits, PromptToABeginningAndBackGivesTheLogitsOfItsOwnLastToken) {
  const EngineHost engine = host();
  const Tokens shorter = tokens(45);
  const Tokens longer = joined(shorter, tokens(20, 2));
  const ConversationId id = *engine->open();
  const auto to = [&](const Tokens& wanted) {
    const std::uint64_t kept = *engine->prompt_to(id, wanted);
    step_until_idle(engine);
    EXPECT_TRUE(std::ranges::equal(*engine->tokens(id), wanted));
    EXPECT_TRUE(same_bits(logits_of(engine, id), cold(wanted)));
    return kept;
  };
  EXPECT_EQ(to(longer), 0U);
  EXPECT_EQ(to(shorter), 44U) << "the last token is computed again, for its logits";
  EXPECT_EQ(to(longer), 45U);
  EXPECT_EQ(to(longer), 65U) << "nothing is computed: the logits are there";
  ASSERT_TRUE(engine->rewind(id, 45));
  EXPECT_EQ(to(shorter), 44U) << "the tokens are there, the logits are not";
}

TEST_F(Edits, PromptToWhatCannotBeIsRefusedAndChangesNothing) {
  const EngineHost engine = kvasir::test::make_engine(model_, {.context = 60, .pool = 512});
  const ConversationId id = open_with(engine, tokens(50));
  ASSERT_TRUE(engine->prompt(id, tokens(4, 4), LogitsWanted::kLast));
  expect_refused(engine, Outcome::kInvalidArgument, [&] { return status_of(engine->prompt_to(id, {})); });
  expect_refused(engine, Outcome::kNoSpace, [&] { return status_of(engine->prompt_to(id, tokens(61))); });
  Tokens bad = tokens(50);
  bad.back() = -1;
  expect_refused(engine, Outcome::kInvalidArgument, [&] { return status_of(engine->prompt_to(id, bad)); });
  EXPECT_TRUE(engine->prompt_to(id, tokens(60, 5))) << "as long as the context";
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(tokens(60, 5))));
}

TEST_F(Edits, FillCommitsTokensWithoutComputing) {
  const EngineHost engine = host(64);
  const ConversationId id = open_with(engine, tokens(10));
  ASSERT_TRUE(engine->fill(id, tokens(30, 2)));
  EXPECT_TRUE(std::ranges::equal(*engine->tokens(id), joined(tokens(10), tokens(30, 2))));
  EXPECT_EQ(engine->tokens_free(), 24U);
  EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNeedsPrompt);
  expect_refused(engine, Outcome::kNoSpace, [&] { return engine->fill(id, tokens(25)); });
  expect_refused(engine, Outcome::kInvalidArgument, [&] { return engine->fill(id, Tokens{-1}); });
}

// Shifts. With one layer a token's K and V depend on nothing but the token and its position, so what is left
// after a shift must score as a cold run of the remaining tokens does, to rounding.

struct Scaling {
  std::string name;
  kvasir::test::TinyShape shape;
};

class Shifts : public testing::TestWithParam<Scaling> {
 protected:
  [[nodiscard]] static LoadedModel model(std::uint32_t layers) {
    kvasir::test::TinyShape shape = GetParam().shape;
    shape.layers = layers;
    return kvasir::test::load(kvasir::test::tiny_model(shape));
  }
  [[nodiscard]] static EngineHost host(const LoadedModel& model) {
    return kvasir::test::make_engine(model, {.pool = 2048, .types = kFloats});
  }
  static constexpr kv::CacheTypes kFloats{kv::CacheElement::kF32, kv::CacheElement::kF32};

  // Angles are computed in double, so a shift adds no error of its own. A rotation, the sums of a score, a
  // softmax with its sum over values, a norm and a gate each stay within about 8 units of 2^-24: of one
  // layer sqrt(6) x 8 x 2^-24 = 1.2e-6, its square 1.4e-12.
  static constexpr double kRounding = 1.4e-12;
};

// K19: two shifts before the next step are one shift by their sum.
TEST_P(Shifts, OneAfterAnotherAreOneShiftByTheirSum) {
  const LoadedModel subject = model(2);
  const EngineHost engine = host(subject);
  const Tokens all = kvasir::test::random_tokens(subject.vocabulary(), 120, 1);
  const ConversationId twice = open_with(engine, all);
  const ConversationId once = *engine->fork(twice);
  const auto shift = [&](ConversationId id, std::int64_t amount) {
    const EditOperation operation{Kind::kShift, 40, 80, amount};
    ASSERT_TRUE(engine->edit(id, {&operation, 1}));
  };
  shift(twice, -13);
  shift(twice, 30);
  shift(once, 17);
  const Tokens next = {5, 6};
  const std::vector<float> expected = say(engine, once, next);
  EXPECT_TRUE(same_bits(say(engine, twice, next), expected));
  EXPECT_FALSE(same_bits(expected, cold_logits(subject, joined(all, next), kFloats))) << "it must show";
  shift(twice, -17);
  shift(twice, 17);
  EXPECT_TRUE(same_bits(say(engine, twice, next), say(engine, once, next)));
}

// K20: also when each of them was used before the next came.
TEST_P(Shifts, TwoHundredSmallOnesAreOneLargeOneAndNeverGrow) {
  for (const std::uint32_t layers : {1U, 3U}) {
    const LoadedModel subject = model(layers);
    const EngineHost engine = host(subject);
    const Tokens all = kvasir::test::random_tokens(subject.vocabulary(), 300, 2);
    const Tokens next = {7, 8};
    const ConversationId small = open_with(engine, all);
    const ConversationId used = *engine->fork(small);
    for (std::size_t dropped = 1; dropped <= 200; ++dropped) {
      for (const ConversationId id : {small, used}) ASSERT_TRUE(engine->shift_left(id, 4, 1));
      const std::vector<float> after = say(engine, used, next);
      ASSERT_TRUE(engine->rewind(used, 300 - dropped));
      if (dropped % 25 != 0 && dropped > 4) continue;
      const ConversationId large = open_with(engine, all);
      ASSERT_TRUE(engine->shift_left(large, 4, dropped));
      EXPECT_TRUE(same_bits(say(engine, large, next), after)) << dropped;
      ASSERT_TRUE(engine->close(large));
      if (layers > 1) continue;
      const std::vector<float> expected =
          cold_logits(subject, joined(without(all, 4, dropped), next), kFloats);
      EXPECT_LE(kvasir::test::normalized_error(after, expected), kRounding) << dropped;
    }
    EXPECT_TRUE(same_bits(say(engine, small, next), say(engine, used, next)));
    EXPECT_EQ(engine->bytes_moved(), 0U);
  }
}

// A window that rolls: a token comes, the oldest behind the first four goes. Never more than two shifts, and
// the last logits are those of a cold run of what is held.
TEST_P(Shifts, OfARollingWindowStayExactAndTwo) {
  const LoadedModel subject = model(1);
  const EngineHost engine = host(subject);
  const Tokens stream = kvasir::test::random_tokens(subject.vocabulary(), 400, 3);
  Tokens held = beginning(stream, 100);
  const ConversationId id = open_with(engine, held);
  for (std::size_t at = 100; at < stream.size(); ++at) {
    ASSERT_TRUE(engine->shift_left(id, 4, 1));
    held = without(held, 4, 1);
    held.push_back(stream[at]);
    const std::vector<float> after = say(engine, id, {&stream[at], 1});
    EXPECT_LE(engine->holdings(id)->spans, 6U)
        << "a page more than the cells fill, and one for the first four";
    if (at % 50 != 0) continue;
    EXPECT_LE(kvasir::test::normalized_error(after, cold_logits(subject, held, kFloats)), kRounding) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Positions, Shifts,
    testing::Values(
        Scaling{"Plain", {}}, Scaling{"Linear", {.rope_scaling = "linear", .rope_factor = 4.0F}},
        Scaling{"Yarn", {.context = 512, .rope_scaling = "yarn", .rope_factor = 8.0F}},
        Scaling{"HalvesYarn",
                {.architecture = "qwen2", .context = 512, .rope_scaling = "yarn", .rope_factor = 8.0F}}),
    [](const auto& instance) { return instance.param.name; });

// What an archive has queued comes behind where its edits have left the last token.
TEST(EditedArchives, WhoseQueueHasNoPositionsAreRefused) {
  constexpr std::uint64_t kLeft = 5;
  const LoadedModel model = kvasir::test::load_file(kvasir::test::data_path("models/llama/model.gguf"));
  const EngineHost engine = kvasir::test::make_engine(model, {});
  const ConversationId id = open_with(engine, Tokens(40, 7));
  const std::vector<EditOperation> away = {
      {Kind::kShift, 0, 40, pages::kPositionMax - 39 - static_cast<std::int64_t>(kLeft)}};
  ASSERT_TRUE(engine->edit(id, away));
  const auto job = SaveJob::begin(*engine.engine, {&id, 1});
  ASSERT_TRUE(job) << job.error().message();
  for (const std::uint64_t queued : {kLeft, kLeft + 1}) {
    Saved saved = (*job)->saved();
    saved.conversations[0].queue.tokens.assign(queued, 7);
    saved.conversations[0].queue.every.assign(queued, 0);
    const auto loads = LoadJob::begin(*engine.engine, saved, false);
    ASSERT_EQ(loads.has_value(), queued == kLeft);
    if (!loads) {
      EXPECT_EQ(loads.error().code(), Outcome::kNoSpace);
    }
  }
}

}  // namespace
}  // namespace kvasir::engine
