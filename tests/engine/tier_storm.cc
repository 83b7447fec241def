#include "tier_storm.h"

#include <algorithm>
#include <random>
#include <sstream>
#include <vector>

#include "engine/engine.h"
#include "support/engine_run.h"

namespace kvasir::engine::test {
namespace {

using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;

// What one engine answers; empty where it does not.
std::vector<float> answer(const EngineHost& host, ConversationId id, std::span<const Token> tokens,
                          std::string& wrong) {
  if (const auto prompted = host->prompt(id, tokens, LogitsWanted::kLast); !prompted) {
    wrong = "a prompt is refused: " + prompted.error().message();
    return {};
  }
  while (true) {
    const auto report = host->step();
    if (!report) {
      wrong = "a step fails: " + report.error().message();
      return {};
    }
    if (report->outcome == Outcome::kIdle) break;
  }
  const auto row = host->last_logits(id);
  if (!row) {
    wrong = "there is no answer: " + row.error().message();
    return {};
  }
  return {row->begin(), row->end()};
}

}  // namespace

std::uint64_t token_bytes(const LoadedModel& model) {
  const EngineHost host = kvasir::test::make_engine(model, {.pool = 64, .tiers = {.memory_bytes = 1 << 24}});
  const ConversationId id =
      kvasir::test::open_with(host, kvasir::test::random_tokens(model.vocabulary(), 16, 1));
  while (host->spill(id).value() != Moved::kNothing) {
  }
  return host->moves().bytes_spilled / 16;
}

std::string StormReport::text() const {
  std::ostringstream out;
  out << turns << " turns, " << returns << " returns of " << bytes_returned << " bytes, " << disk_bytes_read
      << " of them from disk, " << tokens_recomputed << " tokens recomputed; at most " << pool_tokens_max
      << " of " << pool_tokens << " tokens in the pool, " << memory_bytes_max << " of " << memory_bytes
      << " bytes in memory, " << disk_bytes_max << " of " << disk_bytes << " bytes on disk";
  return out.str();
}

StormReport run_storm(const LoadedModel& model, const Storm& storm, const std::string& directory) {
  StormReport report;
  const std::uint64_t bytes = token_bytes(model) * storm.tokens;
  constexpr std::uint64_t kPage = 16;
  report.pool_tokens = storm.in_pool * storm.tokens;
  report.memory_bytes = storm.in_memory * bytes;
  report.disk_bytes = (storm.conversations - storm.in_pool - storm.in_memory + 2) * bytes * 2;
  EngineOptions few{.context = storm.tokens, .pool = report.pool_tokens, .page_cells = kPage};
  few.tiers = {report.memory_bytes, report.disk_bytes, directory};
  const EngineHost host = kvasir::test::make_engine(model, few);
  const EngineHost all = kvasir::test::make_engine(
      model,
      {.context = storm.tokens, .pool = storm.conversations * (storm.tokens + kPage), .page_cells = kPage});
  std::mt19937_64 random(storm.seed);
  std::vector<ConversationId> ids;
  std::vector<ConversationId> twins;
  for (std::uint64_t i = 0; i < storm.conversations; ++i) {
    ids.push_back(host->open().value());
    twins.push_back(all->open().value());
  }
  for (std::uint64_t turn = 0; turn < storm.turns && report.wrong.empty(); ++turn) {
    // First everybody says all that it may, then whoever comes.
    const bool first = turn < storm.conversations;
    const std::size_t who = first ? turn : random() % storm.conversations;
    std::uint64_t count = first ? storm.tokens - 1 - random() % 8 : 1 + random() % 3;
    const std::uint64_t length = host->look(ids[who]).value()->length();
    if (length + count > storm.tokens) {
      const std::uint64_t left = storm.tokens / 2 + random() % (storm.tokens / 4);
      if (!host->rewind(ids[who], left) || !all->rewind(twins[who], left))
        report.wrong = "a rewind is refused";
    }
    const auto tokens = kvasir::test::random_tokens(model.vocabulary(), count, random());
    const std::vector<float> mine = answer(host, ids[who], tokens, report.wrong);
    const std::vector<float> theirs = answer(all, twins[who], tokens, report.wrong);
    if (report.wrong.empty() && !kvasir::test::same_bits(mine, theirs))
      report.wrong = "turn " + std::to_string(turn) + " has another answer";
    report.pool_tokens_max =
        std::max(report.pool_tokens_max, host->space().held_cells - host->space().evictable_cells);
    const tiers::TierUsage usage = host->tier_usage();
    report.memory_bytes_max = usage.memory_bytes_max;
    report.disk_bytes_max = usage.disk_bytes_max;
    report.disk_bytes_read = usage.bytes_read;
    ++report.turns;
  }
  report.returns = host->moves().conversations_returned;
  report.bytes_returned = host->moves().bytes_returned;
  report.tokens_recomputed = host->moves().tokens_recomputed;
  for (std::uint64_t i = 0; i < storm.conversations && report.wrong.empty(); ++i) {
    if (!host->close(ids[i])) report.wrong = "a conversation does not close";
  }
  while (host->wait_for_disk()) {
  }
  if (report.wrong.empty() && (host->tier_usage().memory_bytes != 0 || host->tier_usage().disk_bytes != 0))
    report.wrong = "bytes are left behind in the tiers";
  return report;
}

}  // namespace kvasir::engine::test
