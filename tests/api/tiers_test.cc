// Conversations whose cells are put away, as a program of the public API meets them.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "api/api_run.h"
#include "support/allocations.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::joined;
using test::make_executor;
using test::must;
using test::options_of;
using test::outcome_of;
using test::some_tokens;

// A small pool, less memory, and a disk.
ExecutorOptions tiered(std::uint64_t pool, std::uint64_t memory = 1 << 20, std::uint64_t disk = 0) {
  ExecutorOptions options = options_of(pool, 48);
  options.share_prefixes = false;
  options.memory_tier_bytes = memory;
  options.disk_tier_bytes = disk;
  if (disk > 0) options.spill_directory = test::scratch_directory();
  return options;
}

GenerateOptions story(std::uint64_t tokens, bool reserve = true) {
  return {.max_tokens = tokens,
          .sampler = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0},
          .ignore_end = true,
          .reserve = reserve};
}

TEST(Tiers, AConversationThatWasPutAwayIsAskedAndAnswersAsBefore) {
  Executor executor = make_executor(tiered(256));
  Conversation talk = must(executor.conversation());
  const std::vector<Token> words = some_tokens(60, 1);
  must(talk.prompt(words));
  must(talk.wait());
  const std::vector<float> row = test::logits_of(talk);
  must(talk.spill());
  EXPECT_EQ(talk.state(), ConversationState::kSpilled);
  EXPECT_EQ(talk.info().spilled, 60);
  EXPECT_EQ(talk.info().length, 60);
  EXPECT_EQ(executor.cache().spilled, 1);
  EXPECT_EQ(executor.cache().held, 0);
  EXPECT_GT(executor.cache().memory_tier_bytes, 0);
  EXPECT_EQ(must(talk.tokens()), words);
  EXPECT_EQ(test::logits_of(talk), row);
  must(talk.prompt(some_tokens(5, 2)));
  must(talk.wait());
  EXPECT_EQ(test::logits_of(talk), test::cold_logits(joined(words, some_tokens(5, 2))));
  EXPECT_EQ(talk.state(), ConversationState::kReady);
  EXPECT_EQ(executor.cache().memory_tier_bytes, 0);
  EXPECT_EQ(executor.metrics().returns, 1);
  EXPECT_EQ(executor.metrics().bytes_returned, executor.metrics().bytes_spilled);
  EXPECT_EQ(executor.metrics().recomputed, 0);
  EXPECT_EQ(executor.metrics().prompted, 65);
}

TEST(Tiers, ADroppedConversationIsComputedAgain) {
  Executor executor = make_executor(tiered(256, 0));
  Conversation talk = must(executor.conversation());
  const std::vector<Token> words = some_tokens(60, 1);
  must(talk.prompt(words));
  must(talk.wait());
  EXPECT_EQ(outcome_of(talk.spill()), Outcome::kUnsupported);
  must(talk.drop());
  EXPECT_EQ(talk.state(), ConversationState::kDropped);
  EXPECT_EQ(talk.info().dropped, 60);
  EXPECT_EQ(talk.info().position, 60);
  EXPECT_EQ(talk.length(), 60);
  EXPECT_EQ(must(talk.tokens()), words);
  EXPECT_EQ(outcome_of(talk.remove(3, 4)), Outcome::kWrongState);
  must(talk.prompt(some_tokens(5, 2)));
  EXPECT_EQ(talk.info().queued, 5);
  must(talk.wait());
  EXPECT_EQ(test::logits_of(talk), test::cold_logits(joined(words, some_tokens(5, 2))));
  EXPECT_EQ(executor.metrics().recomputed, 60);
  EXPECT_EQ(executor.metrics().prompted, 65);
}

TEST(Tiers, EditsBringBackWhatTheyRewrite) {
  Executor executor = make_executor(tiered(256));
  Executor calm = make_executor(tiered(256));
  const auto play = [](Executor& on, bool away) {
    Conversation talk = must(on.conversation());
    must(talk.prompt(some_tokens(40, 1)));
    must(talk.wait());
    if (away) must(talk.spill());
    const EditOperation divide{EditOperation::Kind::kDivide, 0, 40, 2};
    must(talk.edit({&divide, 1}));
    if (away) must(talk.spill());
    must(talk.reserve(10));
    must(talk.prompt(some_tokens(4, 2)));
    must(talk.wait());
    return test::logits_of(talk);
  };
  EXPECT_EQ(play(executor, true), play(calm, false));
  EXPECT_EQ(executor.metrics().returns, 2);
}

