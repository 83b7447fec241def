// Conversations from open to close: what is refused, with which numbers, and that a refusal changes nothing.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using kvasir::test::same_bits;
using kvasir::test::status_of;

class Conversations : public testing::Test {
 protected:
  [[nodiscard]] EngineHost host(std::uint64_t pool = 64, std::uint64_t context = 4096,
                                std::uint32_t pass = 16) const {
    return kvasir::test::make_engine(
        model_, {.context = context, .pool = pool, .pass_tokens = pass, .logit_rows = 16});
  }
  [[nodiscard]] std::vector<Token> tokens(std::size_t count, std::uint64_t seed = 1) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }

  // The logits after `tokens` in an engine of their own.
  [[nodiscard]] std::vector<float> cold(const std::vector<Token>& prompt) const {
    const EngineHost alone = host(prompt.size() + 32);
    const ConversationId id = *alone->open();
    EXPECT_TRUE(alone->prompt(id, prompt, LogitsWanted::kLast));
    finish(alone);
    const auto logits = alone->last_logits(id);
    EXPECT_TRUE(logits);
    return logits ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
  }

  static void finish(const EngineHost& host) {
    while (true) {
      const auto report = host->step();
      ASSERT_TRUE(report) << report.error().message();
      if (report->outcome == Outcome::kIdle) return;
    }
  }

  LoadedModel model_ = kvasir::test::load_file(kvasir::test::data_path("models/llama/model.gguf"));
};

// `call` is refused with `code` and nothing has changed.
void expect_refused(const EngineHost& host, Outcome code, const std::function<Status()>& call) {
  const std::uint64_t before = *host->digest();
  const Status status = call();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), code) << status.error().message();
  EXPECT_EQ(*host->digest(), before);
}

Status step_as_unit(const EngineHost& host) {
  return status_of(host->step({.whole_queue = true}));
}

// K01: what can never fit is refused when it is asked for.
TEST_F(Conversations, APromptBeyondThePoolIsRefusedWithNumbersAndChangesNothing) {
  const EngineHost engine = host(64);
  const ConversationId id = *engine->open();
  ASSERT_EQ(engine->tokens_free(), 64U);
  ASSERT_TRUE(engine->prompt(id, tokens(3), LogitsWanted::kLast));
  expect_refused(engine, Outcome::kNoSpace,
                 [&] { return status_of(engine->prompt(id, tokens(62), LogitsWanted::kLast)); });
  const auto refused = engine->prompt(id, tokens(62), LogitsWanted::kLast);
  EXPECT_EQ(refused.error().numbers().wanted, 65U);
  EXPECT_EQ(refused.error().numbers().available, 61U);
  EXPECT_EQ(refused.error().numbers().limit, 64U);
  EXPECT_EQ(refused.error().numbers().setting, "--pool");
  EXPECT_NE(refused.error().message().find("65"), std::string::npos) << refused.error().message();
  EXPECT_EQ(engine->tokens(id)->size(), 0U);
  EXPECT_EQ(*engine->queued(id), 3U);

  ASSERT_TRUE(engine->cancel(id));
  ASSERT_TRUE(engine->prompt(id, tokens(30), LogitsWanted::kLast));
  const ConversationId other = *engine->open();
  ASSERT_TRUE(engine->prompt(other, tokens(34, 2), LogitsWanted::kLast));
  finish(engine);
  EXPECT_EQ(engine->tokens_free(), 0U) << "any free cell serves anyone";
  EXPECT_TRUE(same_bits(*engine->last_logits(id), cold(tokens(30))));
  EXPECT_TRUE(same_bits(*engine->last_logits(other), cold(tokens(34, 2))));
}

