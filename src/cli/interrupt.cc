#include "cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace kvasir::cli {
namespace {

// Signals this soon after the first are of the same request: who ends a whole group of processes, as
// timeout(1) and terminals do, often sends one to the process and another to the group.
constexpr std::int64_t kSameRequestNs = 300'000'000;

std::atomic<bool> signalled{false};
std::atomic<std::int64_t> signalled_ns{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may use only such atomics");

std::int64_t monotonic_ns() noexcept {
  timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

extern "C" void note_signal(int number) {
  const std::int64_t now = monotonic_ns();
  if (!signalled.exchange(true, std::memory_order_relaxed)) {
    signalled_ns.store(now, std::memory_order_relaxed);
  } else if (now - signalled_ns.load(std::memory_order_relaxed) > kSameRequestNs) {
    (void)std::signal(number, SIG_DFL);
    (void)std::raise(number);  // arrives when this handler returns
  }
}

}  // namespace

void watch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  // The handler is one for all: another signal must not come between its flag and its time.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&action.sa_mask, number);
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
