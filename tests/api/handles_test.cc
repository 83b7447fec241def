// Handles: moved, destroyed in any order, closed, outliving their executor. Every call answers; none crashes.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/api_run.h"

namespace kvasir {
namespace {

using test::cold_logits;
using test::logits_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

// What every call on a conversation answers that cannot be used any more.
void expect_unusable(Conversation& gone) {
  const std::vector<Token> tokens = some_tokens(3, 1);
  const std::vector<EditOperation> operations = {{EditOperation::Kind::kRemove, 0, 1, 0}};
  const std::vector<float> rows = test::embeddings_of(tokens);
  bool called = false;
  const std::vector<Outcome> answers = {outcome_of(gone.prompt(tokens)),
                                        outcome_of(gone.prompt("text")),
                                        outcome_of(gone.prompt(Embeddings{rows})),
                                        outcome_of(gone.encode(tokens)),
                                        outcome_of(gone.sample_row(rows)),
                                        outcome_of(gone.prompt_to(tokens)),
                                        outcome_of(gone.wait()),
                                        outcome_of(gone.wait_for(std::chrono::hours(1))),
                                        outcome_of(gone.when_ready([&](const Status&) { called = true; })),
                                        outcome_of(gone.logits()),
                                        outcome_of(gone.sample()),
                                        outcome_of(gone.generate()),
                                        outcome_of(gone.fork()),
                                        outcome_of(gone.edit(operations)),
                                        outcome_of(gone.rewind(0)),
                                        outcome_of(gone.remove(0, 1)),
                                        outcome_of(gone.shift_left(0, 1)),
                                        outcome_of(gone.clear()),
                                        outcome_of(gone.rewind_cost(0)),
                                        outcome_of(gone.refresh()),
                                        outcome_of(gone.reseed(1)),
                                        outcome_of(gone.tokens()),
                                        outcome_of(gone.reserve(1)),
                                        outcome_of(gone.set_priority(1)),
                                        outcome_of(gone.set_pinned(true)),
                                        outcome_of(gone.cancel())};
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], Outcome::kWrongState) << i;
  EXPECT_FALSE(called);
  EXPECT_FALSE(gone.fits(0));
  EXPECT_EQ(gone.seed(), 0U);
  EXPECT_EQ(gone.length(), 0U);
  EXPECT_EQ(gone.info().own, 0U);
  EXPECT_EQ(gone.state(), ConversationState::kClosed);
  gone.close();
}

Conversation computed(Executor& executor, std::size_t count, std::uint64_t seed) {
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(count, seed)));
  must(talk.wait());
  return talk;
}

TEST(Handles, AClosedConversationAnswersWrongStateAndGivesEverythingBack) {
  Executor executor = make_executor(256);
  Conversation talk = computed(executor, 20, 1);
  const ConversationId id = talk.id();
  EXPECT_EQ(executor.cache().held, 20U);
  talk.close();
  expect_unusable(talk);
  EXPECT_EQ(talk.id(), id);
  EXPECT_EQ(executor.cache().held, 0U);
  EXPECT_NE(must(executor.conversation()).id(), id);
}

TEST(Handles, AConversationMovedAwayAnswersWrongStateAndWhereItWentGoesOn) {
  Executor executor = make_executor(256);
  Conversation talk = computed(executor, 20, 1);
  const ConversationId id = talk.id();
  Conversation moved = std::move(talk);
  expect_unusable(talk);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(moved.id(), id);
  EXPECT_EQ(moved.length(), 20U);
  // Assigning closes what was there before.
  Conversation other = computed(executor, 33, 2);
  other = std::move(moved);
  EXPECT_EQ(other.id(), id);
  EXPECT_EQ(executor.cache().held, 20U);
  Conversation& same = other;
  other = std::move(same);
  EXPECT_EQ(other.length(), 20U);
  talk = std::move(other);
  EXPECT_EQ(logits_of(talk), cold_logits(some_tokens(20, 1)));
}

TEST(Handles, ConversationsOutliveTheirExecutor) {
  std::optional<Executor> executor = make_executor(256);
  Conversation held = computed(*executor, 20, 1);
  Conversation telling = computed(*executor, 12, 3);
  Generation story = must(telling.generate({.max_tokens = 50, .ignore_end = true}));
  must(story.next());
  Conversation queued = must(executor->conversation());
  must(queued.prompt(some_tokens(10, 2)));
  std::vector<Outcome> told;
  must(queued.when_ready([&](const Status& status) { told.push_back(outcome_of(status)); }));
  const auto row = must(held.logits());
  executor.reset();
  EXPECT_EQ(told, std::vector{Outcome::kCancelled});
  expect_unusable(held);
  expect_unusable(queued);
  EXPECT_EQ(outcome_of(story.rest()), Outcome::kDone);  // what was in the outbox
  EXPECT_EQ(story.finish(), Finish::kCancelled);
  EXPECT_EQ(*row, cold_logits(some_tokens(20, 1)));  // rows live as long as they are held
}

