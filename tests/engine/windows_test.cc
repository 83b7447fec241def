// Models with layers that see a window only: what is given back, brought back and left out of sight never
// shows in a bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

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
using Tokens = std::vector<Token>;

constexpr std::uint32_t kWidth = 24;

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Tokens beginning(const Tokens& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Gemma 2 of so many layers, of which every second one, from the first on, sees kWidth tokens.
LoadedModel windowed(std::uint32_t layers) {
  kvasir::test::GgufDraft draft =
      kvasir::test::tiny_model({.architecture = "gemma2", .layers = layers, .tied = true});
  draft.set("gemma2.attention.sliding_window", kWidth);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (const char* const name : {"post_attention_norm", "post_ffw_norm"}) {
      draft.tensor("blk." + std::to_string(layer) + "." + name + ".weight", {64}, quant::BlockType::kF32,
                   {1.0F, 0.1F});
    }
  }
  return kvasir::test::load(draft);
}

class Windows : public testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] EngineHost host(EngineOptions options = {}) const {
    options.pass_tokens = 64;
    return kvasir::test::make_engine(model_, options);
  }
  [[nodiscard]] Tokens tokens(std::size_t count, std::uint64_t seed = 1) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }
  [[nodiscard]] std::vector<float> cold(const Tokens& all) const { return cold_logits(model_, all); }

  LoadedModel model_ = windowed(GetParam());
};

TEST_P(Windows, RewindsEqualColdRunsAndNearOnesAreFree) {
  const Tokens all = tokens(700);
  for (const std::size_t back : {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{500}}) {
    const EngineHost engine = host();
    const ConversationId id = open_with(engine, all);
    const std::uint64_t cost = *engine->rewind_cost(id, 700 - back);
    // Checkpoints are thinned from the oldest on, so that one far back may be the beginning.
    const std::uint64_t most = back <= 65 ? 64 : 700 - back;
    EXPECT_LE(cost, back <= 64 ? 0 : most) << back;
    ASSERT_TRUE(engine->rewind(id, 700 - back));
    const Tokens other = tokens(30, 2);
    EXPECT_TRUE(same_bits(say(engine, id, other), cold(joined(beginning(all, 700 - back), other)))) << back;
    EXPECT_EQ(engine->moves().tokens_recomputed, cost);
  }
}

TEST_P(Windows, TwoRewindsOf40InARowEqualAColdRun) {
  const Tokens all = tokens(300);
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, all);
  ASSERT_TRUE(engine->rewind(id, 260));
  ASSERT_TRUE(engine->rewind(id, 220));
  const Tokens other = tokens(30, 2);
  EXPECT_TRUE(same_bits(say(engine, id, other), cold(joined(beginning(all, 220), other))));
}

TEST_P(Windows, PiecesUnitsAndPagesNeverShowInABit) {
  const Tokens all = tokens(333);
  const std::vector<float> wanted = cold(all);
  for (const std::uint32_t page : {16U, 32U}) {
    for (const std::vector<std::size_t>& pieces :
         std::vector<std::vector<std::size_t>>{{333}, {1}, {7, 100}}) {
      kvasir::test::Manner manner{.threads = 2, .page_cells = page, .pass_tokens = 48, .pieces = pieces};
      manner.types = {kv::CacheElement::kF16, kv::CacheElement::kF16};
      manner.beside = 2;
      EXPECT_TRUE(same_bits(kvasir::test::take(model_, all, manner).last, wanted)) << manner.text();
      manner.whole_queue = true;
      EXPECT_TRUE(same_bits(kvasir::test::take(model_, all, manner).last, wanted)) << manner.text();
    }
  }
}

TEST_P(Windows, AreSharedAndComeBackFromATier) {
  const EngineHost engine = host({.share_prefixes = true, .tiers = {.memory_bytes = 1 << 24}});
  const Tokens all = tokens(200);
  const ConversationId id = open_with(engine, all);
  const ConversationId child = *engine->fork(id);
  const Tokens more = tokens(9, 2);
  EXPECT_TRUE(same_bits(say(engine, child, more), cold(joined(all, more))));
  while (*engine->spill(id) != Moved::kNothing) {
  }
  EXPECT_TRUE(same_bits(say(engine, id, more), cold(joined(all, more))));
  const ConversationId twin = open_with(engine, joined(all, tokens(5, 3)));
  EXPECT_TRUE(same_bits(logits_of(engine, twin), cold(joined(all, tokens(5, 3)))));
}

// Where the pool has no room for the cells of all checkpoints, some come without a place: they are read past.
TEST_P(Windows, ALoadWithoutRoomForItsCheckpointsTouchesNobodyElse) {
  const EngineHost from = host({.pool = 2048});
  const Tokens all = tokens(400);
  const ConversationId id = *from.engine->open();
  for (std::size_t at = 0; at < all.size(); at += 50) say(from, id, std::span(all).subspan(at, 50));
  for (std::size_t length = 16; length <= 112; length += 16) {
    const EngineHost to = host({.pool = 512});
    const Tokens said = tokens(length, 5);
    const ConversationId other = open_with(to, said);
    const ConversationId loaded = carried(from, id, to);
    EXPECT_TRUE(same_bits(logits_of(to, loaded), cold(all))) << length;
    ASSERT_TRUE(to->close(loaded));
    const Tokens more = tokens(5, 9);
    EXPECT_TRUE(same_bits(say(to, other, more), cold(joined(said, more)))) << length;
  }
}

