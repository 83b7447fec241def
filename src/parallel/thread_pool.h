// The one thread pool. Work is a range of items that do not depend on one another; threads take chunks of it.
// Each thread has a share of chunks that follow one another, so that what it reads lies ahead of it in
// memory; who is through with its own goes on with those of others.
//
// Invariants
//   T1  Which thread runs an item, and beside which others, never shows in a result: items write disjoint
//   places. T2  Every computing thread, the caller included, runs under base::FloatingPointMode.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kvasir/result.h"
#include "parallel/turns.h"

namespace kvasir::parallel {

// A range [begin, end) of items to be done by one thread. Must not throw.
using RangeFunction = std::function<void(std::size_t begin, std::size_t end)>;

// Any number of callers may share one: their works take turns (T3).
class ThreadPool {
 public:
  // A pool of `threads` threads, the caller of run() being one of them. kInvalidArgument below 1 or above
  // kMaxThreads; kOutOfMemory where the system starts no more. Threads that are more than the processors this
  // process may use are right and no faster: they sleep where others look out for work.
  static constexpr int kMaxThreads = 1024;
  [[nodiscard]] static Result<std::unique_ptr<ThreadPool>> create(int threads);

  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Does items [0, items) in chunks of `chunk` (at least 1) and returns when all are done; it waits for no
  // thread that has none of them. One caller at a time; others wait for their turn. Allocates nothing.
  void run(std::size_t items, std::size_t chunk, const RangeFunction& work);

  [[nodiscard]] int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

 private:
  // Chunks of one thread's share. A line of the cache for each: they are counted down at once.
  struct alignas(64) Share {
    // The number of the run in the upper half, and how many of its chunks nobody has taken yet in the lower:
    // a thread that was late takes none of a run that it did not see.
    std::atomic<std::uint64_t> open{0};
    std::uint32_t end = 0;  // the chunk behind its last; written while no chunk is open
  };

  ThreadPool(int threads, int spins);
  void work_until_stopped(std::size_t self);
  void take_chunks(std::size_t self) noexcept;
  bool take_chunk(std::size_t self) noexcept;
  bool take_from(Share& share) noexcept;
  void call_sleepers(std::size_t count);
  template <class Ready>
  bool spin_until(const Ready& ready) const;

  const int spins_;  // looks before a thread sleeps
  Turns turns_;      // the caller of run() has one while its work goes on

  std::atomic<int> sleepers_{0};  // workers that wait to be called
  std::atomic<bool> stop_{false};
  std::vector<Share> shares_;  // [thread]: the caller's first

  // The work at hand. Written while no chunk is open, read by threads that have taken one: until that is
  // done, the work goes on. What all read and what all write at its end are lines of their own, since
  // processors pass a line among them only one after the other.
  alignas(64) std::atomic<std::uint32_t> runs_{0};  // so many have begun
  const RangeFunction* work_ = nullptr;
  std::size_t items_ = 0;
  std::size_t chunk_ = 1;
  alignas(64) std::atomic<std::uint32_t> undone_{0};  // chunks that are not said to be finished

  alignas(64) base::Mutex
      sleep_;  // for workers that have looked in vain, and for a caller that waits for the last chunk
  base::Condition wake_;
  base::Condition done_;

  std::vector<std::thread> workers_;
};

}  // namespace kvasir::parallel
