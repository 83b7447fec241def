// Callbacks: called once, with no lock held, from whoever steps; what they may do and what they may not.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "api/api_run.h"
#include "api/parts.h"

namespace kvasir {
namespace {

using test::cold_logits;
using test::logits_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

// A callback from another thread while ours is in one would wait forever for a lock that ours holds.
template <class Call>
void from_another_thread(const Call& call) {
  std::thread(call).join();
}

void wait_until(const std::atomic<int>& count, int least) {
  while (count < least) std::this_thread::yield();
}

TEST(Callbacks, NoLockIsHeldWhileOneRuns) {  // X2
  int low = 0;
  Executor* executor = nullptr;
  Conversation* talk = nullptr;
  const auto query = [&] {
    from_another_thread([&] {
      EXPECT_EQ(talk->seed(), 3U);
      EXPECT_GT(executor->cache().pool, 0U);
      EXPECT_TRUE(executor->conversation());
    });
  };
  ExecutorOptions options = test::options_of(128);
  options.low_space_tokens = 100;
  options.on_low_space = [&](const CacheInfo& info) {
    ++low;
    EXPECT_EQ(info.free, 88U);
    query();
  };
  Executor made = make_executor(options);
  executor = &made;
  Conversation first = must(made.conversation({.seed = 3}));
  talk = &first;
  must(first.prompt(some_tokens(40, 1)));
  int ready = 0;
  must(first.when_ready([&](const Status& status) {
    ++ready;
    EXPECT_EQ(outcome_of(status), Outcome::kDone);
    query();
  }));
  int jobs = 0;
  Budget budget;
  budget.between_jobs = [&](const JobView&) {
    ++jobs;
    query();
    return Verdict::kGoOn;
  };
  must(made.step(budget));
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(low, 1);
  EXPECT_GT(jobs, 2);
  must(first.prompt(some_tokens(1, 2)));
  must(first.wait());
  EXPECT_EQ(low, 1);  // it was low before
  EXPECT_EQ(ready, 1);
  // Once there was room again, it is told anew.
  must(first.rewind(20));
  must(first.prompt(some_tokens(1, 2)));
  must(first.wait());
  EXPECT_EQ(low, 1);
  must(first.prompt(some_tokens(19, 2)));
  must(first.wait());
  EXPECT_EQ(low, 2);
}

// Draws one token, and looks around while it does.
class LookingDrawer final : public engine::Drawer {
 public:
  explicit LookingDrawer(std::function<void()> look) : look_(std::move(look)) {}
  [[nodiscard]] bool has_place() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t tokens_ahead() const noexcept override { return 1; }
  [[nodiscard]] Result<engine::Draw> draw(const engine::Row& /*logits*/, std::uint64_t /*seed*/,
                                          std::uint64_t /*accepted*/, std::uint64_t /*room*/) override {
    ++drawn;
    look_();
    return engine::Draw{.token = 7};
  }
  void publish() noexcept override { ++published; }
  void end(const Error* /*error*/) noexcept override { ++ended; }

  int drawn = 0;
  int published = 0;
  int ended = 0;

