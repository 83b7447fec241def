// Conversations whose cells leave the pool and come back: the same bits, nothing lost, nobody else concerned.

#include <gtest/gtest.h>

#include <iostream>
#include <vector>

#include "archive/stream.h"
#include "engine/archives.h"
#include "engine/engine.h"
#include "support/allocations.h"
#include "support/engine_run.h"
#include "support/faults.h"
#include "support/paths.h"
#include "support/tiny_model.h"
#include "tier_storm.h"

namespace kvasir::engine {
namespace {

using kvasir::test::AllocationFault;
using kvasir::test::EngineHost;
using kvasir::test::Fault;
using kvasir::test::FaultyFileSystem;
using kvasir::test::FileOperation;
using kvasir::test::LoadedModel;
using kvasir::test::logits_of;
using kvasir::test::make_engine;
using kvasir::test::open_with;
using kvasir::test::say;
using kvasir::test::step_until_idle;

class TiersOfAnEngine : public testing::Test {
 protected:
  [[nodiscard]] std::vector<Token> words(std::size_t count, std::uint64_t seed) const {
    return kvasir::test::random_tokens(model_.vocabulary(), count, seed);
  }
  // Room for `pool` tokens in the pool, as many as that in memory, and more on disk.
  [[nodiscard]] EngineOptions options(std::uint64_t pool, std::uint64_t memory,
                                      std::uint64_t disk = 0) const {
    EngineOptions options{.pool = pool, .page_cells = 16, .pass_tokens = 64};
    options.tiers = {memory * bytes_, 2 * disk * bytes_, disk > 0 ? directory_ : std::string()};
    return options;
  }
  // What a conversation answers that never was anything else.
  [[nodiscard]] std::vector<float> cold(std::vector<Token> tokens, std::span<const Token> more = {}) const {
    tokens.insert(tokens.end(), more.begin(), more.end());
    return kvasir::test::cold_logits(model_, tokens);
  }
  static void spill(const EngineHost& host, ConversationId id) {
    while (true) {
      const auto moved = host->spill(id);
      ASSERT_TRUE(moved) << moved.error().message();
      if (*moved == Moved::kNothing) return;
      if (*moved == Moved::kWaits) host->wait_for_disk();
    }
  }

