#include "parallel/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace kvasir::parallel {
namespace {

class SetClock final : public base::Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const noexcept override { return now; }
  std::atomic<std::int64_t> now = 0;
};

// A thread that waits for a turn, and says when it had it; it has begun to wait when this returns.
std::thread waiter(Turns& turns, std::string& order, char name) {
  const std::uint64_t before = turns.waiting();
  std::thread thread([&turns, &order, name] {
    const Turn turn(turns);
    order += name;
  });
  while (turns.waiting() == before) std::this_thread::yield();
  return thread;
}

TEST(Turns, GoToWhoeverHasWaitedLongestWhenTheSliceIsOver) {  // T3
  for (int round = 0; round < 50; ++round) {
    SetClock clock;
    Turns turns(10, clock);
    std::string order;
    std::vector<std::thread> threads;
    turns.begin();
    for (const char name : {'a', 'b', 'c', 'd'}) threads.push_back(waiter(turns, order, name));
    clock.now = 10;
    turns.end();
    turns.begin();  // comes back, too late
    order += '.';
    turns.end();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(order, "abcd.");
  }
}

// Who wakes up meanwhile may take a turn that is free; but the holder never waits for one that is.
TEST(Turns, AreTakenAgainWhileTheSliceLasts) {
  SetClock clock;
  Turns turns(10, clock);
  std::string order;
  turns.begin();
  std::thread other = waiter(turns, order, 'a');
  clock.now = 9;
  int again = 0;
  while (turns.waiting() > 0 && again < 1000) {
    turns.end();
    turns.begin();
    ++again;
  }
  EXPECT_GT(again, 0);
  clock.now = 10;
  turns.end();
  turns.begin();
  order += '.';
  turns.end();
  other.join();
  EXPECT_EQ(order, "a.");
}

// Whether a thread that has waited for its turn, with another still waiting, takes the next as well.
bool goes_on_after_waiting() {
  SetClock clock;
  Turns turns(10, clock);
  std::string order;
  turns.begin();
  std::thread first([&] {
    for (int i = 0; i < 2; ++i) {
      const Turn turn(turns);
      order += 'a';
    }
  });
  while (turns.waiting() < 1) std::this_thread::yield();
  std::thread second = waiter(turns, order, 'b');
  clock.now = 10;
  turns.end();
  first.join();
  second.join();
  return order == "aab";
}

// The other one may be awake in time, but seldom is.
TEST(Turns, GiveWhoeverHasWaitedASliceOfItsOwn) {
  int rounds = 0;
  while (rounds < 1000 && !goes_on_after_waiting()) ++rounds;
  EXPECT_LT(rounds, 1000);
}

TEST(Turns, AreFreeForAnybodyWhereNobodyWaits) {
  SetClock clock;
  Turns turns(10, clock);
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { const Turn turn(turns); }).join();
    const Turn turn(turns);
    EXPECT_EQ(turns.waiting(), 0U);
  }
}

// Threads that come back at once, each turn of which takes a fifth of a slice: none gets more than a slice,
// and what it does last in it, before all others had theirs.
TEST(Turns, NeverLetOneThreadHaveThemAll) {  // T3
  constexpr int kThreads = 3;
  constexpr int kTurns = 400;
  SetClock clock;
  Turns turns(5, clock);
  std::vector<int> holders;  // in turn
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (int name = 0; name < kThreads; ++name) {
    threads.emplace_back([&, name] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int i = 0; i < kTurns; ++i) {
        const Turn turn(turns);
        holders.push_back(name);
        // The others have come, as long as they have not had all of theirs.
        const bool all_at_work = i < kTurns / 2;
        while (all_at_work && holders.size() < std::size_t{kTurns} && turns.waiting() < kThreads - 1)
          std::this_thread::yield();
        ++clock.now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(holders.size(), std::size_t{kThreads * kTurns});
  int same = 1;
  for (std::size_t i = 1; i < std::size_t{kTurns} / 2; ++i) {
    same = holders[i] == holders[i - 1] ? same + 1 : 1;
    ASSERT_LE(same, 6) << "turn " << i;
  }
}

}  // namespace
}  // namespace kvasir::parallel
