// Beginnings that conversations share through the prefix index: what is found, what never is, and the bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::cold_logits;
using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using kvasir::test::logits_of;
using kvasir::test::open_with;
using kvasir::test::same_bits;
using kvasir::test::say;
using kvasir::test::step_until_idle;
using Tokens = std::vector<Token>;

constexpr std::uint32_t kPage = 16;

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

class SharedBeginnings : public testing::Test {
 protected:
  [[nodiscard]] EngineHost host(std::uint64_t pool = 512) const {
    return kvasir::test::make_engine(
        model_,
        {.pool = pool, .page_cells = kPage, .pass_tokens = 16, .logit_rows = 16, .share_prefixes = true});
  }
  [[nodiscard]] Tokens tokens(std::size_t count, std::uint64_t seed = 1) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }

  // Prompts a new conversation, expects `reused` of its tokens to be found, and the bits of a cold run.
  ConversationId expect_reused(const EngineHost& engine, const Tokens& all, std::uint64_t reused) const {
    const ConversationId id = *engine->open();
    const auto found = engine->prompt(id, all, LogitsWanted::kLast);
    EXPECT_TRUE(found);
    if (found) {
      EXPECT_EQ(*found, reused);
      EXPECT_EQ(engine->tokens(id)->size(), reused) << "what is found is committed at once";
      EXPECT_EQ(*engine->queued(id), all.size() - reused);
    }
    step_until_idle(engine);
    EXPECT_TRUE(std::ranges::equal(*engine->tokens(id), all));
    EXPECT_TRUE(same_bits(logits_of(engine, id), cold_logits(model_, all)));
    return id;
  }

  LoadedModel model_ = kvasir::test::load_file(kvasir::test::data_path("models/llama/model.gguf"));
};

TEST_F(SharedBeginnings, AreFoundInWholePagesWithoutAByteMoved) {
  const EngineHost engine = host();
  const Tokens system = tokens(50);
  const ConversationId first = expect_reused(engine, joined(system, tokens(9, 2)), 0);
  const ConversationId second = expect_reused(engine, joined(system, tokens(30, 3)), 48);
  EXPECT_EQ(engine->holdings(second)->shared, 48U);
  EXPECT_EQ(engine->holdings(first)->shared, 48U);
  expect_reused(engine, joined(joined(system, tokens(9, 2)), tokens(1, 4)), 48);
  EXPECT_EQ(engine->bytes_moved(), 0U);
}

TEST_F(SharedBeginnings, StopBeforeTheLastTokenWhoseLogitsAreWanted) {
  const EngineHost engine = host();
  const Tokens all = tokens(3 * kPage);
  expect_reused(engine, all, 0);
  expect_reused(engine, all, 2 * kPage);
  expect_reused(engine, joined(all, tokens(1, 5)), 3 * kPage);
  expect_reused(engine, Tokens(all.begin(), all.begin() + kPage), 0);
  expect_reused(engine, Tokens(all.begin(), all.begin() + kPage + 1), kPage);
}

TEST_F(SharedBeginnings, EndAtTheFirstTokenThatDiffers) {
  const EngineHost engine = host();
  const Tokens all = tokens(5 * kPage);
  expect_reused(engine, all, 0);
  for (const std::size_t at : {0U, 15U, 16U, 33U, 79U}) {
    Tokens other = all;
    other[at] = (other[at] + 1) % static_cast<Token>(model_.vocabulary());
    expect_reused(engine, other, std::min<std::uint64_t>(at / kPage * kPage, 4 * kPage));
  }
  // The same page behind another beginning is another page.
  expect_reused(engine, joined(Tokens(all.begin() + kPage, all.end()), {1}), 0);
}

