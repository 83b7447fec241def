#include "parallel/thread_pool.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <chrono>
#include <numeric>

namespace kvasir::parallel {
namespace {

TEST(ThreadPool, DoesEveryItemExactlyOnce) {  // T1
  for (const int threads : {1, 2, 3, 7}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.has_value());
    EXPECT_EQ(threads, (*pool)->threads());
    for (const std::size_t items : {0, 1, 2, 63, 1000}) {
      for (const std::size_t chunk : {1, 5, 64, 5000}) {
        std::vector<std::atomic<int>> done(items);
        (*pool)->run(items, chunk, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) ++done[i];
        });
        for (std::size_t i = 0; i < items; ++i)
          ASSERT_EQ(1, done[i]) << items << " by " << chunk << ": " << i;
      }
    }
  }
}

TEST(ThreadPool, RunsThousandsOfSmallWorksAfterOneAnother) {
  auto pool = ThreadPool::create(4);
  ASSERT_TRUE(pool.has_value());
  std::atomic<std::size_t> sum = 0;
  for (int round = 0; round < 5000; ++round) {
    (*pool)->run(8, 1, [&](std::size_t begin, std::size_t) { sum += begin; });
  }
  EXPECT_EQ(5000u * 28u, sum);
}

// K73: more threads than processors, and several pools at once, always finish.
TEST(ThreadPool, FinishesWithManyMoreThreadsThanProcessorsAndBesideOtherPools) {
  std::vector<std::thread> callers;
  std::atomic<std::size_t> done = 0;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      auto pool = ThreadPool::create(16);
      ASSERT_TRUE(pool.has_value());
      for (int round = 0; round < 300; ++round) {
        (*pool)->run(40, 1, [&](std::size_t begin, std::size_t end) { done += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(3u * 300u * 40u, done);
}

// A thread that was late for one work must not take part of the next with the numbers of the last.
TEST(ThreadPool, KeepsWorksOfChangingSizesApart) {
  auto pool = ThreadPool::create(5);
  ASSERT_TRUE(pool.has_value());
  for (std::size_t round = 0; round < 3000; ++round) {
    const std::size_t items = 2 + round * 7 % 61;
    const std::size_t chunk = 1 + round % 3;
    std::vector<std::atomic<std::size_t>> marks(items);
    (*pool)->run(items, chunk, [&](std::size_t begin, std::size_t end) {
      ASSERT_LE(end, items);
      for (std::size_t i = begin; i < end; ++i) marks[i] += round + 1;
    });
    for (std::size_t i = 0; i < items; ++i) ASSERT_EQ(round + 1, marks[i]) << round << ": " << i;
  }
}

// Whoever has the first item waits until all others are done: the other thread takes what it left.
TEST(ThreadPool, GoesOnWithTheShareOfAThreadThatIsHeldUp) {
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.has_value());
  constexpr std::size_t kItems = 40;
  std::atomic<std::size_t> done = 0;
  std::atomic<bool> given_up = false;
  (*pool)->run(kItems, 1, [&](std::size_t begin, std::size_t) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (begin == 0 && done < kItems - 1 && !given_up) {
      if (std::chrono::steady_clock::now() > limit) given_up = true;
    }
    ++done;
  });
  EXPECT_EQ(done, kItems);
  EXPECT_FALSE(given_up);
}

TEST(ThreadPool, LetsSeveralCallersTakeTurns) {
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.has_value());
  std::atomic<int> done = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        (*pool)->run(10, 1, [&](std::size_t, std::size_t) { ++done; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(4 * 200 * 10, done);
}

// T2: whatever rounding mode the host program set, items round to nearest, and the host's mode is back
// afterwards.
TEST(ThreadPool, ComputesInOneRoundingModeOnEveryThread) {
  auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.has_value());
  ASSERT_EQ(0, std::fesetround(FE_UPWARD));
  std::atomic<int> nearest = 0;
  const volatile float one = 1.0f;
  const volatile float tiny = 1e-20f;
  (*pool)->run(64, 1, [&](std::size_t, std::size_t) { nearest += one + tiny == 1.0f ? 1 : 0; });
  EXPECT_LT(1.0f, one + tiny) << "the host's own mode rounds up";
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(64, nearest);
  EXPECT_EQ(FE_UPWARD, after);
}

TEST(ThreadPool, RefusesAThreadCountThatMakesNoSense) {
  for (const int threads : {0, -1, ThreadPool::kMaxThreads + 1}) {
    const auto pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool.has_value());
    EXPECT_EQ(Outcome::kInvalidArgument, pool.error().code());
  }
}

}  // namespace
}  // namespace kvasir::parallel
