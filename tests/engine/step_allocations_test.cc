// A step in steady state takes next to no memory: what it needs it keeps from step to step.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/executor.h"
#include "support/allocations.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kMost = 16;
constexpr std::uint64_t kLargest = 4096;

class StepAllocations : public testing::TestWithParam<std::size_t> {
 protected:
  StepAllocations() { make(false); }

  void make(bool share_prefixes, std::uint64_t pool = 32'768) {
    ExecutorSettings settings;
    settings.engine.pool = pool;
    settings.engine.context = 16'384;
    settings.engine.share_prefixes = share_prefixes;
    executor_ = *Executor::create(model_.model, *parallel::ThreadPool::create(1), settings);
  }

  ConversationId open(std::uint64_t number, std::size_t tokens = 40) {
    const ConversationId id = *executor_->change([](Engine& engine) { return engine.open(); });
    const auto prompt = kvasir::test::random_tokens(model_.vocabulary(), tokens + 7 * number, number);
    EXPECT_TRUE(
        executor_->change([&](Engine& engine) { return engine.prompt(id, prompt, LogitsWanted::kLast); }));
    return id;
  }
  std::vector<ConversationId> open_some() {
    std::vector<ConversationId> ids;
    while (ids.size() < GetParam()) ids.push_back(open(ids.size()));
    return ids;
  }

  void generate(ConversationId id, bool reserve) {
    generations_.push_back(*TextGeneration::create(
        *tokenizer_, {.max_tokens = 150, .ignore_end = true, .outbox = 150, .reserve = reserve}));
    ASSERT_TRUE(executor_->generate(id, generations_.back()));
  }

  // Until all are computed and generate, and each has drawn a few.
  void settle() {
    for (int step = 0; step < 30; ++step) ASSERT_TRUE(executor_->step({}));
  }

  void expect_few() {
    for (int step = 0; step < 70; ++step) {
      const test::AllocationCount taken;
      const auto report = executor_->step({});
      const std::uint64_t count = taken.count();
      const std::uint64_t largest = taken.largest();
      ASSERT_TRUE(report);
      ASSERT_EQ(report->outcome, Outcome::kDone);
      EXPECT_LE(count, kMost) << "step " << step;
      EXPECT_LE(largest, kLargest) << "step " << step;
    }
  }

  kvasir::test::LoadedModel model_ = kvasir::test::load(kvasir::test::tiny_talker({.vocabulary = 2'000}));
  std::unique_ptr<const text::Tokenizer> tokenizer_ = *text::Tokenizer::load(*model_.file);
  std::shared_ptr<Executor> executor_;
  std::vector<std::shared_ptr<TextGeneration>> generations_;
};

TEST_P(StepAllocations, AreFewWhereConversationsGenerate) {
  const std::vector<ConversationId> ids = open_some();
  for (const ConversationId id : ids) generate(id, true);
  settle();
  expect_few();
}

// Then nothing is known beforehand but how long it may get.
TEST_P(StepAllocations, AreFewWhereNoRoomIsReserved) {
  const std::vector<ConversationId> ids = open_some();
  for (const ConversationId id : ids) generate(id, false);
  settle();
  expect_few();
}

// All begin a page in the same step, and their histories grow in step; each page is entered into the index.
TEST_P(StepAllocations, AreFewForForksInStepWithOneAnother) {
  make(true);
  const ConversationId first = open(1);
  ASSERT_TRUE(executor_->step({}));
  std::vector<ConversationId> ids = {first};
  while (ids.size() < GetParam())
    ids.push_back(*executor_->change([&](Engine& engine) { return engine.fork(first); }));
  for (const ConversationId id : ids) generate(id, true);
  settle();
  expect_few();
}

// A list of all tokens or spans is larger than what a step may take.
TEST_P(StepAllocations, AreFewAndSmallWhereHistoriesAreLong) {
  const std::size_t each = 8'000 / GetParam();
  std::vector<ConversationId> ids;
  while (ids.size() < GetParam()) ids.push_back(open(ids.size(), each));
  while (executor_->step({})->outcome == Outcome::kDone) {
  }
  for (const ConversationId id : ids) generate(id, true);
  settle();
  expect_few();
}

// A page that becomes full is entered into the index.
TEST_P(StepAllocations, AreFewWhereBeginningsAreShared) {
  make(true);
  const std::vector<ConversationId> ids = open_some();
  for (const ConversationId id : ids) generate(id, true);
  settle();
  expect_few();
}

// Others wait for room that there is not, and are in each report.
TEST_P(StepAllocations, AreFewWhereOthersWaitForRoom) {
  make(false, 16'384);
  const std::vector<ConversationId> ids = open_some();
  for (const ConversationId id : ids) generate(id, true);
  for (std::size_t i = 0; i < GetParam(); ++i) open(0, 16'200);
  settle();
  const auto report = executor_->step({});
  ASSERT_TRUE(report);
  EXPECT_GE(std::ranges::count(report->conversations, Outcome::kNoSpace, &ConversationReport::outcome),
            static_cast<std::ptrdiff_t>(GetParam()));
  expect_few();
}

INSTANTIATE_TEST_SUITE_P(OfSoMany, StepAllocations, testing::Values(1, 4, 8, 16, 32),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace kvasir::engine
