#include "cli/bench_cache.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "archive/stream.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "engine/archives.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::Engine;
using engine::JobView;
using engine::LogitsWanted;
using engine::StepReport;
using engine::Verdict;
using pages::EditOperation;

constexpr int kRepeats = 21;           // of a cheap operation; the median counts
constexpr int kMoves = 5;              // of all cells; the median counts
constexpr int kSteps = 5;              // of each number of conversations
constexpr int kAttentionRuns = 20;     // before and after a shift; the least counts
constexpr int kCompactions = 5;        // the best counts
constexpr std::uint64_t kKeep = 5;     // of a shift
constexpr std::uint64_t kDropped = 8;  // by a shift
constexpr std::uint64_t kCompactedMax = 4096;
constexpr std::uint64_t kColdBytes = std::uint64_t{64} << 20;

std::int64_t now_ns() {
  return base::system_clock().now_ns();
}
double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}
double microseconds_since(std::int64_t start) {
  return microseconds(now_ns() - start);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::unexpected<Error> interrupted_error() {
  return fail(Outcome::kCancelled, "interrupted");
}

// memcpy of memory that no cache holds, as cells that are compacted lie in none.
class ColdCopy {
 public:
  [[nodiscard]] static Result<ColdCopy> create() {
    ColdCopy copy;
    KVASIR_ASSIGN(copy.from_, base::Buffer::allocate(kColdBytes));
    KVASIR_ASSIGN(copy.to_, base::Buffer::allocate(kColdBytes));
    return copy;
  }

  // Bytes per second of copying so many.
  [[nodiscard]] double rate(std::uint64_t bytes) noexcept {
    const std::int64_t start = now_ns();
    for (std::uint64_t left = bytes; left > 0;) {
      const std::uint64_t some = std::min(left, kColdBytes - at_);
      std::memcpy(to_.data() + at_, from_.data() + at_, some);
      at_ = (at_ + some) % kColdBytes;
      left -= some;
    }
    return static_cast<double>(bytes) / (microseconds_since(start) * 1e-6);
  }

 private:
  base::Buffer from_;
  base::Buffer to_;
  std::uint64_t at_ = 0;  // what was copied longest ago comes next
};

class CacheBench {
 public:
  CacheBench(Engine& engine, std::uint64_t depth) : engine_(engine), depth_(depth) {}

  Result<CacheCosts> run() {
    KVASIR_ASSIGN(main_, open_at_depth());
    KVASIR_TRY(measure_fork());
    KVASIR_TRY(measure_edits());
    KVASIR_TRY(measure_large_step());
    for (const std::uint64_t many : {std::uint64_t{1}, kBenchStepConversations})
      KVASIR_TRY(measure_steps(many));
    KVASIR_TRY(measure_shifted_attention());
    KVASIR_TRY(measure_archive());
    KVASIR_TRY(measure_moves());
    KVASIR_TRY(measure_close());
    for (const std::uint32_t cells : {12U, 1U}) KVASIR_TRY(measure_compaction(cells));
    return std::move(costs_);
  }

 private:
  Result<ConversationId> open_at_depth() {
    KVASIR_ASSIGN(const ConversationId id, engine_.open());
    KVASIR_TRY(engine_.fill(id, std::vector<Token>(depth_)));
    return id;
  }

  // Times `operation`, with `undo` after each repeat.
  template <class Operation, class Undo>
  Status measure(const char* name, const Operation& operation, const Undo& undo, int repeats = kRepeats) {
    std::vector<double> times;
    std::uint64_t moved = 0;
    for (int i = 0; i < repeats; ++i) {
      if (interrupted()) return interrupted_error();
      const std::uint64_t moved_before = engine_.bytes_moved();
      const std::int64_t start = now_ns();
      KVASIR_TRY(operation());
      times.push_back(microseconds_since(start));
      moved += engine_.bytes_moved() - moved_before;
      KVASIR_TRY(undo());
    }
    costs_.operations.push_back({name, median(times), moved / static_cast<std::uint64_t>(repeats)});
    return {};
  }

  Status measure_fork() {
    ConversationId child{};
    const auto fork = [&]() -> Status {
      KVASIR_ASSIGN(child, engine_.fork(main_));
      return {};
    };
    return measure("fork", fork, [&] { return engine_.close(child); });
  }

  Status measure_edits() {
    const auto refill = [this](std::uint64_t count) {
      return engine_.fill(main_, std::vector<Token>(count));
    };
    KVASIR_TRY(
        measure("rewind", [&] { return engine_.rewind(main_, depth_ - 32); }, [&] { return refill(32); }));
    KVASIR_TRY(measure(
        "shift", [&] { return engine_.shift_left(main_, kKeep, kDropped); },
        [&] { return refill(kDropped); }));
    // Many shifts have left spans of many shifts; what follows begins anew.
    KVASIR_TRY(engine_.close(main_));
    KVASIR_ASSIGN(main_, open_at_depth());
    return {};
  }

  // Plan, commit and rollback of a step of kBenchStepTokens tokens.
  Status measure_large_step() {
    KVASIR_TRY(engine_.prompt(main_, std::vector<Token>(kBenchStepTokens), LogitsWanted::kLast));
    std::vector<double> plans;
    std::vector<double> rollbacks;
    const std::uint64_t moved_before = engine_.bytes_moved();
    for (int i = 0; i < kRepeats; ++i) {
      KVASIR_ASSIGN(const StepReport undone,
                    engine_.step({.whole_queue = true,
                                  .between_jobs = [](const JobView&) { return Verdict::kCancel; }}));
      plans.push_back(microseconds(undone.plan_ns));
      rollbacks.push_back(microseconds(undone.rollback_ns));
    }
    const std::uint64_t moved_undone = engine_.bytes_moved();
    KVASIR_ASSIGN(const StepReport done, step({}));
    costs_.operations.push_back({"plan", median(plans), (moved_undone - moved_before) / kRepeats});
    costs_.operations.push_back(
        {"commit", microseconds(done.commit_ns), engine_.bytes_moved() - moved_undone});
    costs_.operations.push_back({"rollback", median(rollbacks), (moved_undone - moved_before) / kRepeats});
    return engine_.rewind(main_, depth_);
  }

  // One step of everything queued. `each_job` sees every job but the last.
  Result<StepReport> step(const std::function<void(const JobView&)>& each_job) {
    const auto verdict = [&](const JobView& view) {
      if (each_job) each_job(view);
      return interrupted() ? Verdict::kCancel : Verdict::kGoOn;
    };
    KVASIR_ASSIGN(StepReport report, engine_.step({.whole_queue = true, .between_jobs = verdict}));
    if (report.outcome == Outcome::kCancelled) return interrupted_error();
    return report;
  }

  Status prompt_one(ConversationId id) {
    const Token token = 0;
    return status_of(engine_.prompt(id, {&token, 1}, LogitsWanted::kLast));
  }
  static Status status_of(const Result<std::uint64_t>& result) {
    return result ? Status() : Status(fail(result.error()));
  }

  Status measure_steps(std::uint64_t conversations) {
    std::vector<ConversationId> ids;
    while (ids.size() < conversations) {
      KVASIR_ASSIGN(const ConversationId id, engine_.fork(main_));
      ids.push_back(id);
    }
    std::vector<double> plans;
    std::vector<double> commits;
    std::vector<double> steps;
    for (int i = 0; i < kSteps; ++i) {
      for (const ConversationId id : ids) KVASIR_TRY(prompt_one(id));
      const std::int64_t start = now_ns();
      KVASIR_ASSIGN(const StepReport report, step({}));
      steps.push_back(microseconds_since(start));
      plans.push_back(microseconds(report.plan_ns));
      commits.push_back(microseconds(report.commit_ns));
    }
    for (const ConversationId id : ids) KVASIR_TRY(engine_.close(id));
    StepCost cost{conversations, median(plans), median(commits), median(steps)};
    const double metadata = cost.plan_microseconds + cost.commit_microseconds;
    cost.overhead = metadata / (cost.step_microseconds - metadata);
    costs_.steps.push_back(cost);
    return {};
  }

  // The attention of all layers for one more token, which is taken back.
  Result<double> attention_of_one(ConversationId id) {
    KVASIR_TRY(prompt_one(id));
    std::int64_t attention_ns = 0;
    std::int64_t last = now_ns();
    KVASIR_TRY(step([&](const JobView& view) {
      const std::int64_t now = now_ns();
      if (view.progress.attended) attention_ns += now - last;
      last = now;
    }));
    KVASIR_TRY(engine_.rewind(id, depth_));
    return microseconds(attention_ns);
  }

  // Both read the same cells, so nothing but the shift makes a difference.
  Status measure_shifted_attention() {
    KVASIR_ASSIGN(const ConversationId shifted, engine_.fork(main_));
    KVASIR_TRY(engine_.shift_left(shifted, kKeep, kDropped));
    KVASIR_TRY(engine_.fill(shifted, std::vector<Token>(kDropped)));
    ShiftCost cost{kAttentionRuns, std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    for (int i = 0; i < kAttentionRuns; ++i) {
      KVASIR_ASSIGN(const double before, attention_of_one(main_));
      KVASIR_ASSIGN(const double after, attention_of_one(shifted));
      cost.before_microseconds = std::min(cost.before_microseconds, before);
      cost.after_microseconds = std::min(cost.after_microseconds, after);
    }
    costs_.shifts.push_back(cost);
    return engine_.close(shifted);
  }

  // To memory and back; the pool has no room for a second one beside it.
  Status measure_archive() {
    std::vector<std::byte> bytes;
    const auto save = [&]() -> Status {
      const auto sink = archive::memory_sink(bytes);
      const auto saved = engine::save(engine_, {&main_, 1}, *sink, {});
      return saved ? Status() : Status(fail(saved.error()));
    };
    KVASIR_TRY(measure("save", save, [] { return Status(); }));
    KVASIR_TRY(engine_.close(main_));
    const auto load = [&]() -> Status {
      const auto source = archive::memory_source(bytes);
      KVASIR_ASSIGN(const engine::LoadedIds loaded, engine::load(engine_, *source));
      main_ = loaded.ids.front();
      return {};
    };
    KVASIR_TRY(measure("load", load, [&] { return engine_.close(main_); }));
    KVASIR_ASSIGN(main_, open_at_depth());
    return {};
  }

  // Out of the pool into memory, and back. Nothing where the engine has no tier.
  Status measure_moves() {
    if (engine_.options().tiers.memory_bytes == 0) return {};
    const auto to_end = [](const auto& move) -> Status {
      engine::Moved moved = engine::Moved::kSome;
      while (moved != engine::Moved::kNothing) {
        KVASIR_ASSIGN(moved, move());
      }
      return {};
    };
    const auto spill = [&] { return to_end([this] { return engine_.spill(main_); }); };
    const auto bring_back = [&] { return to_end([this] { return engine_.bring_back(main_); }); };
    KVASIR_TRY(measure("spill", spill, bring_back, kMoves));
    KVASIR_TRY(spill());
    KVASIR_TRY(measure("return", bring_back, spill, kMoves));
    return bring_back();
  }

  Status measure_close() {
    const auto reopen = [this]() -> Status {
      KVASIR_ASSIGN(main_, open_at_depth());
      return {};
    };
    KVASIR_TRY(measure("close", [this] { return engine_.close(main_); }, reopen));
    return engine_.close(main_);
  }

  // Takes the whole pool with conversations as long as the context allows.
  Result<std::vector<ConversationId>> fill_pool() {
    std::vector<ConversationId> fillers;
    while (engine_.tokens_free() > 0) {
      KVASIR_ASSIGN(const ConversationId filler, engine_.open());
      fillers.push_back(filler);
      const std::uint64_t some = std::min(engine_.tokens_free(), engine_.options().context);
      KVASIR_TRY(engine_.fill(filler, std::vector<Token>(some)));
    }
    return fillers;
  }

  // A conversation in spans of `cells` cells: another one held as many between any two of them.
  Result<ConversationId> open_scattered(std::uint32_t cells) {
    KVASIR_ASSIGN(const std::vector<ConversationId> fillers, fill_pool());
    KVASIR_ASSIGN(const std::span<const Token> first, engine_.tokens(fillers.front()));
    const std::uint64_t half = std::min<std::uint64_t>(kCompactedMax, first.size() / 2) / cells * cells;
    std::vector<EditOperation> holes;
    for (std::uint64_t i = half / cells; i-- > 0;) {
      holes.push_back({EditOperation::Kind::kRemove, 2 * i * cells, cells, 0});
    }
    KVASIR_TRY(engine_.edit(fillers.front(), holes));
    KVASIR_ASSIGN(const ConversationId id, engine_.open());
    KVASIR_TRY(engine_.fill(id, std::vector<Token>(half)));
    for (const ConversationId filler : fillers) KVASIR_TRY(engine_.close(filler));
    return id;
  }

  Status measure_compaction(std::uint32_t cells) {
    CompactionCost cost{.span_cells = cells};
    KVASIR_ASSIGN(ColdCopy cold_copy, ColdCopy::create());
    for (int i = 0; i < kCompactions; ++i) {
      if (interrupted()) return interrupted_error();
      KVASIR_ASSIGN(const ConversationId id, open_scattered(cells));
      const std::uint64_t moved_before = engine_.bytes_moved();
      const std::int64_t copied_before = engine_.compaction_copy_ns();
      const std::int64_t start = now_ns();
      KVASIR_TRY(status_of(engine_.compact(std::numeric_limits<std::uint64_t>::max())));
      const double seconds = microseconds_since(start) * 1e-6;
      cost.bytes = engine_.bytes_moved() - moved_before;
      const double copying = microseconds(engine_.compaction_copy_ns() - copied_before) * 1e-6;
      const auto bytes = static_cast<double>(cost.bytes);
      cost.bytes_per_second = std::max(cost.bytes_per_second, bytes / seconds);
      cost.copy_bytes_per_second = std::max(cost.copy_bytes_per_second, bytes / copying);
      cost.memcpy_bytes_per_second = std::max(cost.memcpy_bytes_per_second, cold_copy.rate(cost.bytes));
      KVASIR_TRY(engine_.close(id));
    }
    costs_.compactions.push_back(cost);
    return {};
  }

  Engine& engine_;
  std::uint64_t depth_;
  ConversationId main_{};
  CacheCosts costs_;
};

}  // namespace

Result<CacheCosts> measure_cache(Engine& engine, std::uint64_t depth) {
  return CacheBench(engine, depth).run();
}

}  // namespace kvasir::cli
