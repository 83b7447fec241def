#include "parallel/thread_pool.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "base/fp_mode.h"

namespace kvasir::parallel {
namespace {

// Looks before a thread sleeps. Short, because on a machine with fewer free cores than threads a spinning
// thread keeps the one it waits for from running.
constexpr int kSpins = 2000;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `ready`, at most kSpins times; says whether it came true.
template <class Ready>
bool spin_until(const Ready& ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return true;
    relax();
  }
  return ready();
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return fail(
        Outcome::kInvalidArgument,
        "threads must be from 1 to " + std::to_string(kMaxThreads) + ", not " + std::to_string(threads),
        {.limit = kMaxThreads, .setting = "--threads"});
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool());
  try {
    pool->workers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i)
      pool->workers_.emplace_back([p = pool.get()] { p->work_until_stopped(); });
  } catch (const std::system_error&) {
    return fail(Outcome::kOutOfMemory,
                "the system starts no more than " + std::to_string(pool->threads()) + " threads",
                {.wanted = static_cast<std::uint64_t>(threads),
                 .available = static_cast<std::uint64_t>(pool->threads()),
                 .setting = "--threads"});
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(sleep_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(std::size_t items, std::size_t chunk, const RangeFunction& work) {
  if (items == 0) return;
  const std::lock_guard turn(turn_);
  const base::FloatingPointMode mode;
  chunk = std::max<std::size_t>(chunk, 1);
  if (workers_.empty() || items <= chunk) {
    work(0, items);
    return;
  }
  work_ = &work;
  items_ = items;
  chunk_ = chunk;
  next_ = 0;
  busy_ = static_cast<int>(workers_.size());
  {
    const std::lock_guard lock(sleep_);
    ++generation_;
  }
  wake_.notify_all();
  take_chunks();
  if (spin_until([&] { return busy_ == 0; })) return;
  std::unique_lock lock(sleep_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

void ThreadPool::take_chunks() noexcept {
  while (true) {
    const std::size_t begin = next_.fetch_add(chunk_);
    if (begin >= items_) return;
    (*work_)(begin, std::min(items_, begin + chunk_));
  }
}

void ThreadPool::work_until_stopped() {
  const base::FloatingPointMode mode;
  unsigned seen = 0;
  while (true) {
    const auto called = [&] { return generation_ != seen || stop_; };
    if (!spin_until(called)) {
      std::unique_lock lock(sleep_);
      wake_.wait(lock, called);
    }
    if (stop_) return;
    seen = generation_;
    take_chunks();
    if (--busy_ == 0) {
      // Under the lock, so that a caller between its last look and its wait is not missed.
      const std::lock_guard lock(sleep_);
      done_.notify_one();
    }
  }
}

}  // namespace kvasir::parallel
