// Time and entropy behind interfaces, so that tests can set and fail them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvasir/result.h"

namespace kvasir::base {

// A monotonic clock. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary start; never goes back.
  [[nodiscard]] virtual std::int64_t now_ns() const noexcept = 0;
};

// Random bytes from outside, for seeds that nobody gave. Any thread.
class Entropy {
 public:
  virtual ~Entropy() = default;
  // Fills all of `into`, or kIo.
  [[nodiscard]] virtual Status fill(std::span<std::byte> into) = 0;
};

// The operating system's own. They live as long as the process.
[[nodiscard]] const Clock& system_clock();
[[nodiscard]] Entropy& system_entropy();

}  // namespace kvasir::base
