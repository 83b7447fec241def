// Calls that are each right by themselves, in combinations that once went wrong together.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "api/api_run.h"
#include "kvasir/executor.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using namespace std::chrono_literals;
using test::cold_logits;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::options_of;
using test::outcome_of;
using test::some_tokens;
using Tokens = std::vector<Token>;

Tokens first(const Tokens& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Its tier holds whatever leaves the pool, which one conversation may fill.
ExecutorOptions tiered(std::uint64_t pool) {
  ExecutorOptions options = options_of(pool);
  options.context = pool;
  options.memory_tier_bytes = 1 << 24;
  return options;
}

// Nobody finds what another has computed.
ExecutorOptions tiered_apart(std::uint64_t pool) {
  ExecutorOptions options = tiered(pool);
  options.share_prefixes = false;
  return options;
}

GenerateOptions drawn(std::uint64_t tokens) {
  return {.max_tokens = tokens,
          .sampler = {.temperature = 1.2F, .top_k = 0, .top_p = 1, .min_p = 0},
          .ignore_end = true};
}

// The worker and the caller once both drew the first token.
TEST(Combinations, AGenerationBegunWhereACancelLeftTheOpenStepDrawsEachTokenOnce) {
  Executor executor = make_executor(2048);
  Conversation base = must(executor.conversation());
  must(base.prompt(some_tokens(40, 1)));
  must(base.wait());
  must(executor.start());
  int computing = 0;
  for (int round = 0; round < 200 || (computing == 0 && round < 20'000); ++round) {
    Conversation talk = must(base.fork(true));
    must(talk.prompt(some_tokens(100, 2)));
    while (talk.state() == ConversationState::kQueued) std::this_thread::yield();
    computing += talk.state() == ConversationState::kComputing ? 1 : 0;
    must(talk.cancel());
    if (talk.length() != 40) continue;
    const GeneratedPiece story = must(must(talk.generate(drawn(3))).rest());
    const Conversation other = must(base.fork(true));
    Conversation alone = must(base.fork(true));
    const GeneratedPiece same = must(must(alone.generate(drawn(3))).rest());
    ASSERT_EQ(story.tokens, same.tokens) << "round " << round;
    ASSERT_EQ(story.text, same.text);
  }
  EXPECT_GT(computing, 0) << "no cancel came while a step was open";
  must(executor.stop());
}

TEST(Combinations, AnExecutorThatIsBeingStoppedHasAWorkerUntilThatHasEnded) {
  Executor executor = make_executor(2048);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(1500, 1)));
  must(executor.start());
  while (talk.state() == ConversationState::kQueued) std::this_thread::yield();
  std::atomic<bool> stopped = false;
  std::jthread stopper([&] {
    must(executor.stop());
    stopped = true;
  });
  // Until it has stopped there is one; from then on there may be another.
  while (true) {
    const bool before = stopped;
    const Status started = executor.start();
    if (started) break;
    ASSERT_EQ(started.error().code(), Outcome::kWrongState);
    ASSERT_FALSE(before) << "a worker that has ended stands in the way";
    std::this_thread::yield();
  }
  stopper.join();
  must(talk.wait());
  must(executor.stop());
  EXPECT_EQ(talk.length(), 1500U);
}

// The loaded conversation once took the place of one that a step still held.
TEST(Combinations, ALoadOrAClearBesideGenerateLosesNoRoom) {
  for (int round = 0; round < 60; ++round) {
    ExecutorOptions options = options_of(512);
    options.context = 256;
    options.share_prefixes = false;
    Executor executor = make_executor(options);
    Conversation talk = must(executor.conversation());
    must(talk.prompt(some_tokens(60, 1)));
    must(talk.wait());
    const std::vector<std::byte> archive = must(talk.save_bytes());
    must(executor.start());
    {
      std::atomic<bool> over = false;
      const std::jthread changes([&] {
        while (!over)
          static_cast<void>(round % 2 == 0 ? outcome_of(talk.load(archive)) : outcome_of(talk.clear()));
      });
      const std::jthread prompts([&] {
        while (!over) static_cast<void>(outcome_of(talk.prompt(some_tokens(40, 2))));
      });
      const std::jthread generates([&] {
        std::optional<Generation> latest;
        while (!over) {
          auto begun = talk.generate({.max_tokens = 8});
          if (begun) latest = *std::move(begun);
        }
      });
      std::this_thread::sleep_for(std::chrono::microseconds(500 + round * 37));
      over = true;
    }
    must(executor.stop());
    must(executor.abandon_step());
    must(talk.cancel());
    if (talk.length() > 200) must(talk.rewind(200));  // the context may be full
    must(talk.prompt(some_tokens(3, 3)));
    must(talk.wait());
    const Tokens tokens = must(talk.tokens());
    ASSERT_EQ(executor.cache().held, tokens.size());
    ASSERT_EQ(logits_of(talk), cold_logits(tokens));
  }
}