TEST(Tiers, SizesThatMakeNoSenseAreRefusedByTheirNames) {
  ExecutorOptions options = tiered(64, 0);
  options.disk_tier_bytes = 1 << 20;
  EXPECT_EQ(Executor::create(test::model(), options).error().numbers().setting, "memory_tier_bytes");
  options.memory_tier_bytes = 1 << 20;
  EXPECT_EQ(Executor::create(test::model(), options).error().numbers().setting, "spill_directory");
  options.spill_directory = "/no/such/directory";
  EXPECT_EQ(Executor::create(test::model(), options).error().numbers().setting, "spill_directory");
  options.disk_tier_bytes = UINT64_MAX;
  EXPECT_EQ(Executor::create(test::model(), options).error().numbers().setting, "spill_directory");
  options.spill_directory = test::scratch_directory();
  const auto endless = Executor::create(test::model(), options);
  ASSERT_EQ(outcome_of(endless), Outcome::kOutOfMemory);
  EXPECT_EQ(endless.error().numbers().wanted, UINT64_MAX);
  EXPECT_EQ(endless.error().numbers().setting, "disk_tier_bytes");
}

// Without reserving, so that all of them run out of room in the middle.
TEST(Tiers, WhereAllRunOutOfRoomOneAfterTheOtherGoesOn) {
  for (const bool worker : {false, true}) {
    Executor executor = make_executor(tiered(96));
    if (worker) must(executor.start());
    std::vector<Conversation> talks;
    std::vector<Generation> stories;
    for (std::uint64_t i = 0; i < 3; ++i) {
      talks.push_back(must(executor.conversation({.seed = i})));
      must(talks.back().prompt(some_tokens(20, i)));
      stories.push_back(must(talks.back().generate(story(50, false))));
    }
    std::vector<std::vector<Token>> said(3);
    // All of them are read, in turns, so that none waits for its reader.
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < 3; ++i) {
        const auto piece = must(stories[i].next());
        if (!piece) continue;
        any = true;
        said[i].insert(said[i].end(), piece->tokens.begin(), piece->tokens.end());
      }
    }
    for (std::uint64_t i = 0; i < 3; ++i)
      EXPECT_EQ(said[i], test::alone(some_tokens(20, i), i, story(50)).tokens) << i;
    EXPECT_GT(executor.metrics().paused, 0);
    EXPECT_EQ(executor.metrics().generated, 150);
  }
}

// K75: ten that generate, each put away several times by copy and by dropping.
TEST(Tiers, WhoeverIsPutAwayWhileItGeneratesSaysWhatItWouldHaveSaid) {
  Executor executor = make_executor(tiered(160, 24 << 10, 1 << 20));
  std::vector<Conversation> talks;
  std::vector<std::vector<Token>> said(10);
  for (std::uint64_t i = 0; i < 10; ++i) {
    talks.push_back(must(executor.conversation({.seed = i})));
    must(talks.back().prompt(some_tokens(15 + i, i)));
  }
  for (int round = 0; round < 6; ++round) {
    for (std::size_t i = 0; i < 10; ++i) {
      Generation generation = must(talks[i].generate(story(6)));
      const std::vector<Token> more = must(generation.rest()).tokens;
      EXPECT_EQ(more.size(), 6);
      said[i].insert(said[i].end(), more.begin(), more.end());
      must(talks[i].wait());
      if (round % 2 == 0) {
        must(talks[i].spill());
      } else if (i % 2 == 0) {
        must(talks[i].drop());
      }
    }
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::vector<Token> prompt = some_tokens(15 + i, i);
    EXPECT_EQ(said[i], test::alone(prompt, i, story(36)).tokens) << i;
    EXPECT_EQ(must(talks[i].tokens()), joined(prompt, said[i]));
  }
  EXPECT_EQ(executor.metrics().generated, 360);
  EXPECT_EQ(executor.metrics().prompted, 195);
  EXPECT_GT(executor.metrics().recomputed, 0);
  EXPECT_GT(executor.metrics().bytes_returned, 0);
}

