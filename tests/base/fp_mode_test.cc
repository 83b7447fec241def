#include "base/fp_mode.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <latch>
#include <limits>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kvasir::base {
namespace {

// Computed where the compiler cannot know the mode.
[[gnu::noinline]] float third(float one) {
  volatile float three = 3.0F;
  return one / three;
}

[[gnu::noinline]] float halved(float number) {
  volatile float two = 2.0F;
  return number / two;
}

constexpr float kSmallestNormal = std::numeric_limits<float>::min();

TEST(FloatingPointMode, RoundsToNearestWhateverTheHostChoseAndGivesItsChoiceBack) {
  const float nearest = third(1.0F);
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(rounding), 0);
    const float host_up = third(1.0F);
    const float host_down = third(-1.0F);
    {
      const FloatingPointMode mode;
      EXPECT_EQ(third(1.0F), nearest);
      EXPECT_EQ(third(-1.0F), -nearest);
    }
    EXPECT_EQ(third(1.0F), host_up);
    EXPECT_EQ(third(-1.0F), host_down);
    EXPECT_TRUE(host_up != nearest || host_down != -nearest) << "the host's mode showed nothing";
    EXPECT_EQ(std::fegetround(), rounding);
  }
  std::fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
TEST(FloatingPointMode, KeepsDenormalsWhateverTheHostChoseAndGivesItsChoiceBack) {
  constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
  const unsigned found = _mm_getcsr();
  _mm_setcsr(found | kFlushAndDenormalsAreZero);
  const float host = halved(kSmallestNormal);
  float inside = 0;
  {
    const FloatingPointMode mode;
    inside = halved(kSmallestNormal);
  }
  const float after = halved(kSmallestNormal);
  _mm_setcsr(found);
  EXPECT_EQ(host, 0.0F);
  EXPECT_EQ(inside, std::numeric_limits<float>::denorm_min() * (1 << 22));
  EXPECT_EQ(after, 0.0F);
}

TEST(FloatingPointMode, TrapsNothing) {
  constexpr unsigned kAllExceptionsTrap = 0x1F80;  // mask bits: set means masked
  const unsigned found = _mm_getcsr();
  _mm_setcsr(found & ~kAllExceptionsTrap & ~0x3FU);
  float infinite = 0;
  {
    const FloatingPointMode mode;
    volatile float zero = 0.0F;
    infinite = 1.0F / zero;
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(found);
  EXPECT_EQ(infinite, std::numeric_limits<float>::infinity());
  EXPECT_EQ(after & kAllExceptionsTrap, 0U) << "the host's traps are back";
}
#endif

TEST(FloatingPointMode, IsOfOneThread) {
  const float nearest = third(-1.0F);
  std::latch host_has_mode(1);
  std::latch mode_is_set(1);
  float other = 0;
  std::thread host([&] {
    std::fesetround(FE_UPWARD);
    host_has_mode.count_down();
    mode_is_set.wait();
    other = third(-1.0F);
  });
  host_has_mode.wait();
  const FloatingPointMode mode;
  mode_is_set.count_down();
  host.join();
  EXPECT_EQ(third(-1.0F), nearest);
  EXPECT_GT(other, nearest) << "the other thread keeps its own mode";
}

TEST(FloatingPointMode, CanLieInsideAnother) {
  const float nearest = third(-1.0F);
  const FloatingPointMode outer;
  std::fesetround(FE_UPWARD);
  const float up = third(-1.0F);
  {
    const FloatingPointMode inner;
    EXPECT_EQ(third(-1.0F), nearest);
  }
  EXPECT_EQ(third(-1.0F), up);
  EXPECT_GT(up, nearest);
}

}  // namespace
}  // namespace kvasir::base
