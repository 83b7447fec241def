// Models that keep a state instead of cells, alone and beside attention: whatever is done to a conversation,
// the bits are those of a cold run. K numbers are those of the behaviour cases that a test covers.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/tiny_recurrent.h"

namespace kvasir::engine {
namespace {

using kvasir::test::carried;
using kvasir::test::cold_logits;
using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using kvasir::test::logits_of;
using kvasir::test::open_with;
using kvasir::test::same_bits;
using kvasir::test::say;
using kvasir::test::step_until_idle;
using Tokens = std::vector<Token>;

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Tokens beginning(const Tokens& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

class Recurrent : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] EngineHost host(EngineOptions options = {}) const {
    options.pool = std::max<std::uint64_t>(options.pool, 1024);
    options.pass_tokens = std::min(options.pass_tokens, 64U);
    return kvasir::test::make_engine(model_, options);
  }
  [[nodiscard]] Tokens tokens(std::size_t count, std::uint64_t seed = 1) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }
  [[nodiscard]] std::vector<float> cold(const Tokens& all) const { return cold_logits(model_, all); }
  [[nodiscard]] bool hybrid() const { return std::string(GetParam()) == "Hybrid"; }

  LoadedModel model_ =
      kvasir::test::load(hybrid() ? kvasir::test::tiny_hybrid() : kvasir::test::tiny_mamba2());
};

TEST_P(Recurrent, K33AnyMixOfRequestsEqualsColdRuns) {
  const EngineHost engine = host({.share_prefixes = true});
  const Tokens first = tokens(90);
  const Tokens more = joined(first, tokens(40, 2));
  for (const Tokens& request : {first, more, tokens(70, 3)}) {
    const ConversationId id = open_with(engine, request);
    EXPECT_TRUE(same_bits(logits_of(engine, id), cold(request)));
    ASSERT_TRUE(engine->close(id));
  }
  const ConversationId cancelled = *engine->open();
  ASSERT_TRUE(engine->prompt(cancelled, tokens(200, 4), LogitsWanted::kLast));
  ASSERT_TRUE(engine->step());
  ASSERT_TRUE(engine->cancel(cancelled));
  const ConversationId last = open_with(engine, joined(more, tokens(5, 5)));
  EXPECT_TRUE(same_bits(logits_of(engine, last), cold(joined(more, tokens(5, 5)))));
}

TEST_P(Recurrent, K34RewindsOf300TokensEqualColdRunsAtAMostOf64TokensAgain) {
  const Tokens all = tokens(300);
  for (const std::size_t piece : {std::size_t{300}, std::size_t{7}}) {
    for (const std::size_t back : {std::size_t{1}, std::size_t{5}, std::size_t{100}, std::size_t{300}}) {
      const EngineHost engine = host();
      const ConversationId id = *engine->open();
      for (std::size_t at = 0; at < all.size(); at += piece)
        say(engine, id, std::span(all).subspan(at, std::min(piece, all.size() - at)));
      const std::uint64_t cost = *engine->rewind_cost(id, 300 - back);
      EXPECT_LE(cost, 64U) << "rewinding " << back << " in pieces of " << piece;
      const Status rewound = engine->rewind(id, 300 - back);
      ASSERT_TRUE(rewound) << rewound.error().message();
      EXPECT_EQ(engine->history(id)->size(), 300 - back);
      const Tokens other = tokens(20, 9);
      EXPECT_TRUE(same_bits(say(engine, id, other), cold(joined(beginning(all, 300 - back), other))));
      EXPECT_EQ(engine->moves().tokens_recomputed, cost);
    }
  }
}

TEST_P(Recurrent, K35AStepThatIsRewoundHasNeverBeen) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{64}}) {
    const EngineHost engine = host();
    const Tokens before = tokens(50);
    const ConversationId id = open_with(engine, before);
    say(engine, id, tokens(count, 2));
    ASSERT_TRUE(engine->rewind(id, before.size()));
    const Tokens other = tokens(3, 3);
    EXPECT_TRUE(same_bits(say(engine, id, other), cold(joined(before, other)))) << count;
  }
}

