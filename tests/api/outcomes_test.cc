// Every outcome of the enum, provoked through the public API: for calls, for steps, and for a conversation in
// a step. kInternal has no test: it says that Kvasir itself is at fault.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/api_run.h"
#include "api/parts.h"
#include "support/allocations.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::about;
using test::digest_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

// Draws as a generation does whose computing fails.
class FailingDrawer final : public engine::Drawer {
 public:
  explicit FailingDrawer(Outcome outcome) : outcome_(outcome) {}
  [[nodiscard]] bool has_place() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t tokens_ahead() const noexcept override { return 8; }
  [[nodiscard]] Result<engine::Draw> draw(const engine::Row& /*logits*/, std::uint64_t /*seed*/,
                                          std::uint64_t /*accepted*/, std::uint64_t /*room*/) override {
    return fail(outcome_, "a drawer that fails");
  }
  void publish() noexcept override {}
  void end(const Error* error) noexcept override { ended_ = error != nullptr; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  Outcome outcome_;
  bool ended_ = false;
};

std::string written(const std::string& name, const std::string& bytes) {
  std::string path = test::scratch_directory() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string bytes_of_model() {
  std::ifstream file(test::model_file(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Outcomes, AStepThatComputesAllIsDoneAndTheNextIsIdle) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(40, 1)));
  const StepReport done = must(executor.step());
  EXPECT_EQ(done.outcome, Outcome::kDone);
  EXPECT_EQ(done.tokens, 40U);
  EXPECT_EQ(done.passes, 1U);
  ASSERT_EQ(done.conversations.size(), 1U);
  EXPECT_EQ(done.conversations[0].id, talk.id());
  EXPECT_EQ(done.conversations[0].outcome, Outcome::kDone);
  EXPECT_EQ(done.conversations[0].tokens, 40U);
  EXPECT_FALSE(done.conversations[0].error);
  const StepReport idle = must(executor.step());
  EXPECT_EQ(idle.outcome, Outcome::kIdle);
  EXPECT_TRUE(idle.conversations.empty());
}

TEST(Outcomes, APromptLongerThanAPassIsSuspendedInTheReportUntilItsLastPiece) {
  Executor executor = make_executor(256, 32);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(70, 1)));
  std::vector<Outcome> seen;
  for (int step = 0; step < 3; ++step) seen.push_back(about(must(executor.step()), talk.id())->outcome);
  EXPECT_EQ(seen, (std::vector{Outcome::kSuspended, Outcome::kSuspended, Outcome::kDone}));
}

TEST(Outcomes, AStepSuspendedBetweenItsJobsStaysOpenAndShowsNothing) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(40, 1)));
  const std::uint64_t before = digest_of(executor);
  Budget budget;
  budget.between_jobs = [](const JobView&) { return Verdict::kSuspend; };
  const StepReport open = must(executor.step(budget));
  EXPECT_EQ(open.outcome, Outcome::kSuspended);
  EXPECT_EQ(open.tokens, 0U);
  EXPECT_EQ(talk.state(), ConversationState::kComputing);
  EXPECT_EQ(talk.length(), 0U);
  EXPECT_EQ(talk.info().queued, 40U);
  must(executor.abandon_step());
  EXPECT_EQ(digest_of(executor), before);
  EXPECT_EQ(talk.state(), ConversationState::kQueued);
  EXPECT_EQ(must(executor.run_until_idle()).tokens, 40U);
  EXPECT_EQ(test::logits_of(talk), test::cold_logits(some_tokens(40, 1)));
}

TEST(Outcomes, AStepCancelledBetweenItsJobsIsUndoneAndSaysWhatWasComputedForNothing) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(40, 1)));
  const std::uint64_t before = digest_of(executor);
  Budget budget;
  budget.between_jobs = [](const JobView& view) {
    return view.layer == 1 ? Verdict::kCancel : Verdict::kGoOn;
  };
  const StepReport report = must(executor.step(budget));
  EXPECT_EQ(report.outcome, Outcome::kCancelled);
  EXPECT_EQ(report.layers_undone, 1U);
  EXPECT_EQ(report.tokens, 0U);
  EXPECT_EQ(digest_of(executor), before);
  EXPECT_EQ(executor.metrics().cancelled, 1U);
}

