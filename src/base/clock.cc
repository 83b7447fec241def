#include "base/clock.h"

#include <sys/random.h>

#include <cerrno>
#include <chrono>

namespace kvasir::base {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const noexcept override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

class SystemEntropy final : public Entropy {
 public:
  [[nodiscard]] Status fill(std::span<std::byte> into) override {
    while (!into.empty()) {
      const ssize_t got = ::getrandom(into.data(), into.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return fail(Outcome::kIo, "the system gave no random bytes; give a seed");
      into = into.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

Entropy& system_entropy() {
  static SystemEntropy entropy;
  return entropy;
}

}  // namespace kvasir::base