TEST_P(Recurrent, K36StatesThatAreUsedAgainAndSharedOnesAreAsNew) {
  const EngineHost engine = host({.states = 2});
  const ConversationId first = open_with(engine, tokens(40));
  ASSERT_TRUE(engine->close(first));
  const Tokens second = tokens(30, 2);
  const ConversationId id = open_with(engine, second);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(second)));
  const auto child = engine->fork(id);
  ASSERT_TRUE(child) << child.error().message();
  ASSERT_TRUE(engine->close(id));
  const Tokens more = tokens(10, 3);
  EXPECT_TRUE(same_bits(say(engine, *child, more), cold(joined(second, more))));
}

TEST_P(Recurrent, K37CheckpointsStayWithinThePoolAndALongPromptIsComputed) {
  const Tokens all = tokens(50 * 64);
  const EngineHost engine = host({.context = 4096, .pool = 50 * 64 + 32, .states = 4});
  const ConversationId id = *engine->open();
  ASSERT_TRUE(engine->prompt(id, all, LogitsWanted::kLast));
  while (*engine->queued(id) > 0) {
    const auto report = engine->step();
    ASSERT_TRUE(report) << report.error().message();
    const pages::SpaceReport space = engine->space();
    EXPECT_LE(space.checkpoints, hybrid() ? 8U : 4U) << "four states are there, eight checkpoints allowed";
  }
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(all)));
}

TEST_P(Recurrent, K38PiecesPassesAndCompanyNeverShowInABit) {
  const Tokens all = tokens(200);
  const std::vector<float> wanted = cold(all);
  for (const std::vector<std::size_t>& pieces :
       std::vector<std::vector<std::size_t>>{{200}, {1}, {3}, {7, 64}, {64, 1, 30}}) {
    for (const std::size_t beside : {std::size_t{0}, std::size_t{2}}) {
      kvasir::test::Manner manner{.pass_tokens = 48, .pieces = pieces, .beside = beside};
      manner.types = {kv::CacheElement::kF16, kv::CacheElement::kF16};
      const kvasir::test::Taken taken = kvasir::test::take(model_, all, manner);
      EXPECT_TRUE(same_bits(taken.last, wanted)) << manner.text();
      manner.whole_queue = true;
      manner.suspend_at_every_job = true;
      manner.threads = 2;
      EXPECT_TRUE(same_bits(kvasir::test::take(model_, all, manner).last, wanted)) << manner.text();
    }
  }
}

TEST_P(Recurrent, K14ARestartedProcessComputesTheSuffixAlone) {
  const Tokens saved = tokens(150);
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, saved);
  const EngineHost restarted = host({.page_cells = 16});
  const ConversationId back = carried(engine, id, restarted);
  EXPECT_TRUE(same_bits(logits_of(restarted, back), logits_of(engine, id)));
  const Tokens suffix = tokens(4, 2);
  EXPECT_TRUE(same_bits(say(restarted, back, suffix), cold(joined(saved, suffix))));
  EXPECT_EQ(restarted->moves().tokens_recomputed, 0U);
}

// Behind, only some calls are for a conversation; what they lead to has the bits of a cold run.
// Where the pool has not the states for all checkpoints, some come without a place: they are read past.
TEST_P(Recurrent, ALoadWithoutRoomForItsCheckpointsTouchesNobodyElse) {
  const EngineHost from = host({.states = 64});
  const Tokens all = tokens(200);
  const ConversationId id = *from.engine->open();
  for (std::size_t at = 0; at < all.size(); at += 50) say(from, id, std::span(all).subspan(at, 50));
  for (const std::uint32_t states : {4U, 5U, 6U, 8U, 64U}) {
    const EngineHost to = host({.states = states});
    std::vector<ConversationId> others;
    for (std::uint64_t other = 0; other < 3; ++other) others.push_back(open_with(to, tokens(30, 5 + other)));
    const ConversationId loaded = carried(from, id, to);
    EXPECT_TRUE(same_bits(logits_of(to, loaded), cold(all))) << states;
    ASSERT_TRUE(to->close(loaded));
    for (std::uint64_t other = 0; other < 3; ++other) {
      const Tokens more = tokens(5, 9);
      EXPECT_TRUE(same_bits(say(to, others[other], more), cold(joined(tokens(30, 5 + other), more))))
          << states;
    }
  }
}