TEST(Outcomes, AStepIsStalledWhereAllThatIsQueuedLacksRoomAndNamesTheCheapestRemedy) {
  Executor executor = make_executor(128);
  Conversation large = must(executor.conversation());
  Conversation small = must(executor.conversation());
  Conversation late = must(executor.conversation());
  must(large.prompt(some_tokens(70, 1)));
  must(small.prompt(some_tokens(40, 2)));
  must(executor.run_until_idle());
  must(late.prompt(some_tokens(50, 3)));
  const StepReport report = must(executor.step());
  EXPECT_EQ(report.outcome, Outcome::kStalled);
  EXPECT_NE(report.message.find("conversation " + std::to_string(static_cast<std::uint64_t>(small.id()))),
            std::string::npos)
      << report.message;
  const auto line = about(report, late.id());
  ASSERT_TRUE(line && line->error);
  EXPECT_EQ(line->outcome, Outcome::kNoSpace);
  EXPECT_EQ(line->error->numbers().wanted, 50U);
  EXPECT_EQ(line->error->numbers().available, executor.cache().free);
  EXPECT_EQ(line->error->numbers().setting, "pool");
  EXPECT_EQ(late.state(), ConversationState::kWaiting);
  EXPECT_EQ(outcome_of(late.wait()), Outcome::kNoSpace);
  small.close();
  EXPECT_EQ(outcome_of(late.wait()), Outcome::kDone);
  EXPECT_EQ(test::logits_of(late), test::cold_logits(some_tokens(50, 3)));
}

TEST(Outcomes, WhatBelongsToAnOpenStepIsBusy) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(8, 1)));
  must(talk.wait());
  must(talk.prompt(some_tokens(8, 2)));
  std::vector<Outcome> inside;
  Budget budget;
  budget.between_jobs = [&](const JobView&) {
    inside = {outcome_of(executor.step()), outcome_of(executor.abandon_step()), outcome_of(talk.rewind(4)),
              outcome_of(talk.clear())};
    return Verdict::kSuspend;
  };
  EXPECT_EQ(must(executor.step(budget)).outcome, Outcome::kSuspended);
  EXPECT_EQ(inside, std::vector(4, Outcome::kBusy));
  EXPECT_EQ(outcome_of(talk.rewind(4)), Outcome::kBusy);
  EXPECT_EQ(outcome_of(talk.clear()), Outcome::kBusy);
  EXPECT_EQ(talk.info().queued, 8U);
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kDone);
  EXPECT_EQ(talk.length(), 16U);
}

TEST(Outcomes, SamplingWithoutLogitsNeedsAPrompt) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  EXPECT_EQ(outcome_of(talk.sample()), Outcome::kNeedsPrompt);
  EXPECT_EQ(outcome_of(talk.logits()), Outcome::kNeedsPrompt);
  EXPECT_EQ(outcome_of(talk.generate()), Outcome::kNeedsPrompt);
  EXPECT_EQ(outcome_of(talk.refresh()), Outcome::kNeedsPrompt);
  must(talk.prompt(some_tokens(9, 1)));
  EXPECT_EQ(outcome_of(talk.sample()), Outcome::kNeedsPrompt);
  must(talk.wait());
  EXPECT_EQ(outcome_of(talk.sample()), Outcome::kDone);
  EXPECT_EQ(outcome_of(talk.logits(1)), Outcome::kNeedsPrompt);
  must(talk.rewind(5));
  EXPECT_EQ(talk.state(), ConversationState::kNeedsPrompt);
  EXPECT_EQ(outcome_of(talk.sample()), Outcome::kNeedsPrompt);
  must(talk.refresh());
  must(talk.wait());
  const std::vector<Token> tokens = some_tokens(9, 1);
  EXPECT_EQ(test::logits_of(talk), test::cold_logits(std::span(tokens).first(5)));
}

