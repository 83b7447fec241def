// Taking back: a step in the middle, what is queued, a generation. What was committed stays, to the bit.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "api/api_run.h"

namespace kvasir {
namespace {

using test::about;
using test::cold_logits;
using test::digest_of;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

// Goes on until job `job` of pass `pass`, then says `verdict`.
Budget stopping(std::uint32_t pass, std::uint64_t job, Verdict verdict, bool whole_queue) {
  Budget budget;
  budget.whole_queue = whole_queue;
  budget.between_jobs = [=](const JobView& view) {
    return view.pass == pass && view.job == job ? verdict : Verdict::kGoOn;
  };
  return budget;
}

class CancelledStep : public testing::TestWithParam<bool> {};

// At each job of a long prompt's step, taken by pieces or as one unit.
TEST_P(CancelledStep, LeavesTheStateFromBeforeItAndEverythingGoesOnAsInAColdRun) {
  const bool whole = GetParam();
  const std::vector<Token> first = some_tokens(21, 1);
  const std::vector<Token> second = some_tokens(100, 2);
  const std::vector<float> cold = cold_logits(joined(first, second));
  for (std::uint64_t job = 1; job < 60; ++job) {
    Executor executor = make_executor(256, 32);
    Conversation other = must(executor.conversation());
    Conversation talk = must(executor.conversation());
    must(other.prompt(some_tokens(30, 3)));
    must(talk.prompt(first));
    must(executor.run_until_idle());
    must(talk.prompt(second));
    if (!whole) must(executor.step());  // its first piece
    const std::uint64_t before = digest_of(executor);
    const std::uint64_t held = talk.length();
    const StepReport report = must(executor.step(stopping(whole ? 2 : 0, job, Verdict::kCancel, whole)));
    if (report.outcome != Outcome::kCancelled) {
      EXPECT_GT(job, 3U);  // the pass has no more jobs than that
      break;
    }
    EXPECT_EQ(digest_of(executor), before) << "job " << job;
    EXPECT_EQ(talk.length(), held);
    EXPECT_EQ(held, whole ? 21U : 53U);
    if (job % 2 == 0) {
      must(talk.wait());
    } else {  // by hand, as after any failure
      must(talk.cancel());
      EXPECT_EQ(talk.length(), held);
      must(talk.rewind(10));
      must(talk.clear());
      must(talk.clear());
      EXPECT_EQ(talk.state(), ConversationState::kEmpty);
      must(talk.prompt(first));
      must(talk.prompt(second));
      must(talk.wait());
    }
    EXPECT_EQ(logits_of(talk), cold) << "job " << job;
    EXPECT_EQ(logits_of(other), cold_logits(some_tokens(30, 3)));
  }
}

INSTANTIATE_TEST_SUITE_P(ByPiecesAndWhole, CancelledStep, testing::Bool());

TEST(Cancelling, CancelReturnsWhileALongPromptIsComputedElsewhere) {
  Executor executor = make_executor(4096, 64);
  Conversation talk = must(executor.conversation());
  must(executor.start());
  must(talk.prompt(some_tokens(4000, 1)));
  while (talk.state() != ConversationState::kComputing) std::this_thread::yield();
  must(talk.cancel());
  // Whatever was committed by then is a beginning of what was prompted, and goes on as one.
  const std::uint64_t held = talk.length();
  EXPECT_LT(held, 4000U);
  EXPECT_EQ(talk.info().queued, 0U);
  must(talk.wait());
  EXPECT_EQ(talk.length(), held);
  must(talk.clear());
  EXPECT_EQ(executor.cache().held, 0U);
  must(talk.prompt(some_tokens(50, 2)));
  must(talk.wait());
  EXPECT_EQ(logits_of(talk), cold_logits(some_tokens(50, 2)));
}

TEST(Cancelling, APromptGivenAsOneUnitLeavesNothingWhereItIsCancelledInItsLastPass) {
  Executor executor = make_executor(256, 32);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(100, 1)));
  Budget budget;
  budget.whole_queue = true;
  budget.between_jobs = [&](const JobView& view) {
    EXPECT_EQ(view.passes, 4U);
    if (view.pass == 3) must(talk.cancel());
    return Verdict::kGoOn;
  };
  const StepReport report = must(executor.step(budget));
  EXPECT_EQ(report.tokens, 0U);
  EXPECT_EQ(about(report, talk.id())->outcome, Outcome::kCancelled);
  EXPECT_EQ(talk.state(), ConversationState::kEmpty);
  EXPECT_EQ(executor.cache().free, executor.cache().pool);
}

