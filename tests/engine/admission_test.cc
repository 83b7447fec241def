// Who gets room, who waits, and that waiting has an end.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::EngineHost;

// Draws the same token for ever and reserves nothing.
class Endless final : public Drawer {
 public:
  [[nodiscard]] bool has_place() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t tokens_ahead() const noexcept override { return 0; }
  [[nodiscard]] Result<Draw> draw(const Row&, std::uint64_t, std::uint64_t, std::uint64_t) override {
    return Draw{.token = 1, .goes_on = true};
  }
  void publish() noexcept override {}
  void end(const Error*) noexcept override {}
};

class Admission : public testing::Test {
 protected:
  [[nodiscard]] EngineHost host(std::uint64_t pool, std::uint32_t pass = 512) const {
    return kvasir::test::make_engine(model_, {.pool = pool, .pass_tokens = pass});
  }
  [[nodiscard]] std::vector<Token> tokens(std::size_t count, std::uint64_t seed) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }
  ConversationId prompted(const EngineHost& engine, std::size_t count, std::uint64_t seed,
                          int priority = 0) const {
    const ConversationId id = *engine->open({.priority = priority});
    EXPECT_TRUE(engine->prompt(id, tokens(count, seed), LogitsWanted::kLast));
    return id;
  }

  kvasir::test::LoadedModel model_ = kvasir::test::load(kvasir::test::tiny_model({}));
};

// E4: a token that was drawn and finds no room keeps nobody else from the room that was promised to them.
TEST_F(Admission, AGenerationAtTheEndOfThePoolStopsNoPromisedPrompt) {
  const EngineHost engine = host(64, 4);
  const ConversationId prompt = prompted(engine, 48, 1);
  const ConversationId talker = prompted(engine, 8, 2);
  ASSERT_TRUE(engine->generate(talker, std::make_shared<Endless>()));
  std::uint64_t steps = 0;
  while (*engine->queued(prompt) > 0) {
    const auto report = engine->step();
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->outcome, Outcome::kDone);
    ++steps;
  }
  EXPECT_EQ(engine->tokens(prompt)->size(), 48U);
  EXPECT_EQ(engine->tokens(talker)->size(), 16U) << "all that was left";
  EXPECT_GT(steps, 8U);
  EXPECT_EQ(engine->step().error().code(), Outcome::kNoSpace);
  ASSERT_TRUE(engine->close(prompt));
  EXPECT_EQ(engine->step()->tokens, 1U) << "and goes on as soon as there is room";
}

TEST_F(Admission, RoomIsOfferedByPriorityAndThenByArrival) {
  const EngineHost engine = host(64);
  const ConversationId holder = prompted(engine, 50, 1);
  kvasir::test::step_until_idle(engine);
  const ConversationId late = prompted(engine, 30, 2);
  const ConversationId later = prompted(engine, 30, 3);
  const ConversationId important = prompted(engine, 30, 4, 1);
  ASSERT_TRUE(engine->close(holder));
  ASSERT_TRUE(engine->step());
  EXPECT_EQ(*engine->queued(important), 0U);
  EXPECT_EQ(*engine->queued(late), 0U);
  EXPECT_EQ(*engine->queued(later), 30U);
}

// Small ones may go before a large one that does not fit, but not for ever.
TEST_F(Admission, WhoIsPassedOverSixtyFourTimesComesNext) {
  const EngineHost engine = host(64);
  const ConversationId holder = prompted(engine, 30, 1);
  kvasir::test::step_until_idle(engine);
  const ConversationId large = prompted(engine, 50, 2);
  std::uint64_t before = 0;
  for (; before < 200; ++before) {
    const ConversationId small = prompted(engine, 5, 3 + before);
    const auto report = engine->step();
    ASSERT_TRUE(engine->close(small));
    if (!report) break;
  }
  EXPECT_EQ(before, kPassedOverMax);
  EXPECT_EQ(*engine->queued(large), 50U);
  ASSERT_TRUE(engine->close(holder));
  const ConversationId small = prompted(engine, 20, 7);
  ASSERT_TRUE(engine->step());
  EXPECT_EQ(*engine->queued(large), 0U);
  EXPECT_EQ(*engine->queued(small), 20U);
}

// One that computes a beginning serves those that wait for it: they find it in the index.
TEST_F(Admission, TwinsWaitForTheBeginningThatOneOfThemComputes) {
  const EngineHost engine =
      kvasir::test::make_engine(model_, {.pool = 512, .pass_tokens = 40, .share_prefixes = true});
  std::vector<ConversationId> twins;
  for (int i = 0; i < 4; ++i) {
    twins.push_back(*engine->open());
    std::vector<Token> prompt = tokens(70, 1);
    prompt.push_back(static_cast<Token>(i));
    ASSERT_TRUE(engine->prompt(twins.back(), prompt, LogitsWanted::kLast));
  }
  const auto first = engine->step();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->shared_passes.at(0), std::vector{twins[0]});
  kvasir::test::step_until_idle(engine);
  EXPECT_EQ(engine->prefix_counters().tokens_found, 3U * 64U);
  for (int i = 0; i < 4; ++i) {
    std::vector<Token> prompt = tokens(70, 1);
    prompt.push_back(static_cast<Token>(i));
    EXPECT_TRUE(kvasir::test::same_bits(*engine->last_logits(twins[static_cast<std::size_t>(i)]),
                                        kvasir::test::cold_logits(model_, prompt)));
  }
}

// The next in line computes what nobody computes any more.
TEST_F(Admission, ATwinGoesOnAloneWhereTheOtherIsCancelled) {
  const EngineHost engine =
      kvasir::test::make_engine(model_, {.pool = 512, .pass_tokens = 40, .share_prefixes = true});
  const ConversationId first = prompted(engine, 70, 1);
  const ConversationId second = prompted(engine, 70, 1);
  ASSERT_TRUE(engine->cancel(first));
  kvasir::test::step_until_idle(engine);
  EXPECT_EQ(engine->tokens(second)->size(), 70U);
  EXPECT_EQ(engine->tokens(first)->size(), 0U);
}

}  // namespace
}  // namespace kvasir::engine
