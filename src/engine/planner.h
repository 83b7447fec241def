// Who computes next, and how much. Pure functions of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::engine {

// What an admitted conversation waits for.
struct Demand {
  std::uint64_t queued = 0;  // tokens not yet computed
  bool every_logit = false;  // a logits row for each of them, not for the last alone
  int priority = 0;          // higher goes first
  std::uint64_t waited = 0;  // passes since it last got a piece
};

struct PassBounds {
  std::uint32_t tokens = 512;         // in a pass
  std::uint32_t logit_rows = 512;     // of them with logits
  std::uint32_t prompt_tokens = 512;  // that prompts get together while others generate
};

// What a pass is dealt out in, kept from pass to pass so that planning takes no memory.
struct PassPlan {
  std::vector<std::uint32_t> shares;  // [demand]: tokens in the pass
  std::vector<std::size_t> order;
  std::vector<std::size_t> prompts;
};

// How many tokens of each conversation go into the next pass: `plan.shares`.
//
// Conversations that wait for one token (generation) come first; the others share what is left as evenly as
// their queues allow, those of a higher priority before those of a lower one. But each of n conversations of
// one priority gets a piece at least every max(8, n) passes, whatever the others want, as long as a pass
// holds a token for each priority: those that would else wait longer come before all. `first` rotates who
// comes first among equals. The sum is 0 only if nothing is queued. Throws std::bad_alloc.
void plan_pass(std::span<const Demand> demands, const PassBounds& bounds, std::size_t first, PassPlan& plan);

}  // namespace kvasir::engine