// K06
TEST(Cancelling, WhoWaitsBehindAGenerationAndIsCancelledNeverRunsAndChangesNothing) {
  const std::vector<Token> prompt = some_tokens(20, 1);
  const GenerateOptions options{.max_tokens = 30};
  const GeneratedPiece solo = test::alone(prompt, 9, options);
  Executor executor = make_executor(64);
  Conversation a = must(executor.conversation({.seed = 9}));
  Conversation b = must(executor.conversation());
  must(a.prompt(prompt));
  Generation story = must(a.generate(options));
  must(b.prompt(some_tokens(40, 2)));  // there is no room for it beside what A is promised
  GeneratedPiece all;
  for (int piece = 0; const auto next = must(story.next()); ++piece) {
    all.text += next->text;
    all.tokens.insert(all.tokens.end(), next->tokens.begin(), next->tokens.end());
    if (piece == 5) must(b.cancel());
  }
  EXPECT_EQ(all.tokens, solo.tokens);
  EXPECT_EQ(all.text, solo.text);
  EXPECT_EQ(b.length(), 0U);
  EXPECT_EQ(executor.metrics().prompted, 20U);
}

// K07
TEST(Cancelling, RequestsCancelledBehindALongPromptNeverComputeAToken) {
  Executor executor = make_executor(512, 16);
  Conversation first = must(executor.conversation({.priority = 1}));
  must(first.prompt(some_tokens(200, 1)));
  must(executor.step());
  std::vector<Conversation> others;
  for (std::uint64_t i = 0; i < 5; ++i) {
    others.push_back(must(executor.conversation()));
    must(others.back().prompt(some_tokens(20, 10 + i)));
  }
  must(executor.step());
  for (Conversation& other : others) must(other.cancel());
  must(first.wait());
  for (const Conversation& other : others) EXPECT_EQ(other.length(), 0U);
  EXPECT_EQ(executor.metrics().prompted, 200U);
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kIdle);
  EXPECT_EQ(logits_of(first), cold_logits(some_tokens(200, 1)));
}

TEST(Cancelling, AGenerationThatIsCancelledLeavesWhatItDeliveredInTheHistory) {
  const std::vector<Token> prompt = some_tokens(12, 1);
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation({.seed = 4}));
  must(talk.prompt(prompt));
  std::vector<Token> delivered;
  {
    Generation story = must(talk.generate({.max_tokens = 40, .ignore_end = true}));
    for (int i = 0; i < 7; ++i) delivered = joined(std::move(delivered), must(story.next())->tokens);
  }
  must(talk.wait());
  EXPECT_EQ(must(talk.tokens()), joined(prompt, delivered));
  EXPECT_EQ(logits_of(talk), cold_logits(joined(prompt, delivered)));
}

TEST(Cancelling, WhoWaitsForACancelledConversationIsToldAndTheNextWaitIsNot) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  std::vector<Outcome> told;
  const auto note = [&](const Status& status) { told.push_back(outcome_of(status)); };
  must(talk.prompt(some_tokens(8, 1)));
  must(talk.when_ready(note));
  EXPECT_TRUE(told.empty());
  must(talk.cancel());
  EXPECT_EQ(told, std::vector{Outcome::kCancelled});
  must(talk.prompt(some_tokens(8, 2)));
  must(talk.when_ready(note));
  must(talk.wait());
  EXPECT_EQ(told, (std::vector{Outcome::kCancelled, Outcome::kDone}));
  must(talk.when_ready(note));  // at once
  EXPECT_EQ(told.size(), 3U);
}

}  // namespace
}  // namespace kvasir