class Behind : public Recurrent {
 protected:
  void SetUp() override {
    id_ = open_with(engine_, all_);
    ASSERT_TRUE(engine_->rewind(id_, 150));
    ASSERT_EQ(engine_->tokens(id_)->size(), 128U);
  }
  void expect_goes_on(ConversationId id, const EngineHost& engine) const {
    const Tokens more = tokens(9, 7);
    EXPECT_TRUE(same_bits(say(engine, id, more), cold(joined(beginning(all_, 150), more))));
  }

  Tokens all_ = tokens(200);
  EngineHost engine_ = host({.tiers = {.memory_bytes = 1 << 24}});
  ConversationId id_{};
};

TEST_P(Behind, CatchesUpBeforeAnythingElse) {
  expect_goes_on(id_, engine_);
  EXPECT_EQ(engine_->moves().tokens_recomputed, 22U);
}

TEST_P(Behind, SurvivesAForkAndTheParentToo) {
  const auto child = engine_->fork(id_);
  ASSERT_TRUE(child);
  expect_goes_on(*child, engine_);
  expect_goes_on(id_, engine_);
}

TEST_P(Behind, SurvivesACancelInTheMidstOfCatchingUp) {
  ASSERT_TRUE(engine_->prompt(id_, tokens(5, 8), LogitsWanted::kLast));
  ASSERT_TRUE(engine_->step({.tokens = 10}));
  ASSERT_TRUE(engine_->cancel(id_));
  EXPECT_EQ(engine_->history(id_)->size(), 150U);
  expect_goes_on(id_, engine_);
}

TEST_P(Behind, SurvivesASave) {
  const EngineHost other = host();
  const ConversationId back = carried(engine_, id_, other);
  EXPECT_EQ(other->history(back)->size(), 150U);
  EXPECT_EQ(other->tokens(back)->size(), 128U);
  expect_goes_on(back, other);
}

TEST_P(Behind, IsRewoundFurtherAndNearer) {
  ASSERT_TRUE(engine_->rewind(id_, 140));
  ASSERT_TRUE(engine_->rewind(id_, 140));
  const Tokens more = tokens(9, 7);
  EXPECT_TRUE(same_bits(say(engine_, id_, more), cold(joined(beginning(all_, 140), more))));
  ASSERT_TRUE(engine_->rewind(id_, 70));
  EXPECT_TRUE(same_bits(say(engine_, id_, more), cold(joined(beginning(all_, 70), more))));
}

TEST_P(Behind, IsPromptedToAnotherHistory) {
  const Tokens other = joined(beginning(all_, 145), tokens(20, 8));
  const auto kept = engine_->prompt_to(id_, other);
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(*kept, 145U);
  step_until_idle(engine_);
  EXPECT_TRUE(same_bits(logits_of(engine_, id_), cold(other)));
}

TEST_P(Behind, RefusesTheRestAndChangesNothing) {
  const pages::EditOperation shift{pages::EditOperation::Kind::kShift, 0, 10, 5};
  const std::uint64_t before = *engine_->digest();
  const auto expect_wrong_state = [&](const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Outcome::kWrongState) << status.error().message();
    EXPECT_EQ(*engine_->digest(), before);
  };
  expect_wrong_state(engine_->edit(id_, {&shift, 1}));
  expect_wrong_state(kvasir::test::status_of(engine_->spill(id_)));
  expect_wrong_state(engine_->drop(id_));
  if (hybrid()) expect_wrong_state(engine_->swap_cells(id_, 1, 2));
}

TEST_P(Recurrent, AStoppedStepLeavesTheStateThatWas) {
  const EngineHost engine = host();
  const Tokens before = tokens(70);
  const ConversationId id = open_with(engine, before);
  const Tokens more = tokens(100, 2);
  ASSERT_TRUE(engine->prompt(id, more, LogitsWanted::kLast));
  const std::uint64_t digest = *engine->digest();
  for (std::uint64_t jobs = 1; jobs < 400; jobs += 29) {
    std::uint64_t left = jobs;
    const auto report = engine->step({.whole_queue = true, .between_jobs = [&](const JobView&) {
                                        return --left == 0 ? Verdict::kCancel : Verdict::kGoOn;
                                      }});
    ASSERT_TRUE(report);
    if (report->outcome != Outcome::kCancelled) break;
    ASSERT_EQ(*engine->digest(), digest) << "after " << jobs << " jobs";
  }
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(joined(before, more))));
}

