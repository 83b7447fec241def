// Generations: what they draw, how they end, and what they leave behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/api_run.h"
#include "support/allocations.h"

namespace kvasir {
namespace {

using test::cold_logits;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::model;
using test::must;
using test::outcome_of;
using test::some_tokens;

constexpr Sampler kLoose{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};

Conversation told(Executor& executor, std::span<const Token> prompt, std::uint64_t seed) {
  Conversation talk = must(executor.conversation({.seed = seed}));
  must(talk.prompt(prompt));
  return talk;
}

// A story as its pieces came.
struct Story {
  std::vector<GeneratedPiece> pieces;
  std::string text;
  std::vector<Token> tokens;
  std::optional<Finish> finish;
};

Story read(Generation& generation) {
  Story story;
  while (auto piece = must(generation.next())) {
    story.text += piece->text;
    story.tokens = joined(std::move(story.tokens), piece->tokens);
    story.pieces.push_back(*std::move(piece));
  }
  story.finish = generation.finish();
  return story;
}

Story story_of(std::span<const Token> prompt, std::uint64_t seed, const GenerateOptions& options) {
  Executor executor = make_executor(1024);
  Conversation talk = told(executor, prompt, seed);
  Generation generation = must(talk.generate(options));
  return read(generation);
}

TEST(Generation, SamplingByHandDrawsTheSameTokens) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  for (const Sampler& sampler : {Sampler::greedy(), Sampler{}, kLoose}) {
    const Story story = story_of(prompt, 5, {.max_tokens = 20, .sampler = sampler});
    Executor executor = make_executor(256);
    Conversation talk = told(executor, prompt, 5);
    std::vector<Token> drawn;
    for (int i = 0; i < 20; ++i) {
      must(talk.wait());
      drawn.push_back(must(talk.sample(sampler)));
      EXPECT_EQ(must(talk.sample(sampler)), drawn.back());  // looking twice changes nothing
      must(talk.prompt(std::span<const Token>(&drawn.back(), 1)));
    }
    EXPECT_EQ(drawn, story.tokens);
  }
}

TEST(Generation, TheGreedyTokenIsTheLargestOfTheRow) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  const Story story = story_of(prompt, 5, {.max_tokens = 1, .sampler = Sampler::greedy()});
  const std::vector<float> row = cold_logits(prompt);
  EXPECT_EQ(story.tokens, std::vector{static_cast<Token>(std::ranges::max_element(row) - row.begin())});
}

// K32
TEST(Generation, ARowThatIsBiasedForOneLeavesItsForkUnbiased) {
  Executor executor = make_executor(256);
  Conversation parent = told(executor, some_tokens(10, 1), 5);
  must(parent.wait());
  Conversation child = must(parent.fork(true));
  std::vector<float> biased = logits_of(parent);
  const auto best = std::ranges::max_element(biased);
  const Token favourite = static_cast<Token>(best - biased.begin());
  EXPECT_EQ(must(parent.sample_row(biased, kLoose)), must(parent.sample(kLoose)));
  *best = -1e30F;
  EXPECT_NE(must(parent.sample_row(biased, Sampler::greedy())), favourite);
  EXPECT_EQ(must(child.sample(Sampler::greedy())), favourite);
  EXPECT_EQ(must(parent.sample(Sampler::greedy())), favourite);
  EXPECT_EQ(logits_of(child), cold_logits(some_tokens(10, 1)));
  EXPECT_EQ(must(child.sample(kLoose)), must(parent.sample(kLoose)));
  const Result<Token> ragged = parent.sample_row(std::span(biased).first(511));
  EXPECT_EQ(outcome_of(ragged), Outcome::kInvalidArgument);
  EXPECT_EQ(ragged.error().numbers().limit, 512U);
}

