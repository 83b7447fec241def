// P1: a step that is cancelled, suspended or abandoned, wherever that is, leaves everything as it was.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using kvasir::test::same_bits;

constexpr std::uint32_t kPassTokens = 16;

// An engine in which two conversations hold something and two more than a pass is queued.
class Village {
 public:
  explicit Village(const LoadedModel& model, int threads = 1)
      : host_(kvasir::test::make_engine(model, {.pool = 512, .pass_tokens = kPassTokens, .logit_rows = 16},
                                        threads)),
        model_(&model) {
    for (ConversationId& id : ids) id = *host_->open();
    prompt(ids[0], 21, 1, LogitsWanted::kEvery);
    prompt(ids[1], 5, 2, LogitsWanted::kLast);
    finish();
    prompt(ids[0], 30, 3, LogitsWanted::kEvery);
    prompt(ids[2], 13, 4, LogitsWanted::kLast);
  }

  EngineHost& operator->() { return host_; }
  [[nodiscard]] std::uint64_t digest() const { return *host_->digest(); }

  void prompt(ConversationId id, std::size_t count, std::uint64_t seed, LogitsWanted wanted) {
    const auto tokens = kvasir::test::random_tokens(model_->vocabulary(), count, seed);
    ASSERT_TRUE(host_->prompt(id, tokens, wanted));
  }

  // Steps until nothing is queued.
  void finish() {
    while (true) {
      const auto report = host_->step();
      ASSERT_TRUE(report) << report.error().message();
      if (report->outcome == Outcome::kIdle) return;
      ASSERT_EQ(report->outcome, Outcome::kDone);
    }
  }

  ConversationId ids[3] = {};

 private:
  EngineHost host_;
  const LoadedModel* model_;
};

class StoppedSteps : public testing::Test {
 protected:
  StoppedSteps() {
    Village plain(model_);
    plain.finish();
    finished_ = plain.digest();
  }

  LoadedModel model_ = kvasir::test::load_file(kvasir::test::data_path("models/llama/model.gguf"));
  std::uint64_t finished_ = 0;  // the digest of a village whose queues ran without a stop
};

StepOptions unit(std::function<Verdict(const JobView&)> between_jobs = {}) {
  return {.whole_queue = true, .between_jobs = std::move(between_jobs)};
}

Verdict suspend_in_the_second_pass(const JobView& view) {
  return view.pass == 1 ? Verdict::kSuspend : Verdict::kGoOn;
}

TEST_F(StoppedSteps, AUnitStoppedInTheLastLayerOfItsThirdPassLeavesEverythingAsItWas) {
  Village village(model_);
  const std::uint64_t before = village.digest();
  JobView stopped_at;
  const auto report = village->step(unit([&](const JobView& view) {
    stopped_at = view;
    const bool last_layer = view.progress.layer + 1 == view.progress.layers;
    return view.pass == 2 && last_layer ? Verdict::kCancel : Verdict::kGoOn;
  }));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->outcome, Outcome::kCancelled);
  EXPECT_EQ(stopped_at.passes, 3U);
  EXPECT_EQ(report->passes, 3U);
  EXPECT_EQ(report->layers_undone, 2U * 3U + 2U);
  EXPECT_EQ(report->tokens, 0U);
  EXPECT_FALSE(village->step_open());
  EXPECT_EQ(village.digest(), before);
  EXPECT_EQ(*village->queued(village.ids[0]), 30U);
  const auto repeated = village->step(unit());
  ASSERT_TRUE(repeated);
  EXPECT_EQ(repeated->outcome, Outcome::kDone);
  EXPECT_EQ(repeated->passes, 3U);
  EXPECT_EQ(repeated->tokens, 43U);
  EXPECT_EQ(village.digest(), finished_);
}

TEST_F(StoppedSteps, AUnitStoppedAtAnyJobLeavesEverythingAsItWas) {  // E1, E2
  Village village(model_, 2);
  const std::uint64_t before = village.digest();
  for (std::uint64_t n = 0;; ++n) {
    std::uint64_t jobs = 0;
    const auto report =
        village->step(unit([&](const JobView&) { return jobs++ == n ? Verdict::kCancel : Verdict::kGoOn; }));
    ASSERT_TRUE(report);
    if (report->outcome == Outcome::kDone) {
      EXPECT_GT(n, 80U) << "three passes of three layers have more jobs";
      break;
    }
    ASSERT_EQ(report->outcome, Outcome::kCancelled);
    ASSERT_EQ(village.digest(), before) << "job " << n;
  }
  EXPECT_EQ(village.digest(), finished_);
}