// What an edit has left cannot be made from tokens again: a rewind that needs it answers so, near or loaded.
TEST_P(Windows, ARewindThatWouldLoseAnEditIsRefusedAndChangesNothing) {
  for (const bool loaded : {false, true}) {
    const EngineHost engine = host();
    const EngineHost other = host();
    const Tokens before = tokens(30);
    const Tokens behind = tokens(170, 2);
    ConversationId id = open_with(engine, before);
    ASSERT_TRUE(engine->shift_left(id, 4, 6));
    const ConversationId near = *engine->fork(id);
    say(engine, id, behind);
    if (loaded) id = carried(engine, id, other);
    const EngineHost& there = loaded ? other : engine;
    const std::uint64_t digest = *there->digest();
    for (const std::uint64_t length : {5U, 24U, 40U}) {
      EXPECT_EQ(*there->rewind_cost(id, length), length);
      EXPECT_EQ(there->rewind(id, length).error().code(), Outcome::kUnsupported) << length;
    }
    EXPECT_EQ(*there->digest(), digest);
    // Near enough nothing is computed again, and before the edit there is none.
    ASSERT_TRUE(there->rewind(id, 24 + 150));
    const Tokens more = tokens(9, 3);
    EXPECT_TRUE(same_bits(say(there, id, more), say(engine, near, joined(beginning(behind, 150), more))));
    ASSERT_TRUE(there->rewind(id, 4));
    EXPECT_TRUE(same_bits(say(there, id, more), cold(joined(beginning(before, 4), more))));
    say(there, id, behind);
    ASSERT_TRUE(there->rewind(id, 40)) << "the edit is gone";
  }
}

// An edit that is rewound away has still put cells out of sight, of the tokens that come in its place.
TEST_P(Windows, WhatIsComputedWithLessInSightServesNobodyElseAndIsNotDropped) {
  const EngineHost engine = host({.page_cells = 16, .share_prefixes = true});
  const Tokens all = tokens(80);
  const ConversationId id = open_with(engine, beginning(all, 40));
  const pages::EditOperation divide{pages::EditOperation::Kind::kDivide, 39, 1, 2};
  ASSERT_TRUE(engine->edit(id, {&divide, 1}));
  ASSERT_TRUE(engine->rewind(id, 20));
  say(engine, id, std::span(all).subspan(20));
  EXPECT_EQ(engine->drop(id).error().code(), Outcome::kUnsupported);
  const ConversationId twin = open_with(engine, all);
  EXPECT_TRUE(same_bits(logits_of(engine, twin), cold(all)));
  ASSERT_TRUE(engine->rewind(twin, 20));
  EXPECT_TRUE(engine->drop(twin));
}

// A checkpoint behind an edit keeps what that has left.
TEST_P(Windows, ARewindToBehindAnEditEqualsAConversationThatStayedThere) {
  const EngineHost engine = host();
  const ConversationId id = open_with(engine, tokens(30));
  ASSERT_TRUE(engine->shift_left(id, 4, 6));
  const ConversationId stayed = *engine->fork(id);
  const Tokens behind = tokens(400, 2);
  for (std::size_t at = 0; at < behind.size(); at += 40) say(engine, id, std::span(behind).subspan(at, 40));
  std::uint64_t nearest = 24 + 300;
  while (nearest > 24 && *engine->rewind_cost(id, nearest) > 40) --nearest;
  const std::uint64_t length = nearest;
  const Status rewound = engine->rewind(id, length);
  ASSERT_TRUE(rewound) << rewound.error().message();
  const Tokens more = tokens(9, 3);
  EXPECT_TRUE(
      same_bits(say(engine, id, more), say(engine, stayed, joined(beginning(behind, length - 24), more))));
}

INSTANTIATE_TEST_SUITE_P(Layers, Windows, testing::Values(1U, 2U));

// A single layer: what a cell holds depends on its own token, so two conversations whose tokens differ where
// nobody looks give the same bits.
TEST(WindowFloors, NoShiftBringsBackWhatAnEditHasPutOutOfReach) {
  const LoadedModel model = windowed(1);
  const EngineHost engine = kvasir::test::make_engine(model, {.pass_tokens = 64});
  const auto random = [&](std::size_t count, std::uint64_t seed) {
    return kvasir::test::random_tokens(model.vocabulary(), count, seed);
  };
  const Tokens same = random(50, 3);
  const ConversationId one = open_with(engine, joined(random(150, 1), same));
  const ConversationId other = open_with(engine, joined(random(150, 2), same));
  const ConversationId near_one = open_with(engine, joined(random(150, 1), beginning(same, 5)));
  const ConversationId near_other = open_with(engine, joined(random(150, 2), beginning(same, 5)));
  const Tokens more = random(3, 4);
  EXPECT_FALSE(same_bits(say(engine, near_one, more), say(engine, near_other, more)))
      << "what lies within the window is seen";
  for (const ConversationId id : {one, other}) ASSERT_TRUE(engine->shift_left(id, 150, 40));
  EXPECT_TRUE(same_bits(say(engine, one, more), say(engine, other, more)));
}

// Only what is in sight takes room.
TEST(WindowSpace, ALongConversationFitsIntoAShortPool) {
  const LoadedModel model = windowed(1);
  const EngineHost engine = kvasir::test::make_engine(model, {.pool = 256, .pass_tokens = 64});
  const Tokens all = kvasir::test::random_tokens(model.vocabulary(), 2000, 1);
  const ConversationId id = open_with(engine, all);
  EXPECT_LE(engine->holdings(id)->own, kWidth + pages::kReleaseSlack);
  EXPECT_TRUE(same_bits(logits_of(engine, id), cold_logits(model, all)));
}

}  // namespace
}  // namespace kvasir::engine