TEST(Generation, OneThatBeginsBeforeItsPromptIsComputedTellsTheSame) {
  const std::vector<Token> prompt = some_tokens(100, 1);
  const GenerateOptions options{.max_tokens = 12, .sampler = kLoose};
  const Story story = story_of(prompt, 5, options);
  Executor executor = make_executor(256, 32);
  Conversation talk = told(executor, prompt, 5);
  must(talk.wait());
  Generation later = must(talk.generate(options));
  EXPECT_EQ(read(later).tokens, story.tokens);
  // And in the middle of the step that computes the prompt's end.
  Executor second = make_executor(256);
  Conversation between = told(second, prompt, 5);
  std::optional<Generation> inside;
  Budget budget;
  budget.between_jobs = [&](const JobView&) {
    if (!inside) inside = must(between.generate(options));
    return Verdict::kGoOn;
  };
  must(second.step(budget));
  EXPECT_EQ(read(*inside).tokens, story.tokens);
  EXPECT_EQ(second.metrics().generated, 12U);
  must(between.wait());
  EXPECT_EQ(second.metrics().prompted, 100U);
}

TEST(Generation, ItsTextIsThatOfItsTokensAndItsHistoryHasThemAll) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  Executor executor = make_executor(256);
  Conversation talk = told(executor, prompt, 11);
  Generation generation = must(talk.generate({.max_tokens = 40, .sampler = kLoose}));
  const Story story = read(generation);
  EXPECT_EQ(story.finish, Finish::kLength);
  EXPECT_EQ(story.tokens.size(), 40U);
  // Token for token what detokenizing says, but that bytes which are no characters are replaced.
  const std::string bytes = must(model().detokenize(story.tokens));
  EXPECT_GE(story.text.size(), bytes.size());
  must(talk.wait());
  EXPECT_EQ(must(talk.tokens()), joined(prompt, story.tokens));
  EXPECT_EQ(logits_of(talk), cold_logits(joined(prompt, story.tokens)));
}

TEST(Generation, StopsBeforeEachStringThatItsTextWouldHold) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  const GenerateOptions plain{.max_tokens = 30, .sampler = kLoose};
  const Story whole = story_of(prompt, 21, plain);
  std::vector<std::size_t> borders;
  std::size_t end = 0;
  for (const GeneratedPiece& piece : whole.pieces) borders.push_back(end += piece.text.size());
  int across = 0;
  for (std::size_t first = 0; first + 1 < whole.text.size(); ++first) {
    for (const std::size_t length : {1U, 2U, 5U, 12U}) {
      const std::string stop = whole.text.substr(first, length);
      const std::size_t found = whole.text.find(stop);
      GenerateOptions options = plain;
      options.stop = {"never said", stop};
      Executor executor = make_executor(256);
      Conversation talk = told(executor, prompt, 21);
      Generation generation = must(talk.generate(options));
      const Story story = read(generation);
      ASSERT_EQ(story.text, whole.text.substr(0, found)) << "'" << stop << "'";
      EXPECT_EQ(story.finish, Finish::kStopString);
      // The history goes to the token that completed it.
      const auto token = std::ranges::lower_bound(borders, found + stop.size()) - borders.begin();
      EXPECT_GE(story.tokens.size(), static_cast<std::size_t>(token) + 1);
      must(talk.wait());
      EXPECT_EQ(must(talk.tokens()), joined(prompt, story.tokens));
      across += std::ranges::any_of(
          borders, [&](std::size_t border) { return found < border && border < found + stop.size(); });
    }
  }
  EXPECT_GT(across, 20);
}

TEST(Generation, ANearMissOfAStopStringIsDeliveredInTheEnd) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  const GenerateOptions plain{.max_tokens = 30, .sampler = kLoose};
  const Story whole = story_of(prompt, 21, plain);
  GenerateOptions options = plain;
  options.stop = {whole.text.substr(whole.text.size() - 6) + "!", whole.text.substr(3, 4) + "\x01"};
  const Story story = story_of(prompt, 21, options);
  EXPECT_EQ(story.text, whole.text);
  EXPECT_EQ(story.finish, Finish::kLength);
  EXPECT_EQ(story.tokens, whole.tokens);
}

