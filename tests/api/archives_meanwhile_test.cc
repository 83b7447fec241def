// Archives that are written and read while others compute, from callbacks, by several threads, and until
// somebody ends it.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/api_run.h"
#include "api/future.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::digest_of;
using test::Future;
using test::future_of;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::options_of;
using test::outcome_of;
using test::say;
using test::some_tokens;

// K16
TEST(Archives, LoadedByThreeThreadsAtOnceLeaveExactlyOneOfThem) {
  Executor executor = make_executor(options_of(4096, 16));
  std::vector<std::vector<std::byte>> archives;
  std::vector<Future> futures;
  for (std::uint64_t i = 0; i < 3; ++i) {
    Conversation source = must(executor.conversation());
    say(source, 20 + 10 * i, 1 + i);
    archives.push_back(must(source.save_bytes()));
    futures.push_back(future_of(source, 8));
  }
  must(executor.start());
  for (int round = 0; round < 5; ++round) {
    Conversation target = must(executor.conversation());
    must(target.prompt(some_tokens(600, 9)));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        const auto loaded = target.load(archives[i]);
        EXPECT_TRUE(loaded.has_value() || loaded.error().code() == Outcome::kBusy);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Future future = future_of(target, 8);
    EXPECT_NE(std::ranges::find(futures, future), futures.end());
  }
  must(executor.stop());
}

// A save goes on while others compute, whose results it does not change, and shows the moment it began.
TEST(Archives, AreWrittenWhileOthersAndItselfGoOn) {
  Executor executor = make_executor(options_of(2048, 32));
  Conversation talk = must(executor.conversation());
  say(talk, 100, 1);
  Conversation other = must(executor.conversation());
  must(talk.prompt(some_tokens(60, 2)));
  must(other.prompt(some_tokens(90, 3)));
  std::vector<std::byte> archive;
  int calls = 0;
  // Each piece of it is written between two jobs of others.
  must(talk.save(
      [&](std::span<const std::byte> bytes) -> Status {
        archive.insert(archive.end(), bytes.begin(), bytes.end());
        if (++calls == 3) {
          must(talk.wait());
          must(talk.shift_left(10, 20));
          must(executor.compact());
        }
        if (calls == 6) other.close();
        return {};
      },
      {.progress = [&](const ArchiveProgress& progress) { return progress.done <= progress.total; }}));
  EXPECT_GT(calls, 6);
  Conversation back = must(executor.conversation());
  must(back.load(archive));
  EXPECT_EQ(back.length(), 100U);
  must(back.wait());
  EXPECT_EQ(logits_of(back), test::cold_logits(joined(some_tokens(100, 1), some_tokens(60, 2))));
}

// A prompt that begins with what another one has computed holds that in the step that admits it, but only
// its commit shows it: a save in between has it queued.
TEST(Archives, ShowNothingThatAStepHasNotCommitted) {
  Executor executor = make_executor(options_of(192, 32));
  Conversation first = must(executor.conversation());
  say(first, 64, 1);
  Conversation filler = must(executor.conversation());
  say(filler, 112, 2);
  Conversation waits = must(executor.conversation());
  must(waits.prompt(joined(some_tokens(64, 1), some_tokens(40, 3))));
  must(executor.step());
  ASSERT_EQ(waits.state(), ConversationState::kWaiting);
  filler.close();
  std::vector<std::byte> archive;
  Budget budget;
  budget.between_jobs = [&](const JobView& view) {
    if (view.job == 1) archive = must(executor.save_bytes());
    return Verdict::kGoOn;
  };
  must(executor.step(budget));
  must(waits.wait());
  Executor elsewhere = make_executor(512);
  Loaded loaded = must(elsewhere.load(archive));
  ASSERT_EQ(loaded.conversations.size(), 2U);
  Conversation& back = loaded.conversations[1].conversation;
  EXPECT_EQ(back.length(), 0U);
  EXPECT_EQ(back.info().queued, 104U);
  must(back.wait());
  EXPECT_EQ(logits_of(back), logits_of(waits));
}

TEST(Archives, AreSavedAndLoadedFromCallbacksOfAStep) {
  Executor executor = make_executor(options_of(1024, 32));
  Conversation talk = must(executor.conversation());
  say(talk, 40, 1);
  must(talk.prompt(some_tokens(30, 2)));
  std::vector<std::byte> archive;
  std::optional<Conversation> back;
  Budget budget;
  budget.between_jobs = [&](const JobView& view) {
    if (view.job == 2) archive = must(talk.save_bytes());
    if (view.job == 4) {
      back.emplace(must(executor.conversation()));
      must(back->load(archive));
      EXPECT_EQ(outcome_of(talk.load(archive)), Outcome::kBusy) << "it is part of this step";
    }
    return Verdict::kGoOn;
  };
  must(executor.step(budget));
  must(talk.wait());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->length(), 40U);
  must(back->wait());
  EXPECT_EQ(logits_of(*back), logits_of(talk));
}

TEST(Archives, EndWhereTheirProgressFunctionSaysSoOrTheExecutorCloses) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation());
  say(talk, 60, 1);
  const std::string path = test::scratch_directory() + "/a.kvar";
  must(talk.save(path));
  const auto archive = must(talk.save_bytes());
  say(talk, 5, 2);
  const std::uint64_t before = digest_of(executor);
  for (int n = 0; n < 2; ++n) {
    int calls = 0;
    const auto stop = [&](const ArchiveProgress&) { return calls++ != n; };
    EXPECT_EQ(outcome_of(talk.save(path, {.progress = stop})), Outcome::kCancelled);
    calls = 0;
    EXPECT_EQ(outcome_of(executor.load(archive, {.progress = stop})), Outcome::kCancelled);
  }
  const auto throws = [](const ArchiveProgress&) -> bool { throw 1; };
  EXPECT_EQ(outcome_of(talk.save(path, {.progress = throws})), Outcome::kCancelled);
  EXPECT_EQ(digest_of(executor), before);
  Conversation old = must(executor.conversation());
  must(old.load(path));
  EXPECT_EQ(old.length(), 60U) << "the file is what it was";
  int calls = 0;
  const auto closes = [&](const ArchiveProgress&) {
    if (calls++ == 0) executor.close();
    return true;
  };
  EXPECT_EQ(outcome_of(talk.save(path, {.progress = closes})), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(talk.save(path)), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(executor.load(archive)), Outcome::kWrongState);
}

// K08: its handles go while it is being saved.
TEST(Archives, OutliveTheHandlesOfWhatTheySave) {
  for (int round = 0; round < 20; ++round) {
    std::optional<Executor> executor = make_executor(512);
    Conversation talk = must(executor->conversation());
    say(talk, 60, 1);
    must(talk.prompt(some_tokens(20, 2)));
    must(executor->start());
    std::thread saver([&] {
      std::vector<std::byte> bytes;
      const auto saved = talk.save([&](std::span<const std::byte> some) -> Status {
        bytes.insert(bytes.end(), some.begin(), some.end());
        return {};
      });
      const bool whole = saved.has_value() && bytes.size() == saved->bytes;
      EXPECT_TRUE(whole || (!saved && saved.error().code() == Outcome::kWrongState));
    });
    if (round % 2 == 0) must(talk.when_ready([&](const Status&) { talk.close(); }));
    executor->close();
    saver.join();
    executor.reset();
  }
}

}  // namespace
}  // namespace kvasir