TEST(Handles, AnExecutorThatIsClosedAnswersWrongState) {
  Executor executor = make_executor(256);
  Conversation talk = computed(executor, 20, 1);
  must(executor.start());
  executor.close();
  executor.close();
  EXPECT_EQ(outcome_of(executor.conversation()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.step()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.run_until_idle()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.abandon_step()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.start()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.compact()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.stop()), Outcome::kDone);
  EXPECT_EQ(executor.cache().held, 0U);
  expect_unusable(talk);
}

TEST(Handles, AnExecutorMovedAwayAnswersWrongStateAndWhereItWentGoesOn) {
  Executor executor = make_executor(256);
  Conversation talk = computed(executor, 20, 1);
  Executor moved = std::move(executor);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(outcome_of(executor.conversation()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.step()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.run_until_idle()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.abandon_step()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.start()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.stop()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.compact()), Outcome::kWrongState);
  EXPECT_EQ(executor.cache().pool, 0U);
  EXPECT_EQ(executor.metrics().steps, 0U);
  EXPECT_EQ(executor.context(), 0U);
  executor.close();
  // NOLINTEND(bugprone-use-after-move)
  must(talk.prompt(some_tokens(5, 2)));
  EXPECT_EQ(must(moved.step()).tokens, 5U);
  // Assigning ends what was there before.
  Executor other = make_executor(64);
  Conversation ends = computed(other, 5, 1);
  other = std::move(moved);
  EXPECT_EQ(ends.state(), ConversationState::kClosed);
  EXPECT_EQ(talk.length(), 25U);
}

TEST(Handles, AModelMovedAwayIsStillThatModel) {
  Model first = test::model();
  const Model second = std::move(first);  // NOLINT(performance-move-const-arg): as generic code does
  EXPECT_EQ(first.vocabulary(), 512U);    // NOLINT(bugprone-use-after-move): moving copies
  EXPECT_EQ(second.vocabulary(), 512U);
}

TEST(Handles, ExecutorsLiveOnWithoutTheModelTheyWereMadeOf) {
  std::optional<Model> model = must(Model::load(test::model_file()));
  Executor executor = must(Executor::create(*model, test::options_of(256)));
  model.reset();
  Conversation talk = computed(executor, 20, 1);
  EXPECT_EQ(logits_of(talk), cold_logits(some_tokens(20, 1)));
}

TEST(Handles, AGenerationMovedAwayAnswersWrongStateAndWhereItWentGoesOn) {
  Executor executor = make_executor(256);
  Conversation talk = computed(executor, 20, 1);
  Generation story = must(talk.generate({.max_tokens = 5, .ignore_end = true}));
  Generation moved = std::move(story);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(outcome_of(story.next()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(story.poll()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(story.rest()), Outcome::kWrongState);
  EXPECT_FALSE(story.finish());
  story.cancel();
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_FALSE(moved.finish());
  EXPECT_EQ(must(moved.rest()).tokens.size(), 5U);
  EXPECT_EQ(moved.finish(), Finish::kLength);
  Generation& same = moved;
  moved = std::move(same);
  EXPECT_EQ(moved.finish(), Finish::kLength);
}

TEST(Handles, ADestroyedConversationGivesItsCellsToWhoWaitsForThem) {
  Executor executor = make_executor(64);
  std::optional<Conversation> first = computed(executor, 50, 1);
  Conversation second = must(executor.conversation());
  must(second.prompt(some_tokens(40, 2)));
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kStalled);
  first.reset();
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kDone);
  EXPECT_EQ(logits_of(second), cold_logits(some_tokens(40, 2)));
}

TEST(Handles, AConversationDestroyedInAnOpenStepIsTakenOutOfIt) {
  Executor executor = make_executor(256);
  Conversation kept = must(executor.conversation());
  std::optional<Conversation> gone = must(executor.conversation());
  must(kept.prompt(some_tokens(20, 1)));
  must(gone->prompt(some_tokens(30, 2)));
  Budget budget;
  budget.between_jobs = [&](const JobView&) {
    gone.reset();
    return Verdict::kGoOn;
  };
  EXPECT_EQ(must(executor.step(budget)).tokens, 20U);
  EXPECT_EQ(executor.cache().held, 20U);
  EXPECT_EQ(logits_of(kept), cold_logits(some_tokens(20, 1)));
}

TEST(Handles, AForkLivesOnWithoutItsParent) {
  Executor executor = make_executor(256);
  std::optional<Conversation> parent = computed(executor, 40, 1);
  Conversation child = must(parent->fork());
  EXPECT_EQ(child.info().shared, 40U);
  parent.reset();
  EXPECT_EQ(child.info().own, 40U);
  EXPECT_EQ(logits_of(child), cold_logits(some_tokens(40, 1)));
  must(child.prompt(some_tokens(9, 2)));
  must(child.wait());
  EXPECT_EQ(logits_of(child), cold_logits(test::joined(some_tokens(40, 1), some_tokens(9, 2))));
}

}  // namespace
}  // namespace kvasir