// K16: a long prompt is being computed when others want to put the conversation away.
TEST(Tiers, ACallInTheMiddleOfAPromptWaitsOrIsRefused) {
  Executor executor = make_executor(tiered(1024));
  must(executor.start());
  for (int round = 0; round < 10; ++round) {
    Conversation talk = must(executor.conversation());
    must(talk.prompt(some_tokens(300, 1)));
    std::atomic<int> unexpected = 0;
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
      threads.emplace_back([&, number] {
        const Status done = number == 1 ? talk.drop() : talk.spill();
        if (!done && done.error().code() != Outcome::kWrongState) ++unexpected;
      });
    }
    for (std::thread& thread : threads) thread.join();
    must(talk.wait());
    EXPECT_EQ(unexpected, 0);
    EXPECT_EQ(must(talk.tokens()), some_tokens(300, 1));
    must(talk.prompt(some_tokens(3, 2)));
    must(talk.wait());
    EXPECT_EQ(test::logits_of(talk), test::cold_logits(joined(some_tokens(300, 1), some_tokens(3, 2))));
  }
}

// K39, with a pool for few, and K09 from many threads: they put away, drop, cancel and go on as they like.
TEST(Tiers, EightThreadsOverAPoolForFewHearTheirOwnStories) {
  std::vector<std::vector<Token>> expected;
  for (std::uint64_t i = 0; i < 8; ++i)
    expected.push_back(test::alone(some_tokens(30, i), i, story(12)).tokens);
  Executor executor = make_executor(tiered(160, 32 << 10, 1 << 22));
  must(executor.start());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937_64 random(number);
      for (int round = 0; round < 8; ++round) {
        Conversation talk = must(executor.conversation({.seed = number}));
        must(talk.prompt(some_tokens(30, number)));
        must(talk.wait());
        if (random() % 2 == 0) must(talk.spill());
        if (random() % 3 == 0) must(talk.drop());
        Conversation other = must(talk.fork());
        if (random() % 2 == 0) {
          must(other.prompt(some_tokens(9, random())));
          must(other.cancel());
        }
        if (must(must(talk.generate(story(12))).rest()).tokens != expected[number]) ++wrong;
        must(talk.wait());
        if (random() % 2 == 0) must(talk.spill());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  must(executor.stop());
  EXPECT_EQ(executor.cache().held, 0);
  EXPECT_EQ(executor.cache().memory_tier_bytes, 0);
}

// K08: everything ends in the callback that says that somebody is done, while others are on their way.
TEST(Tiers, EndingEverythingFromACallbackWhileCellsMoveIsSafe) {
  for (int round = 0; round < 100; ++round) {
    auto executor = std::make_unique<Executor>(make_executor(tiered(128, 16 << 10, 1 << 20)));
    std::vector<std::unique_ptr<Conversation>> talks;
    for (std::uint64_t i = 0; i < 5; ++i) {
      talks.push_back(std::make_unique<Conversation>(must(executor->conversation())));
      must(talks.back()->prompt(some_tokens(40, i)));
      must(talks.back()->wait());
    }
    must(executor->start());
    std::atomic<bool> called = false;
    for (std::size_t i = 0; i < 5; ++i) must(talks[i]->prompt(some_tokens(3, i)));
    must(talks[0]->when_ready([&](const Status&) {
      talks[0]->close();
      executor->close();
      called = true;
    }));
    while (!called) std::this_thread::yield();
    talks.clear();
    executor.reset();
  }
}

// K71: of ten thousand requests with errors, cancels, forks and saves nothing piles up.
TEST(Tiers, TenThousandShortRequestsTakeNoMoreAndMoreMemory) {
  Executor executor = make_executor(tiered(160, 32 << 10, 1 << 20));
  const auto requests = [&](int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
      Conversation talk = must(executor.conversation());
      EXPECT_EQ(outcome_of(talk.prompt(std::vector<Token>{-5})), Outcome::kInvalidArgument);
      must(talk.prompt(some_tokens(20 + random() % 30, random())));
      must(talk.wait());
      if (random() % 2 == 0) must(talk.spill());
      if (random() % 4 == 0) {
        EXPECT_FALSE(must(talk.save_bytes()).empty());
      }
      Conversation child = must(talk.fork());
      must(child.prompt(some_tokens(4, random())));
      if (random() % 2 == 0) must(child.cancel());
      must(child.wait());
      if (random() % 4 == 0) must(child.drop());
    }
  };
  requests(1000, 1);
  const test::AllocationMeter meter;
  requests(1000, 2);
  const std::int64_t once = meter.now();
  requests(8000, 3);
  // Places that grew to the most that was ever wanted stay; a byte for each request would be more.
  EXPECT_LT(meter.now(), std::max<std::int64_t>(once, 0) + 8000);
  EXPECT_EQ(executor.cache().memory_tier_bytes, 0);
  EXPECT_EQ(executor.cache().held, 0);
}

}  // namespace
}  // namespace kvasir
