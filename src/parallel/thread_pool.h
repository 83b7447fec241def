// The one thread pool. Work is a range of items that do not depend on one another; threads take chunks of it.
//
// Invariants
//   T1  Which thread runs an item, and beside which others, never shows in a result: items write disjoint
//   places. T2  Every computing thread, the caller included, runs under base::FloatingPointMode.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::parallel {

// A range [begin, end) of items to be done by one thread. Must not throw.
using RangeFunction = std::function<void(std::size_t begin, std::size_t end)>;

class ThreadPool {
 public:
  // A pool of `threads` threads, the caller of run() being one of them. kInvalidArgument below 1 or above
  // kMaxThreads; kOutOfMemory where the system starts no more.
  static constexpr int kMaxThreads = 1024;
  [[nodiscard]] static Result<std::unique_ptr<ThreadPool>> create(int threads);

  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Does items [0, items) in chunks of `chunk` (at least 1) and returns when all are done. One caller at a
  // time; others wait for their turn. Allocates nothing.
  void run(std::size_t items, std::size_t chunk, const RangeFunction& work);

  [[nodiscard]] int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

 private:
  ThreadPool() = default;
  void work_until_stopped();
  void take_chunks() noexcept;

  std::mutex turn_;  // held by the caller of run() while its work goes on

  // The work at hand. Written by run() before it raises generation_, read by workers after they saw it
  // raised.
  const RangeFunction* work_ = nullptr;
  std::size_t items_ = 0;
  std::size_t chunk_ = 1;
  std::atomic<std::size_t> next_{0};

  std::atomic<unsigned> generation_{0};  // raised once for each run
  std::atomic<int> busy_{0};             // workers that have not finished this run
  std::atomic<bool> stop_{false};

  std::mutex sleep_;  // for workers that have spun in vain, and for a caller that waits for the last of them
  std::condition_variable wake_;
  std::condition_variable done_;

  std::vector<std::thread> workers_;
};

}  // namespace kvasir::parallel
