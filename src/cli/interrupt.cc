#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace kvasir::cli {
namespace {

std::atomic<bool> signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may use only such atomics");

extern "C" void note_signal(int /*number*/) {
  signalled.store(true, std::memory_order_relaxed);
}

}  // namespace

void watch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  // SIGINT is taken even where it was ignored: shells start background jobs that way, and who sends it means
  // it.
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &action, nullptr);
  }
}

bool interrupted() noexcept {
  return signalled.load(std::memory_order_relaxed);
}

}  // namespace kvasir::cli
