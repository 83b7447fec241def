#include "kvasir/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/try.h"

namespace kvasir {
namespace {

constexpr int kOutcomes = 17;

TEST(Outcome, KeepsItsNumbersAndNames) {
  // Both are part of the interface: other programs decide by them.
  constexpr const char* kNames[kOutcomes] = {
      "done",          "idle",           "suspended",        "no space",    "stalled",   "busy",
      "needs prompt",  "cancelled",      "invalid argument", "wrong state", "not found", "unsupported",
      "out of memory", "compute failed", "corrupt",          "I/O",         "internal"};
  for (int i = 0; i < kOutcomes; ++i) EXPECT_EQ(outcome_name(static_cast<Outcome>(i)), kNames[i]);
  EXPECT_EQ(static_cast<int>(Outcome::kInternal), kOutcomes - 1);
}

TEST(Outcome, HasANameForNumbersThatAreNone) {
  EXPECT_FALSE(outcome_name(static_cast<Outcome>(200)).empty());
}

Result<int> half(int number) {
  if (number % 2 != 0) {
    return fail(Outcome::kInvalidArgument, std::to_string(number) + " is odd",
                {.wanted = static_cast<std::uint64_t>(number), .limit = 2, .setting = "--even"});
  }
  return number / 2;
}

Result<int> quarter(int number) {
  KVASIR_ASSIGN(const int once, half(number));
  KVASIR_ASSIGN(const int twice, half(once));
  return twice;
}

Status check_quarter(int number, bool* reached) {
  KVASIR_TRY(quarter(number));
  *reached = true;
  return {};
}

TEST(Result, CarriesAValueOrAnErrorWithItsNumbers) {
  EXPECT_EQ(half(4).value(), 2);
  const Result<int> odd = half(3);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(odd.error().message(), "3 is odd");
  EXPECT_EQ(odd.error().numbers().wanted, 3U);
  EXPECT_EQ(odd.error().numbers().available, std::nullopt);
  EXPECT_EQ(odd.error().numbers().limit, 2U);
  EXPECT_EQ(odd.error().numbers().setting, "--even");
}

TEST(Result, ReturnsEarlyWithTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
  EXPECT_EQ(quarter(5).error().message(), "5 is odd");
  bool reached = false;
  EXPECT_TRUE(check_quarter(4, &reached));
  EXPECT_TRUE(reached);
  reached = false;
  EXPECT_EQ(check_quarter(2, &reached).error().message(), "1 is odd");
  EXPECT_FALSE(reached);
}

Result<std::unique_ptr<int>> owned(int number) {
  return std::make_unique<int>(number);
}

Result<int> unwrapped(int number) {
  KVASIR_ASSIGN(const std::unique_ptr<int> pointer, owned(number));
  return *pointer;
}

TEST(Result, PassesOnWhatCanOnlyBeMoved) {
  EXPECT_EQ(unwrapped(7).value(), 7);
}

TEST(Error, GetsAContextAndKeepsTheRest) {
  const Error error(Outcome::kIo, "no luck", {.wanted = 1, .available = 2});
  const Error within = error.within("file 'x'");
  EXPECT_EQ(within.message(), "file 'x': no luck");
  EXPECT_EQ(within.code(), Outcome::kIo);
  EXPECT_EQ(within.numbers().wanted, 1U);
  EXPECT_EQ(within.numbers().available, 2U);
  EXPECT_EQ(error.message(), "no luck");
}

}  // namespace
}  // namespace kvasir