 private:
  std::function<void()> look_;
};

// The first draw of a generation whose logits are there, that of a step, and the first of one that begins
// while the step draws for another.
TEST(Draws, AreMadeWithNoLockHeld) {
  Executor executor = make_executor(128);
  engine::Executor& inside = *api::Inside::core(executor)->executor;
  Conversation first = must(executor.conversation());
  Conversation second = must(executor.conversation());
  const auto query = [&] {
    from_another_thread([&] {
      EXPECT_GT(executor.cache().pool, 0U);
      EXPECT_EQ(outcome_of(first.prompt(some_tokens(1, 1))), Outcome::kWrongState) << "it generates";
    });
  };
  must(first.prompt(some_tokens(10, 1)));
  must(first.wait());
  const auto at_once = std::make_shared<LookingDrawer>(query);
  must(inside.generate(first.id(), at_once));
  EXPECT_EQ(at_once->published, 1);
  EXPECT_EQ(first.info().queued, 1U);
  must(first.wait());
  EXPECT_EQ(must(first.tokens()).back(), 7);

  const auto late = std::make_shared<LookingDrawer>(
      [&] { from_another_thread([&] { EXPECT_GT(executor.cache().pool, 0U); }); });
  const auto in_step = std::make_shared<LookingDrawer>([&] {
    query();
    must(inside.generate(second.id(), late));
    EXPECT_EQ(late->drawn, 0) << "its logits show with the commit";
  });
  must(first.prompt(some_tokens(3, 2)));
  must(second.prompt(some_tokens(5, 3)));
  must(inside.generate(first.id(), in_step));
  must(executor.step());
  EXPECT_EQ(in_step->published, 1);
  EXPECT_EQ(late->published, 1);
  EXPECT_EQ(second.info().queued, 1U);
  must(executor.run_until_idle());
  EXPECT_EQ(must(second.tokens()).back(), 7);
  EXPECT_EQ(at_once->drawn + in_step->drawn + late->drawn, 3);
}

TEST(Draws, ThatWereCancelledMeanwhileBringNothing) {
  Executor executor = make_executor(128);
  engine::Executor& inside = *api::Inside::core(executor)->executor;
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(10, 1)));
  must(talk.wait());
  const auto cancelled = std::make_shared<LookingDrawer>([&] { must(talk.cancel()); });
  must(inside.generate(talk.id(), cancelled));
  EXPECT_EQ(cancelled->published, 0);
  EXPECT_EQ(cancelled->ended, 1);
  EXPECT_EQ(talk.info().queued, 0U);
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kIdle);
  const auto closed = std::make_shared<LookingDrawer>([&] { talk.close(); });
  must(inside.generate(talk.id(), closed));
  EXPECT_EQ(closed->published, 0);
  EXPECT_EQ(closed->ended, 1);
  EXPECT_EQ(executor.cache().held, 0U);
}

TEST(Callbacks, WaitingForTheStepThatCalledIsAWrongState) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  Conversation other = must(executor.conversation());
  must(other.prompt(some_tokens(20, 2)));
  must(other.wait());
  Generation story = must(other.generate({.max_tokens = 4, .ignore_end = true}));
  must(story.next());
  must(talk.prompt(some_tokens(20, 1)));
  std::vector<Outcome> inside;
  must(talk.when_ready([&](const Status&) {
    inside = {outcome_of(other.wait()), outcome_of(other.wait_for(std::chrono::hours(1))),
              outcome_of(story.rest()), outcome_of(story.rest()), outcome_of(executor.step())};
  }));
  must(executor.step());
  ASSERT_EQ(inside.size(), 5U);
  EXPECT_EQ(inside[0], Outcome::kWrongState);
  EXPECT_EQ(inside[1], Outcome::kWrongState);
  EXPECT_EQ(inside[2], Outcome::kDone) << "what the step drew is there";
  EXPECT_EQ(inside[3], Outcome::kWrongState);
  EXPECT_EQ(inside[4], Outcome::kBusy);
  EXPECT_EQ(must(other.wait_for(std::chrono::nanoseconds(0))), false);
}

TEST(Callbacks, OneMayPromptAgainAndIsCalledForThatToo) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  std::vector<std::uint64_t> lengths;
  std::function<void(const Status&)> again = [&](const Status& status) {
    EXPECT_EQ(outcome_of(status), Outcome::kDone);
    lengths.push_back(talk.length());
    if (lengths.size() == 4) return;
    must(talk.prompt(some_tokens(5, lengths.size())));
    must(talk.when_ready(again));
  };
  must(talk.prompt(some_tokens(5, 0)));
  must(talk.when_ready(again));
  must(executor.run_until_idle());
  EXPECT_EQ(lengths, (std::vector<std::uint64_t>{5, 10, 15, 20}));
}

TEST(Callbacks, AllOfOneConversationAreCalledOnceEach) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(50, 0)));
  std::vector<int> called(20, 0);
  for (int& count : called) must(talk.when_ready([&](const Status&) { ++count; }));
  must(executor.run_until_idle());
  EXPECT_EQ(called, std::vector(20, 1));
}

TEST(Callbacks, TheExecutorMayBeClosedFromOne) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  Conversation other = must(executor.conversation());
  must(other.prompt(some_tokens(5, 2)));
  must(other.wait());
  must(talk.prompt(some_tokens(20, 1)));
  Generation story = must(other.generate({.max_tokens = 50, .ignore_end = true}));
  must(talk.when_ready([&](const Status&) { executor.close(); }));
  must(executor.step());
  EXPECT_EQ(talk.state(), ConversationState::kClosed);
  EXPECT_EQ(outcome_of(executor.step()), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(story.rest()), Outcome::kDone);
  EXPECT_EQ(story.finish(), Finish::kCancelled);
  EXPECT_EQ(executor.cache().held, 0U);
}