TEST(Outcomes, AConversationTakenOutOfAStepIsCancelledInItsReport) {
  Executor executor = make_executor(256);
  Conversation kept = must(executor.conversation());
  Conversation taken = must(executor.conversation());
  must(kept.prompt(some_tokens(20, 1)));
  must(taken.prompt(some_tokens(20, 2)));
  Budget budget;
  budget.between_jobs = [&](const JobView& view) {
    if (view.job == 1) must(taken.cancel());
    return Verdict::kGoOn;
  };
  const StepReport report = must(executor.step(budget));
  EXPECT_EQ(about(report, kept.id())->outcome, Outcome::kDone);
  EXPECT_EQ(about(report, taken.id())->outcome, Outcome::kCancelled);
  EXPECT_EQ(report.tokens, 20U);
  EXPECT_EQ(taken.state(), ConversationState::kEmpty);
  EXPECT_EQ(test::logits_of(kept), test::cold_logits(some_tokens(20, 1)));
}

TEST(Outcomes, WhatFailsForOneConversationTakesItAloneOutOfTheStep) {
  for (const Outcome outcome : {Outcome::kComputeFailed, Outcome::kOutOfMemory}) {
    Executor executor = make_executor(256);
    Conversation kept = must(executor.conversation());
    Conversation failing = must(executor.conversation());
    must(kept.prompt(some_tokens(20, 1)));
    must(failing.prompt(some_tokens(20, 2)));
    const auto drawer = std::make_shared<FailingDrawer>(outcome);
    must(api::Inside::core(executor)->executor->change(
        [&](engine::Engine& engine) { return engine.generate(failing.id(), drawer); }));
    const StepReport report = must(executor.step());
    EXPECT_EQ(report.outcome, Outcome::kDone);
    EXPECT_EQ(about(report, kept.id())->outcome, Outcome::kDone);
    const auto line = about(report, failing.id());
    EXPECT_EQ(line->outcome, outcome);
    ASSERT_TRUE(line->error);
    EXPECT_EQ(line->error->message(), "a drawer that fails");
    EXPECT_TRUE(drawer->ended());
    EXPECT_EQ(failing.length(), 0U);
    EXPECT_EQ(failing.info().queued, 20U);
    must(failing.wait());
    EXPECT_EQ(test::logits_of(failing), test::cold_logits(some_tokens(20, 2)));
  }
}

TEST(Outcomes, EveryAllocationOfAStepMayFailAndTheStepHasNotHappened) {  // G1
  std::set<Outcome> seen;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    Executor executor = make_executor(256);
    Conversation one = must(executor.conversation({.seed = 5}));
    Conversation two = must(executor.conversation({.seed = 6}));
    must(one.prompt(some_tokens(20, 1)));
    must(two.prompt(some_tokens(33, 2)));
    Generation story = must(two.generate({.max_tokens = 4}));
    const std::uint64_t before = digest_of(executor);
    bool fired = false;
    Result<StepReport> report = fail(Outcome::kInternal, "");
    {
      const test::AllocationFault fault(n, test::AllocationFault::Lasting::kOnce);
      report = executor.step();
      fired = fault.fired();
    }
    seen.insert(outcome_of(report));
    if (!report) {
      EXPECT_EQ(report.error().code(), Outcome::kOutOfMemory);
      EXPECT_EQ(digest_of(executor), before) << "allocation " << n;
    } else {
      for (const ConversationReport& line : report->conversations) seen.insert(line.outcome);
    }
    must(executor.run_until_idle());
    EXPECT_EQ(test::logits_of(one), test::cold_logits(some_tokens(20, 1))) << "allocation " << n;
    if (!fired) break;
  }
  EXPECT_TRUE(seen.contains(Outcome::kDone));
  EXPECT_TRUE(seen.contains(Outcome::kOutOfMemory));
}

