// What the cache's own operations cost at a depth: time, and bytes of K and V that were moved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// One operation, the median of its repeats.
struct Cost {
  std::string name;
  double microseconds = 0;
  std::uint64_t bytes = 0;  // of K and V that were moved
};

// Generating one token in each of so many conversations at the depth: forks of one, so that a small pool
// does. They read the same cells, which makes computing quicker, not planning.
struct StepCost {
  std::uint64_t conversations = 0;
  double plan_microseconds = 0;    // planning and reserving
  double commit_microseconds = 0;  // making it visible
  double step_microseconds = 0;    // all of it
  double overhead = 0;             // planning and commit over the rest
};

// The attention of all layers for one token, before and after a shift whose keep is no multiple of the page
// or of a group of lanes: the least of several alternating runs.
struct ShiftCost {
  int runs = 0;
  double before_microseconds = 0;
  double after_microseconds = 0;
};

// Compaction of a conversation whose spans are all of one length: its copying alone, and with the planning of
// what to copy; and memcpy of as many bytes by the same one thread in the same run. The best of several.
struct CompactionCost {
  std::uint32_t span_cells = 0;
  std::uint64_t bytes = 0;
  double bytes_per_second = 0;       // all of it
  double copy_bytes_per_second = 0;  // its copying
  double memcpy_bytes_per_second = 0;
};

struct CacheCosts {
  std::vector<Cost> operations;
  std::vector<StepCost> steps;
  std::vector<ShiftCost> shifts;  // one
  std::vector<CompactionCost> compactions;
};

// Tokens of the step whose plan, commit and rollback are measured: the room it needs beside the depth.
inline constexpr std::uint64_t kBenchStepTokens = 512;

// The most conversations in a step that is measured: rows of logits in a pass.
inline constexpr std::uint64_t kBenchStepConversations = 16;

// The least depth at which there is something to measure.
inline constexpr std::uint64_t kBenchDepthMin = 64;

// Measures on an engine without conversations, whose pool holds `depth` tokens and kBenchStepTokens more.
// Errors as the engine's; kCancelled where the user interrupts. The engine is then as empty as before.
[[nodiscard]] Result<CacheCosts> measure_cache(engine::Engine& engine, std::uint64_t depth);

}  // namespace kvasir::cli