  LoadedModel model_ = kvasir::test::load_file(kvasir::test::data_path("models/llama/model.gguf"));
  std::uint64_t bytes_ = test::token_bytes(model_);
  std::string directory_ = kvasir::test::scratch_directory();
};

TEST_F(TiersOfAnEngine, WhatIsSpilledComesBackByBeingPrompted) {
  const EngineHost host = make_engine(model_, options(128, 256));
  const ConversationId talk = open_with(host, words(50, 1));
  const std::uint64_t free = host->tokens_free();
  const std::vector<float> row = logits_of(host, talk);
  spill(host, talk);
  EXPECT_EQ(host->residence(*host->peek(talk)), Residence::kTier);
  EXPECT_EQ(host->tokens_free(), host->capacity());
  EXPECT_EQ(host->tier_usage().memory_bytes, 50 * bytes_);
  EXPECT_EQ(logits_of(host, talk), row);
  EXPECT_EQ(say(host, talk, words(5, 2)), cold(words(50, 1), words(5, 2)));
  EXPECT_EQ(host->residence(*host->peek(talk)), Residence::kPool);
  EXPECT_EQ(host->tokens_free(), free - 5);
  EXPECT_EQ(host->tier_usage().memory_bytes, 0);
  EXPECT_EQ(host->moves().bytes_returned, 50 * bytes_);
  EXPECT_EQ(host->moves().tokens_recomputed, 0);
}

TEST_F(TiersOfAnEngine, TheDigestDoesNotKnowWhereCellsLie) {
  const EngineHost host = make_engine(model_, options(256, 64, 200));
  const ConversationId first = open_with(host, words(60, 1));
  const ConversationId child = *host->fork(first, false);
  say(host, child, words(20, 2));
  const ConversationId second = open_with(host, words(60, 3));
  const std::uint64_t before = *host->digest();
  for (const ConversationId id : {first, child, second}) spill(host, id);
  while (host->wait_for_disk()) {
  }
  EXPECT_GT(host->tier_usage().disk_bytes, 0);
  EXPECT_EQ(host->tokens_free(), host->capacity());
  for (const ConversationId id : {second, child, first}) {
    while (true) {
      const auto moved = host->bring_back(id);
      ASSERT_TRUE(moved) << moved.error().message();
      if (*moved == Moved::kNothing) break;
      if (*moved == Moved::kWaits) host->wait_for_disk();
    }
  }
  EXPECT_EQ(*host->digest(), before);
}

TEST_F(TiersOfAnEngine, IdleOnesMakeRoomByThemselvesLeastRecentlyUsedFirstAndPinnedOnesNever) {
  const EngineHost host = make_engine(model_, options(192, 1000));
  const ConversationId pinned = *host->open({.pinned = true});
  say(host, pinned, words(48, 1));
  const ConversationId older = open_with(host, words(48, 2));
  const ConversationId newer = open_with(host, words(48, 3));
  say(host, older, words(1, 4));  // now it is the newer one that was not used for longest
  const ConversationId big = open_with(host, words(60, 5));
  EXPECT_EQ(host->residence(*host->peek(pinned)), Residence::kPool);
  EXPECT_EQ(host->residence(*host->peek(older)), Residence::kPool);
  EXPECT_EQ(host->residence(*host->peek(newer)), Residence::kTier);
  EXPECT_EQ(logits_of(host, big), cold(words(60, 5)));
  EXPECT_EQ(say(host, newer, words(3, 6)), cold(words(48, 3), words(3, 6)));
}

TEST_F(TiersOfAnEngine, WithoutTiersNobodyMoves) {
  EngineOptions plain{.pool = 96, .page_cells = 16};
  const EngineHost host = make_engine(model_, plain);
  const ConversationId talk = open_with(host, words(80, 1));
  EXPECT_EQ(host->spill(talk).error().code(), Outcome::kUnsupported);
  const ConversationId other = *host->open();
  ASSERT_TRUE(host->prompt(other, words(40, 2), LogitsWanted::kLast));
  EXPECT_EQ(host->step().error().code(), Outcome::kNoSpace);
  EXPECT_EQ(host->residence(*host->peek(talk)), Residence::kPool);
}

TEST_F(TiersOfAnEngine, RefusesSizesThatNothingFitsInto) {
  auto pool = parallel::ThreadPool::create(1);
  ASSERT_TRUE(pool);
  EngineOptions small = options(128, 1);
  const auto refused = Engine::create(model_.model, **pool, small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(refused.error().numbers().wanted, 16 * bytes_);
  EXPECT_EQ(refused.error().numbers().setting, "memory_tier_bytes");
}

TEST_F(TiersOfAnEngine, WhatLiesInATierIsForkedRewoundAndEditedWhereItIs) {
  const EngineHost host = make_engine(model_, options(256, 512));
  const EngineHost calm = make_engine(model_, options(256, 512));
  const auto play = [&](const EngineHost& on, bool spills) {
    std::vector<std::vector<float>> rows;
    const ConversationId talk = open_with(on, words(60, 1));
    if (spills) spill(on, talk);
    const ConversationId child = on->fork(talk, true).value();
    EXPECT_TRUE(on->rewind(talk, 40));
    EXPECT_TRUE(on->shift_left(child, 4, 20));
    if (spills) {
      EXPECT_EQ(on->residence(*on->peek(child)), Residence::kTier);
    }
    rows.push_back(say(on, child, words(7, 2)));
    rows.push_back(say(on, talk, words(7, 3)));
    EXPECT_TRUE(on->close(talk));
    EXPECT_TRUE(on->close(child));
    EXPECT_EQ(on->tier_usage().memory_bytes, 0);
    return rows;
  };
  EXPECT_EQ(play(host, true), play(calm, false));
  EXPECT_GT(host->moves().bytes_returned, 0);
}

TEST_F(TiersOfAnEngine, DroppedCellsAreComputedAgainToTheSameBits) {
  const EngineHost host = make_engine(model_, options(128, 256));
  const ConversationId talk = open_with(host, words(70, 1));
  const std::vector<float> row = logits_of(host, talk);
  ASSERT_TRUE(host->drop(talk));
  EXPECT_EQ(host->tokens_free(), host->capacity());
  EXPECT_EQ(host->residence(*host->peek(talk)), Residence::kDropped);
  EXPECT_EQ(host->history(talk).value(), words(70, 1));
  EXPECT_EQ(logits_of(host, talk), row);
  const std::uint64_t accepted = host->peek(talk)->accepted;
  EXPECT_EQ(say(host, talk, words(5, 2)), cold(words(70, 1), words(5, 2)));
  EXPECT_EQ(host->moves().tokens_recomputed, 70);
  EXPECT_EQ(host->peek(talk)->accepted, accepted + 5);
  EXPECT_EQ(host->history(talk).value().size(), 75);
}

TEST_F(TiersOfAnEngine, ADroppedConversationIsRewoundForkedCancelledAndRefreshed) {
  const EngineHost host = make_engine(model_, options(256, 256));
  const ConversationId talk = open_with(host, words(70, 1));
  ASSERT_TRUE(host->drop(talk));
  const ConversationId child = host->fork(talk, true).value();
  ASSERT_TRUE(host->rewind(talk, 40));
  EXPECT_EQ(host->rewind_cost(talk, 30).value(), 30);
  EXPECT_EQ(host->row(talk, 0).error().code(), Outcome::kNeedsPrompt);
  ASSERT_TRUE(host->refresh(talk));
  step_until_idle(host);
  std::vector<Token> beginning = words(70, 1);
  beginning.resize(40);
  EXPECT_EQ(logits_of(host, talk), cold(beginning));
  // Cancelled on the way it is dropped again, as far as it had not come.
  ASSERT_TRUE(host->prompt(child, words(9, 2), LogitsWanted::kLast));
  ASSERT_TRUE(host->step({.tokens = 16}));
  ASSERT_TRUE(host->cancel(child));
  EXPECT_EQ(host->history(child).value(), words(70, 1));
  EXPECT_EQ(say(host, child, words(9, 3)), cold(words(70, 1), words(9, 3)));
}

TEST_F(TiersOfAnEngine, WhatCannotBeComputedAgainIsNotDropped) {
  const EngineHost host = make_engine(model_, options(128, 256));
  const ConversationId talk = open_with(host, words(40, 1));
  ASSERT_TRUE(host->shift_left(talk, 4, 10));
  EXPECT_EQ(host->drop(talk).error().code(), Outcome::kUnsupported);
  ASSERT_TRUE(host->prompt(talk, words(3, 2), LogitsWanted::kLast));
  EXPECT_EQ(host->drop(talk).error().code(), Outcome::kWrongState);
  EXPECT_EQ(host->spill(talk).error().code(), Outcome::kWrongState);
}

// K09: brought back and cancelled before that is finished.
TEST_F(TiersOfAnEngine, AReturnThatIsCancelledAThousandTimesLosesNothing) {
  const EngineHost host = make_engine(model_, options(128, 64, 128));
  const ConversationId talk = open_with(host, words(60, 1));
  const ConversationId other = open_with(host, words(40, 2));
  spill(host, talk);
  const std::uint64_t free = host->tokens_free();
  const std::uint32_t frames = static_cast<std::uint32_t>(host->space().frames_free);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(host->prompt(talk, words(3, 3), LogitsWanted::kLast));
    ASSERT_TRUE(host->moves_pending());
    ASSERT_LT(host->tokens_free(), free);
    for (int moves = i % 4; moves > 0; --moves) static_cast<void>(host->move());
    ASSERT_TRUE(host->cancel(talk));
    if (i % 4 < 3) {
      ASSERT_EQ(host->space().frames_free, frames);
      ASSERT_EQ(host->tokens_free(), free);
    }
    if (host->residence(*host->peek(talk)) == Residence::kPool) spill(host, talk);
  }
  EXPECT_EQ(host->tokens_free(), free);
  EXPECT_EQ(say(host, talk, words(4, 4)), cold(words(60, 1), words(4, 4)));
  EXPECT_EQ(say(host, other, words(4, 5)), cold(words(40, 2), words(4, 5)));
}

// K17: the cache is full of others that must not move.
TEST_F(TiersOfAnEngine, WhoFindsNoRoomToComeBackWaitsAndLosesNothing) {
  const EngineHost host = make_engine(model_, options(128, 256));
  const ConversationId talk = open_with(host, words(50, 1));
  spill(host, talk);
  const ConversationId pinned = *host->open({.pinned = true});
  const std::vector<float> theirs = say(host, pinned, words(100, 2));
  ASSERT_TRUE(host->prompt(talk, words(5, 3), LogitsWanted::kLast));
  const auto refused = host->step();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 55);
  EXPECT_EQ(host->residence(*host->peek(talk)), Residence::kTier);
  EXPECT_EQ(logits_of(host, pinned), theirs);
  ASSERT_TRUE(host->rewind(pinned, 60));
  step_until_idle(host);
  EXPECT_EQ(logits_of(host, talk), cold(words(50, 1), words(5, 3)));
}

TEST_F(TiersOfAnEngine, WhereNobodyCanGoOnTheLastOfTheLeastIsPaused) {
  const EngineHost host = make_engine(model_, options(160, 1000));
  const ConversationId first = *host->open();
  const ConversationId second = *host->open();
  const ConversationId low = *host->open({.priority = -1});
  std::vector<std::vector<Token>> said(3);
  const ConversationId ids[] = {first, second, low};
  // Each says a little more in every round until all of them are much longer than the pool.
  for (std::size_t round = 0; round < 8; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto more = words(17, 100 * i + round);
      said[i].insert(said[i].end(), more.begin(), more.end());
      ASSERT_TRUE(host->prompt(ids[i], more, LogitsWanted::kLast));
    }
    step_until_idle(host);
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_EQ(logits_of(host, ids[i]), cold(said[i])) << "round " << round;
  }
  EXPECT_GT(host->moves().conversations_returned, 0);
}