TEST(Generation, EndsAtAStopTokenWhichIsNoPartOfTextOrHistory) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  const GenerateOptions plain{.max_tokens = 30, .sampler = kLoose};
  const Story whole = story_of(prompt, 21, plain);
  GenerateOptions options = plain;
  options.stop_tokens = {-7, whole.tokens[9]};
  const auto first = std::ranges::find(whole.tokens, whole.tokens[9]);
  Executor executor = make_executor(256);
  Conversation talk = told(executor, prompt, 21);
  Generation generation = must(talk.generate(options));
  const Story story = read(generation);
  EXPECT_EQ(story.finish, Finish::kEndToken);
  EXPECT_EQ(story.tokens, std::vector(whole.tokens.begin(), first));
  EXPECT_EQ(talk.state(), ConversationState::kReady);
  EXPECT_EQ(must(talk.tokens()), joined(prompt, story.tokens));
}

TEST(Generation, EndsWhereTheModelSaysSoUnlessThatIsToBeIgnored) {
  const Token end = *model().find("<|end|>");
  EXPECT_TRUE(model().ends_generation(end));
  // A seed whose first draw is the end token is found by trying.
  const std::vector<Token> prompt = some_tokens(4, 1);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Executor executor = make_executor(64);
    Conversation talk = told(executor, prompt, seed);
    must(talk.wait());
    for (; seed < 20'000; ++seed) {
      must(talk.reseed(seed));
      if (must(talk.sample(kLoose)) == end) break;
    }
    Generation ends = must(talk.generate({.max_tokens = 5, .sampler = kLoose}));
    const Story nothing = read(ends);
    EXPECT_EQ(nothing.finish, Finish::kEndToken);
    EXPECT_TRUE(nothing.tokens.empty());
    Generation goes_on = must(talk.generate({.max_tokens = 5, .sampler = kLoose, .ignore_end = true}));
    const Story story = read(goes_on);
    EXPECT_EQ(story.finish, Finish::kLength);
    EXPECT_EQ(story.tokens.front(), end);
    EXPECT_EQ(story.tokens.size(), 5U);
    return;
  }
  FAIL() << "no seed draws the end token";
}

// K05
TEST(Generation, EndsWithLengthAtTheLastCellAndWhatHoldsItGoesOn) {
  for (const bool reserve : {true, false}) {
    Executor executor = make_executor(64);
    Conversation talk = told(executor, some_tokens(50, 1), 3);
    Generation generation = must(talk.generate({.max_tokens = 1000, .ignore_end = true, .reserve = reserve}));
    const Story story = read(generation);
    EXPECT_EQ(story.finish, Finish::kLength);
    EXPECT_EQ(story.tokens.size(), 14U);
    must(talk.wait());
    EXPECT_EQ(talk.length(), 64U);
    EXPECT_EQ(executor.cache().free, 0U);
    EXPECT_EQ(talk.state(), ConversationState::kReady);
    const Result<std::uint64_t> more = talk.prompt(std::span<const Token>(story.tokens).first(1));
    EXPECT_EQ(outcome_of(more), Outcome::kNoSpace);
    EXPECT_EQ(more.error().numbers().wanted, 65U);
    EXPECT_EQ(more.error().numbers().limit, 64U);
    Generation none = must(talk.generate({.max_tokens = 1, .ignore_end = true}));
    EXPECT_TRUE(read(none).tokens.empty());
    EXPECT_EQ(none.finish(), Finish::kLength);
    Conversation child = must(talk.fork());
    EXPECT_EQ(logits_of(child), cold_logits(joined(some_tokens(50, 1), story.tokens)));
    must(talk.rewind(40));
    child.close();
    must(talk.prompt(some_tokens(5, 2)));
    must(talk.wait());
    const std::vector<Token> kept = some_tokens(50, 1);
    EXPECT_EQ(logits_of(talk), cold_logits(joined({kept.begin(), kept.begin() + 40}, some_tokens(5, 2))));
  }
}

