// P2 and compaction for every type of keys with every type of values: blocks that share a scale, floats whose
// lanes lie side by side, and heads that do not fill a block.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::cold_logits;
using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using kvasir::test::logits_of;
using kvasir::test::Manner;
using kvasir::test::open_with;
using kvasir::test::same_bits;
using kvasir::test::say;
using kvasir::test::step_until_idle;
using kvasir::test::take;
using kvasir::test::Taken;
using pages::EditOperation;
using Tokens = std::vector<Token>;

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

class CacheTypes : public testing::TestWithParam<kv::CacheTypes> {
 protected:
  [[nodiscard]] EngineHost host(std::uint64_t pool, bool share_prefixes = false) const {
    return kvasir::test::make_engine(model_, {.pool = pool,
                                              .page_cells = 32,
                                              .pass_tokens = 24,
                                              .logit_rows = 8,
                                              .share_prefixes = share_prefixes,
                                              .types = GetParam()});
  }
  [[nodiscard]] Tokens tokens(std::size_t count, std::uint64_t seed = 1) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }
  [[nodiscard]] std::vector<float> cold(const Tokens& all) const {
    return cold_logits(model_, all, GetParam());
  }

  // Heads of 40 dimensions fill a block and a quarter of the next.
  LoadedModel model_ = kvasir::test::load(
      kvasir::test::tiny_model({.embedding = 160, .heads = 4, .kv_heads = 2, .feed_forward = 96}));
};

// Fills what is left of the pool and takes every second cell of it back.
ConversationId scatter_holes(const EngineHost& engine) {
  const ConversationId filler = *engine->open();
  const std::uint64_t count = engine->tokens_free();
  EXPECT_TRUE(engine->fill(filler, Tokens(count)));
  std::vector<EditOperation> holes;
  for (std::uint64_t i = count / 2; i-- > 0;) holes.push_back({EditOperation::Kind::kRemove, 2 * i, 1, 0});
  EXPECT_TRUE(engine->edit(filler, holes));
  return filler;
}

TEST_P(CacheTypes, GiveTheSameBitsHoweverTokensAreTaken) {
  const Tokens all = tokens(140);  // more than an attention tile
  const Taken plain = take(model_, all, {.types = GetParam()});
  for (const Manner& manner :
       {Manner{.types = GetParam(), .pieces = {1}}, Manner{.types = GetParam(), .pieces = {31, 1, 64}},
        Manner{.threads = 3, .page_cells = 16, .pass_tokens = 13, .types = GetParam(), .beside = 3},
        Manner{.page_cells = 48,
               .pass_tokens = 20,
               .types = GetParam(),
               .beside = 1,
               .whole_queue = true,
               .suspend_at_every_job = true}}) {
    const Taken taken = take(model_, all, manner);
    EXPECT_TRUE(same_bits(taken.logits, plain.logits)) << manner.text();
  }
}

TEST_P(CacheTypes, GiveTheSameBitsAfterForkRewindSwapAndASharedBeginning) {
  const EngineHost engine = host(512, true);
  const Tokens all = tokens(70);
  const Tokens more = tokens(9, 2);
  const std::vector<float> expected = cold(joined(all, more));
  const ConversationId id = open_with(engine, all);
  const ConversationId child = *engine->fork(id);
  say(engine, id, tokens(40, 3));
  EXPECT_TRUE(same_bits(say(engine, child, more), expected)) << "a fork";
  ASSERT_TRUE(engine->rewind(id, 70));
  ASSERT_TRUE(engine->swap_cells(id, 5, 66));
  ASSERT_TRUE(engine->swap_cells(id, 17, 16));
  EXPECT_TRUE(same_bits(say(engine, id, more), expected)) << "rewound, with cells exchanged";
  const ConversationId found = *engine->open();
  EXPECT_EQ(*engine->prompt(found, joined(all, more), LogitsWanted::kLast), 64U);
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, found), expected)) << "a shared beginning";
}

TEST_P(CacheTypes, GiveTheSameBitsAfterAUnitThatWasCancelledInItsLastLayer) {
  const EngineHost engine = host(256);
  const Tokens all = tokens(40);
  const Tokens more = tokens(50, 2);
  const ConversationId id = open_with(engine, all);
  ASSERT_TRUE(engine->prompt(id, more, LogitsWanted::kLast));
  const std::uint64_t before = *engine->digest();
  const auto cancelled = engine->step({.whole_queue = true, .between_jobs = [](const JobView& view) {
                                         const bool last = view.pass + 1 == view.passes &&
                                                           view.progress.layer + 1 == view.progress.layers;
                                         return last ? Verdict::kCancel : Verdict::kGoOn;
                                       }});
  ASSERT_EQ(cancelled->outcome, Outcome::kCancelled);
  EXPECT_EQ(*engine->digest(), before);
  step_until_idle(engine);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(joined(all, more))));
}