TEST(Outcomes, ArgumentsThatCanNeverBeRightAreRefusedWithTheirNumbersAndChangeNothing) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(10, 1)));
  must(talk.wait());
  const std::uint64_t before = digest_of(executor);
  const auto vocabulary = static_cast<Token>(test::model().vocabulary());
  const std::uint32_t width = test::model().embedding_size();
  const std::vector<float> ragged(width + 1, 0.5F);
  std::vector<float> not_finite(width, 0.5F);
  not_finite[3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<EditOperation> beyond = {{EditOperation::Kind::kRemove, 5, 6, 0}};
  const std::vector<EditOperation> by_zero = {{EditOperation::Kind::kDivide, 0, 4, 0}};
  const auto prompt = [&](Token token) { return talk.prompt(std::span<const Token>(&token, 1)); };
  const std::vector<Outcome> answers = {
      outcome_of(prompt(-1)),
      outcome_of(prompt(vocabulary)),
      outcome_of(prompt(std::numeric_limits<Token>::min())),
      outcome_of(prompt(std::numeric_limits<Token>::max())),
      outcome_of(talk.prompt(std::span<const Token>())),
      outcome_of(talk.prompt(std::span<const PromptPart>())),
      outcome_of(talk.prompt("", {.add_begin = AddBegin::kNo})),
      outcome_of(talk.prompt("ba", {.add_begin = static_cast<AddBegin>(9)})),
      outcome_of(test::model().tokenize("ba", {.add_begin = static_cast<AddBegin>(9)})),
      outcome_of(talk.prompt(Embeddings{ragged})),
      outcome_of(talk.prompt(Embeddings{not_finite})),
      outcome_of(talk.prompt(Embeddings{})),
      outcome_of(talk.prompt_to({})),
      outcome_of(talk.edit(beyond)),
      outcome_of(talk.edit(by_zero)),
      outcome_of(talk.rewind(11)),
      outcome_of(talk.rewind_cost(11)),
      outcome_of(talk.remove(0, 11)),
      outcome_of(talk.remove(std::numeric_limits<std::uint64_t>::max(), 1)),
      outcome_of(talk.shift_left(10, 1)),
      outcome_of(talk.shift_left(1, std::numeric_limits<std::uint64_t>::max())),
      outcome_of(talk.sample({.temperature = -1})),
      outcome_of(talk.sample({.top_p = 0})),
      outcome_of(talk.sample({.min_p = std::numeric_limits<float>::quiet_NaN()})),
      outcome_of(talk.generate({.max_tokens = 0})),
      outcome_of(talk.generate({.sampler = {.top_p = 2}})),
      outcome_of(talk.generate({.outbox = 0})),
      outcome_of(talk.generate({.stop = {"end", ""}})),
      outcome_of(talk.when_ready({})),
      outcome_of(test::model().embedding(-1)),
      outcome_of(test::model().embedding(vocabulary)),
      outcome_of(test::model().detokenize(std::vector<Token>{vocabulary})),
  };
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], Outcome::kInvalidArgument) << i;
  EXPECT_EQ(digest_of(executor), before);
  const Error bad = prompt(vocabulary).error();
  EXPECT_EQ(bad.numbers().limit, 512U);
  EXPECT_NE(bad.message().find("512"), std::string::npos);
}

TEST(Outcomes, OptionsOfAnExecutorThatMakeNoSenseAreNamed) {
  const auto refusal = [](const ExecutorOptions& options) {
    const auto made = Executor::create(test::model(), options);
    return made ? Error(Outcome::kDone, "") : made.error();
  };
  const auto expect = [&](const ExecutorOptions& options, Outcome outcome, std::string_view setting) {
    const Error error = refusal(options);
    EXPECT_EQ(error.code(), outcome) << error.message();
    EXPECT_EQ(error.numbers().setting, setting) << error.message();
    EXPECT_FALSE(error.message().empty());
  };
  expect({.pool = 0}, Outcome::kInvalidArgument, "pool");
  expect({.context = 0}, Outcome::kInvalidArgument, "context");
  expect({.page_cells = 0}, Outcome::kInvalidArgument, "page_cells");
  expect({.page_cells = 24}, Outcome::kInvalidArgument, "page_cells");
  expect({.page_cells = 512}, Outcome::kInvalidArgument, "page_cells");
  expect({.pool = 64, .pass_tokens = 0}, Outcome::kInvalidArgument, "pass_tokens");
  expect({.pool = std::uint64_t{1} << 40}, Outcome::kNoSpace, "pool");
  expect({.pool = UINT64_MAX}, Outcome::kNoSpace, "pool");
  expect({.pool = 64, .pass_tokens = UINT32_MAX}, Outcome::kInvalidArgument, "pass_tokens");
}

