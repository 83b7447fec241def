// What the executor's long calls share: jobs of the engine that begin and end under its lock, and touch cells
// between two jobs of a pass. For the files of the executor alone.
#pragma once

#include <memory>
#include <utility>

#include "engine/executor.h"
#include "kvasir/result.h"

namespace kvasir::engine {

// A job of the engine that ends under the executor's lock.
template <class Job>
class Executor::Held {
 public:
  explicit Held(Executor& executor) : executor_(&executor) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { reset(); }

  void reset() noexcept {
    if (job_ == nullptr) return;
    const Entered held(*executor_);
    job_.reset();
    executor_->changed();
  }
  void set(std::unique_ptr<Job> job) noexcept { job_ = std::move(job); }
  [[nodiscard]] Job* operator->() const noexcept { return job_.get(); }
  [[nodiscard]] Job& operator*() const noexcept { return *job_; }

 private:
  Executor* executor_;
  std::unique_ptr<Job> job_;
};

// Copies cells with everyone kept out and no job running; kWrongState once the executor is closed.
template <class Copy>
auto Executor::copy_between_jobs(const Copy& copy) -> decltype(copy()) {
  const Entered held(*this);
  if (Status open = check_open(); !open) return fail(std::move(open).error());
  const Copying bytes(*this);
  return copy();
}

}  // namespace kvasir::engine
