#include "gguf/value.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kvasir::gguf {
namespace {

template <class T>
Value array(std::vector<T> elements) {
  return Value::array(std::span<const T>(elements));
}

TEST(GgufValue, AnswersIntegersOfEveryWidthWhereTheyFit) {
  EXPECT_EQ(Value::scalar<std::uint8_t>(255).as_uint(), 255U);
  EXPECT_EQ(Value::scalar<std::int8_t>(-1).as_int(), -1);
  EXPECT_EQ(Value::scalar<std::int8_t>(-1).as_uint(), std::nullopt);
  EXPECT_EQ(Value::scalar<std::uint16_t>(65535).as_int(), 65535);
  EXPECT_EQ(Value::scalar<std::int16_t>(-32768).as_int(), -32768);
  EXPECT_EQ(Value::scalar<std::uint32_t>(4294967295U).as_uint(), 4294967295U);
  EXPECT_EQ(Value::scalar<std::int32_t>(-5).as_uint(), std::nullopt);
  const auto largest = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(Value::scalar(largest).as_uint(), largest);
  EXPECT_EQ(Value::scalar(largest).as_int(), std::nullopt);
  EXPECT_EQ(Value::scalar<std::int64_t>(INT64_MIN).as_int(), INT64_MIN);
}

TEST(GgufValue, AnswersAnyNumberAsAFloat) {
  EXPECT_EQ(Value::scalar(0.5F).as_float(), 0.5);
  EXPECT_EQ(Value::scalar(1e300).as_float(), 1e300);
  EXPECT_EQ(Value::scalar<std::int8_t>(-3).as_float(), -3.0);
  EXPECT_EQ(Value::scalar(std::numeric_limits<std::uint64_t>::max()).as_float(), 18446744073709551616.0);
  EXPECT_EQ(Value::scalar(true).as_float(), std::nullopt);
  EXPECT_EQ(Value::string("1").as_float(), std::nullopt);
}

TEST(GgufValue, KeepsBoolsNumbersAndStringsApart) {
  EXPECT_EQ(Value::scalar(true).as_bool(), true);
  EXPECT_EQ(Value::scalar(true).as_uint(), std::nullopt);
  EXPECT_EQ(Value::scalar<std::uint8_t>(1).as_bool(), std::nullopt);
  EXPECT_EQ(Value::scalar(1.0).as_int(), std::nullopt);
  EXPECT_EQ(Value::string("text").as_string(), "text");
  EXPECT_EQ(Value::string("").as_string(), "");
  EXPECT_EQ(Value::scalar(1.0).as_string(), std::nullopt);
}

TEST(GgufValue, AnswersTheElementsOfArrays) {
  const Value numbers = array<std::int16_t>({-1, 300});
  EXPECT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers.element_type(), ValueType::kInt16);
  EXPECT_EQ(numbers.int_at(0), -1);
  EXPECT_EQ(numbers.uint_at(0), std::nullopt);
  EXPECT_EQ(numbers.uint_at(1), 300U);
  EXPECT_EQ(numbers.float_at(1), 300.0);
  EXPECT_EQ(numbers.int_at(2), std::nullopt);
  EXPECT_EQ(numbers.int_at(UINT64_MAX), std::nullopt);
  EXPECT_EQ(numbers.as_int(), std::nullopt);

  const std::vector<std::string> texts = {"", "a", "bc"};
  const Value strings = Value::strings(std::span<const std::string>(texts));
  EXPECT_EQ(strings.size(), 3U);
  EXPECT_EQ(strings.string_at(0), "");
  EXPECT_EQ(strings.string_at(2), "bc");
  EXPECT_EQ(strings.string_at(3), std::nullopt);
  EXPECT_EQ(strings.int_at(0), std::nullopt);
  EXPECT_EQ(strings.as_string(), std::nullopt);
  EXPECT_EQ(Value::strings(std::span<const std::string_view>()).size(), 0U);
}

TEST(GgufValue, AnswersArraysInPlaceOnlyAsTheirOwnType) {
  const Value floats = array<float>({1, 2, 3});
  const auto elements = floats.elements<float>();
  ASSERT_TRUE(elements);
  EXPECT_EQ(std::vector<float>(elements->begin(), elements->end()), std::vector<float>({1, 2, 3}));
  EXPECT_FALSE(floats.elements<std::uint32_t>());
  EXPECT_FALSE(Value::scalar(1.0F).elements<float>());
}

TEST(GgufValue, IsItsOwnElementZeroUnlessItIsAnArray) {
  const Value number = Value::scalar<std::uint32_t>(7);
  EXPECT_EQ(number.size(), 1U);
  EXPECT_EQ(number.uint_at(0), 7U);
  EXPECT_EQ(number.uint_at(1), std::nullopt);
  EXPECT_EQ(Value::string("x").string_at(0), "x");
  EXPECT_EQ(Value::string("x").string_at(1), std::nullopt);
}

TEST(GgufValue, HoldsArraysOfArraysToTheDepthThatIsRead) {
  Value nested = array<std::uint8_t>({1});
  for (int depth = 2; depth <= kMaxArrayDepth; ++depth) {
    auto deeper = Value::arrays({nested, nested});
    ASSERT_TRUE(deeper);
    nested = *std::move(deeper);
    EXPECT_EQ(nested.depth(), depth);
  }
  EXPECT_EQ(nested.array_at(1)->depth(), kMaxArrayDepth - 1);
  EXPECT_EQ(nested.array_at(2), nullptr);
  const auto refused = Value::arrays({nested});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(refused.error().numbers().limit, static_cast<std::uint64_t>(kMaxArrayDepth));
}

TEST(GgufValue, RefusesAnArrayOfArraysThatHoldsAnythingElse) {
  const auto refused = Value::arrays({array<std::uint8_t>({}), Value::scalar(1.0)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(refused.error().message(), "an array of arrays cannot hold a value of type float64");
}

TEST(GgufValue, AnswersNothingOfAValueThatWasMovedAway) {
  Value text = Value::string("a string that is too long to lie within");
  Value number = Value::scalar(1.5);
  Value array_of_texts = Value::strings(std::vector<std::string_view>{"a", "b"});
  const Value holders[] = {std::move(text), std::move(number), std::move(array_of_texts)};
  EXPECT_EQ(holders[2].string_at(1), "b");
  // What is left answers nothing, and reads nothing that is gone.
  EXPECT_EQ(number.as_float(), std::nullopt);            // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(array_of_texts.string_at(0), std::nullopt);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(array_of_texts.size(), 0U);                  // NOLINT(bugprone-use-after-move)
}

TEST(GgufValue, ComparesTypeAndBytes) {
  EXPECT_EQ(Value::scalar<std::uint8_t>(1), Value::scalar<std::uint8_t>(1));
  EXPECT_NE(Value::scalar<std::uint8_t>(1), Value::scalar<std::int8_t>(1));
  EXPECT_NE(array<float>({0.0F}), array<float>({-0.0F}));
  EXPECT_EQ(array<float>({std::numeric_limits<float>::quiet_NaN()}),
            array<float>({std::numeric_limits<float>::quiet_NaN()}));
}

}  // namespace
}  // namespace kvasir::gguf