// What is committed before the pass that is stopped stays; the rest is still queued.
TEST_F(StoppedSteps, PassByPassOnlyTheStoppedPassIsUndone) {
  Village village(model_);
  ASSERT_EQ(village->step()->outcome, Outcome::kDone);
  const std::uint64_t after_one = village.digest();
  const auto report = village->step({.between_jobs = [](const JobView&) { return Verdict::kCancel; }});
  EXPECT_EQ(report->outcome, Outcome::kCancelled);
  EXPECT_EQ(village.digest(), after_one);
  village.finish();
  EXPECT_EQ(village.digest(), finished_);
}

TEST_F(StoppedSteps, AUnitSuspendedAtEveryJobEndsInTheSameBits) {
  Village village(model_, 2);
  const auto suspend = unit([](const JobView&) { return Verdict::kSuspend; });
  std::uint64_t suspensions = 0;
  while (true) {
    const auto report = village->step(suspend);
    ASSERT_TRUE(report);
    if (report->outcome == Outcome::kDone) break;
    ASSERT_EQ(report->outcome, Outcome::kSuspended);
    EXPECT_TRUE(village->step_open());
    // Nothing shows before commit.
    EXPECT_EQ(village->tokens(village.ids[0])->size(), 21U);
    EXPECT_EQ(*village->queued(village.ids[0]), 30U);
    EXPECT_EQ(village->tokens(village.ids[2])->size(), 0U);
    ++suspensions;
  }
  EXPECT_GT(suspensions, 80U);
  EXPECT_FALSE(village->step_open());
  EXPECT_EQ(village.digest(), finished_);
}

TEST_F(StoppedSteps, ASuspendedUnitAbandonedAtAnyJobLeavesEverythingAsItWas) {
  Village village(model_);
  const std::uint64_t before = village.digest();
  for (std::uint64_t n = 0; n < 80; ++n) {
    std::uint64_t jobs = 0;
    const auto report =
        village->step(unit([&](const JobView&) { return jobs++ == n ? Verdict::kSuspend : Verdict::kGoOn; }));
    ASSERT_EQ(report->outcome, Outcome::kSuspended);
    village->abandon_step();
    EXPECT_FALSE(village->step_open());
    ASSERT_EQ(village.digest(), before) << "job " << n;
  }
  village->abandon_step();  // with none open nothing happens
  ASSERT_EQ(village.digest(), before);
  village.finish();
  EXPECT_EQ(village.digest(), finished_);
}

TEST_F(StoppedSteps, ASuspendedUnitCanBeCancelledLater) {
  Village village(model_);
  const std::uint64_t before = village.digest();
  ASSERT_EQ(village
                ->step(unit(
                    [](const JobView& view) { return view.pass == 1 ? Verdict::kSuspend : Verdict::kGoOn; }))
                ->outcome,
            Outcome::kSuspended);
  const auto report = village->step(unit([](const JobView&) { return Verdict::kCancel; }));
  EXPECT_EQ(report->outcome, Outcome::kCancelled);
  EXPECT_EQ(village.digest(), before);
}

// While a step is open others join the next one, and what they do does not show in it.
TEST_F(StoppedSteps, WhileAStepIsOpenWhatIsPromptedJoinsTheNext) {
  Village village(model_);
  ASSERT_EQ(village->step(unit(suspend_in_the_second_pass))->outcome, Outcome::kSuspended);
  const std::vector<Token> one = {1};
  const ConversationId in_step = village.ids[0];
  EXPECT_EQ(village->rewind(in_step, 3).error().code(), Outcome::kBusy);
  EXPECT_EQ(village->take_logits(in_step).error().code(), Outcome::kBusy);
  ASSERT_TRUE(village->prompt(in_step, one, LogitsWanted::kLast)) << "appends to the queue";
  EXPECT_EQ(*village->queued(in_step), 31U);
  EXPECT_EQ(village->tokens(in_step)->size(), 21U);
  const auto newcomer = village->open();
  ASSERT_TRUE(newcomer);
  ASSERT_TRUE(village->prompt(*newcomer, one, LogitsWanted::kLast));
  ASSERT_TRUE(village->close(village.ids[1]));
  const auto report = village->step(unit());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome, Outcome::kDone);
  EXPECT_EQ(report->tokens, 43U) << "the newcomer joins the next step";
  EXPECT_EQ(*village->queued(*newcomer), 1U);
  EXPECT_EQ(*village->queued(in_step), 1U);

  Village calm(model_);
  ASSERT_TRUE(calm->prompt(calm.ids[0], one, LogitsWanted::kLast));
  calm.finish();
  village.finish();
  EXPECT_TRUE(same_bits(*village->last_logits(village.ids[0]), *calm->last_logits(calm.ids[0])));
  EXPECT_TRUE(same_bits(*village->last_logits(village.ids[2]), *calm->last_logits(calm.ids[2])));
  EXPECT_TRUE(same_bits(*village->take_logits(village.ids[0]), *calm->take_logits(calm.ids[0])));
}