// For every n: a disk that fails once, while writing or reading.
TEST_F(TiersOfAnEngine, ADiskThatFailsConcernsOneConversationAndLosesNothing) {
  for (const FileOperation operation : {FileOperation::kScratchWrite, FileOperation::kScratchRead}) {
    for (std::uint64_t n = 0;; ++n) {
      const auto fault = std::make_shared<Fault>(operation, n);
      FaultyFileSystem files(base::system_files(), fault);
      EngineOptions sizes = options(128, 32, 400);
      sizes.files = &files;
      const EngineHost host = make_engine(model_, sizes);
      std::vector<ConversationId> ids;
      for (std::uint64_t i = 0; i < 4; ++i) ids.push_back(*host->open());
      int failures = 0;
      for (std::uint64_t turn = 0; turn < 12; ++turn) {
        const ConversationId id = ids[turn % 4];
        ASSERT_TRUE(host->prompt(id, words(14, turn), LogitsWanted::kLast));
        auto report = host->step();
        while (report && report->outcome != Outcome::kIdle) report = host->step();
        const Conversation& asked = *host->peek(id);
        if (!report || asked.return_error) {
          // Nothing of it is lost; asked again, it goes on.
          ++failures;
          if (asked.return_error) {
            EXPECT_EQ(asked.return_error->code(), Outcome::kIo);
          }
          ASSERT_TRUE(host->cancel(id));
          ASSERT_TRUE(host->prompt(id, words(14, turn), LogitsWanted::kLast));
          step_until_idle(host);
        }
        std::vector<Token> all;
        for (std::uint64_t i = turn % 4; i <= turn; i += 4) {
          const auto more = words(14, i);
          all.insert(all.end(), more.begin(), more.end());
        }
        ASSERT_EQ(logits_of(host, id), cold(all)) << "turn " << turn << ", fault " << n;
      }
      EXPECT_LE(failures, 1);
      if (!fault->fired()) break;
      ASSERT_LT(n, 200);
    }
  }
}