// K25: P and Q, then exactly P, then P and Q again: every time the logits of the last requested token.
TEST_F(SharedBeginnings, GiveTheLogitsOfTheLastRequestedToken) {
  const EngineHost engine = host();
  const Tokens shorter = tokens(2 * kPage);
  const Tokens longer = joined(shorter, tokens(20, 2));
  ASSERT_TRUE(engine->close(expect_reused(engine, longer, 0)));
  ASSERT_TRUE(engine->close(expect_reused(engine, shorter, kPage)));
  ASSERT_TRUE(engine->close(expect_reused(engine, longer, 3 * kPage)));
  const ConversationId id = expect_reused(engine, shorter, kPage);
  EXPECT_EQ(*engine->prompt_to(id, longer), 2 * kPage);
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold_logits(model_, longer)));
  EXPECT_EQ(*engine->prompt_to(id, shorter), 2 * kPage - 1);
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold_logits(model_, shorter)));
}

// What the index alone holds is free space: a prompt of the whole pool takes it.
TEST_F(SharedBeginnings, OfClosedConversationsYieldToWhoeverNeedsTheRoom) {
  const EngineHost engine = host(128);
  const Tokens known = tokens(90);
  ASSERT_TRUE(engine->close(expect_reused(engine, known, 0)));
  EXPECT_EQ(engine->tokens_free(), 128U);
  EXPECT_EQ(engine->space().evictable_cells, 80U);
  ASSERT_TRUE(engine->close(expect_reused(engine, tokens(128, 2), 0)));
  EXPECT_EQ(engine->tokens_free(), 128U);
  expect_reused(engine, known, 0);
}

// K03: a unit of five passes that fails in the third, by the caller's will or for want of room, leaves
// nothing to be found.
TEST_F(SharedBeginnings, AreNeverTakenFromAStepThatFailed) {
  const EngineHost engine = host(96);
  const Tokens all = tokens(80);
  const ConversationId id = open_with(engine, tokens(6, 9));
  const std::vector<float> before = logits_of(engine, id);
  ASSERT_TRUE(engine->prompt(id, all, LogitsWanted::kLast));
  const std::uint64_t digest = *engine->digest();
  const auto third = [](const JobView& view) { return view.pass == 2 ? Verdict::kCancel : Verdict::kGoOn; };
  const auto stopped = engine->step({.whole_queue = true, .between_jobs = third});
  ASSERT_EQ(stopped->outcome, Outcome::kCancelled);
  EXPECT_EQ(stopped->passes, 3U);
  EXPECT_EQ(*engine->digest(), digest);
  EXPECT_EQ(engine->prompt(id, tokens(20, 3), LogitsWanted::kLast).error().code(), Outcome::kNoSpace);
  EXPECT_EQ(*engine->digest(), digest);
  ASSERT_TRUE(engine->cancel(id));
  EXPECT_EQ(engine->tokens(id)->size(), 6U);
  EXPECT_EQ(engine->tokens_free(), 90U);
  EXPECT_TRUE(same_bits(logits_of(engine, id), before));

  // The cancelled tokens are in no page of the index, neither behind the six nor by themselves.
  ASSERT_TRUE(engine->close(id));
  ASSERT_TRUE(engine->close(expect_reused(engine, joined(tokens(6, 9), all), 0)));
  expect_reused(engine, all, 0);
}

TEST_F(SharedBeginnings, AreNeverTakenFromCellsThatMovedInTheirText) {
  const EngineHost engine = host();
  const Tokens all = tokens(100);
  const ConversationId id = expect_reused(engine, all, 0);
  ASSERT_TRUE(engine->shift_left(id, 20, 12));
  const Tokens shifted(engine->tokens(id)->begin(), engine->tokens(id)->end());
  say(engine, id, tokens(40, 7));
  // One page lies before the edit; what follows was computed with other neighbours at other positions.
  expect_reused(engine, joined(shifted, tokens(1, 8)), kPage);
  expect_reused(engine, joined(all, tokens(1, 8)), 96);
}

