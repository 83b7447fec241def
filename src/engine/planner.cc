#include "engine/planner.h"

#include <algorithm>
#include <utility>

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kPassesBetweenPieces = 8;

// What is left of a pass while it is dealt out.
class Dealer {
 public:
  // `dealt`, one for each demand, is what it deals.
  Dealer(std::span<const Demand> demands, const PassBounds& bounds, std::vector<std::uint32_t>& dealt)
      : demands_(demands), tokens_(bounds.tokens), logit_rows_(bounds.logit_rows) {
    dealt.assign(demands.size(), 0);
    dealt_ = dealt;
  }

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

 private:
  std::span<const Demand> demands_;
  std::uint32_t tokens_;
  std::uint32_t logit_rows_;
  std::span<std::uint32_t> dealt_;
};

// Who would wait too long if he had to wait any longer: of `who`, all of one priority and longest waiting
// first. One a pass can be served at least, so the r-th of them needs his turn r passes before it is too late
// for him.
std::size_t urgent(std::span<const Demand> demands, std::span<const std::size_t> who) {
  const std::uint64_t bound = std::max<std::uint64_t>(kPassesBetweenPieces, who.size());
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < who.size(); ++rank) {
    const std::uint64_t waited = demands[who[rank]].waited;
    // Of rank + 1 conversations, all but (bound - 1 - waited) must be served in this pass.
    const std::uint64_t passes_left = bound - 1 - std::min(waited, bound - 1);
    if (rank + 1 > passes_left) count = std::max<std::size_t>(count, rank + 1 - passes_left);
  }
  return count;
}

// Equal shares of `tokens`; what some do not use is dealt out again among the others. Answers what is left;
// `waiting` has then served.
std::uint32_t share_out(Dealer& dealer, std::vector<std::size_t>& waiting, std::uint32_t tokens) {
  while (!waiting.empty() && tokens > 0 && dealer.tokens_left() > 0) {
    const std::uint32_t at_hand = std::min(tokens, dealer.tokens_left());
    const std::uint32_t share =
        std::max<std::uint32_t>(1, at_hand / static_cast<std::uint32_t>(waiting.size()));
    std::erase_if(waiting, [&](std::size_t index) {
      const std::uint32_t wanted = std::min(share, tokens);
      const std::uint32_t got = dealer.give(index, wanted);
      tokens -= got;
      return got < share;
    });
  }
  return tokens;
}

}  // namespace

void plan_pass(std::span<const Demand> demands, const PassBounds& bounds, std::size_t first, PassPlan& plan) {
  std::vector<std::size_t>& order = plan.order;
  order.clear();
  order.reserve(demands.size());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const std::size_t index = (first + i) % demands.size();
    if (demands[index].queued > 0) order.push_back(index);
  }
  // Equals stay in turn: the place in `order` decides among them.
  const auto place = [&](std::size_t index) {
    return (index + demands.size() - first % demands.size()) % demands.size();
  };
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (demands[a].priority != demands[b].priority) return demands[a].priority > demands[b].priority;
    if (demands[a].waited != demands[b].waited) return demands[a].waited > demands[b].waited;
    return place(a) < place(b);
  });
  Dealer dealer(demands, bounds, plan.shares);
  const auto class_end = [&](std::size_t begin) {
    std::size_t end = begin;
    while (end < order.size() && demands[order[end]].priority == demands[order[begin]].priority) ++end;
    return end;
  };
  for (std::size_t begin = 0; begin < order.size(); begin = class_end(begin)) {
    const std::span<const std::size_t> equals = std::span(order).subspan(begin, class_end(begin) - begin);
    for (const std::size_t index : equals.first(urgent(demands, equals))) dealer.give(index, 1);
  }
  bool generating = false;
  for (const std::size_t index : order) {
    if (demands[index].queued != 1) continue;
    dealer.give(index, 1);
    generating = true;
  }
  std::uint32_t tokens = generating ? bounds.prompt_tokens : bounds.tokens;
  for (std::size_t begin = 0; begin < order.size(); begin = class_end(begin)) {
    plan.prompts.clear();
    for (std::size_t i = begin; i < class_end(begin); ++i) {
      if (demands[order[i]].queued > 1) plan.prompts.push_back(order[i]);
    }
    tokens = share_out(dealer, plan.prompts, tokens);
  }
}

}  // namespace kvasir::engine