// K02: the third has to wait, the first two are what they were, and it goes on as soon as one of them ends.
TEST_F(Conversations, WhoFindsNoRoomWaitsAndOthersGoOn) {
  const EngineHost engine = host(96);
  const ConversationId first = *engine->open();
  const ConversationId second = *engine->open();
  const ConversationId third = *engine->open();
  ASSERT_TRUE(engine->prompt(first, tokens(40, 1), LogitsWanted::kLast));
  ASSERT_TRUE(engine->prompt(second, tokens(40, 2), LogitsWanted::kLast));
  finish(engine);
  ASSERT_TRUE(engine->prompt(third, tokens(40, 3), LogitsWanted::kLast));
  expect_refused(engine, Outcome::kNoSpace, [&] { return step_as_unit(engine); });
  ASSERT_TRUE(engine->cancel(third));
  const std::vector<Token> next = {7};
  ASSERT_TRUE(engine->prompt(first, next, LogitsWanted::kLast));
  finish(engine);
  std::vector<Token> all = tokens(40, 1);
  all.push_back(7);
  EXPECT_TRUE(same_bits(*engine->last_logits(first), cold(all)));
  EXPECT_TRUE(same_bits(*engine->last_logits(second), cold(tokens(40, 2))));

  ASSERT_TRUE(engine->close(second));
  ASSERT_TRUE(engine->prompt(third, tokens(40, 3), LogitsWanted::kLast));
  finish(engine);
  EXPECT_TRUE(same_bits(*engine->last_logits(third), cold(tokens(40, 3))));
}

// The whole need is promised before the first piece: who does not fit as a whole takes nothing from those who
// run, and waits for no more than their end.
TEST_F(Conversations, NoPieceIsComputedOfWhatDoesNotFitAsAWhole) {
  const EngineHost engine = host(64);
  const ConversationId first = *engine->open();
  const ConversationId second = *engine->open();
  ASSERT_TRUE(engine->prompt(first, tokens(40, 1), LogitsWanted::kLast));
  ASSERT_TRUE(engine->prompt(second, tokens(40, 2), LogitsWanted::kLast));
  EXPECT_EQ(engine->tokens_free(), 24U) << "what is promised is not free";
  for (int pass = 0; pass < 3; ++pass) {
    const auto report = engine->step();
    ASSERT_EQ(report->outcome, Outcome::kDone);
    EXPECT_EQ(report->shared_passes.at(0), std::vector{first});
  }
  expect_refused(engine, Outcome::kNoSpace, [&] { return status_of(engine->step()); });
  const auto refused = engine->step();
  EXPECT_EQ(refused.error().numbers().wanted, 40U);
  EXPECT_EQ(refused.error().numbers().available, 24U);
  EXPECT_EQ(engine->tokens(second)->size(), 0U);
  ASSERT_TRUE(engine->close(first));
  finish(engine);
  EXPECT_TRUE(same_bits(*engine->last_logits(second), cold(tokens(40, 2))));
}

// Two that each fit but not together never wait for one another.
TEST_F(Conversations, TwoThatOnlyFitOneAfterTheOtherAreServedOneAfterTheOther) {
  const EngineHost engine = host(64, 4096, 4);
  const ConversationId first = *engine->open();
  const ConversationId second = *engine->open();
  ASSERT_TRUE(engine->prompt(first, tokens(20, 1), LogitsWanted::kLast));
  ASSERT_TRUE(engine->prompt(second, tokens(20, 2), LogitsWanted::kLast));
  ASSERT_TRUE(engine->step());
  ASSERT_TRUE(engine->prompt(first, tokens(30, 3), LogitsWanted::kLast)) << "does not fit beside the second";
  ASSERT_TRUE(engine->prompt(second, tokens(30, 4), LogitsWanted::kLast));
  std::uint64_t committed = engine->tokens(first)->size() + engine->tokens(second)->size();
  while (const auto report = engine->step()) committed += report->tokens;
  // Each has what it was promised at first, or all.
  EXPECT_GE(committed, 4U);
  ASSERT_TRUE(engine->close(first));
  finish(engine);
  std::vector<Token> all = tokens(20, 2);
  const std::vector<Token> more = tokens(30, 4);
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_TRUE(same_bits(*engine->last_logits(second), cold(all)));
}

