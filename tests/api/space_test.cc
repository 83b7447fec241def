// Room in the cache: who is refused, who waits, whom that does not touch, and what is promised.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "api/api_run.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::about;
using test::cold_logits;
using test::digest_of;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;
using test::TinyShape;

TEST(Space, WhoCanNeverFitIsToldAtOnceWhoMustWaitIsNamedAndTheOthersAreUntouched) {
  Executor executor = make_executor(256, 64);
  const GenerateOptions options{.max_tokens = 12, .ignore_end = true};
  std::vector<Conversation> running;
  std::vector<Generation> stories;
  for (std::uint64_t i = 0; i < 5; ++i) {
    running.push_back(must(executor.conversation({.seed = i})));
    must(running.back().prompt(some_tokens(20, i)));
    stories.push_back(must(running.back().generate(options)));
  }
  Conversation never = must(executor.conversation());
  const std::uint64_t before = digest_of(executor);
  const auto refused = never.prompt(some_tokens(257, 8));
  ASSERT_EQ(outcome_of(refused), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 257U);
  EXPECT_EQ(refused.error().numbers().limit, 256U);
  EXPECT_NE(refused.error().message().find("257"), std::string::npos);
  EXPECT_NE(refused.error().message().find("256"), std::string::npos);
  EXPECT_EQ(digest_of(executor), before);
  Conversation waits = must(executor.conversation());
  must(waits.prompt(some_tokens(120, 9)));
  int reported = 0;
  while (true) {
    const StepReport report = must(executor.step());
    const auto line = about(report, waits.id());
    if (report.outcome != Outcome::kDone) break;
    ASSERT_TRUE(line && line->error);
    EXPECT_EQ(line->outcome, Outcome::kNoSpace);
    EXPECT_EQ(line->error->numbers().wanted, 120U);
    EXPECT_LT(*line->error->numbers().available, 120U);
    EXPECT_FALSE(about(report, never.id()));
    ++reported;
  }
  EXPECT_GT(reported, 10);
  EXPECT_EQ(executor.metrics().refused, static_cast<std::uint64_t>(reported));
  for (std::uint64_t i = 0; i < 5; ++i) {
    const GeneratedPiece said = must(stories[i].rest());
    EXPECT_EQ(said.tokens, test::alone(some_tokens(20, i), i, options).tokens);
    EXPECT_EQ(logits_of(running[i]), cold_logits(joined(some_tokens(20, i), said.tokens)));
  }
  running.clear();
  must(waits.wait());
  EXPECT_EQ(logits_of(waits), cold_logits(some_tokens(120, 9)));
}

// K04
TEST(Space, AHundredPromptsBeyondPassAndCacheAreSplitOrWaitAndAllAreServedInTheEnd) {
  Executor executor = make_executor(512, 32);
  std::vector<Conversation> talks;
  for (std::uint64_t i = 0; i < 100; ++i) {
    talks.push_back(must(executor.conversation()));
    must(talks.back().prompt(some_tokens(10 + i % 37, i)));
  }
  std::size_t served = 0;
  bool some_waited = false;
  while (served < 100) {
    const StepReport report = must(executor.step());
    EXPECT_LE(report.tokens, 32U);
    some_waited = some_waited || std::ranges::any_of(report.conversations, [](const auto& line) {
                    return line.outcome == Outcome::kNoSpace;
                  });
    for (std::size_t i = 0; i < talks.size(); ++i) {
      if (talks[i].state() != ConversationState::kReady) continue;
      EXPECT_EQ(logits_of(talks[i]), cold_logits(some_tokens(10 + i % 37, i)));
      talks[i].close();
      ++served;
    }
    ASSERT_NE(report.outcome, Outcome::kIdle);
  }
  EXPECT_TRUE(some_waited);
  EXPECT_EQ(executor.cache().held, 0U);
}

