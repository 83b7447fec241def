// Caches so long that threads share the reading of one row: how many threads there are shows in no bit (F1).

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::EngineHost;
using kvasir::test::GgufDraft;
using kvasir::test::LoadedModel;
using kvasir::test::same_bits;
using pages::EditOperation;

// More than two pieces of tiles, the last of them begun.
constexpr std::size_t kLength = 1300;

// A model of the repository with room for long texts, and with a window, if it has one, that is as long.
LoadedModel lengthened(const std::string& name) {
  GgufDraft draft = GgufDraft::copy_of(kvasir::test::data_path("models/" + name + "/model.gguf"));
  draft.set(name + ".context_length", 4096U);
  if (name == "gemma2" || name == "gpt-oss") draft.set(name + ".attention.sliding_window", 1200U);
  return kvasir::test::load(draft);
}

// What a long conversation says, and how many jobs its last single token took.
struct Said {
  std::vector<std::vector<float>> logits;
  std::uint64_t jobs = 0;
};

class LongCaches : public testing::TestWithParam<std::string> {
 protected:
  static void step(const EngineHost& engine, Said& said) {
    said.jobs = 0;
    const StepOptions options{.between_jobs = [&said](const JobView&) {
      ++said.jobs;
      return Verdict::kGoOn;
    }};
    for (auto report = engine->step(options); report && report->outcome != Outcome::kIdle;
         report = engine->step(options)) {
      ASSERT_EQ(report->outcome, Outcome::kDone);
    }
  }

  [[nodiscard]] Said said_on(int threads, const kv::CacheTypes& types) const {
    const EngineHost engine =
        kvasir::test::make_engine(model_, {.pool = 8192, .pass_tokens = 256, .types = types}, threads);
    const auto tokens = kvasir::test::random_tokens(model_.vocabulary(), kLength + 8, 5);
    const std::span<const Token> all = tokens;
    const ConversationId id = *engine->open();
    Said said;
    if (GetParam() == "t5") {
      EXPECT_TRUE(engine->encode(id, all.first(kLength)));
    }
    EXPECT_TRUE(engine->prompt(id, all.first(kLength), LogitsWanted::kLast));
    step(engine, said);
    const auto more = [&](std::size_t first, std::size_t count) {
      EXPECT_TRUE(engine->prompt(id, all.subspan(kLength + first, count), LogitsWanted::kLast));
      step(engine, said);
      said.logits.push_back(kvasir::test::logits_of(engine, id));
    };
    more(0, 2);
    more(2, 1);
    const std::uint64_t jobs = said.jobs;
    // Several shifts, where keys can be turned, and then positions that go back, of which windows hide some.
    if (engine->shift_left(id, 5, 8)) {
      more(3, 1);
      const EditOperation back{
          .kind = EditOperation::Kind::kShift, .first = 600, .count = 90, .amount = -400};
      EXPECT_TRUE(engine->edit(id, std::span(&back, 1)));
      more(4, 1);
    }
    said.jobs = jobs;
    return said;
  }

  LoadedModel model_ = lengthened(GetParam());
};

TEST_P(LongCaches, GiveTheSameBitsOnAnyNumberOfThreads) {
  for (const kv::CacheTypes& types : kvasir::test::all_cache_types()) {
    SCOPED_TRACE(kvasir::test::types_text(types));
    const Said alone = said_on(1, types);
    ASSERT_GE(alone.logits.size(), 2U);
    // All numbers for equal elements, one that shares for the mixtures of two.
    for (const int threads : types.keys == types.values ? std::vector{2, 3, 5, 8} : std::vector{8}) {
      SCOPED_TRACE(threads);
      const Said shared = said_on(threads, types);
      ASSERT_EQ(shared.logits.size(), alone.logits.size());
      if (threads == 8) {
        EXPECT_GT(shared.jobs, alone.jobs) << "reading in pieces ends with merging them";
      }
      for (std::size_t i = 0; i < alone.logits.size(); ++i)
        EXPECT_TRUE(same_bits(shared.logits[i], alone.logits[i])) << "row " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LongCaches, testing::Values("llama", "gemma2", "gpt-oss", "t5"),
                         [](const auto& instance) {
                           return instance.param == "gpt-oss" ? std::string("gpt_oss") : instance.param;
                         });

}  // namespace
}  // namespace kvasir::engine
