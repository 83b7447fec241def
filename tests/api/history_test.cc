// A conversation's history: prompted in any lengths, to what it should be, rewound, shifted, brought back.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "api/api_run.h"

namespace kvasir {
namespace {

using test::cold_logits;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

std::vector<Token> first(const std::vector<Token>& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

// K40
TEST(History, PromptsOfAnyLengthAroundThatOfAPassAreProcessed) {
  for (const std::size_t length : {1U, 63U, 64U, 65U, 640U}) {
    Executor executor = make_executor(1024, 64);
    Conversation talk = must(executor.conversation());
    EXPECT_EQ(must(talk.prompt(some_tokens(length, length))), length);
    must(talk.wait());
    EXPECT_EQ(logits_of(talk), cold_logits(some_tokens(length, length))) << length;
  }
}

TEST(History, PromptingWhileSomethingIsQueuedAppends) {
  Executor executor = make_executor(256, 32);
  Conversation talk = must(executor.conversation());
  std::vector<Token> all;
  for (std::uint64_t i = 0; i < 6; ++i) {
    all = joined(all, some_tokens(13, i));
    must(talk.prompt(some_tokens(13, i)));
    if (i == 3) must(executor.step());
  }
  Budget budget;
  budget.between_jobs = [&](const JobView& view) {
    if (view.job == 2) {
      all = joined(all, some_tokens(3, 9));
      must(talk.prompt(some_tokens(3, 9)));
    }
    return Verdict::kGoOn;
  };
  must(executor.step(budget));
  must(talk.wait());
  EXPECT_EQ(must(talk.tokens()), all);
  EXPECT_EQ(logits_of(talk), cold_logits(all));
}

TEST(History, ATextBeginsWithTheBeginTokenWhereItBeginsTheConversation) {
  const Token begin = *test::model().begin_token();
  const std::vector<Token> plain = must(test::model().tokenize("ba be", {.add_begin = AddBegin::kNo}));
  EXPECT_EQ(must(test::model().tokenize("ba be")), joined({begin}, plain));
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  EXPECT_EQ(must(talk.prompt("ba be")), plain.size() + 1);
  EXPECT_EQ(must(talk.prompt("ba be")), plain.size());
  EXPECT_EQ(must(talk.prompt("ba be", {.add_begin = AddBegin::kYes})), plain.size() + 1);
  must(talk.wait());
  const std::vector<Token> once = joined({begin}, plain);
  EXPECT_EQ(must(talk.tokens()), joined(joined(once, plain), once));
  // A text that spells it gets it once, and only where it may name special tokens.
  Conversation spelled = must(executor.conversation());
  EXPECT_EQ(must(spelled.prompt("<|begin|>ba be", {.parse_special = true})), plain.size() + 1);
  Conversation verbatim = must(executor.conversation());
  EXPECT_GT(must(verbatim.prompt("<|begin|>ba be")), plain.size() + 2);
  EXPECT_EQ(must(test::model().detokenize(once)), "<|begin|>ba be");
}

TEST(History, EveryRowThatWasAskedForIsThereAndIsThatOfItsToken) {
  const std::vector<Token> tokens = some_tokens(40, 1);
  Executor executor = make_executor(256, 16);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(first(tokens, 10)));
  must(talk.prompt(std::span<const Token>(tokens).subspan(10, 20), {.every_logit = true}));
  must(talk.prompt(std::span<const Token>(tokens).subspan(30)));
  must(talk.wait());
  for (std::size_t back = 0; back < 40; ++back) {
    const std::size_t length = 40 - back;
    const bool kept = back == 0 || (length > 10 && length <= 30);
    ASSERT_EQ(outcome_of(talk.logits(back)), kept ? Outcome::kDone : Outcome::kNeedsPrompt) << length;
    if (kept) {
      EXPECT_EQ(logits_of(talk, back), cold_logits(first(tokens, length))) << length;
    }
  }
  for (const std::uint64_t beyond : {std::uint64_t{40}, UINT64_MAX}) {
    const auto none = talk.logits(beyond);
    EXPECT_EQ(outcome_of(none), Outcome::kInvalidArgument);
    EXPECT_EQ(none.error().numbers().limit, 39U);
  }
  must(talk.rewind(25));
  EXPECT_EQ(logits_of(talk), cold_logits(first(tokens, 25)));
}

// K24
TEST(History, AChatWhoseTemplateDropsPartsHoldsExactlyWhatWasRendered) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation({.seed = 4}));
  std::vector<Token> rendered = some_tokens(20, 1);
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    const std::uint64_t length = talk.length();
    const std::uint64_t kept = must(talk.prompt_to(rendered));
    EXPECT_LE(kept, length);
    EXPECT_EQ(talk.info().queued, rendered.size() - kept);
    must(talk.wait());
    EXPECT_EQ(must(talk.tokens()), rendered);
    EXPECT_EQ(logits_of(talk), cold_logits(rendered));
    Generation answer = must(talk.generate({.max_tokens = 16, .ignore_end = true}));
    const std::vector<Token> said = must(answer.rest()).tokens;
    must(talk.wait());
    // The next turn is without the first half of the answer, its reasoning.
    rendered.insert(rendered.end(), said.begin() + 8, said.end());
    rendered = joined(rendered, some_tokens(12, 100 + turn));
    EXPECT_GE(kept, turn > 0 ? 20U : 0U);
  }
}