TEST(Combinations, ATokenThatHasNoPositionIsRefusedAndNobodyElseHearsOfIt) {
  const Model model = must(Model::load(test::data_path("models/gpt2/model.gguf")));
  Executor executor = must(Executor::create(model, {.pool = 512}));
  Conversation talk = must(executor.conversation());
  const std::uint64_t learned = model.trained_context();
  Tokens tokens(learned - 8, 5);
  must(talk.prompt(tokens));
  must(talk.wait());
  must(talk.remove(10, 50));  // those behind stay where they were
  EXPECT_FALSE(talk.fits(9));
  const auto refused = talk.prompt(Tokens(9, 7));
  ASSERT_EQ(outcome_of(refused), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().available, 8U);
  Conversation other = must(executor.conversation());
  must(other.prompt(Tokens(20, 7)));
  must(other.wait());
  EXPECT_TRUE(talk.fits(8));
  must(talk.prompt(Tokens(6, 7)));
  const GeneratedPiece rest = must(must(talk.generate({.max_tokens = 20, .ignore_end = true})).rest());
  EXPECT_EQ(rest.tokens.size(), 2U) << "so many positions were left";
}

TEST(Combinations, ATokenBehindTheLastPositionOfAllIsRefusedToo) {
  constexpr std::int64_t kLast = (std::int64_t{1} << 30) - 1;
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(40, 1)));
  must(talk.wait());
  const std::vector<EditOperation> away = {{EditOperation::Kind::kMove, 0, 40, kLast - 39 - 20}};
  must(talk.edit(away));
  EXPECT_EQ(outcome_of(talk.prompt(some_tokens(21, 2))), Outcome::kNoSpace);
  must(talk.prompt(some_tokens(20, 2)));
  must(talk.wait());
  EXPECT_EQ(talk.info().position, kLast + 1);
  EXPECT_EQ(outcome_of(talk.prompt(some_tokens(1, 3))), Outcome::kNoSpace);
  EXPECT_EQ(outcome_of(talk.prompt_to(joined(must(talk.tokens()), some_tokens(1, 3)))), Outcome::kNoSpace);
  // The last token now lies before the one that it would follow.
  const std::vector<EditOperation> back = {{EditOperation::Kind::kMove, 59, 1, -100}};
  must(talk.edit(back));
  const std::vector<EditOperation> ahead = {{EditOperation::Kind::kMove, 58, 1, 1}};
  must(talk.edit(ahead));
  EXPECT_EQ(outcome_of(talk.refresh()), Outcome::kNoSpace);
  Conversation other = must(executor.conversation());
  must(other.prompt(some_tokens(20, 4)));
  must(other.wait());
  EXPECT_EQ(logits_of(other), cold_logits(some_tokens(20, 4)));
}

// Its cells once made room for others although they were promised to it.
TEST(Combinations, WhoWasPausedAndReservesRoomIsPausedNoMore) {
  Executor executor = make_executor(tiered_apart(128));
  Conversation first_in_line = must(executor.conversation());
  Conversation second = must(executor.conversation());
  Conversation third = must(executor.conversation());
  Conversation fourth = must(executor.conversation());
  const auto say = [](Conversation& talk, std::size_t count, std::uint64_t seed) {
    must(talk.prompt(some_tokens(count, seed)));
  };
  say(first_in_line, 32, 0);
  must(first_in_line.wait());
  say(second, 64, 1);
  must(second.wait());
  say(third, 16, 2);
  must(third.wait());
  say(first_in_line, 60, 3);
  say(second, 30, 4);
  say(third, 40, 5);
  for (int i = 0; i < 8 && first_in_line.length() < 92; ++i) must(executor.step());
  ASSERT_GT(executor.metrics().paused, 0U) << "nobody was paused";
  first_in_line.close();
  static_cast<void>(outcome_of(third.reserve(0)));
  say(fourth, 30, 6);
  static_cast<void>(outcome_of(second.reserve(0)));
  for (int i = 0; i < 6; ++i) must(executor.step());
  must(fourth.wait());
  EXPECT_EQ(logits_of(fourth), cold_logits(some_tokens(30, 6)));
}

TEST(Combinations, ARowOfATokenThatWasDroppedIsNotThatOfOneTheIndexKnewBehindIt) {
  Executor executor = make_executor(512);
  Conversation known = must(executor.conversation());
  Conversation talk = must(executor.conversation());
  const Tokens tokens = some_tokens(80, 1);
  must(known.prompt(tokens));
  must(known.wait());
  must(talk.prompt(first(tokens, 46)));
  must(talk.wait());
  must(talk.drop());
  must(talk.prompt(std::span<const Token>(tokens).subspan(46, 22)));
  must(talk.cancel());
  ASSERT_EQ(talk.length(), 64U) << "what the index knew has come at once";
  EXPECT_EQ(talk.state(), ConversationState::kNeedsPrompt);
  EXPECT_EQ(outcome_of(talk.logits()), Outcome::kNeedsPrompt);
  EXPECT_EQ(outcome_of(talk.generate()), Outcome::kNeedsPrompt);
  must(talk.refresh());
  must(talk.wait());
  EXPECT_EQ(logits_of(talk), cold_logits(first(tokens, 64)));
}