TEST(Space, ATokenMoreThanTheWholePoolIsRefusedAndTheWholePoolIsNot) {
  for (const std::uint64_t pool : {16U, 64U, 100U}) {
    ExecutorOptions options = test::options_of(pool);
    options.context = 1000;
    Executor executor = make_executor(options);
    const std::uint64_t capacity = executor.cache().pool;
    EXPECT_GE(capacity, pool);
    EXPECT_EQ(executor.cache().free, capacity);
    Conversation talk = must(executor.conversation());
    const auto refused = talk.prompt(some_tokens(capacity + 1, 1));
    ASSERT_EQ(outcome_of(refused), Outcome::kNoSpace);
    EXPECT_EQ(refused.error().numbers().setting, "pool");
    EXPECT_FALSE(talk.fits(capacity + 1));
    EXPECT_TRUE(talk.fits(capacity));
    must(talk.prompt(some_tokens(capacity, 1)));
    must(talk.wait());
    EXPECT_EQ(logits_of(talk), cold_logits(some_tokens(capacity, 1)));
    EXPECT_EQ(executor.cache().free, 0U);
  }
}

TEST(Space, WhatFitsIsWhatAPromptGetsAndOneMoreIsNot) {
  Executor executor = make_executor(256);
  Conversation holds = must(executor.conversation());
  must(holds.prompt(some_tokens(77, 1)));
  must(holds.wait());
  const std::uint64_t free = executor.cache().free;
  Conversation talk = must(executor.conversation());
  EXPECT_TRUE(talk.fits(free));
  EXPECT_FALSE(talk.fits(free + 1));
  must(talk.prompt(some_tokens(free + 1, 2)));
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kStalled);
  must(talk.cancel());
  must(talk.prompt(some_tokens(free, 2)));
  EXPECT_EQ(executor.cache().promised, free);
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kDone);
  EXPECT_EQ(executor.cache().promised, 0U);
}

// Each has a state and needs a second for the step that is under way.
TEST(Space, TwentyFourConversationsOfARecurrentModelGoOnInEveryStepWithoutBeingAskedFor) {
  const Model model = must(Model::load(test::data_path("models/mamba2/model.gguf"), {.threads = 2}));
  Executor executor = must(Executor::create(model));
  std::vector<Conversation> talks;
  for (int i = 0; i < 24; ++i) talks.push_back(must(executor.conversation()));
  for (Token token = 1; token < 4; ++token) {
    for (Conversation& talk : talks) must(talk.prompt(std::vector<Token>{token}));
    const StepReport report = must(executor.step());
    EXPECT_EQ(report.outcome, Outcome::kDone);
    EXPECT_EQ(report.tokens, 24U);
  }
  EXPECT_EQ(executor.metrics().refused, 0U);
  EXPECT_EQ(executor.metrics().paused, 0U);
}

TEST(Space, WhatIsReservedFitsWhateverOthersDoAndIsUsedUp) {
  Executor executor = make_executor(128);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(10, 1)));
  must(talk.reserve(50));
  EXPECT_EQ(talk.info().promised, 60U);  // behind what is queued
  must(talk.wait());
  EXPECT_EQ(talk.info().promised, 50U);
  Conversation other = must(executor.conversation());
  const Status too_much = other.reserve(69);
  ASSERT_EQ(outcome_of(too_much), Outcome::kNoSpace);
  EXPECT_EQ(too_much.error().numbers().wanted, 69U);
  EXPECT_EQ(too_much.error().numbers().available, 68U);
  EXPECT_EQ(other.info().promised, 0U);
  must(other.prompt(some_tokens(68, 2)));
  must(other.wait());
  EXPECT_EQ(executor.cache().free, 0U);
  EXPECT_TRUE(talk.fits(50));
  EXPECT_FALSE(talk.fits(51));
  must(talk.prompt(some_tokens(30, 3)));
  EXPECT_EQ(talk.info().promised, 50U);
  must(talk.wait());
  EXPECT_EQ(talk.info().promised, 20U);
  must(talk.reserve(5));
  EXPECT_EQ(executor.cache().free, 15U);
  must(talk.reserve(0));
  EXPECT_EQ(executor.cache().free, 20U);
}

// A generation that waits for its room, then beside one that has it.
TEST(Space, WhatFitsCanBeReservedAndNothingElse) {
  Executor executor = make_executor(256);
  Conversation large = must(executor.conversation());
  must(large.prompt(some_tokens(180, 1)));
  must(large.wait());
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(2, 2)));
  const Generation story = must(talk.generate({.max_tokens = 80, .ignore_end = true}));
  must(executor.step());
  EXPECT_EQ(talk.state(), ConversationState::kWaiting);
  const auto fitting = [&] {
    std::vector<std::uint64_t> fit;
    for (const std::uint64_t tokens : {0, 1, 50, 73, 74, 75, 78, 79, 100, 200, 300}) {
      if (talk.fits(tokens)) fit.push_back(tokens);
      EXPECT_EQ(talk.reserve(tokens).has_value(), talk.fits(tokens)) << tokens;
    }
    return fit;
  };
  EXPECT_EQ(fitting(), std::vector<std::uint64_t>());  // two queued and 80 to be drawn, of 76
  large.close();
  EXPECT_EQ(fitting(), (std::vector<std::uint64_t>{0, 1, 50, 73, 74, 75, 78, 79, 100, 200}));
}