// K25
TEST(History, TheLogitsAreThoseOfTheLastTokenAskedForNeverOfSomethingLonger) {
  const std::vector<Token> all = some_tokens(50, 1);
  for (const std::size_t half : {1U, 16U, 32U, 33U, 49U}) {
    Executor executor = make_executor(512);
    Conversation talk = must(executor.conversation());
    must(talk.prompt(all));
    must(talk.wait());
    EXPECT_EQ(must(talk.prompt_to(first(all, half))), half - 1);
    must(talk.wait());
    EXPECT_EQ(logits_of(talk), cold_logits(first(all, half)));
    EXPECT_EQ(must(talk.prompt_to(first(all, half))), half);  // nothing is to be done
    EXPECT_EQ(talk.state(), ConversationState::kReady);
    must(talk.prompt_to(all));
    must(talk.wait());
    EXPECT_EQ(logits_of(talk), cold_logits(all));
    // The same by conversations that find the beginning of others.
    for (const std::vector<Token>& tokens : {first(all, half), all}) {
      Conversation fresh = must(executor.conversation());
      must(fresh.prompt(tokens));
      must(fresh.wait());
      EXPECT_EQ(logits_of(fresh), cold_logits(tokens));
    }
  }
}

// K21, K23: a conversation that reaches its context drops its oldest and goes on, or is refused; here by
// hand.
TEST(History, AFullContextIsShiftedForEveryCacheType) {
  for (const CacheType keys :
       {CacheType::kF32, CacheType::kF16, CacheType::kBf16, CacheType::kQ8_0, CacheType::kQ4_0}) {
    ExecutorOptions options = test::options_of(256);
    options.keys = keys;
    options.values = keys;
    options.context = 64;
    Executor executor = make_executor(options);
    Conversation talk = must(executor.conversation({.seed = 1}));
    must(talk.prompt(some_tokens(60, 1)));
    std::vector<Token> expected = some_tokens(60, 1);
    for (int shifts = 0; shifts < 5; ++shifts) {
      Generation story = must(talk.generate({.max_tokens = 100, .ignore_end = true}));
      const std::vector<Token> said = must(story.rest()).tokens;
      EXPECT_EQ(story.finish(), Finish::kLength);
      must(talk.wait());
      expected = joined(expected, said);
      ASSERT_EQ(talk.length(), 64U);
      must(talk.shift_left(8, 20));
      expected.erase(expected.begin() + 8, expected.begin() + 28);
      EXPECT_EQ(must(talk.tokens()), expected);
      must(talk.refresh());
    }
    must(talk.wait());
    for (const float logit : logits_of(talk)) ASSERT_TRUE(std::isfinite(logit));
  }
}

// K22
TEST(History, KeepingMoreThanThereIsIsRefusedAndEveryShiftThatIsNotFreesSomething) {
  constexpr std::uint64_t kContext = 64;
  ExecutorOptions options = test::options_of(256);
  options.context = kContext;
  for (const std::uint64_t keep : {kContext - 4, kContext - 1, kContext, kContext + 10}) {
    Executor executor = make_executor(options);
    Conversation talk = must(executor.conversation());
    must(talk.prompt(some_tokens(kContext, 1)));
    must(talk.wait());
    for (int turn = 0; turn < 10; ++turn) {
      const Status shifted = talk.shift_left(keep, 1);
      if (keep >= kContext) {
        EXPECT_EQ(outcome_of(shifted), Outcome::kInvalidArgument);
        EXPECT_EQ(talk.length(), kContext);
        EXPECT_EQ(shifted.error().numbers().limit, kContext);
        break;
      }
      ASSERT_EQ(outcome_of(shifted), Outcome::kDone);
      EXPECT_EQ(talk.length(), kContext - 1);
      must(talk.prompt(some_tokens(1, static_cast<std::uint64_t>(turn))));
      must(talk.wait());
    }
  }
}

