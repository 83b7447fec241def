// One rounding and denormal mode on every computing thread (P2: the same bits, whatever the host program
// set).
#pragma once

#include <cstdint>

namespace kvasir::base {

// While it lives, the calling thread rounds to nearest, traps nothing and keeps denormals. Restores what it
// found.
class FloatingPointMode {
 public:
  FloatingPointMode() noexcept;
  ~FloatingPointMode();
  FloatingPointMode(const FloatingPointMode&) = delete;
  FloatingPointMode& operator=(const FloatingPointMode&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace kvasir::base