TEST(Generation, EndsWithLengthWhereTheConversationMayNotGetLonger) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation({.max_length = 20}));
  must(talk.prompt(some_tokens(15, 1)));
  Generation generation = must(talk.generate({.max_tokens = 100, .ignore_end = true}));
  const Story story = read(generation);
  EXPECT_EQ(story.tokens.size(), 5U);
  EXPECT_EQ(story.finish, Finish::kLength);
}

TEST(Generation, WaitsUntilItsOutboxIsReadAndOthersGoOn) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  const Story whole = story_of(prompt, 8, {.max_tokens = 9, .sampler = kLoose});
  Executor executor = make_executor(256);
  Conversation talk = told(executor, prompt, 8);
  Generation slow = must(talk.generate({.max_tokens = 9, .sampler = kLoose, .outbox = 1}));
  Conversation other = told(executor, prompt, 8);
  Generation quick = must(other.generate({.max_tokens = 9, .sampler = kLoose}));
  EXPECT_EQ(must(executor.run_until_idle()).outcome, Outcome::kIdle);
  EXPECT_EQ(talk.length(), 10U);
  EXPECT_EQ(must(talk.wait_for(std::chrono::nanoseconds(0))), false);
  EXPECT_EQ(outcome_of(talk.wait()), Outcome::kWrongState);  // it would wait for its own reader
  EXPECT_EQ(must(quick.rest()).tokens, whole.tokens);
  std::vector<Token> read_so_far;
  for (std::size_t i = 0; i < 9; ++i) {
    const auto piece = must(slow.poll());
    ASSERT_TRUE(piece) << i;
    read_so_far = joined(std::move(read_so_far), piece->tokens);
    EXPECT_FALSE(must(slow.poll()));
    must(executor.run_until_idle());
    EXPECT_EQ(talk.length(), i < 7 ? 11 + i : 19) << i;  // the last waits for nobody
  }
  EXPECT_EQ(read_so_far, whole.tokens);
  EXPECT_EQ(slow.finish(), Finish::kLength);
}

TEST(Generation, IsReadFromAThreadWhileAWorkerSteps) {  // G2
  const std::vector<Token> prompt = some_tokens(10, 1);
  const Story whole = story_of(prompt, 8, {.max_tokens = 30, .sampler = kLoose});
  Executor executor = make_executor(256);
  must(executor.start());
  Conversation talk = told(executor, prompt, 8);
  Generation generation = must(talk.generate({.max_tokens = 30, .sampler = kLoose, .outbox = 1}));
  const Story story = read(generation);
  EXPECT_EQ(story.tokens, whole.tokens);
  EXPECT_EQ(story.text, whole.text);
}

TEST(Generation, CancelledByItsConversationItsOutboxCanStillBeRead) {
  Executor executor = make_executor(256);
  Conversation talk = told(executor, some_tokens(10, 1), 8);
  Generation generation = must(talk.generate({.max_tokens = 30, .ignore_end = true}));
  for (int i = 0; i < 4; ++i) must(executor.step());
  must(talk.cancel());
  EXPECT_FALSE(generation.finish());  // something is to be read
  EXPECT_EQ(must(generation.rest()).tokens.size(), 4U);
  EXPECT_EQ(generation.finish(), Finish::kCancelled);
  EXPECT_EQ(talk.length(), 13U);  // the fourth was drawn and not computed yet
  EXPECT_EQ(talk.state(), ConversationState::kReady);
}

