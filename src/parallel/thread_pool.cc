#include "parallel/thread_pool.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/fp_mode.h"

namespace kvasir::parallel {
namespace {

// Looks before a thread sleeps, some tens of microseconds: longer than what lies between two jobs of a pass.
// A thread that has no processor of its own does not look: it would keep the one it waits for from running.
constexpr int kSpins = 2000;

// Nanoseconds for which a caller that comes back goes before those that wait: some jobs of a pass, so that
// little is lost by changing, and a small part of what a frame takes.
constexpr std::int64_t kSlice = 2'000'000;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::uint32_t chunks_in(std::uint64_t open) {
  return static_cast<std::uint32_t>(open);
}

}  // namespace

ThreadPool::ThreadPool(int threads, int spins)
    : spins_(spins), turns_(kSlice, base::system_clock()), shares_(static_cast<std::size_t>(threads)) {}

template <class Ready>
bool ThreadPool::spin_until(const Ready& ready) const {
  for (int i = 0; i < spins_; ++i) {
    if (ready()) return true;
    relax();
  }
  return ready();
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return fail(
        Outcome::kInvalidArgument,
        "threads must be from 1 to " + std::to_string(kMaxThreads) + ", not " + std::to_string(threads),
        {.limit = kMaxThreads, .setting = "--threads"});
  }
  const int spins = threads <= base::usable_processors() ? kSpins : 0;
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, spins));
  try {
    pool->workers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) {
      pool->workers_.emplace_back(
          [p = pool.get(), self = static_cast<std::size_t>(i)] { p->work_until_stopped(self); });
    }
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
    const base::Lock lock(sleep_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(std::size_t items, std::size_t chunk, const RangeFunction& work) {
  if (items == 0) return;
  const Turn turn(turns_);
  const base::FloatingPointMode mode;  // T2
  // So few chunks that they can be counted in half a word.
  chunk = std::max({chunk, std::size_t{1}, items / (std::size_t{1} << 31) + 1});
  if (workers_.empty() || items <= chunk) {
    work(0, items);
    return;
  }
  work_ = &work;
  items_ = items;
  chunk_ = chunk;
  const auto chunks = static_cast<std::uint32_t>(base::div_up(items, chunk));
  undone_ = chunks;
  const std::uint32_t run = runs_ + 1;
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const auto end = static_cast<std::uint32_t>(std::uint64_t{chunks} * (i + 1) / shares_.size());
    shares_[i].end = end;
    shares_[i].open = std::uint64_t{run} << 32 | (end - begin);
    begin = end;
  }
  runs_ = run;
  call_sleepers(chunks - 1);
  take_chunks(0);
  const auto all_done = [&] { return undone_ == 0; };
  if (spin_until(all_done)) return;
  const base::Lock lock(sleep_);
  while (!all_done()) done_.wait(sleep_);
}

// Either a worker that is about to sleep sees that a run has begun, or this sees that it sleeps.
void ThreadPool::call_sleepers(std::size_t count) {
  if (sleepers_ == 0) return;
  const base::Lock lock(sleep_);
  const auto sleeping = static_cast<std::size_t>(sleepers_.load());
  if (count >= sleeping) return wake_.notify_all();
  for (std::size_t i = 0; i < count; ++i) wake_.notify_one();
}

// Does chunks until nobody has one left, and then says so, once: a run does not end before, and a count that
// threads change with every chunk would be passed to and fro.
void ThreadPool::take_chunks(std::size_t self) noexcept {
  std::uint32_t done = 0;
  while (take_chunk(self)) ++done;
  if (done == 0 || undone_.fetch_sub(done) > done) return;
  // Under the lock, so that a caller between its last look and its wait is not missed.
  const base::Lock lock(sleep_);
  done_.notify_one();
}

// Does one chunk of its own share or, where that is empty, of the next that is not.
bool ThreadPool::take_chunk(std::size_t self) noexcept {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (take_from(shares_[(self + i) % shares_.size()])) return true;
  }
  return false;
}

bool ThreadPool::take_from(Share& share) noexcept {
  std::uint64_t open = share.open;
  do {
    if (chunks_in(open) == 0) return false;
  } while (!share.open.compare_exchange_weak(open, open - 1));
  const std::size_t begin = std::size_t{share.end - chunks_in(open)} * chunk_;
  (*work_)(begin, std::min(items_, begin + chunk_));  // a chunk is taken once (T1)
  return true;
}

void ThreadPool::work_until_stopped(std::size_t self) {
  const base::FloatingPointMode mode;  // T2
  std::uint32_t seen = 0;
  const auto called = [&] { return runs_ != seen || stop_; };
  while (true) {
    if (!spin_until(called)) {
      const base::Lock lock(sleep_);
      ++sleepers_;
      while (!called()) wake_.wait(sleep_);
      --sleepers_;
    }
    if (stop_) return;
    seen = runs_;
    take_chunks(self);
  }
}

}  // namespace kvasir::parallel