// K05: the last cell is used, one more token is refused, and the conversation is as good as before.
TEST_F(Conversations, GenerationEndsAtTheLastCellWithoutHarm) {
  const EngineHost engine = host(32);
  const ConversationId id = *engine->open();
  std::vector<Token> all = tokens(30);
  ASSERT_TRUE(engine->prompt(id, all, LogitsWanted::kLast));
  finish(engine);
  for (const Token token : {3, 4}) {
    ASSERT_TRUE(engine->prompt(id, {&token, 1}, LogitsWanted::kLast));
    finish(engine);
    all.push_back(token);
  }
  EXPECT_EQ(engine->tokens_free(), 0U);
  const std::vector<Token> one = {5};
  expect_refused(engine, Outcome::kNoSpace,
                 [&] { return status_of(engine->prompt(id, one, LogitsWanted::kLast)); });
  EXPECT_TRUE(same_bits(*engine->last_logits(id), cold(all)));
  ASSERT_TRUE(engine->close(id));
  EXPECT_EQ(engine->tokens_free(), 32U);
}

// K04: more queued than pass and pool hold together; every refusal leaves a sound engine.
TEST_F(Conversations, AHundredPromptsBeyondThePoolAreTakenOrRefused) {
  const EngineHost engine = host(640);
  std::vector<ConversationId> ids;
  for (int i = 0; i < 100; ++i) {
    ids.push_back(*engine->open());
    ASSERT_TRUE(engine->prompt(ids.back(), tokens(9, static_cast<std::uint64_t>(i)), LogitsWanted::kLast));
  }
  while (true) {
    const auto report = engine->step();
    if (!report) {
      EXPECT_EQ(report.error().code(), Outcome::kNoSpace);
      break;
    }
    ASSERT_EQ(report->outcome, Outcome::kDone);
  }
  expect_refused(engine, Outcome::kNoSpace, [&] { return step_as_unit(engine); });
  std::uint64_t held = 0;
  for (const ConversationId id : ids) held += engine->tokens(id)->size();
  EXPECT_EQ(held, 639U) << "seventy-one fit";
  EXPECT_EQ(held + engine->tokens_free(), 640U) << "no cell is lost";
  for (std::size_t i = 0; i < 50; ++i) ASSERT_TRUE(engine->close(ids[2 * i + 1]));
  finish(engine);
  for (std::size_t i = 0; i < 50; i += 7) {
    EXPECT_TRUE(same_bits(*engine->last_logits(ids[2 * i]), cold(tokens(9, 2 * i)))) << i;
  }
}

TEST_F(Conversations, TheContextBoundsOneConversation) {
  const EngineHost engine = host(256, 40);
  const ConversationId id = *engine->open();
  expect_refused(engine, Outcome::kNoSpace,
                 [&] { return status_of(engine->prompt(id, tokens(41), LogitsWanted::kLast)); });
  ASSERT_TRUE(engine->prompt(id, tokens(30), LogitsWanted::kLast));
  finish(engine);
  ASSERT_TRUE(engine->prompt(id, tokens(6), LogitsWanted::kLast));
  const auto refused = engine->prompt(id, tokens(5), LogitsWanted::kLast);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().numbers().wanted, 41U);
  EXPECT_EQ(refused.error().numbers().available, 4U);
  EXPECT_EQ(refused.error().numbers().limit, 40U);
  EXPECT_EQ(refused.error().numbers().setting, "--ctx");
  EXPECT_EQ(*engine->queued(id), 6U) << "the queue before it stays";
  ASSERT_TRUE(engine->prompt(id, tokens(4), LogitsWanted::kLast));
  finish(engine);
  EXPECT_EQ(engine->tokens(id)->size(), 40U);
  expect_refused(engine, Outcome::kNoSpace,
                 [&] { return status_of(engine->prompt(id, tokens(1), LogitsWanted::kLast)); });
  EXPECT_TRUE(engine->prompt(id, {}, LogitsWanted::kLast)) << "nothing more always fits";
}

TEST_F(Conversations, ATokenOutsideTheVocabularyIsNamedAndNothingIsQueued) {
  const EngineHost engine = host();
  const ConversationId id = *engine->open();
  const auto vocabulary = static_cast<Token>(model_.vocabulary());
  for (const Token bad :
       {-1, vocabulary, std::numeric_limits<Token>::min(), std::numeric_limits<Token>::max()}) {
    const std::vector<Token> prompt = {0, vocabulary - 1, bad};
    expect_refused(engine, Outcome::kInvalidArgument,
                   [&] { return status_of(engine->prompt(id, prompt, LogitsWanted::kEvery)); });
    const auto refused = engine->prompt(id, prompt, LogitsWanted::kEvery);
    EXPECT_NE(refused.error().message().find(std::to_string(bad)), std::string::npos);
    EXPECT_EQ(refused.error().numbers().limit, model_.vocabulary());
    EXPECT_EQ(*engine->queued(id), 0U);
  }
}