TEST(Callbacks, TheExecutorMayBeClosedFromBetweenTwoJobsAndTheStepIsUndone) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(20, 1)));
  int asked = 0;
  Budget budget;
  budget.between_jobs = [&](const JobView&) {
    ++asked;
    executor.close();
    return Verdict::kGoOn;
  };
  EXPECT_EQ(must(executor.step(budget)).tokens, 0U);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(talk.state(), ConversationState::kClosed);
  EXPECT_EQ(executor.cache().held, 0U);
}

TEST(Callbacks, TheExecutorMayBeClosedFromOneThatItsWorkerCalls) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  std::atomic<int> called = 0;
  must(talk.when_ready([&](const Status&) { ++called; }));
  EXPECT_EQ(called, 1);
  must(talk.prompt(some_tokens(20, 1)));
  must(talk.when_ready([&](const Status&) {
    EXPECT_EQ(outcome_of(executor.stop()), Outcome::kWrongState);
    executor.close();
    ++called;
  }));
  must(executor.start());
  wait_until(called, 2);
  EXPECT_EQ(outcome_of(talk.prompt("more")), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.start()), Outcome::kWrongState);
}

// K08, without a save under way
TEST(Callbacks, ConversationAndExecutorMayBeDestroyedInOneBySomebodyElsesThreadOrByTheCallers) {
  for (int round = 0; round < 1000; ++round) {
    auto executor = std::make_unique<Executor>(make_executor(64));
    auto talk = std::make_unique<Conversation>(must(executor->conversation()));
    auto other = std::make_unique<Conversation>(must(executor->conversation()));
    must(other->prompt(some_tokens(3, 2)));
    must(talk->prompt(some_tokens(4, 1)));
    std::atomic<int> destroyed = 0;
    const auto destroy = [&](const Status&) {
      talk.reset();
      executor.reset();
      ++destroyed;
    };
    must(talk->when_ready(destroy));
    if (round % 3 == 0) {
      must(executor->step());
    } else if (round % 3 == 1) {
      EXPECT_EQ(outcome_of(talk->wait()), Outcome::kWrongState);  // closed meanwhile
    } else {
      must(executor->start());
      wait_until(destroyed, 1);
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(other->state(), ConversationState::kClosed);
  }
}

TEST(Callbacks, WhatOneHoldsIsDestroyedWithNoLockHeld) {
  auto executor = std::make_shared<Executor>(make_executor(64));
  Conversation talk = must(executor->conversation());
  must(talk.prompt(some_tokens(4, 1)));
  // The callback is the last that holds the executor.
  must(talk.when_ready([held = executor](const Status&) { EXPECT_TRUE(held); }));
  Executor& still_there = *executor;
  executor.reset();
  must(still_there.step());
  EXPECT_EQ(talk.state(), ConversationState::kClosed);
}

TEST(Callbacks, AWorkersConversationsAreWaitedForByManyThreads) {
  Executor executor = make_executor(1024, 16);
  must(executor.start());
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Conversation talk = must(executor.conversation());
      must(talk.prompt(some_tokens(60, i)));
      if (i % 2 == 0) {
        must(talk.wait());
      } else {
        EXPECT_TRUE(must(talk.wait_for(std::chrono::hours(1))));
      }
      EXPECT_EQ(talk.length(), 60U);
    });
  }
  for (std::thread& thread : threads) thread.join();
  must(executor.stop());
  EXPECT_EQ(executor.metrics().prompted, 480U);
}

TEST(Callbacks, AnEditWaitsForTheStepOfAWorkerAndIsBusyFromACallback) {  // X3
  Executor executor = make_executor(1024, 512);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(300, 1)));
  must(executor.start());
  while (talk.state() == ConversationState::kQueued) std::this_thread::yield();
  must(talk.rewind(100));  // waits for the step, then takes back what it brought
  EXPECT_EQ(talk.length(), 100U);
  must(talk.refresh());
  must(talk.wait());
  const std::vector<Token> tokens = some_tokens(300, 1);
  EXPECT_EQ(logits_of(talk), cold_logits(std::span(tokens).first(100)));
}

}  // namespace
}  // namespace kvasir