TEST_P(Recurrent, StatesAreSpilledDroppedAndComeBack) {
  const EngineHost engine = host({.tiers = {.memory_bytes = 1 << 24}});
  const Tokens before = tokens(100);
  const ConversationId id = open_with(engine, before);
  const std::uint64_t digest = *engine->digest();
  while (*engine->spill(id) != Moved::kNothing) {
  }
  EXPECT_EQ(engine->residence(**engine->look(id)), Residence::kTier);
  while (*engine->bring_back(id) != Moved::kNothing) {
  }
  EXPECT_EQ(*engine->digest(), digest);
  const Tokens more = tokens(10, 2);
  EXPECT_TRUE(same_bits(say(engine, id, more), cold(joined(before, more))));
  ASSERT_TRUE(engine->drop(id));
  EXPECT_TRUE(same_bits(say(engine, id, tokens(3, 3)), cold(joined(joined(before, more), tokens(3, 3)))));
}

TEST_P(Recurrent, AStepThatIsAcceptedInPartLeavesTheConversationBehind) {
  const EngineHost engine = host();
  const Tokens before = tokens(100);
  const ConversationId id = open_with(engine, before);
  const Tokens draft = tokens(10, 2);
  ASSERT_TRUE(engine->prompt(id, draft, LogitsWanted::kEvery));
  const auto report = engine->step({.accept = [](ConversationId, std::span<const KeptRow>) { return 4U; }});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(engine->history(id)->size(), 104U);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(joined(before, beginning(draft, 4)))));
  const Tokens more = tokens(5, 3);
  EXPECT_TRUE(same_bits(say(engine, id, more), cold(joined(joined(before, beginning(draft, 4)), more))));
}

TEST_P(Recurrent, VectorsThatAreGoneCannotBeComputedAgain) {
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, tokens(64));
  const std::vector<float> vector(model_.model->sizes().embedding, 0.5F);
  const Tokens embedded{kEmbedded};
  ASSERT_TRUE(engine->prompt_mixed(id, {embedded, vector}, LogitsWanted::kLast));
  step_until_idle(engine);
  say(engine, id, tokens(20, 2));
  const std::uint64_t before = *engine->digest();
  const Status refused = engine->rewind(id, 75);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kUnsupported);
  EXPECT_EQ(*engine->digest(), before);
  ASSERT_TRUE(engine->rewind(id, 64)) << "a checkpoint lies there";
  EXPECT_TRUE(same_bits(say(engine, id, tokens(3, 3)), cold(joined(tokens(64), tokens(3, 3)))));
}

TEST_P(Recurrent, PositionsCannotMove) {
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, tokens(60));
  const std::uint64_t before = *engine->digest();
  const Status shifted = engine->shift_left(id, 4, 8);
  ASSERT_FALSE(shifted);
  EXPECT_EQ(shifted.error().code(), Outcome::kUnsupported);
  const auto compacted = engine->compact(UINT64_MAX);
  EXPECT_EQ(compacted.has_value(), hybrid());
  EXPECT_EQ(compacted ? Outcome::kUnsupported : compacted.error().code(), Outcome::kUnsupported);
  EXPECT_EQ(*engine->digest(), before);
}

TEST_P(Recurrent, ABeginningThatIsKnownIsTakenWithItsState) {
  const EngineHost engine = host({.share_prefixes = true});
  const Tokens shared = tokens(130);
  const ConversationId first = open_with(engine, shared);
  const ConversationId second = *engine->open();
  const Tokens mine = joined(shared, tokens(12, 2));
  const auto known = engine->prompt(second, mine, LogitsWanted::kLast);
  ASSERT_TRUE(known);
  EXPECT_EQ(*known, 128U) << "the last checkpoint at the end of a page";
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, second), cold(mine)));
  EXPECT_TRUE(same_bits(logits_of(engine, first), cold(shared)));
}

constexpr auto kName = [](const auto& one) { return std::string(one.param); };
INSTANTIATE_TEST_SUITE_P(Models, Recurrent, testing::Values("Mamba2", "Hybrid"), kName);
INSTANTIATE_TEST_SUITE_P(Models, Behind, testing::Values("Mamba2", "Hybrid"), kName);

}  // namespace
}  // namespace kvasir::engine