// K06: who is taken out of an open step is what it was before, and the others commit as if it had not been
// there.
TEST_F(StoppedSteps, WhoIsCancelledInAnOpenStepLeavesNoTraceInTheOthers) {  // E5
  for (const bool closed : {false, true}) {
    Village village(model_);
    const std::uint64_t free_before = village->tokens_free() + 13;  // less what the third was promised
    const std::uint64_t accepted = (*village->look(village.ids[2]))->accepted;
    ASSERT_EQ(village->step(unit(suspend_in_the_second_pass))->outcome, Outcome::kSuspended);
    ASSERT_TRUE(closed ? village->close(village.ids[2]) : village->cancel(village.ids[2]));
    if (closed) {
      EXPECT_EQ(village->tokens(village.ids[2]).error().code(), Outcome::kNotFound);
    } else {
      EXPECT_EQ(*village->queued(village.ids[2]), 0U);
    }
    EXPECT_LT(village->tokens_free(), free_before) << "its cells are its own until the step ends";
    const auto report = village->step(unit());
    ASSERT_EQ(report->outcome, Outcome::kDone);
    EXPECT_EQ(report->tokens, 30U);
    EXPECT_EQ(village->tokens_free(), free_before);
    if (!closed) {
      EXPECT_EQ(village->tokens(village.ids[2])->size(), 0U);
      EXPECT_EQ((*village->look(village.ids[2]))->accepted, accepted);
    }
    Village calm(model_);
    calm.finish();
    EXPECT_TRUE(same_bits(*village->last_logits(village.ids[0]), *calm->last_logits(calm.ids[0])));
    EXPECT_TRUE(same_bits(*village->take_logits(village.ids[0]), *calm->take_logits(calm.ids[0])));
    village.finish();
  }
}

TEST_F(StoppedSteps, AStepWhoseConversationsAreAllTakenOutCommitsNothing) {
  Village village(model_);
  ASSERT_EQ(village->step(unit(suspend_in_the_second_pass))->outcome, Outcome::kSuspended);
  for (const ConversationId id : village.ids) ASSERT_TRUE(village->cancel(id));
  ASSERT_TRUE(village->step_is_vain());
  const auto report = village->step(unit());
  ASSERT_EQ(report->outcome, Outcome::kDone);
  EXPECT_EQ(report->tokens, 0U);
  EXPECT_EQ(village->tokens(village.ids[0])->size(), 21U);
  EXPECT_EQ(village->step()->outcome, Outcome::kIdle);
}

TEST_F(StoppedSteps, ACallbackCannotStepOrEndTheStepThatAsksIt) {
  Village village(model_);
  const auto report = village->step(unit([&](const JobView&) {
    EXPECT_EQ(village->step().error().code(), Outcome::kBusy);
    village->abandon_step();
    return Verdict::kGoOn;
  }));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->outcome, Outcome::kDone);
  EXPECT_EQ(village.digest(), finished_);
}

TEST_F(StoppedSteps, AnEngineCanEndWithAnOpenStep) {
  Village village(model_, 2);
  const auto report = village->step(unit([](const JobView&) { return Verdict::kSuspend; }));
  EXPECT_EQ(report->outcome, Outcome::kSuspended);
  EXPECT_TRUE(village->step_open());
}

TEST_F(StoppedSteps, TheCallbackSeesEveryPassAndLayerInOrder) {
  Village village(model_);
  std::uint32_t pass = 0;
  std::uint32_t layer = 0;
  std::uint64_t jobs = 0;
  const auto report = village->step(unit([&](const JobView& view) {
    EXPECT_EQ(view.passes, 3U);
    EXPECT_EQ(view.progress.layers, 3U);
    if (view.pass != pass) {
      EXPECT_EQ(view.pass, pass + 1);
      EXPECT_GE(layer, 2U) << "the pass before went through all layers";
      pass = view.pass;
      layer = 0;
      jobs = 0;
    }
    EXPECT_TRUE(view.progress.layer == layer || view.progress.layer == layer + 1);
    EXPECT_GT(view.progress.jobs, jobs);
    layer = view.progress.layer;
    jobs = view.progress.jobs;
    return Verdict::kGoOn;
  }));
  ASSERT_TRUE(report);
  EXPECT_EQ(pass, 2U);
  EXPECT_EQ(village.digest(), finished_);
}

}  // namespace
}  // namespace kvasir::engine
