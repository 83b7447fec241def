// The seam for speculative decoding: a step whose caller accepts fewer tokens than were computed.

#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"
#include "sample/sampler.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::EngineHost;
using kvasir::test::same_bits;

class Speculation : public testing::Test {
 protected:
  [[nodiscard]] EngineHost host() const {
    return kvasir::test::make_engine(model_, {.pool = 256, .pass_tokens = 7, .logit_rows = 7});
  }

  // `count` tokens after `prompt`, one a step.
  [[nodiscard]] std::vector<Token> greedy(const std::vector<Token>& prompt, std::size_t count) const {
    const EngineHost engine = host();
    const ConversationId id = *engine->open();
    std::vector<float> logits = kvasir::test::say(engine, id, prompt);
    std::vector<Token> tokens;
    while (tokens.size() < count) {
      tokens.push_back(sample::most_likely(logits));
      logits = kvasir::test::say(engine, id, {&tokens.back(), 1});
    }
    return tokens;
  }

  kvasir::test::LoadedModel model_ = kvasir::test::load(kvasir::test::tiny_model({}));
};

// A draft that is right for a while: what the rows confirm is kept, the rest has never been.
TEST_F(Speculation, KeepsWhatTheLogitsConfirmAndGoesOnWithTheBitsOfOneTokenAtATime) {
  const std::vector<Token> prompt = kvasir::test::random_tokens(model_.vocabulary(), 20, 1);
  const std::vector<Token> expected = greedy(prompt, 40);
  const EngineHost engine = host();
  const ConversationId id = *engine->open();
  kvasir::test::say(engine, id, prompt);
  std::vector<Token> got;
  for (std::size_t round = 0; got.size() < 30; ++round) {
    // The next token is certain; the draft behind it is wrong from some token on.
    std::vector<Token> draft(expected.begin() + static_cast<std::ptrdiff_t>(got.size()),
                             expected.begin() + static_cast<std::ptrdiff_t>(got.size()) + 10);
    const std::size_t right = 1 + round % 9;
    draft[right] = (draft[right] + 1) % static_cast<Token>(model_.vocabulary());
    ASSERT_TRUE(engine->prompt(id, draft, LogitsWanted::kEvery));
    const std::uint64_t free = engine->tokens_free() + draft.size();
    const auto confirmed = [&](ConversationId asked, std::span<const KeptRow> rows) {
      EXPECT_EQ(asked, id);
      EXPECT_EQ(rows.size(), draft.size());
      std::uint64_t accepted = 1;
      while (accepted < rows.size() && sample::most_likely(*rows[accepted - 1].row) == draft[accepted])
        ++accepted;
      return accepted;
    };
    const auto report = engine->step({.whole_queue = true, .accept = confirmed});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->passes, 2U) << "ten tokens in passes of seven";
    ASSERT_EQ(report->tokens, right);
    EXPECT_EQ(*engine->queued(id), 0U);
    EXPECT_EQ(engine->tokens_free(), free - right) << "the cells of the rest are free again";
    got.insert(got.end(), draft.begin(), draft.begin() + static_cast<std::ptrdiff_t>(right));
    std::vector<Token> all = prompt;
    all.insert(all.end(), got.begin(), got.end());
    EXPECT_TRUE(same_bits(*engine->last_logits(id), kvasir::test::cold_logits(model_, all)));
  }
  EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin()));
}

TEST_F(Speculation, AcceptsNothingAtAll) {
  const EngineHost engine = host();
  const ConversationId id = *engine->open();
  const std::vector<Token> prompt = kvasir::test::random_tokens(model_.vocabulary(), 9, 2);
  kvasir::test::say(engine, id, prompt);
  const std::uint64_t free = engine->tokens_free();
  ASSERT_TRUE(engine->prompt(id, std::vector<Token>{1, 2, 3}, LogitsWanted::kEvery));
  const auto none = [](ConversationId, std::span<const KeptRow>) { return std::uint64_t{0}; };
  ASSERT_EQ(engine->step({.accept = none})->tokens, 0U);
  EXPECT_EQ(engine->tokens(id)->size(), 9U);
  EXPECT_EQ(engine->tokens_free(), free);
  EXPECT_TRUE(same_bits(*engine->last_logits(id), kvasir::test::cold_logits(model_, prompt)));
}

}  // namespace
}  // namespace kvasir::engine
