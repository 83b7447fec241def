#include "base/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kvasir::base {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Bytes, AreWrittenLeastSignificantFirst) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.number(std::uint8_t{1});
  out.number(std::uint16_t{0x0302});
  out.number(std::uint32_t{0x07060504});
  out.signed_number(-2);
  out.text("ab");
  EXPECT_EQ(bytes, bytes_of({1,    2,    3, 4, 5, 6, 7, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                             0xFF, 0xFF, 2, 0, 0, 0, 0, 0,    0,    0,    'a',  'b'}));
}

TEST(Bytes, AreReadAsTheyWereWritten) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.number(std::numeric_limits<std::uint64_t>::max() - 5);
  out.signed_number(std::numeric_limits<std::int64_t>::min());
  out.number(std::uint8_t{1});
  out.text("word");
  const std::vector<float> floats = {0.5F, -1e30F};
  const std::vector<std::int32_t> integers = {-1, 7, 1 << 30};
  out.floats(floats);
  out.integers(integers);
  ByteReader in(bytes);
  EXPECT_EQ(*in.number<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max() - 5);
  EXPECT_EQ(*in.signed_number(), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(*in.flag());
  EXPECT_EQ(*in.text(), "word");
  EXPECT_EQ(*in.floats(2), floats);
  EXPECT_EQ(*in.integers(3), integers);
  EXPECT_TRUE(in.end().has_value());
}

TEST(Bytes, ThatEndTooEarlyAreRefusedBeforeMemoryIsTaken) {
  const std::vector<std::byte> all_ones(15, std::byte{0xFF});
  EXPECT_EQ(ByteReader(all_ones).count(1).error().code(), Outcome::kCorrupt);
  EXPECT_EQ(ByteReader(all_ones).text().error().code(), Outcome::kCorrupt);
  EXPECT_EQ(ByteReader(all_ones).floats(std::uint64_t{1} << 63).error().code(), Outcome::kCorrupt);
  EXPECT_EQ(ByteReader(all_ones).integers(4).error().code(), Outcome::kCorrupt);
  EXPECT_EQ(ByteReader(all_ones).take(16).error().numbers().available, 15U);
  ByteReader in{std::span(all_ones).first(7)};
  EXPECT_EQ(in.number<std::uint64_t>().error().code(), Outcome::kCorrupt);
  EXPECT_EQ(in.left(), 7U) << "nothing is taken by what fails";
}

TEST(Bytes, ThatAreLeftOverAreRefused) {
  const std::vector<std::byte> two(2);
  ByteReader in(two);
  EXPECT_FALSE(*in.flag());
  EXPECT_FALSE(in.end().has_value());
}

TEST(Bytes, AreNoFlagUnlessTheyAreZeroOrOne) {
  const std::vector<std::byte> two = bytes_of({2});
  EXPECT_EQ(ByteReader(two).flag().error().code(), Outcome::kCorrupt);
}

}  // namespace
}  // namespace kvasir::base