// A shift rewrites nothing, so quantized keys lose nothing: two shifts of a conversation and one by their sum
// agree, whatever the type.
TEST_P(CacheTypes, AreShiftedWithoutRewritingAKey) {
  const EngineHost engine = host(512);
  const ConversationId twice = open_with(engine, tokens(100));
  const ConversationId once = *engine->fork(twice);
  ASSERT_TRUE(engine->shift_left(twice, 5, 7));
  ASSERT_TRUE(engine->shift_left(twice, 5, 12));
  ASSERT_TRUE(engine->shift_left(once, 5, 19));
  EXPECT_TRUE(same_bits(say(engine, twice, tokens(3, 2)), say(engine, once, tokens(3, 2))));
  EXPECT_EQ(engine->bytes_moved(), 0U);
}

// What two conversations say, greedily, and the logits behind it. They lie scattered; halfway the others end
// and leave holes, and where asked a compaction moves cells: between two steps, and while a step is open.
struct Talk {
  Tokens said[2];
  std::vector<float> logits;
  std::uint64_t moved = 0;
};

Talk talk(const EngineHost& engine, const Tokens (&prompts)[2], bool compacts) {
  Talk out;
  const ConversationId filler = scatter_holes(engine);
  const ConversationId ids[] = {open_with(engine, prompts[0]), open_with(engine, prompts[1])};
  const auto compact = [&](std::uint64_t budget) {
    if (!compacts) return;
    const auto moved = engine->compact(budget);
    EXPECT_TRUE(moved);
    out.moved += moved.value_or(0);
  };
  for (int turn = 0; turn < 24; ++turn) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<float> row = logits_of(engine, ids[i]);
      const auto best = static_cast<Token>(std::ranges::max_element(row) - row.begin());
      out.said[i].push_back(best);
      out.logits.insert(out.logits.end(), row.begin(), row.end());
      EXPECT_TRUE(engine->prompt(ids[i], {&best, 1}, LogitsWanted::kLast));
      // Half of the steps are of one conversation alone, so that the other may move meanwhile.
      if (turn % 2 == 0) {
        int jobs = 0;
        const auto report = engine->step({.between_jobs = [&](const JobView&) {
          return ++jobs == 9 ? Verdict::kSuspend : Verdict::kGoOn;
        }});
        EXPECT_EQ(report->outcome, Outcome::kSuspended);
        compact(10);
        step_until_idle(engine);
      }
    }
    step_until_idle(engine);
    if (turn == 8) {
      EXPECT_TRUE(engine->close(filler));
    }
    if (turn > 8) compact(16);
  }
  return out;
}

// K26: a compaction in the middle of generation, for every type.
TEST_P(CacheTypes, ACompactionInMidGenerationChangesNoTokenAndNoBit) {
  const Tokens prompts[2] = {tokens(61, 1), tokens(47, 2)};
  const Talk still = talk(host(384), prompts, false);
  const Talk moving = talk(host(384), prompts, true);
  EXPECT_EQ(still.moved, 0U);
  EXPECT_GT(moving.moved, 100U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(moving.said[i], still.said[i]);
  EXPECT_TRUE(same_bits(moving.logits, still.logits));
  // And both are what each would have said alone, in an empty pool.
  Tokens all = joined(prompts[0], still.said[0]);
  all.pop_back();
  EXPECT_TRUE(
      same_bits(std::span(still.logits).last(2 * model_.vocabulary()).first(model_.vocabulary()), cold(all)));
}

// K27: every second cell is free and no page is. A prompt of exactly the free size has the bits of a cold
// run; one token more is refused before anything is written.
TEST_P(CacheTypes, ACheckerboardTakesAPromptToTheLastCell) {
  const EngineHost engine = host(192);
  const ConversationId board = scatter_holes(engine);
  ASSERT_EQ(engine->tokens_free(), 96U);
  ASSERT_EQ(engine->space().frames_free, 0U) << "no page is wholly free";
  const ConversationId id = *engine->open();
  ASSERT_TRUE(engine->prompt(id, tokens(97), LogitsWanted::kLast));
  const std::uint64_t before = *engine->digest();
  const auto refused = engine->step({.whole_queue = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 97U);
  EXPECT_EQ(refused.error().numbers().available, 96U);
  EXPECT_EQ(*engine->digest(), before);
  ASSERT_TRUE(engine->cancel(id));

  ASSERT_TRUE(engine->prompt(id, tokens(96), LogitsWanted::kLast));
  ASSERT_EQ(engine->step({.whole_queue = true})->outcome, Outcome::kDone);
  EXPECT_EQ(engine->tokens_free(), 0U);
  EXPECT_EQ(engine->holdings(id)->spans, 96U);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(tokens(96))));
  ASSERT_TRUE(engine->close(board));
  say(engine, id, tokens(30, 5));
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold(joined(tokens(96), tokens(30, 5)))));
}

