#include "engine/cost_model.h"

#include <algorithm>

namespace kvasir::engine {
namespace {

// What a pass counts for when the next one is observed: some thirty passes are remembered.
constexpr double kFading = 0.97;

}  // namespace

void CostModel::observe(std::uint64_t tokens, std::int64_t ns) noexcept {
  const auto x = static_cast<double>(tokens);
  const auto y = static_cast<double>(std::max<std::int64_t>(ns, 0));
  weight_ = weight_ * kFading + 1;
  tokens_ = tokens_ * kFading + x;
  tokens_squared_ = tokens_squared_ * kFading + x * x;
  ns_ = ns_ * kFading + y;
  tokens_ns_ = tokens_ns_ * kFading + x * y;
}

CostModel::Line CostModel::fit() const noexcept {
  if (weight_ <= 0) return {};
  const double mean_tokens = tokens_ / weight_;
  const double mean_ns = ns_ / weight_;
  const double spread = tokens_squared_ / weight_ - mean_tokens * mean_tokens;
  // Passes of one size only tell nothing about another: all is taken to grow with the tokens, which errs on
  // the side of shorter passes.
  if (spread < 0.25) return {0, mean_ns / std::max(mean_tokens, 1.0)};
  const double slope = (tokens_ns_ / weight_ - mean_tokens * mean_ns) / spread;
  const double each = std::clamp(slope, 0.0, mean_ns / std::max(mean_tokens, 1.0));
  return {std::max(0.0, mean_ns - each * mean_tokens), each};
}

std::int64_t CostModel::predict(std::uint64_t tokens) const noexcept {
  const Line line = fit();
  return static_cast<std::int64_t>(line.fixed + line.each * static_cast<double>(tokens));
}

std::uint64_t CostModel::tokens_within(std::int64_t ns, std::uint64_t least,
                                       std::uint64_t most) const noexcept {
  const Line line = fit();
  if (!known() || line.each <= 0) return most;
  const double room = (static_cast<double>(ns) - line.fixed) / line.each;
  if (room <= static_cast<double>(least)) return least;
  if (room >= static_cast<double>(most)) return most;
  return static_cast<std::uint64_t>(room);
}

}  // namespace kvasir::engine
