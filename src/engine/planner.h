// Which tokens of which conversations make the next pass. A pure function of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::engine {

// What a conversation waits for.
struct Demand {
  std::uint64_t queued = 0;  // tokens not yet computed
  bool every_logit = false;  // a logits row for each of them, not for the last alone
};

struct PassBounds {
  std::uint32_t tokens = 512;      // in a pass
  std::uint32_t logit_rows = 512;  // of them with logits
};

// How many tokens of each conversation go into the next pass. Conversations that wait for one token
// (generation) come first; the others share what is left as evenly as their queues allow. `first` rotates who
// comes first, so that over several passes none of more conversations than a pass has tokens is left out. The
// sum is 0 only if nothing is queued.
[[nodiscard]] std::vector<std::uint32_t> plan_pass(std::span<const Demand> demands, const PassBounds& bounds,
                                                   std::size_t first);

}  // namespace kvasir::engine