// A conversation that was rewound is clean where it goes on, and blocks of what it took back stay true.
TEST_F(SharedBeginnings, OutliveTheRewindOfWhoComputedThem) {
  const EngineHost engine = host();
  const Tokens all = tokens(70);
  const ConversationId id = expect_reused(engine, all, 0);
  ASSERT_TRUE(engine->rewind(id, 20));
  const Tokens other = joined(Tokens(all.begin(), all.begin() + 20), tokens(50, 4));
  say(engine, id, tokens(50, 4));
  expect_reused(engine, joined(all, {2}), 64);
  expect_reused(engine, joined(other, {2}), 64);
}

TEST_F(SharedBeginnings, AreFoundWhereCompactionAndSwapsHavePutThem) {
  const EngineHost engine = host(256);
  const Tokens known = tokens(64);
  // Every second cell is taken while the beginning is computed, so it lies scattered.
  const ConversationId filler = *engine->open();
  ASSERT_TRUE(engine->fill(filler, Tokens(256)));
  std::vector<pages::EditOperation> holes;
  for (std::uint64_t i = 128; i-- > 0;) holes.push_back({pages::EditOperation::Kind::kRemove, 2 * i, 1, 0});
  ASSERT_TRUE(engine->edit(filler, holes));
  const ConversationId id = expect_reused(engine, known, 0);
  EXPECT_GT(engine->holdings(id)->spans, 32U);
  ASSERT_TRUE(engine->close(filler));
  EXPECT_GT(*engine->compact(UINT64_MAX), 0U);
  ASSERT_TRUE(engine->swap_cells(id, 3, 60));
  ASSERT_TRUE(engine->close(id));
  expect_reused(engine, joined(known, tokens(9, 2)), 64);
}

TEST_F(SharedBeginnings, AreLeftAloneByWhoAlreadyHoldsSomethingOrWantsEveryRow) {
  const EngineHost engine = host();
  const Tokens all = tokens(60);
  expect_reused(engine, all, 0);
  const ConversationId every = *engine->open();
  EXPECT_EQ(*engine->prompt(every, all, LogitsWanted::kEvery), 0U) << "found tokens would have no rows";
  step_until_idle(engine);
  EXPECT_EQ(engine->take_logits(every)->size(), all.size() * model_.vocabulary());
  const ConversationId begun = open_with(engine, tokens(3, 6));
  EXPECT_EQ(*engine->prompt(begun, all, LogitsWanted::kLast), 0U);
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, begun), cold_logits(model_, joined(tokens(3, 6), all))));
}

