// Rows come back by themselves, are used again, and may outlive their pool.

#include "engine/row_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "support/allocations.h"

namespace kvasir::engine {
namespace {

TEST(RowPool, UsesARowAgainOnceItsLastHolderHasLetGo) {
  RowPool pool(100);
  std::shared_ptr<Row> row = pool.take();
  ASSERT_EQ(row->size(), 100U);
  const Row* const place = row.get();
  const std::shared_ptr<const Row> other = row;
  row.reset();
  EXPECT_NE(pool.take().get(), place) << "R1: it is held";
}

// A weak pointer keeps the counts, and with them the slot.
TEST(RowPool, KeepsARowThatIsOnlyWatched) {
  RowPool pool(10);
  const Row* place = nullptr;
  {
    std::weak_ptr<const Row> watching;
    {
      const std::shared_ptr<const Row> row = pool.take();
      watching = row;
      place = row.get();
    }
    EXPECT_TRUE(watching.expired());
    EXPECT_NE(pool.take().get(), place);
  }
  EXPECT_EQ(pool.take()->size(), 10U);
}

TEST(RowPool, TakesNoMemoryForRowsThatCameBack) {
  RowPool pool(1000);
  std::set<const Row*> places;
  for (int i = 0; i < 5; ++i) places.insert(pool.take().get());
  EXPECT_EQ(places.size(), 1U);
  const test::AllocationFault fault(0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.take().get(), *places.begin());
  EXPECT_FALSE(fault.fired());
}

TEST(RowPool, LetsRowsOutliveIt) {
  std::optional<RowPool> pool(10);
  const std::shared_ptr<Row> row = pool->take();
  pool.reset();
  row->assign(10, 2.0F);
  EXPECT_EQ(row->at(9), 2.0F);
}

TEST(RowPool, TakesRowsBackFromAnyThread) {
  RowPool pool(64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2'000; ++i) {
        const std::shared_ptr<Row> row = pool.take();
        row->front() = static_cast<float>(t);
        ASSERT_EQ(row->front(), static_cast<float>(t)) << "nobody else writes it";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kvasir::engine
