// Many threads over one executor: nothing they do to their own conversations shows in another's.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "api/api_run.h"

namespace kvasir {
namespace {

using test::joined;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

constexpr int kThreads = 8;

GenerateOptions short_story() {
  return {.max_tokens = 6, .sampler = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}};
}

std::vector<std::vector<Token>> stories_alone() {
  std::vector<std::vector<Token>> all;
  for (std::uint64_t i = 0; i < 16; ++i)
    all.push_back(test::alone(some_tokens(12 + 3 * i, i), i, short_story()).tokens);
  return all;
}

// K39, without saving
TEST(Threads, EightThatCreatePromptSampleForkEditCancelAndCloseEachHearTheirOwnStory) {  // X1
  const std::vector<std::vector<Token>> expected = stories_alone();
  Executor executor = make_executor(2048, 48);
  must(executor.start());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937_64 random(static_cast<std::uint64_t>(number));
      for (int round = 0; round < 12; ++round) {
        const std::uint64_t which = random() % 16;
        const std::vector<Token> prompt = some_tokens(12 + 3 * which, which);
        Conversation talk = must(executor.conversation({.seed = which}));
        must(talk.prompt(prompt));
        Conversation other = must(talk.fork());
        if (random() % 2 == 0) must(other.prompt(some_tokens(20, random())));
        if (random() % 2 == 0) must(other.cancel());
        Generation story = must(talk.generate(short_story()));
        const std::vector<Token> said = must(story.rest()).tokens;
        if (said != expected[which]) ++wrong;
        must(talk.wait());
        if (must(talk.tokens()) != joined(prompt, said)) ++wrong;
        must(talk.rewind(prompt.size()));
        must(talk.refresh());
        must(talk.wait());
        // As many were accepted as prompted, drawn and refreshed, so this is a new draw.
        static_cast<void>(must(talk.sample()));
        other.close();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  must(executor.stop());
  EXPECT_EQ(executor.cache().held, 0U);
  EXPECT_EQ(executor.cache().promised, 0U);
}

TEST(Threads, ThoseThatWaitStepForEachOtherWhereNoWorkerRuns) {
  const std::vector<std::vector<Token>> expected = stories_alone();
  Executor executor = make_executor(2048, 48);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (std::uint64_t round = 0; round < 6; ++round) {
        const std::uint64_t which = (number * 5 + round) % 16;
        Conversation talk = must(executor.conversation({.seed = which}));
        must(talk.prompt(some_tokens(12 + 3 * which, which)));
        if (must(must(talk.generate(short_story())).rest()).tokens != expected[which]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, AHandleThatOneClosesAnswersTheOthersOneWayOrTheOther) {
  Executor executor = make_executor(512);
  must(executor.start());
  for (int round = 0; round < 50; ++round) {
    Conversation talk = must(executor.conversation());
    must(talk.prompt(some_tokens(20, 1)));
    std::vector<std::thread> threads;
    std::atomic<int> unexpected = 0;
    for (int number = 0; number < 3; ++number) {
      threads.emplace_back([&, number] {
        const auto note = [&](Outcome outcome) {
          unexpected += outcome != Outcome::kDone && outcome != Outcome::kWrongState;
        };
        for (int call = 0; call < 20; ++call) {
          note(outcome_of(talk.prompt(some_tokens(1, 2))));
          note(outcome_of(talk.tokens()));
          note(outcome_of(talk.fork()));
          static_cast<void>(talk.state());
          if (number == 0 && call == 10) talk.close();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(unexpected, 0);
    EXPECT_EQ(talk.state(), ConversationState::kClosed);
  }
}

TEST(Threads, AWorkerIsStartedAndStoppedWhileOthersWait) {
  Executor executor = make_executor(1024, 16);
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (std::uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (std::uint64_t round = 0; round < 20; ++round) {
        Conversation talk = must(executor.conversation());
        must(talk.prompt(some_tokens(40, number * 100 + round)));
        must(talk.wait());
        done += talk.length() == 40 ? 1 : 0;
      }
    });
  }
  std::atomic<bool> stop = false;
  std::thread switching([&] {
    while (!stop) {
      must(executor.start());
      must(executor.stop());
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  switching.join();
  EXPECT_EQ(done, 80);
}

// Whoever waits, steps or reads lets go when the executor closes, and is told; nobody keeps it from closing.
TEST(Threads, AnExecutorClosesWhileOthersStepItWithoutAPause) {
  for (int round = 0; round < 24; ++round) {
    Executor executor = make_executor(4096, 16);
    std::vector<Conversation> talks;
    for (std::uint64_t i = 0; i < 4; ++i) talks.push_back(must(executor.conversation()));
    for (std::uint64_t i = 0; i < 4; ++i) must(talks[i].prompt(some_tokens(900, i)));
    if (round % 3 == 1) must(executor.start());
    std::vector<Outcome> told(5, Outcome::kDone);
    std::optional<Generation> story;
    if (round % 2 == 0) story = must(talks[3].generate({.max_tokens = 400, .ignore_end = true, .outbox = 1}));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] { told[i] = outcome_of(talks[i].wait()); });
    threads.emplace_back([&] {
      while (told[3] == Outcome::kDone) told[3] = outcome_of(executor.run_until_idle());
    });
    threads.emplace_back([&] {
      while (story) {
        const auto piece = story->next();
        told[4] = outcome_of(piece);
        if (!piece || !*piece) return;
      }
    });
    while (executor.metrics().steps < 3) std::this_thread::yield();
    executor.close();
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(told[i], Outcome::kWrongState) << i;
    EXPECT_TRUE(told[4] == Outcome::kDone || told[4] == Outcome::kWrongState);
    if (story && told[4] == Outcome::kDone) {
      EXPECT_EQ(story->finish(), Finish::kCancelled);
    }
  }
}

}  // namespace
}  // namespace kvasir
