// How long a pass takes, learned from those that ran.
#pragma once

#include <cstdint>

namespace kvasir::engine {

// time = fixed + tokens x each, fitted by least squares in which older passes count less and less. Not
// thread-safe. A pure function of what it was told, so that a simulation can drive it.
class CostModel {
 public:
  // A pass of so many tokens (at least 1) took so long.
  void observe(std::uint64_t tokens, std::int64_t ns) noexcept;

  // Nothing is known before the first pass.
  [[nodiscard]] bool known() const noexcept { return weight_ > 0; }

  // Nanoseconds that a pass of so many tokens will take; 0 while nothing is known.
  [[nodiscard]] std::int64_t predict(std::uint64_t tokens) const noexcept;

  // The most tokens, from `least` to `most`, that a pass of so many nanoseconds can have; `most` while
  // nothing is known.
  [[nodiscard]] std::uint64_t tokens_within(std::int64_t ns, std::uint64_t least,
                                            std::uint64_t most) const noexcept;

 private:
  struct Line {
    double fixed = 0;
    double each = 0;
  };
  [[nodiscard]] Line fit() const noexcept;

  // Sums over passes, weighted.
  double weight_ = 0;
  double tokens_ = 0;
  double tokens_squared_ = 0;
  double ns_ = 0;
  double tokens_ns_ = 0;
};

}  // namespace kvasir::engine
