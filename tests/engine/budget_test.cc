// Steps with a time budget, on a clock that moves by the looks taken at it.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/executor.h"
#include "simulation.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

constexpr std::int64_t kTick = 1'000;
// Looks at the clock of the job that is under way when the time is up and the one before, and of what a step
// does beside its jobs.
constexpr std::int64_t kTicksOver = 2 * 4 + 12;

class Budget : public testing::Test {
 protected:
  Budget() {
    executor_ = *Executor::create(model_.model, *parallel::ThreadPool::create(1), settings(), clock_);
  }

  static ExecutorSettings settings() {
    ExecutorSettings settings;
    settings.engine.pool = 1024;
    settings.engine.pass_tokens = 64;
    return settings;
  }
  [[nodiscard]] std::vector<Token> tokens(std::size_t count) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, 1);
  }
  ConversationId prompted(const std::vector<Token>& tokens) {
    const ConversationId id = *executor_->change([](Engine& engine) { return engine.open(); });
    EXPECT_TRUE(
        executor_->change([&](Engine& engine) { return engine.prompt(id, tokens, LogitsWanted::kLast); }));
    return id;
  }

  // What the second layer of a pass of `count` tokens takes.
  std::int64_t time_of_layer(std::size_t count) {
    prompted(tokens(count));
    std::int64_t begun = 0;
    std::int64_t ended = 0;
    StepBudget budget;
    budget.between_jobs = [&](const JobView& view) {
      if (view.progress.layer == 1 && begun == 0) begun = clock_.now_ns();
      if (view.progress.layer == 2 && ended == 0) ended = clock_.now_ns();
      return Verdict::kGoOn;
    };
    EXPECT_TRUE(executor_->step(budget));
    return ended - begun;
  }

  kvasir::test::LoadedModel model_ = kvasir::test::load(kvasir::test::tiny_model({.layers = 3}));
  test::TickingClock clock_{kTick};
  std::shared_ptr<Executor> executor_;
};

TEST_F(Budget, OfAThirdOfALayerIsKeptByEveryStepAndThePromptCompletesWithItsBits) {
  const std::int64_t budget_ns = time_of_layer(64) / 3;
  ASSERT_GT(budget_ns, 4 * kTick) << "at least one job";
  const std::vector<Token> prompt = tokens(300);
  const ConversationId id = prompted(prompt);
  int suspended = 0;
  for (bool over = false; !over;) {
    StepBudget budget;
    budget.time_ns = budget_ns;
    const std::int64_t start = clock_.now_ns();
    const auto report = executor_->step(budget);
    ASSERT_TRUE(report);
    ASSERT_LE(clock_.now_ns() - start, budget_ns + kTicksOver * kTick);
    suspended += report->outcome == Outcome::kSuspended ? 1 : 0;
    over = report->outcome == Outcome::kIdle;
  }
  EXPECT_GE(suspended, 5 * 3 * 2) << "five passes of three layers, each of two budgets at least";
  const auto row = executor_->look([&](const Engine& engine) { return engine.row(id, 0); });
  ASSERT_TRUE(row);
  EXPECT_TRUE(kvasir::test::same_bits(**row, kvasir::test::cold_logits(model_, prompt)));
}

// A job that something else held up for hundreds of budgets, as a system does now and then.
TEST_F(Budget, IsUsedAsBeforeAfterOneJobThatWasHeldUp) {
  const std::int64_t budget_ns = time_of_layer(64);
  prompted(tokens(600));
  const auto jobs_of_step = [&](std::int64_t held_up) {
    std::uint64_t jobs = 0;
    StepBudget budget;
    budget.time_ns = budget_ns;
    budget.between_jobs = [&](const JobView&) {
      if (++jobs == 2) clock_.jump(held_up);
      return Verdict::kGoOn;
    };
    EXPECT_TRUE(executor_->step(budget));
    return jobs;
  };
  const std::uint64_t usual = jobs_of_step(0);
  ASSERT_GT(usual, 4U);
  // The look at the clock behind a job is taken before it is asked, so the jump counts for the next one.
  EXPECT_LE(jobs_of_step(500 * budget_ns), 3U);
  EXPECT_GE(jobs_of_step(0), usual / 2);
  // However slow they really are: half of the budget is used.
  for (int i = 0; i < 3; ++i) static_cast<void>(jobs_of_step(500 * budget_ns));
  EXPECT_GE(jobs_of_step(0), usual / 2 - 1);
}

// However small it is, or none at all: each step does one job at least.
TEST_F(Budget, OfNothingStillGetsThere) {
  const std::vector<Token> prompt = tokens(100);
  const ConversationId id = prompted(prompt);
  StepBudget budget;
  budget.time_ns = 0;
  for (int step = 0; step < 1'000; ++step) {
    const auto report = executor_->step(budget);
    ASSERT_TRUE(report);
    if (report->outcome == Outcome::kIdle) break;
  }
  const auto row = executor_->look([&](const Engine& engine) { return engine.row(id, 0); });
  ASSERT_TRUE(row);
  EXPECT_TRUE(kvasir::test::same_bits(**row, kvasir::test::cold_logits(model_, prompt)));
}

}  // namespace
}  // namespace kvasir::engine