TEST(History, RewindsAreFreeAndContinueAsAColdRun) {
  const std::vector<Token> tokens = some_tokens(100, 1);
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(tokens));
  must(talk.wait());
  for (const std::size_t length : {99U, 64U, 17U, 16U, 1U, 0U}) {
    EXPECT_EQ(must(talk.rewind_cost(length)), 0U);
    must(talk.rewind(length));
    EXPECT_EQ(talk.length(), length);
    EXPECT_EQ(executor.cache().held, length);
    Conversation child = must(talk.fork());
    must(child.prompt(some_tokens(9, length)));
    must(child.wait());
    EXPECT_EQ(logits_of(child), cold_logits(joined(first(tokens, length), some_tokens(9, length))));
  }
  EXPECT_EQ(talk.state(), ConversationState::kEmpty);
}

TEST(History, SeveralChangesAreOneAllOrNone) {
  const std::vector<Token> tokens = some_tokens(40, 1);
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(tokens));
  must(talk.wait());
  using Kind = EditOperation::Kind;
  const std::vector<EditOperation> good = {{Kind::kRemove, 5, 10, 0}, {Kind::kMove, 5, 25, -10}};
  std::vector<EditOperation> bad = good;
  bad.push_back({Kind::kRemove, 29, 2, 0});
  const std::uint64_t before = test::digest_of(executor);
  EXPECT_EQ(outcome_of(talk.edit(bad)), Outcome::kInvalidArgument);
  EXPECT_EQ(test::digest_of(executor), before);
  Conversation shifted = must(talk.fork());
  must(shifted.shift_left(5, 10));
  must(talk.edit(good));
  EXPECT_EQ(must(talk.tokens()), must(shifted.tokens()));
  must(talk.prompt(some_tokens(3, 2)));
  must(shifted.prompt(some_tokens(3, 2)));
  must(executor.run_until_idle());
  EXPECT_EQ(logits_of(talk), logits_of(shifted));
}

// K75, by recomputation
TEST(History, TenThatAreTakenOutAndBroughtBackInTheMiddleEachTellTheirStoryToTheEnd) {
  constexpr std::size_t kTold = 30;
  const GenerateOptions one{.max_tokens = 1, .ignore_end = true};
  std::mt19937_64 random(3);
  Executor executor = make_executor(640, 64);
  struct Teller {
    Conversation talk;
    std::vector<Token> history;
    std::uint64_t seed;
  };
  std::vector<Teller> tellers;
  for (std::uint64_t i = 0; i < 10; ++i) {
    tellers.push_back({must(executor.conversation({.seed = i})), some_tokens(10 + i, i), i});
    must(tellers.back().talk.prompt(tellers.back().history));
  }
  // How many tokens a conversation ever accepted keys its draws, so one that recomputes draws by hand with
  // the greedy sampler, which needs no key.
  for (std::size_t turn = 0; turn < kTold; ++turn) {
    for (Teller& teller : tellers) {
      if (random() % 4 == 0) {
        must(teller.talk.clear());
        must(teller.talk.prompt_to(teller.history));
      }
      must(teller.talk.wait());
      const Token next = must(teller.talk.sample(Sampler::greedy()));
      teller.history.push_back(next);
      must(teller.talk.prompt(std::span<const Token>(&next, 1)));
    }
  }
  must(executor.run_until_idle());
  for (Teller& teller : tellers) {
    const std::vector<Token> prompt = some_tokens(10 + teller.seed, teller.seed);
    const GeneratedPiece solo = test::alone(
        prompt, teller.seed, {.max_tokens = kTold, .sampler = Sampler::greedy(), .ignore_end = true});
    EXPECT_EQ(must(teller.talk.tokens()), joined(prompt, solo.tokens));
    EXPECT_EQ(teller.talk.info().length, prompt.size() + kTold);
  }
}

}  // namespace
}  // namespace kvasir
