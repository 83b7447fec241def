#include "parallel/beside.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

namespace kvasir::parallel {
namespace {

TEST(Beside, DoesOnePieceAfterTheOtherOnOneThread) {
  std::atomic<int> at_once = 0;
  int done = 0;  // no two touch it at once
  std::thread::id where;
  Beside beside;
  EXPECT_TRUE(beside.wait().has_value());
  for (int i = 0; i < 500; ++i) {
    const Status begun = beside.begin([&]() -> Status {
      EXPECT_EQ(at_once++, 0);
      if (done == 0) where = std::this_thread::get_id();
      EXPECT_EQ(std::this_thread::get_id(), where);
      ++done;
      --at_once;
      return {};
    });
    ASSERT_TRUE(begun.has_value());
  }
  EXPECT_TRUE(beside.wait().has_value());
  EXPECT_EQ(done, 500);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Beside, BeginsNothingAfterAnError) {
  Beside beside;
  ASSERT_TRUE(beside.begin([]() -> Status { return fail(Outcome::kIo, "the disk is full"); }).has_value());
  bool again = false;
  const Status begun = beside.begin([&]() -> Status {
    again = true;
    return {};
  });
  EXPECT_EQ(begun.error().code(), Outcome::kIo);
  EXPECT_EQ(beside.wait().error().message(), "the disk is full");
  EXPECT_FALSE(again);
}

TEST(Beside, AnswersWhereMemoryEnds) {
  Beside beside;
  ASSERT_TRUE(beside.begin([]() -> Status { throw std::bad_alloc(); }).has_value());
  EXPECT_EQ(beside.wait().error().code(), Outcome::kOutOfMemory);
}

TEST(Beside, EndsAfterTheWorkAtHand) {
  bool done = false;
  {
    Beside beside;
    const Status begun = beside.begin([&]() -> Status {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done = true;
      return {};
    });
    ASSERT_TRUE(begun.has_value());
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace kvasir::parallel