TEST(Combinations, PromptToCountsWhatWasDroppedAndIsKnownOnce) {
  Executor executor = make_executor(512);
  Conversation known = must(executor.conversation());
  Conversation talk = must(executor.conversation());
  const Tokens tokens = some_tokens(64, 1);
  for (Conversation* one : {&known, &talk}) {
    must(one->prompt(tokens));
    must(one->wait());
  }
  must(talk.drop());
  const Tokens other = joined(first(tokens, 60), some_tokens(1, 2));
  EXPECT_EQ(must(talk.prompt_to(other)), 60U);
  must(talk.wait());
  EXPECT_EQ(logits_of(talk), cold_logits(other));
}

// Room behind cells that others have driven away is no room.
TEST(Combinations, ReservedRoomStaysWhateverOthersWant) {
  Executor executor = make_executor(tiered_apart(256));
  Conversation talk = must(executor.conversation());
  Conversation greedy = must(executor.conversation({.pinned = true}));
  must(talk.prompt(some_tokens(96, 1)));
  must(talk.wait());
  must(talk.reserve(64));
  must(greedy.prompt(some_tokens(190, 2)));
  EXPECT_EQ(outcome_of(greedy.wait()), Outcome::kNoSpace);
  EXPECT_TRUE(talk.fits(64));
  must(talk.prompt(some_tokens(64, 3)));
  must(talk.wait());
  EXPECT_EQ(talk.info().spilled, 0U);
  // It is used up: now others may have the room.
  must(greedy.wait());
  EXPECT_GT(talk.info().spilled, 0U);
}

TEST(Combinations, WhoPutsItsCellsAwayGivesItsReservationBackAndWhatFitsCanBeReserved) {
  Executor executor = make_executor(tiered_apart(256));
  Conversation talk = must(executor.conversation());
  Conversation greedy = must(executor.conversation({.pinned = true}));
  must(talk.prompt(some_tokens(96, 1)));
  must(talk.wait());
  must(talk.reserve(64));
  must(talk.spill());
  EXPECT_EQ(talk.info().promised, 0U);
  must(greedy.prompt(some_tokens(140, 2)));
  must(greedy.wait());
  EXPECT_FALSE(talk.fits(64));
  EXPECT_EQ(outcome_of(talk.reserve(64)), Outcome::kNoSpace);
  must(talk.reserve(0));
  EXPECT_GT(talk.info().spilled, 0U) << "nothing need come back for it";
  ASSERT_TRUE(talk.fits(16));
  must(talk.reserve(16));
  EXPECT_EQ(talk.info().spilled, 0U);
  must(talk.drop());
  EXPECT_EQ(talk.info().promised, 0U);
}

// One that waited was once let in, and what the index knew of its beginning shown, while cells moved in the
// step.
TEST(Combinations, ACancelledStepInWhichRoomWasMadeShowsNothing) {
  Executor executor = make_executor(tiered(128));
  Conversation runs = must(executor.conversation());
  Conversation idle = must(executor.conversation());
  Conversation waits = must(executor.conversation());
  const Tokens base = some_tokens(40, 1);
  must(runs.prompt(base));
  must(runs.wait());
  must(idle.prompt(some_tokens(60, 2)));
  must(idle.wait());
  must(runs.prompt(some_tokens(20, 3)));
  const Tokens wanted = joined(base, some_tokens(20, 4));
  must(waits.prompt(wanted));
  const ConversationInfo before = waits.info();
  ASSERT_EQ(before.queued, 60U);
  Budget budget;
  int jobs = 0;
  budget.between_jobs = [&](const JobView&) { return ++jobs > 12 ? Verdict::kCancel : Verdict::kGoOn; };
  ASSERT_EQ(must(executor.step(budget)).outcome, Outcome::kCancelled);
  EXPECT_EQ(waits.length(), 0U);
  EXPECT_EQ(waits.info().queued, before.queued);
  EXPECT_EQ(waits.info().promised, before.promised);
  must(waits.wait());
  EXPECT_EQ(logits_of(waits), cold_logits(wanted));
}

TEST(Combinations, FreeIsWhatANewConversationCanTakeWhereStatesAreFewToo) {
  const Model model = must(Model::load(test::data_path("models/jamba/model.gguf")));
  for (const std::uint32_t states : {2U, 3U, 4U, 6U}) {
    ExecutorOptions options;
    options.context = 4000;
    options.pool = 240;
    options.states = states;
    options.page_cells = 16;
    options.share_prefixes = false;
    Executor executor = must(Executor::create(model, options));
    std::vector<Conversation> talks;
    for (int others = 0; others < 4; ++others) {
      const std::uint64_t free = executor.cache().free;
      Conversation talk = must(executor.conversation());
      std::uint64_t most = 0;
      while (talk.fits(most + 1)) ++most;
      EXPECT_EQ(free, most) << states << " states, " << others << " others";
      must(talk.prompt(Tokens(20, 5)));
      if (!talk.wait()) break;
      talks.push_back(std::move(talk));
    }
  }
}

}  // namespace
}  // namespace kvasir