TEST(Space, NobodyIsPromisedMoreThanHeMayUse) {
  ExecutorOptions options = test::options_of(256);
  options.context = 100;
  Executor executor = make_executor(options);
  EXPECT_EQ(executor.context(), 100U);
  Conversation talk = must(executor.conversation({.max_length = 30}));
  EXPECT_TRUE(talk.fits(30));
  EXPECT_FALSE(talk.fits(31));
  const Status beyond = talk.reserve(31);
  ASSERT_EQ(outcome_of(beyond), Outcome::kNoSpace);
  EXPECT_EQ(beyond.error().numbers().limit, 30U);
  EXPECT_EQ(beyond.error().numbers().setting, "max_length");
  EXPECT_EQ(talk.prompt(some_tokens(31, 1)).error().numbers().setting, "max_length");
  Conversation other = must(executor.conversation());
  EXPECT_EQ(other.prompt(some_tokens(101, 1)).error().numbers().setting, "context");
  EXPECT_FALSE(other.fits(101));
  must(other.prompt(some_tokens(99, 1)));
  EXPECT_EQ(outcome_of(other.prompt(some_tokens(2, 1))), Outcome::kNoSpace);
  EXPECT_EQ(other.info().queued, 99U);
}

TEST(Space, AGenerationThatHasItsPromiseNeverWaitsInTheMiddle) {
  Executor executor = make_executor(128);
  Conversation talk = must(executor.conversation({.seed = 2}));
  must(talk.prompt(some_tokens(20, 1)));
  Generation story = must(talk.generate({.max_tokens = 60, .ignore_end = true}));
  Conversation greedy = must(executor.conversation());
  must(greedy.prompt(some_tokens(49, 2)));
  for (int step = 0; step < 30; ++step) {
    const auto line = about(must(executor.step()), greedy.id());
    EXPECT_EQ(line->outcome, Outcome::kNoSpace);
  }
  must(greedy.cancel());
  must(greedy.prompt(some_tokens(48, 2)));
  must(greedy.wait());
  EXPECT_EQ(must(story.rest()).tokens.size(), 60U);
}

// Nobody hangs and nobody is hurt: the step says whose end would help, and who remains tells the story to its
// end.
TEST(Space, SixteenThatGenerateAtTheLastCellGoOnOnceOneGivesWay) {
  Executor executor = make_executor(256, 64);
  const GenerateOptions options{.max_tokens = 40, .ignore_end = true, .reserve = false};
  std::vector<Conversation> talks;
  std::vector<Generation> stories;
  for (std::uint64_t i = 0; i < 16; ++i) {
    talks.push_back(must(executor.conversation({.seed = i})));
    must(talks.back().prompt(some_tokens(10, i)));
    stories.push_back(must(talks.back().generate(options)));
  }
  std::size_t gone = 0;
  StepReport report = must(executor.run_until_idle());
  for (; report.outcome == Outcome::kStalled && gone < 16; report = must(executor.run_until_idle())) {
    EXPECT_NE(report.message.find("the least is lost by ending conversation"), std::string::npos)
        << report.message;
    EXPECT_EQ(executor.cache().free, 0U);
    talks[gone++].close();
  }
  EXPECT_EQ(report.outcome, Outcome::kIdle);
  EXPECT_GT(gone, 0U);
  EXPECT_LE(gone, 12U) << "four of fifty tokens have room";
  for (std::size_t i = 0; i < 16; ++i) {
    const std::vector<Token> said = must(stories[i].rest()).tokens;
    const std::vector<Token> all = test::alone(some_tokens(10, i), i, options).tokens;
    EXPECT_EQ(stories[i].finish(), i < gone ? Finish::kCancelled : Finish::kLength);
    EXPECT_TRUE(std::ranges::equal(said, std::span(all).first(said.size())));
    EXPECT_TRUE(i < gone || said.size() == all.size());
  }
}