TEST_F(SharedBeginnings, AreNotTakenByAPromptThatIsRefused) {
  const EngineHost engine = host();
  const Tokens all = tokens(60);
  expect_reused(engine, all, 0);
  const ConversationId id = *engine->open();
  const std::uint64_t before = *engine->digest();
  Tokens bad = joined(all, {-1});
  EXPECT_EQ(engine->prompt(id, bad, LogitsWanted::kLast).error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(engine->prompt(id, Tokens(5000), LogitsWanted::kLast).error().code(), Outcome::kNoSpace);
  EXPECT_EQ(*engine->digest(), before);
  EXPECT_EQ(engine->tokens(id)->size(), 0U);
}

TEST_F(SharedBeginnings, AreNotSharedUnlessAsked) {
  const EngineHost engine = kvasir::test::make_engine(model_, {.pool = 512, .page_cells = kPage});
  const ConversationId first = open_with(engine, tokens(60));
  const ConversationId second = *engine->open();
  EXPECT_EQ(*engine->prompt(second, tokens(60), LogitsWanted::kLast), 0U);
  step_until_idle(engine);
  EXPECT_EQ(engine->holdings(first)->shared, 0U);
  EXPECT_TRUE(same_bits(logits_of(engine, first), logits_of(engine, second)));
}

// Many conversations of few beginnings in a pool too small for all: whatever is found, given up and computed
// anew, every answer is that of a cold run.
TEST_F(SharedBeginnings, ComeAndGoUnderPressureWithoutABitChanged) {
  const EngineHost engine = host(192);
  std::uint64_t reused = 0;
  for (std::uint64_t turn = 0; turn < 40; ++turn) {
    const Tokens all = joined(tokens(20 + turn * 7 % 60, 100 + turn % 3), tokens(1 + turn % 5, 200 + turn));
    const ConversationId id = *engine->open();
    reused += *engine->prompt(id, all, LogitsWanted::kLast);
    step_until_idle(engine);
    ASSERT_TRUE(same_bits(logits_of(engine, id), cold_logits(model_, all))) << turn;
    if (turn % 4 != 0) {
      ASSERT_TRUE(engine->close(id));
    } else {
      ASSERT_TRUE(engine->rewind(id, 5));
    }
  }
  EXPECT_GT(reused, 0U);
}

// What a step that is stopped has admitted is as if it had never been asked for (E6).
class AdmittedBeginnings : public SharedBeginnings {
 protected:
  // 64 tokens are known; the conversation that begins with them and has 40 more finds no room when it is
  // prompted, since another holds all but two pages.
  AdmittedBeginnings() : engine_(host(208)) {
    known_ = tokens(64);
    wanted_ = joined(known_, tokens(40, 2));
    EXPECT_TRUE(engine_->close(open_with(engine_, joined(known_, tokens(1, 9)))));
    other_ = open_with(engine_, tokens(112, 3));
    waiting_ = *engine_->open();
    const std::uint64_t free = engine_->tokens_free();
    EXPECT_EQ(*engine_->prompt(waiting_, wanted_, LogitsWanted::kLast), 0U);
    EXPECT_EQ(engine_->tokens_free(), free) << "what is known is not held by who waits";
    EXPECT_TRUE(engine_->tokens(waiting_)->empty());
  }

  // Steps until the first job of a step that computes something of `waiting_`.
  void suspend() {
    ASSERT_TRUE(engine_->close(other_));
    before_ = *engine_->digest();
    const auto report = engine_->step({.between_jobs = [](const JobView&) { return Verdict::kSuspend; }});
    ASSERT_TRUE(report);
    ASSERT_EQ(report->outcome, Outcome::kSuspended);
    ASSERT_TRUE(engine_->look(waiting_).value()->in_step);
  }
  void expect_cold(ConversationId id) {
    step_until_idle(engine_);
    EXPECT_TRUE(std::ranges::equal(*engine_->tokens(id), wanted_));
    EXPECT_TRUE(same_bits(logits_of(engine_, id), cold_logits(model_, wanted_)));
  }

  Tokens known_;
  Tokens wanted_;
  EngineHost engine_;
  ConversationId other_{};
  ConversationId waiting_{};
  std::uint64_t before_ = 0;
};

TEST_F(AdmittedBeginnings, AreGivenBackWhereTheRestFindsNoRoom) {
  const std::uint64_t before = *engine_->digest();
  const pages::PrefixCounters counters = engine_->prefix_counters();
  for (int i = 0; i < 3; ++i) {
    const auto refused = engine_->step();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
    EXPECT_EQ(*engine_->digest(), before);
    EXPECT_TRUE(engine_->tokens(waiting_)->empty());
    EXPECT_EQ(*engine_->queued(waiting_), wanted_.size());
  }
  EXPECT_EQ(engine_->prefix_counters().tokens_found, counters.tokens_found);
  ASSERT_TRUE(engine_->close(other_));
  expect_cold(waiting_);
  EXPECT_EQ(engine_->prefix_counters().tokens_found, counters.tokens_found + 64);
  EXPECT_EQ(engine_->holdings(waiting_)->own + engine_->holdings(waiting_)->shared, wanted_.size());
}

TEST_F(AdmittedBeginnings, ShowWithTheCommitOfTheStepThatAdmitsAndNotBefore) {
  suspend();
  EXPECT_TRUE(engine_->tokens(waiting_)->empty());
  EXPECT_EQ(*engine_->queued(waiting_), wanted_.size());
  EXPECT_EQ(engine_->holdings(waiting_)->own + engine_->holdings(waiting_)->shared, 0U);
  EXPECT_EQ(engine_->next_position(*engine_->look(waiting_).value()), 0);
  const auto report = engine_->step();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->tokens, 16U) << "what was computed";
  EXPECT_EQ(engine_->tokens(waiting_)->size(), 64U + 16);
  expect_cold(waiting_);
}

