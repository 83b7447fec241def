#include "parallel/turns.h"

namespace kvasir::parallel {

void Turns::begin() {
  const std::thread::id self = std::this_thread::get_id();
  const base::Lock lock(mutex_);
  const bool nobody_waits = came_ == went_on_;
  if (!taken_ && (nobody_waits || (holder_ == self && goes_on()))) return take(self);
  if (nobody_waits) slice_end_ = clock_->now_ns() + slice_;
  for (const std::uint64_t turn = came_++; taken_ || went_on_ != turn;) free_.wait(mutex_);
  ++went_on_;
  slice_end_ = clock_->now_ns() + slice_;
  take(self);
}

void Turns::end() {
  const base::Lock lock(mutex_);
  taken_ = false;
  // All of them: only the first that came may go on, and it may be any.
  if (came_ != went_on_) free_.notify_all();
}

std::uint64_t Turns::waiting() const {
  const base::Lock lock(mutex_);
  return came_ - went_on_;
}

bool Turns::goes_on() const noexcept {
  return clock_->now_ns() < slice_end_;
}

void Turns::take(std::thread::id holder) noexcept {
  taken_ = true;
  holder_ = holder;
}

}  // namespace kvasir::parallel