TEST_F(Conversations, AnIdThatIsNotOpenIsNotFound) {
  const EngineHost engine = host();
  const ConversationId open = *engine->open();
  const ConversationId closed = *engine->open();
  ASSERT_TRUE(engine->close(closed));
  const std::vector<Token> one = {1};
  for (const ConversationId id : {closed, ConversationId{17}, ConversationId{UINT32_MAX}}) {
    EXPECT_EQ(engine->prompt(id, one, LogitsWanted::kLast).error().code(), Outcome::kNotFound);
    EXPECT_EQ(engine->cancel(id).error().code(), Outcome::kNotFound);
    EXPECT_EQ(engine->close(id).error().code(), Outcome::kNotFound);
    EXPECT_EQ(engine->tokens(id).error().code(), Outcome::kNotFound);
    EXPECT_EQ(engine->queued(id).error().code(), Outcome::kNotFound);
    EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNotFound);
    EXPECT_EQ(engine->take_logits(id).error().code(), Outcome::kNotFound);
  }
  EXPECT_TRUE(engine->prompt(open, one, LogitsWanted::kLast));
}

TEST_F(Conversations, ClosingGivesEveryCellBackAndANewOneBeginsEmpty) {
  const EngineHost engine = host(128);
  const std::vector<float> expected = cold(tokens(20));
  for (std::uint64_t round = 0; round < 60; ++round) {
    ASSERT_EQ(engine->tokens_free(), 128U);
    std::vector<ConversationId> ids;
    for (std::size_t i = 0; i < 1 + round % 3; ++i) {
      ids.push_back(*engine->open());
      EXPECT_EQ(engine->tokens(ids.back())->size(), 0U);
      EXPECT_EQ(*engine->queued(ids.back()), 0U);
      EXPECT_EQ(engine->last_logits(ids.back()).error().code(), Outcome::kNeedsPrompt);
      EXPECT_TRUE(engine->take_logits(ids.back())->empty());
      const std::size_t count = 1 + (round * 11 + i * 5) % 40;
      ASSERT_TRUE(engine->prompt(ids.back(), tokens(count, round), LogitsWanted::kEvery));
    }
    ASSERT_TRUE(engine->step());
    const ConversationId last = *engine->open();
    ASSERT_TRUE(engine->prompt(last, tokens(20), LogitsWanted::kLast));
    ids.push_back(last);
    if (round % 2 == 0) finish(engine);  // else some end with a queue
    if (round % 2 == 0) {
      EXPECT_TRUE(same_bits(*engine->last_logits(last), expected)) << round;
    }
    for (const ConversationId id : ids) ASSERT_TRUE(engine->close(id));
  }
}

TEST_F(Conversations, LogitsBelongToTheLastTokenOnly) {
  const EngineHost engine = host();
  const ConversationId id = *engine->open();
  EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNeedsPrompt);
  ASSERT_TRUE(engine->prompt(id, tokens(20), LogitsWanted::kLast));
  EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNeedsPrompt);
  ASSERT_TRUE(engine->step());  // 16 of the 20
  EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNeedsPrompt);
  finish(engine);
  EXPECT_TRUE(same_bits(*engine->last_logits(id), cold(tokens(20))));
  const std::vector<Token> more = {4, 5};
  ASSERT_TRUE(engine->prompt(id, more, LogitsWanted::kLast));
  EXPECT_EQ(engine->last_logits(id).error().code(), Outcome::kNeedsPrompt) << "they would lag behind";
  ASSERT_TRUE(engine->cancel(id));
  EXPECT_TRUE(same_bits(*engine->last_logits(id), cold(tokens(20)))) << "and are there again";
}