// K72: a file that claims a context of 2^31 gets a cache of a sane size, and may be asked for more.
TEST(Space, AClaimedContextOfTwoToTheThirtyFirstTakesNoMoreThanTheDefault) {
  TinyShape shape = test::speaking_shape();
  shape.context = 1U << 31;
  const std::string path = test::scratch_directory() + "/claims.gguf";
  test::speaking_draft(shape).write(path);
  const Model claims = must(Model::load(path));
  Executor executor = must(Executor::create(claims));
  EXPECT_GE(executor.cache().pool, 4'096U);
  EXPECT_LE(executor.cache().pool, 32'768U);
  EXPECT_EQ(executor.context(), executor.cache().pool);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(10, 1)));
  must(talk.wait());
  EXPECT_EQ(logits_of(talk).size(), claims.vocabulary());
  const auto all = Executor::create(claims, {.pool = 1ULL << 31});
  ASSERT_EQ(outcome_of(all), Outcome::kNoSpace);
  EXPECT_EQ(all.error().numbers().wanted, 1ULL << 31);
}

TEST(Space, HigherPrioritiesAreAdmittedAndComputedFirst) {
  Executor executor = make_executor(128, 32);
  Conversation holds = must(executor.conversation());
  must(holds.prompt(some_tokens(100, 0)));
  must(holds.wait());
  Conversation low = must(executor.conversation({.priority = -1}));
  Conversation high = must(executor.conversation({.priority = 5}));
  must(low.prompt(some_tokens(60, 1)));
  must(high.prompt(some_tokens(60, 2)));
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kStalled);
  must(low.set_priority(9));  // and so the other way round
  holds.close();
  must(executor.step());
  EXPECT_EQ(low.length(), 32U);
  EXPECT_EQ(high.length(), 0U);
  must(executor.run_until_idle());
  EXPECT_EQ(logits_of(low), cold_logits(some_tokens(60, 1)));
  EXPECT_EQ(logits_of(high), cold_logits(some_tokens(60, 2)));
}

TEST(Space, BeginningsAreSharedAmongThoseOfOneSaltAlone) {
  const std::vector<Token> shared = some_tokens(64, 1);
  Executor executor = make_executor(512);
  Conversation first = must(executor.conversation({.salt = 1}));
  must(first.prompt(shared));
  must(first.wait());
  Conversation same = must(executor.conversation({.salt = 1}));
  Conversation other = must(executor.conversation({.salt = 2}));
  must(same.prompt(joined(shared, some_tokens(5, 2))));
  EXPECT_EQ(same.length(), 64U);  // at once
  must(other.prompt(joined(shared, some_tokens(5, 2))));
  EXPECT_EQ(other.length(), 0U);
  must(executor.run_until_idle());
  EXPECT_EQ(executor.metrics().reused, 64U);
  EXPECT_EQ(executor.cache().held, 64U + 5U + 69U);
  EXPECT_EQ(logits_of(same), cold_logits(joined(shared, some_tokens(5, 2))));
  EXPECT_EQ(logits_of(other), logits_of(same));
}

TEST(Space, CompactionMovesCellsAndNoBit) {
  Executor executor = make_executor(352);
  std::vector<Conversation> talks;
  for (std::uint64_t i = 0; i < 8; ++i) talks.push_back(must(executor.conversation()));
  for (std::uint64_t round = 0; round < 6; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) must(talks[i].prompt(some_tokens(7, 10 * i + round)));
    must(executor.run_until_idle());
  }
  for (std::size_t i = 0; i < 8; i += 2) talks[i].close();
  const double before = executor.cache().fragmentation;
  EXPECT_GT(must(executor.compact()), 0U);
  EXPECT_LT(executor.cache().fragmentation, before);
  for (std::uint64_t i = 1; i < 8; i += 2) {
    std::vector<Token> all;
    for (std::uint64_t round = 0; round < 6; ++round) all = joined(all, some_tokens(7, 10 * i + round));
    must(talks[i].rewind(41));
    must(talks[i].prompt(std::span<const Token>(all).subspan(41)));
    must(talks[i].wait());
    EXPECT_EQ(logits_of(talks[i]), cold_logits(all));
  }
}

}  // namespace
}  // namespace kvasir
