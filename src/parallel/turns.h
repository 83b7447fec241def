// Who goes next of several threads that come again and again for one thing, each for a while.
//
// A mutex goes to whoever asks in the right microsecond, which is the thread that has just let go of it and
// comes back; one that sleeps may wait for seconds. Strict turns would give one that comes for a tenth of a
// millisecond as much waiting as ten of those who come for one. So a holder may come back while its slice
// lasts, and then the one that has waited longest is next.
//
// Invariants
//   T3  Whoever waits is overtaken by those that came before it, each for at most a slice and what it does
//       last in it, and by nobody else.
#pragma once

#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace kvasir::parallel {

// Any thread. One at a time is between begin() and end(), which a thread calls in turn.
class Turns {
 public:
  // `slice`, in nanoseconds of `clock`, counts from when somebody begins to wait for the holder.
  Turns(std::int64_t slice, const base::Clock& clock) noexcept : slice_(slice), clock_(&clock) {}

  // Waits for a turn.
  void begin();
  void end();

  // Threads that wait.
  [[nodiscard]] std::uint64_t waiting() const;

 private:
  [[nodiscard]] bool goes_on() const noexcept KVASIR_REQUIRES(mutex_);
  void take(std::thread::id holder) noexcept KVASIR_REQUIRES(mutex_);

  const std::int64_t slice_;
  const base::Clock* clock_;

  mutable base::Mutex mutex_;
  base::Condition free_;
  bool taken_ KVASIR_GUARDED_BY(mutex_) = false;
  std::thread::id holder_ KVASIR_GUARDED_BY(mutex_);      // who has it or had it last
  std::int64_t slice_end_ KVASIR_GUARDED_BY(mutex_) = 0;  // while somebody waits
  std::uint64_t came_ KVASIR_GUARDED_BY(mutex_) = 0;      // threads that had to wait, ever
  std::uint64_t went_on_ KVASIR_GUARDED_BY(mutex_) = 0;   // those of them that wait no more
};

// A turn for as long as it lives.
class Turn {
 public:
  explicit Turn(Turns& turns) : turns_(&turns) { turns.begin(); }
  ~Turn() { turns_->end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Turns* turns_;
};

}  // namespace kvasir::parallel