// A save reads each block of the disk once, however many slices and layers its cells are taken in.
TEST_F(TiersOfAnEngine, ASaveOfWhatLiesOnDiskReadsEachBlockOnce) {
  const auto fault = std::make_shared<Fault>(FileOperation::kScratchRead, UINT64_MAX);
  FaultyFileSystem files(base::system_files(), fault);
  EngineOptions sizes = options(256, 16, 400);
  sizes.files = &files;
  const EngineHost host = make_engine(model_, sizes);
  const ConversationId id = open_with(host, words(150, 1));
  const std::vector<float> expected = logits_of(host, id);
  spill(host, id);
  const std::uint64_t runs = host->moves().runs_spilled;
  ASSERT_GT(runs, 5U);
  std::vector<std::byte> bytes;
  ASSERT_EQ(fault->seen(), 0U);
  ASSERT_TRUE(save(*host.engine, {&id, 1}, *archive::memory_sink(bytes), {}));
  EXPECT_GT(fault->seen(), 0U);
  EXPECT_LE(fault->seen(), runs);
  ASSERT_TRUE(host->close(id));
  const auto loaded = load(*host.engine, *archive::memory_source(bytes));
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(logits_of(host, loaded->ids.front()), expected);
}

// For every n: memory that is missing once while cells move.
TEST_F(TiersOfAnEngine, MissingMemoryLosesNothingOnTheWay) {
  for (std::uint64_t n = 0;; ++n) {
    const EngineHost host = make_engine(model_, options(96, 256));
    const ConversationId first = open_with(host, words(40, 1));
    const ConversationId second = open_with(host, words(40, 2));
    const std::vector<Token> more = words(30, 3);
    bool fired = false;
    {
      const AllocationFault fault(n, AllocationFault::Lasting::kOnce);
      const auto prompted = host->prompt(second, more, LogitsWanted::kLast);
      if (!prompted) {
        ASSERT_EQ(prompted.error().code(), Outcome::kOutOfMemory);
      }
      auto report = host->step();
      while (report && report->outcome != Outcome::kIdle) report = host->step();
      fired = fault.fired();
    }
    if (host->peek(second)->length() == 40) {
      ASSERT_TRUE(host->cancel(second));
      ASSERT_TRUE(host->prompt(second, words(30, 3), LogitsWanted::kLast));
    }
    step_until_idle(host);
    ASSERT_EQ(logits_of(host, second), cold(words(40, 2), words(30, 3))) << n;
    ASSERT_EQ(say(host, first, words(3, 4)), cold(words(40, 1), words(3, 4))) << n;
    if (!fired) {
      EXPECT_GT(n, 20);
      return;
    }
  }
}

TEST_F(TiersOfAnEngine, AStormOfPromptsIsAnsweredAsIfThePoolHeldAll) {
  const test::StormReport report = test::run_storm(
      model_, {.conversations = 24, .tokens = 64, .in_pool = 3, .in_memory = 7, .turns = 400, .seed = 3},
      directory_);
  std::cout << report.text() << "\n";
  EXPECT_EQ(report.wrong, "");
  EXPECT_EQ(report.tokens_recomputed, 0);
  EXPECT_GT(report.returns, 100);
  EXPECT_GT(report.disk_bytes_read, 0);
  EXPECT_LE(report.pool_tokens_max, report.pool_tokens);
  EXPECT_LE(report.memory_bytes_max, report.memory_bytes);
  EXPECT_LE(report.disk_bytes_max, report.disk_bytes);
}

}  // namespace
}  // namespace kvasir::engine
