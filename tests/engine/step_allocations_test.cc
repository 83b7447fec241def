// A step in steady state takes next to no memory: what it needs it keeps from step to step.

#include <gtest/gtest.h>

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
  StepAllocations() {
    ExecutorSettings settings;
    settings.engine.pool = 16'384;
    // A page that becomes full is entered into the index, which takes memory: not here.
    settings.engine.share_prefixes = false;
    executor_ = *Executor::create(model_.model, *parallel::ThreadPool::create(1), settings);
  }

  // Of different lengths, so that they do not all begin a page in the same step.
  ConversationId open() {
    const ConversationId id = *executor_->change([](Engine& engine) { return engine.open(); });
    const auto prompt =
        kvasir::test::random_tokens(model_.vocabulary(), 40 + 7 * static_cast<std::uint64_t>(id), 1);
    EXPECT_TRUE(
        executor_->change([&](Engine& engine) { return engine.prompt(id, prompt, LogitsWanted::kLast); }));
    return id;
  }

  void expect_few() {
    for (int step = 0; step < 20; ++step) {
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
  std::shared_ptr<Executor> executor_;
};

TEST_P(StepAllocations, AreFewWhereConversationsGenerate) {
  const auto tokenizer = text::Tokenizer::load(*model_.file);
  std::vector<std::shared_ptr<TextGeneration>> generations;
  for (std::size_t i = 0; i < GetParam(); ++i) {
    const ConversationId id = open();
    generations.push_back(
        *TextGeneration::create(**tokenizer, {.max_tokens = 100, .ignore_end = true, .outbox = 100}));
    ASSERT_TRUE(executor_->change([&](Engine& engine) { return engine.generate(id, generations.back()); }));
  }
  // Buffers grow to what they need, and the longest history to the next power of two.
  for (int step = 0; step < 45; ++step) ASSERT_TRUE(executor_->step({}));
  expect_few();
}

INSTANTIATE_TEST_SUITE_P(OfSoMany, StepAllocations, testing::Values(1, 4), testing::PrintToStringParamName());

}  // namespace
}  // namespace kvasir::engine