TEST(Generation, OneThatLacksRoomSaysSoAndLeavesItsPromptQueued) {
  Executor executor = make_executor(64);
  Conversation holds = told(executor, some_tokens(40, 1), 1);
  must(holds.wait());
  Conversation talk = told(executor, some_tokens(10, 2), 2);
  Generation generation = must(talk.generate({.max_tokens = 30, .ignore_end = true}));
  const auto piece = generation.next();
  EXPECT_EQ(outcome_of(piece), Outcome::kNoSpace);
  EXPECT_EQ(piece.error().numbers().wanted, 40U);
  EXPECT_EQ(outcome_of(generation.next()), Outcome::kNoSpace);
  EXPECT_EQ(talk.info().queued, 10U);
  must(talk.wait());  // it fits without the promise
  EXPECT_EQ(logits_of(talk), cold_logits(some_tokens(10, 2)));
}

TEST(Generation, OneWithoutAPromiseTakesRoomAsLongAsThereIsSome) {
  Executor executor = make_executor(64);
  Conversation holds = told(executor, some_tokens(40, 1), 1);
  must(holds.wait());
  Conversation talk = told(executor, some_tokens(10, 2), 2);
  Generation generation = must(talk.generate({.max_tokens = 30, .ignore_end = true, .reserve = false}));
  std::size_t count = 0;
  Result<std::optional<GeneratedPiece>> piece = must(generation.next());
  for (; piece && *piece; piece = generation.next()) count += (*piece)->tokens.size();
  EXPECT_EQ(outcome_of(piece), Outcome::kNoSpace);
  EXPECT_EQ(count, 15U);  // 14 in cells, the last queued
  EXPECT_EQ(talk.length(), 24U);
  EXPECT_EQ(talk.info().queued, 1U);
  holds.close();
  must(talk.wait());
  EXPECT_EQ(talk.length(), 25U);
}

TEST(Generation, TheRestGivesWhatCameBeforeAnErrorAndThenTheError) {
  Executor executor = make_executor(64);
  Conversation holds = told(executor, some_tokens(40, 1), 1);
  must(holds.wait());
  Conversation talk = told(executor, some_tokens(10, 2), 2);
  const GenerateOptions options{.max_tokens = 30, .ignore_end = true, .reserve = false};
  Generation generation = must(talk.generate(options));
  const GeneratedPiece came = must(generation.rest());
  const Story story = story_of(some_tokens(10, 2), 2, options);
  ASSERT_EQ(came.tokens.size(), 15U);
  EXPECT_TRUE(std::ranges::equal(came.tokens, std::span(story.tokens).first(15)));
  EXPECT_TRUE(story.text.starts_with(came.text));
  EXPECT_FALSE(generation.finish()) << "it has no end of its own";
  EXPECT_EQ(outcome_of(generation.rest()), Outcome::kNoSpace);
  EXPECT_EQ(outcome_of(generation.next()), Outcome::kNoSpace);
  EXPECT_EQ(talk.info().queued, 1U);
}

// Each single allocation of reading fails once: what is read in the end is the whole story.
TEST(Generation, TheRestLosesNothingWhereMemoryIsShort) {
  const GenerateOptions options{.max_tokens = 12, .ignore_end = true};
  const Story story = story_of(some_tokens(10, 2), 2, options);
  int failures = 0;
  int parts = 0;
  for (std::uint64_t n = 0; n < 300; ++n) {
    Executor executor = make_executor(64);
    Conversation talk = told(executor, some_tokens(10, 2), 2);
    Generation generation = must(talk.generate(options));
    must(executor.run_until_idle());
    GeneratedPiece all;
    bool fired = false;
    for (int call = 0; call < 3; ++call) {
      Result<GeneratedPiece> some = [&] {
        if (call == 2) return generation.rest();
        const test::AllocationFault fault(n, test::AllocationFault::Lasting::kOnce);
        Result<GeneratedPiece> rest = generation.rest();
        fired = fired || fault.fired();
        return rest;
      }();
      if (!some) {
        ASSERT_EQ(outcome_of(some), Outcome::kOutOfMemory);
        ++failures;
        continue;
      }
      parts += call > 0 && !some->tokens.empty() ? 1 : 0;
      all.text += some->text;
      all.tokens = joined(std::move(all.tokens), some->tokens);
    }
    ASSERT_EQ(all.tokens, story.tokens) << "allocation " << n;
    ASSERT_EQ(all.text, story.text);
    ASSERT_EQ(generation.finish(), Finish::kLength);
    if (!fired) break;
  }
  EXPECT_GT(failures, 0);
  EXPECT_GT(parts, 0) << "what came before an error was given";
}