TEST_F(Conversations, RowsOfEveryTokenGatherUntilTheyAreTaken) {
  const EngineHost engine = host();
  const ConversationId id = *engine->open();
  const std::vector<Token> prompt = tokens(20);
  const std::size_t vocabulary = model_.vocabulary();
  const std::span<const Token> all(prompt);
  ASSERT_TRUE(engine->prompt(id, all.first(9), LogitsWanted::kEvery));
  finish(engine);
  ASSERT_TRUE(engine->prompt(id, all.subspan(9, 4), LogitsWanted::kEvery));
  finish(engine);
  const auto first = engine->take_logits(id);
  ASSERT_EQ(first->size(), 13 * vocabulary);
  EXPECT_TRUE(engine->take_logits(id)->empty());
  ASSERT_TRUE(engine->prompt(id, all.subspan(13, 7), LogitsWanted::kEvery));
  finish(engine);
  const auto rest = engine->take_logits(id);
  ASSERT_EQ(rest->size(), 7 * vocabulary);
  for (std::size_t row = 0; row < 20; ++row) {
    const std::span<const float> got = row < 13
                                           ? std::span(*first).subspan(row * vocabulary, vocabulary)
                                           : std::span(*rest).subspan((row - 13) * vocabulary, vocabulary);
    ASSERT_TRUE(same_bits(got, cold({prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(row) + 1})))
        << "row " << row;
  }
}

TEST_F(Conversations, AStepWithNothingQueuedIsIdle) {
  const EngineHost engine = host();
  EXPECT_EQ(engine->step()->outcome, Outcome::kIdle);
  const ConversationId id = *engine->open();
  ASSERT_TRUE(engine->prompt(id, {}, LogitsWanted::kLast));
  const std::uint64_t before = *engine->digest();
  EXPECT_EQ(engine->step({.whole_queue = true})->outcome, Outcome::kIdle);
  EXPECT_FALSE(engine->step_open());
  EXPECT_EQ(*engine->digest(), before);
}

TEST_F(Conversations, AnEngineOfUnusableSizesIsRefusedByName) {
  auto pool = parallel::ThreadPool::create(1);
  const auto refused = [&](const EngineOptions& options, std::string_view setting) {
    const auto engine = Engine::create(model_.model, **pool, options);
    ASSERT_FALSE(engine) << setting;
    EXPECT_EQ(engine.error().code(), Outcome::kInvalidArgument) << engine.error().message();
    EXPECT_EQ(engine.error().numbers().setting, setting) << engine.error().message();
  };
  refused({.context = 0}, "--ctx");
  refused({.pool = 0}, "--pool");
  refused({.pool = std::uint64_t{1} << 40}, "--pool");
  refused({.pool = UINT64_MAX}, "--pool");
  refused({.pass_tokens = 0}, "--pass");
  refused({.logit_rows = 0}, "");
  for (const std::uint32_t page : {0U, 1U, 15U, 17U, 272U, UINT32_MAX})
    refused({.page_cells = page}, "--page");
}

TEST_F(Conversations, APoolLargerThanTheMemoryAtHandIsRefusedBeforeItIsTaken) {
  auto pool = parallel::ThreadPool::create(1);
  const auto refused = Engine::create(model_.model, **pool, {.pool = 100'000, .memory = 100'000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kOutOfMemory);
  const auto numbers = refused.error().numbers();
  EXPECT_EQ(numbers.available, 100'000U);
  EXPECT_EQ(numbers.setting, "--pool");
  ASSERT_GT(numbers.wanted, 100'000U);
  const EngineOptions exact{.pool = 100'000, .memory = numbers.wanted};
  EXPECT_TRUE(Engine::create(model_.model, **pool, exact)) << "what is there may be taken";
  const EngineOptions one_less{.pool = 100'000, .memory = *numbers.wanted - 1};
  EXPECT_FALSE(Engine::create(model_.model, **pool, one_less));
  // More than any machine has, by what this one says of itself.
  const EngineOptions huge{.context = 1, .pool = std::uint64_t{1} << 33, .page_cells = 256};
  const auto by_itself = Engine::create(model_.model, **pool, huge);
  ASSERT_FALSE(by_itself);
  EXPECT_EQ(by_itself.error().code(), Outcome::kOutOfMemory) << by_itself.error().message();
}

}  // namespace
}  // namespace kvasir::engine
