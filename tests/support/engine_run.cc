#include "support/engine_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/try.h"
#include "engine/load_job.h"
#include "engine/save_job.h"

namespace kvasir::test {

using engine::ConversationId;
using engine::Engine;
using engine::LoadJob;
using engine::LogitsWanted;
using engine::SaveJob;
using engine::StepReport;

EngineHost make_engine(const LoadedModel& model, const engine::EngineOptions& options, int threads) {
  auto pool = parallel::ThreadPool::create(threads);
  if (pool) {
    auto made = Engine::create(model.model, **pool, options);
    if (made) return {*std::move(pool), *std::move(made)};
    std::fprintf(stderr, "the test's own engine is wrong: %s\n", made.error().message().c_str());
  }
  std::abort();
}

void step_until_idle(const EngineHost& host) {
  while (true) {
    const auto report = host->step();
    ASSERT_TRUE(report) << report.error().message();
    if (report->outcome == Outcome::kIdle) return;
    ASSERT_EQ(report->outcome, Outcome::kDone);
  }
}

std::vector<float> say(const EngineHost& host, ConversationId id, std::span<const Token> tokens) {
  const auto prompted = host->prompt(id, tokens, LogitsWanted::kLast);
  EXPECT_TRUE(prompted) << prompted.error().message();
  step_until_idle(host);
  return logits_of(host, id);
}

ConversationId open_with(const EngineHost& host, std::span<const Token> tokens) {
  const auto id = host->open();
  EXPECT_TRUE(id);
  say(host, *id, tokens);
  return *id;
}

std::vector<float> logits_of(const EngineHost& host, ConversationId id) {
  const auto row = host->last_logits(id);
  EXPECT_TRUE(row) << row.error().message();
  return row ? std::vector<float>(row->begin(), row->end()) : std::vector<float>();
}

std::vector<float> cold_logits(const LoadedModel& model, std::span<const Token> tokens,
                               const kv::CacheTypes& types) {
  const EngineHost alone = make_engine(model, {.pool = tokens.size() + 32, .types = types});
  return say(alone, *alone->open(), tokens);
}

std::string types_text(const kv::CacheTypes& types) {
  const std::string keys(kv::element_name(types.keys));
  return types.keys == types.values ? keys : keys + ":" + std::string(kv::element_name(types.values));
}

std::vector<kv::CacheTypes> all_cache_types() {
  using enum kv::CacheElement;
  std::vector<kv::CacheTypes> all;
  for (const kv::CacheElement keys : {kF32, kF16, kBF16, kQ8_0, kQ4_0}) {
    for (const kv::CacheElement values : {kF32, kF16, kBF16, kQ8_0, kQ4_0}) all.push_back({keys, values});
  }
  return all;
}

std::string Manner::text() const {
  std::string sizes;
  for (const std::size_t piece : pieces) sizes += (sizes.empty() ? "" : ",") + std::to_string(piece);
  return "threads " + std::to_string(threads) + ", page " + std::to_string(page_cells) + ", pass " +
         std::to_string(pass_tokens) + ", rows " + std::to_string(logit_rows) + ", keys " +
         std::string(kv::element_name(types.keys)) + ", values " +
         std::string(kv::element_name(types.values)) + ", pieces [" + sizes + "], beside " +
         std::to_string(beside) + (whole_queue ? ", as units" : "") +
         (suspend_at_every_job ? ", suspended at every job" : "") + ", seed " + std::to_string(seed);
}

namespace {

// One conversation that is looked at, and random ones beside it.
class Taking {
 public:
  Taking(const LoadedModel& model, std::size_t tokens, const Manner& manner)
      : manner_(manner), vocabulary_(model.vocabulary()), random_(manner.seed) {
    engine::EngineOptions options;
    options.context = std::max<std::size_t>(4096, tokens);
    options.pool = (tokens * 2 + 64 + manner.page_cells) * (manner.beside + 1);
    options.page_cells = manner.page_cells;
    options.pass_tokens = manner.pass_tokens;
    options.logit_rows = manner.logit_rows;
    options.types = manner.types;
    host_ = make_engine(model, options, manner.threads);
  }