TEST(Generation, AForkDrawsFromASeedOfItsOwnThatDependsOnItsParentAlone) {
  const auto seeds = [](bool company) {
    Executor executor = make_executor(512);
    std::vector<Conversation> others;
    Conversation parent = told(executor, some_tokens(10, 1), 5);
    must(parent.wait());
    std::vector<std::uint64_t> result;
    for (int i = 0; i < 4; ++i) {
      if (company) {
        others.push_back(told(executor, some_tokens(5, 2), 6));
        others.push_back(must(others.back().fork()));
      }
      Conversation child = must(parent.fork());
      result.push_back(child.seed());
      result.push_back(must(child.fork()).seed());
    }
    EXPECT_EQ(must(parent.fork(true)).seed(), 5U);
    return result;
  };
  const std::vector<std::uint64_t> mine = seeds(false);
  EXPECT_EQ(mine, seeds(true));
  EXPECT_EQ(std::set(mine.begin(), mine.end()).size(), mine.size());
}

TEST(Generation, AForkThatKeepsTheSeedTellsTheSameStoryAndOthersDoNot) {
  Executor executor = make_executor(1024);
  Conversation parent = told(executor, some_tokens(10, 1), 5);
  must(parent.wait());
  const GenerateOptions options{.max_tokens = 20, .sampler = kLoose};
  Conversation same = must(parent.fork(true));
  Conversation other = must(parent.fork());
  Conversation reseeded = must(parent.fork());
  must(reseeded.reseed(5));
  std::vector<Token> stories[4];
  Conversation* const all[] = {&parent, &same, &other, &reseeded};
  for (int i = 0; i < 4; ++i) stories[i] = must(must(all[i]->generate(options)).rest()).tokens;
  EXPECT_EQ(stories[0], stories[1]);
  EXPECT_NE(stories[0], stories[2]);
  EXPECT_EQ(stories[0], stories[3]);
  EXPECT_EQ(reseeded.seed(), 5U);
  EXPECT_EQ(stories[2], test::alone(some_tokens(10, 1), other.seed(), options).tokens);
}

TEST(Generation, ReseedingInTheMiddleChangesTheDrawsFromThereOn) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  const GenerateOptions options{.max_tokens = 20, .sampler = kLoose};
  const auto told_with_change = [&](std::uint64_t from, std::uint64_t to) {
    Executor executor = make_executor(256);
    Conversation talk = told(executor, prompt, from);
    Generation generation = must(talk.generate(options));
    std::vector<Token> tokens;
    for (int i = 0; i < 8; ++i) tokens = joined(std::move(tokens), must(generation.next())->tokens);
    must(talk.reseed(to));
    return joined(std::move(tokens), must(generation.rest()).tokens);
  };
  const std::vector<Token> plain = told_with_change(5, 5);
  const std::vector<Token> changed = told_with_change(5, 6);
  EXPECT_EQ(plain, test::alone(prompt, 5, options).tokens);
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 8, changed.begin()));
  EXPECT_NE(plain, changed);
}

// Rewinding takes tokens back, but not that they were accepted: what is drawn then is new.
TEST(Generation, ARewoundConversationDrawsAnew) {
  Executor executor = make_executor(256);
  Conversation talk = told(executor, some_tokens(10, 1), 5);
  const GenerateOptions options{.max_tokens = 16, .sampler = kLoose};
  const std::vector<Token> first = must(must(talk.generate(options)).rest()).tokens;
  must(talk.wait());
  must(talk.rewind(10));
  must(talk.refresh());
  const std::vector<Token> second = must(must(talk.generate(options)).rest()).tokens;
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace kvasir