TEST_F(AdmittedBeginnings, GoBackWithTheStepThatIsAbandoned) {
  suspend();
  engine_->abandon_step();
  EXPECT_EQ(*engine_->digest(), before_);
  EXPECT_EQ(engine_->holdings(waiting_)->promised, 0U);
  expect_cold(waiting_);
}

TEST_F(AdmittedBeginnings, GoBackWithTheConversationThatIsCancelledInTheStep) {
  suspend();
  const ConversationId child = *engine_->fork(waiting_);
  EXPECT_TRUE(engine_->tokens(child)->empty() || engine_->tokens(child)->size() == 64U) << "its own hit";
  ASSERT_TRUE(engine_->cancel(waiting_));
  EXPECT_TRUE(engine_->tokens(waiting_)->empty());
  step_until_idle(engine_);
  EXPECT_TRUE(engine_->tokens(waiting_)->empty());
  EXPECT_EQ(engine_->holdings(waiting_)->own + engine_->holdings(waiting_)->shared, 0U);
  expect_cold(child);
  ASSERT_TRUE(engine_->prompt(waiting_, wanted_, LogitsWanted::kLast));
  expect_cold(waiting_);
}

TEST_F(AdmittedBeginnings, GoWithTheConversationThatIsClosedInTheStep) {
  suspend();
  ASSERT_TRUE(engine_->close(waiting_));
  step_until_idle(engine_);
  EXPECT_EQ(engine_->tokens_free(), engine_->capacity());
}

TEST_F(SharedBeginnings, OfAStepThatIsCancelledLeaveAReservationAsItWas) {
  const EngineHost engine = host();
  const Tokens known = tokens(64);
  const Tokens wanted = joined(known, tokens(40, 2));
  const ConversationId first = *engine->open();
  ASSERT_TRUE(engine->prompt(first, joined(known, tokens(1, 9)), LogitsWanted::kLast));
  const ConversationId twin = *engine->open();
  ASSERT_TRUE(engine->reserve(twin, wanted.size() + 30));
  ASSERT_EQ(*engine->prompt(twin, wanted, LogitsWanted::kLast), 0U) << "it waits for the first";
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(engine->step());
  ASSERT_EQ(engine->tokens(first)->size(), 64U);
  ASSERT_TRUE(engine->tokens(twin)->empty());
  const std::uint64_t before = *engine->digest();
  const std::uint64_t found = engine->prefix_counters().tokens_found;
  for (int i = 0; i < 2; ++i) {
    bool in_step = false;
    const auto cancelled = engine->step({.between_jobs = [&](const JobView&) {
      in_step = engine->look(twin).value()->in_step;
      return Verdict::kCancel;
    }});
    ASSERT_TRUE(cancelled);
    ASSERT_TRUE(in_step);
    EXPECT_EQ(*engine->digest(), before);
    EXPECT_EQ(engine->holdings(twin)->promised, wanted.size() + 30);
    EXPECT_EQ(engine->prefix_counters().tokens_found, found);
  }
  step_until_idle(engine);
  EXPECT_EQ(engine->prefix_counters().tokens_found, found + 64);
  EXPECT_EQ(engine->holdings(twin)->promised, 30U) << "what was shared has used it up as well";
  EXPECT_TRUE(same_bits(logits_of(engine, twin), cold_logits(model_, wanted)));
}

}  // namespace
}  // namespace kvasir::engine