TEST(Outcomes, WhatIsRightAtAnotherTimeIsAWrongStateThatNamesTheRemedy) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(10, 1)));
  EXPECT_EQ(outcome_of(talk.rewind(0)), Outcome::kWrongState);
  EXPECT_NE(talk.rewind(0).error().message().find("cancel()"), std::string::npos);
  must(talk.wait());
  {
    const Generation story = must(talk.generate({.max_tokens = 8, .ignore_end = true}));
    EXPECT_EQ(outcome_of(talk.generate()), Outcome::kWrongState);
    EXPECT_EQ(outcome_of(talk.prompt("more")), Outcome::kWrongState);
    EXPECT_EQ(outcome_of(talk.prompt_to(some_tokens(3, 1))), Outcome::kWrongState);
    EXPECT_EQ(outcome_of(talk.rewind(1)), Outcome::kWrongState);
    EXPECT_EQ(outcome_of(talk.refresh()), Outcome::kWrongState);
  }
  must(talk.wait());
  EXPECT_EQ(outcome_of(talk.rewind(1)), Outcome::kDone);
  must(executor.start());
  EXPECT_EQ(outcome_of(executor.start()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.step()), Outcome::kBusy);
  must(executor.stop());
  EXPECT_EQ(outcome_of(executor.step()), Outcome::kDone);
}

TEST(Outcomes, LoadingSaysWhetherAFileIsMissingUnreadableDamagedOrOfAnotherKind) {
  const auto load = [](const std::string& path) { return outcome_of(Model::load(path)); };
  EXPECT_EQ(load(test::scratch_directory() + "/nothing.gguf"), Outcome::kNotFound);
  EXPECT_EQ(load(test::scratch_directory()), Outcome::kInvalidArgument);
  EXPECT_EQ(load(std::string(10'000, 'x')), Outcome::kIo);
  const std::string whole = bytes_of_model();
  EXPECT_EQ(load(written("empty.gguf", "")), Outcome::kCorrupt);
  EXPECT_EQ(load(written("half.gguf", whole.substr(0, whole.size() / 2))), Outcome::kCorrupt);
  EXPECT_EQ(load(written("other.gguf", "PK" + whole.substr(2))), Outcome::kCorrupt);
  test::TinyShape shape = test::speaking_shape();
  test::GgufDraft foreign = test::speaking_draft(shape);
  foreign.set("general.architecture", std::string_view("unheard-of"));
  const std::string path = test::scratch_directory() + "/foreign.gguf";
  foreign.write(path);
  const auto refused = Model::load(path);
  EXPECT_EQ(outcome_of(refused), Outcome::kUnsupported);
  EXPECT_NE(refused.error().message().find("unheard-of"), std::string::npos);
  EXPECT_EQ(outcome_of(Model::load(test::model_file(), {.threads = -1})), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(Model::load(test::model_file(), {.threads = 1 << 20})), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(Model::load(test::model_file(), {.progress = [](double) { return false; }})),
            Outcome::kCancelled);
  const auto throws = [](double) -> bool { throw std::runtime_error("a host program's"); };
  EXPECT_EQ(outcome_of(Model::load(test::model_file(), {.progress = throws})), Outcome::kCancelled);
  double last = 0;
  EXPECT_EQ(outcome_of(Model::load(test::model_file(), {.progress =
                                                            [&](double share) {
                                                              EXPECT_GE(share, last);
                                                              last = share;
                                                              return true;
                                                            }})),
            Outcome::kDone);
  EXPECT_EQ(last, 1.0);
}

TEST(Outcomes, AnEmbeddingVectorAtTheEndCannotBeRefreshed) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  const std::vector<float> rows = test::embeddings_of(some_tokens(3, 1));
  must(talk.prompt(Embeddings{rows}));
  must(talk.prompt(some_tokens(3, 2)));
  must(talk.wait());
  must(talk.rewind(3));
  EXPECT_EQ(outcome_of(talk.refresh()), Outcome::kUnsupported);
  EXPECT_EQ(talk.length(), 3U);
}

TEST(Outcomes, EveryOutcomeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int value = 0; value <= static_cast<int>(Outcome::kInternal); ++value)
    names.insert(outcome_name(static_cast<Outcome>(value)));
  EXPECT_EQ(names.size(), 17U);
}

TEST(Outcomes, AModelWithoutAnEncoderSaysSoByName) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  const std::vector<Token> source = {5, 6, 7};
  const Status refused = talk.encode(source);
  EXPECT_EQ(outcome_of(refused), Outcome::kUnsupported);
  EXPECT_NE(refused.error().message().find("llama"), std::string::npos) << refused.error().message();
  EXPECT_EQ(talk.length(), 0U);
  talk.close();
  EXPECT_EQ(outcome_of(talk.encode(source)), Outcome::kWrongState);
}

