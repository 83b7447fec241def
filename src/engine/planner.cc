#include "engine/planner.h"

#include <algorithm>
#include <cstddef>

namespace kvasir::engine {
namespace {

// What is left of a pass while it is dealt out.
class Dealer {
 public:
  Dealer(std::span<const Demand> demands, const PassBounds& bounds)
      : demands_(demands), tokens_(bounds.tokens), logit_rows_(bounds.logit_rows), dealt_(demands.size()) {}

  // Gives a conversation up to `most` more tokens; says how many it got.
  std::uint32_t give(std::size_t index, std::uint64_t most) {
    const Demand& demand = demands_[index];
    std::uint64_t count = std::min({demand.queued - dealt_[index], most, std::uint64_t{tokens_}});
    if (demand.every_logit) {
      count = std::min<std::uint64_t>(count, logit_rows_);
    } else if (count > 0 && dealt_[index] + count == demand.queued && logit_rows_ == 0) {
      --count;  // its last token wants a row that this pass no longer has
    }
    const bool ends = count > 0 && dealt_[index] + count == demand.queued;
    logit_rows_ -= static_cast<std::uint32_t>(demand.every_logit ? count : (ends ? 1 : 0));
    tokens_ -= static_cast<std::uint32_t>(count);
    dealt_[index] += static_cast<std::uint32_t>(count);
    return static_cast<std::uint32_t>(count);
  }

  [[nodiscard]] std::uint32_t tokens_left() const { return tokens_; }
  [[nodiscard]] std::vector<std::uint32_t> dealt() && { return std::move(dealt_); }

 private:
  std::span<const Demand> demands_;
  std::uint32_t tokens_;
  std::uint32_t logit_rows_;
  std::vector<std::uint32_t> dealt_;
};

}  // namespace

std::vector<std::uint32_t> plan_pass(std::span<const Demand> demands, const PassBounds& bounds,
                                     std::size_t first) {
  Dealer dealer(demands, bounds);
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const std::size_t index = (first + i) % demands.size();
    if (demands[index].queued == 1) dealer.give(index, 1);
    if (demands[index].queued > 1) waiting.push_back(index);
  }
  // Equal shares; what some do not use is dealt out again among the others.
  while (!waiting.empty() && dealer.tokens_left() > 0) {
    const std::uint32_t share =
        std::max<std::uint32_t>(1, dealer.tokens_left() / static_cast<std::uint32_t>(waiting.size()));
    std::erase_if(waiting, [&](std::size_t index) { return dealer.give(index, share) < share; });
  }
  return std::move(dealer).dealt();
}

}  // namespace kvasir::engine