INSTANTIATE_TEST_SUITE_P(All, CacheTypes, testing::ValuesIn(kvasir::test::all_cache_types()),
                         [](const auto& instance) {
                           std::string name = kvasir::test::types_text(instance.param);
                           std::ranges::replace(name, ':', '_');
                           return name;
                         });

// K28: nothing else is pending. The figure is above the level that compaction documents (1/2) and falls below
// it; then nothing more is worth moving, and the call says so.
TEST(Compaction, BringsFragmentationBelowItsDocumentedLevel) {
  const LoadedModel model = kvasir::test::load(kvasir::test::tiny_model({}));
  const EngineHost engine = kvasir::test::make_engine(model, {.pool = 512, .page_cells = 16});
  EXPECT_EQ(*engine->compact(UINT64_MAX), 0U) << "an empty pool";
  const ConversationId filler = scatter_holes(engine);
  std::vector<ConversationId> ids;
  for (std::uint64_t i = 0; i < 5; ++i) {
    ids.push_back(open_with(engine, kvasir::test::random_tokens(model.vocabulary(), 40 + i, i)));
  }
  ASSERT_TRUE(engine->close(filler));
  const std::uint64_t before = *engine->digest();
  const std::uint64_t free = engine->tokens_free();
  EXPECT_GT(engine->space().fragmentation, 0.9);
  EXPECT_EQ(*engine->compact(0), 0U) << "no budget";
  const std::uint64_t some = *engine->compact(20);
  EXPECT_GT(some, 0U);
  EXPECT_LE(some, 20U);
  EXPECT_GT(*engine->compact(UINT64_MAX), 0U);
  EXPECT_LT(engine->space().fragmentation, 0.5);
  EXPECT_EQ(*engine->compact(UINT64_MAX), 0U) << "nothing is worth moving";
  EXPECT_EQ(engine->tokens_free(), free);
  EXPECT_EQ(*engine->digest(), before) << "where cells lie shows nowhere";
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(same_bits(logits_of(engine, ids[i]),
                          cold_logits(model, kvasir::test::random_tokens(model.vocabulary(), 40 + i, i))));
  }
}

// The pass that is suspended has noted where the cells lie.
TEST(Compaction, LeavesConversationsOfAnOpenStepWhereTheyAre) {
  const LoadedModel model = kvasir::test::load(kvasir::test::tiny_model({}));
  const EngineHost engine = kvasir::test::make_engine(model, {.pool = 512, .page_cells = 16});
  const ConversationId filler = scatter_holes(engine);
  const Tokens all = kvasir::test::random_tokens(model.vocabulary(), 60, 1);
  const ConversationId id = open_with(engine, all);
  ASSERT_TRUE(engine->close(filler));
  const Token next = 3;
  ASSERT_TRUE(engine->prompt(id, {&next, 1}, LogitsWanted::kLast));
  int jobs = 0;
  const auto suspended = engine->step(
      {.between_jobs = [&](const JobView&) { return ++jobs == 6 ? Verdict::kSuspend : Verdict::kGoOn; }});
  ASSERT_EQ(suspended->outcome, Outcome::kSuspended);
  EXPECT_EQ(*engine->compact(UINT64_MAX), 0U) << "only its cells lie scattered";
  EXPECT_EQ(engine->holdings(id)->spans, 60U);
  step_until_idle(engine);
  EXPECT_GT(*engine->compact(UINT64_MAX), 0U);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold_logits(model, joined(all, {next}))));
}

}  // namespace
}  // namespace kvasir::engine