TEST(Outcomes, ValuesOutsideAnEnumAreRefusedAndNeverTakenForAnother) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(17, 1)));
  must(talk.wait());
  const EditOperation strange{static_cast<EditOperation::Kind>(9), 1, 2, 0};
  EXPECT_EQ(outcome_of(talk.edit(std::span(&strange, 1))), Outcome::kInvalidArgument);
  EXPECT_EQ(talk.length(), 17U);
  ExecutorOptions options = test::options_of(256);
  options.keys = static_cast<CacheType>(77);
  EXPECT_EQ(outcome_of(Executor::create(test::model(), options)), Outcome::kInvalidArgument);
  must(talk.prompt(some_tokens(3, 2)));
  const auto stopped =
      executor.step({.between_jobs = [](const JobView&) { return static_cast<Verdict>(55); }});
  EXPECT_EQ(must(stopped).outcome, Outcome::kCancelled);
}

TEST(Outcomes, NumbersBeyondAllSizesAreRefusedWithNumbersThatAreTrue) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(17, 1)));
  const Status refused = talk.reserve(UINT64_MAX);
  EXPECT_EQ(outcome_of(refused), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, UINT64_MAX);
  ExecutorOptions options = test::options_of(256);
  options.pass_tokens = UINT32_MAX;
  const auto made = Executor::create(test::model(), options);
  EXPECT_EQ(outcome_of(made), Outcome::kInvalidArgument);
  EXPECT_EQ(made.error().numbers().setting, "pass_tokens");
  EXPECT_EQ(outcome_of(Model::load(test::model_file() + std::string("\0junk", 5))),
            Outcome::kInvalidArgument);
}

TEST(Outcomes, TheReportOfManyStepsNamesEveryConversationOfAnyOfThem) {
  Executor executor = make_executor(256, 8);
  Conversation first = must(executor.conversation());
  Conversation second = must(executor.conversation());
  must(first.prompt(some_tokens(5, 1)));
  must(second.prompt(some_tokens(40, 2)));
  const StepReport report = must(executor.run_until_idle());
  EXPECT_EQ(report.outcome, Outcome::kIdle);
  ASSERT_EQ(report.conversations.size(), 2U);
  EXPECT_EQ(test::about(report, first.id())->tokens, 5U);
  EXPECT_EQ(test::about(report, second.id())->tokens, 40U);
  EXPECT_EQ(test::about(report, second.id())->outcome, Outcome::kDone);
  EXPECT_EQ(report.tokens, 45U);
}

TEST(Outcomes, WhatACallbackThrowsEndsThere) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(30, 1)));
  const std::uint64_t before = test::digest_of(executor);
  const auto thrown = executor.step({.between_jobs = [](const JobView&) -> Verdict { throw 7; }});
  EXPECT_EQ(must(thrown).outcome, Outcome::kCancelled);
  EXPECT_EQ(test::digest_of(executor), before);
  must(talk.when_ready([](const Status&) { throw 8; }));
  must(talk.wait());
  EXPECT_EQ(talk.length(), 30U);
}

}  // namespace
}  // namespace kvasir