  Result<Taken> run(std::span<const Token> tokens) {
    // The others hold something before ours begins, so that no cell of ours is where it is in an empty pool.
    for (std::size_t i = 0; i < manner_.beside; ++i) {
      KVASIR_ASSIGN(const ConversationId other, host_->open());
      others_.push_back(other);
    }
    KVASIR_TRY(prompt_others(1 + random_() % 40));
    KVASIR_TRY(step_until_idle());
    KVASIR_ASSIGN(ours_, host_->open());
    std::size_t at = 0;
    for (std::size_t index = 0; at < tokens.size(); ++index) {
      std::size_t count = tokens.size();
      if (!manner_.pieces.empty()) count = manner_.pieces[std::min(index, manner_.pieces.size() - 1)];
      count = std::min(count, tokens.size() - at);
      KVASIR_TRY(status_of(host_->prompt(ours_, tokens.subspan(at, count), LogitsWanted::kEvery)));
      // As many as ours at most, so that the pool is large enough.
      KVASIR_TRY(prompt_others(1 + random_() % count));
      KVASIR_TRY(step_until_idle());
      at += count;
    }
    KVASIR_ASSIGN(taken_.logits, host_->take_logits(ours_));
    KVASIR_ASSIGN(const std::span<const float> last, host_->last_logits(ours_));
    taken_.last.assign(last.begin(), last.end());
    return std::move(taken_);
  }

 private:
  Status prompt_others(std::size_t count) {
    for (const ConversationId other : others_) {
      KVASIR_TRY(host_->prompt(other, random_tokens(vocabulary_, count, random_()), LogitsWanted::kLast));
    }
    return {};
  }

  Status step_until_idle() {
    engine::StepOptions options{.whole_queue = manner_.whole_queue};
    if (manner_.suspend_at_every_job) {
      options.between_jobs = [](const engine::JobView&) { return engine::Verdict::kSuspend; };
    }
    while (true) {
      KVASIR_ASSIGN(const StepReport report, host_->step(options));
      if (report.outcome == Outcome::kIdle) return {};
      if (report.outcome == Outcome::kSuspended) {
        ++taken_.suspensions;
        continue;
      }
      taken_.passes += report.passes;
      for (const std::vector<ConversationId>& pass : report.shared_passes) {
        if (std::ranges::find(pass, ours_) == pass.end()) continue;
        taken_.most_beside = std::max(taken_.most_beside, pass.size() - 1);
      }
    }
  }

  Manner manner_;
  std::uint32_t vocabulary_;
  std::mt19937_64 random_;
  EngineHost host_;
  ConversationId ours_{UINT32_MAX};
  std::vector<ConversationId> others_;
  Taken taken_;
};

}  // namespace

Taken take(const LoadedModel& model, std::span<const Token> tokens, const Manner& manner) {
  auto taken = Taking(model, tokens.size(), manner).run(tokens);
  if (taken) return *std::move(taken);
  ADD_FAILURE() << manner.text() << ": " << taken.error().message();
  return {};
}

Manner random_manner(std::uint64_t seed, std::size_t tokens) {
  std::mt19937_64 random(seed);
  const auto from = [&](std::uint64_t least, std::uint64_t most) {
    return least + random() % (most - least + 1);
  };
  Manner manner;
  manner.seed = seed;
  manner.threads = static_cast<int>(from(1, 3));
  manner.page_cells = static_cast<std::uint32_t>(from(1, 8) * 16);
  manner.pass_tokens = static_cast<std::uint32_t>(from(0, 3) == 0 ? from(1, 8) : from(1, tokens + 20));
  manner.logit_rows = static_cast<std::uint32_t>(from(1, tokens + 20));
  for (std::uint64_t piece = from(0, 4); piece > 0; --piece) manner.pieces.push_back(from(1, tokens));
  manner.beside = from(0, 4);
  manner.whole_queue = from(0, 1) == 1;
  manner.suspend_at_every_job = from(0, 3) == 0;
  return manner;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

ConversationId carried(const EngineHost& from, ConversationId id, const EngineHost& to) {
  auto save = SaveJob::begin(*from.engine, {&id, 1});
  EXPECT_TRUE(save) << save.error().message();
  auto load = LoadJob::begin(*to.engine, (*save)->saved(), false);
  EXPECT_TRUE(load) << load.error().message();
  while (true) {
    const auto state = (*save)->advance();
    EXPECT_TRUE(state);
    if (*state == SaveJob::State::kEnd) break;
    if (*state == SaveJob::State::kGoesOn) continue;
    const Status opened = (*load)->open_section((*save)->content());
    EXPECT_TRUE(opened) << opened.error().message();
    while ((*load)->fill()) {
    }
  }
  EXPECT_TRUE((*load)->check_complete());
  EXPECT_EQ((*load)->bytes_done(), (*load)->bytes_total());
  return (*load)->commit().front();
}

}  // namespace kvasir::test
