#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace kvasir::base {
namespace {

std::string encoded(std::uint32_t point) {
  std::string bytes;
  const auto put = [&](std::uint32_t byte) { bytes += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 63));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 63));
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  }
  return bytes;
}

TEST(Utf8, TakesEveryCodePointButSurrogatesAndNothingCutShort) {
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    const std::string bytes = encoded(point);
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    ASSERT_EQ(utf8_sequence(bytes), surrogate ? 0 : bytes.size()) << point;
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(utf8_sequence(std::string_view(bytes).substr(0, cut)), 0U) << point;
    }
  }
  EXPECT_EQ(utf8_sequence(encoded(0x110000)), 0U);
  EXPECT_EQ(utf8_sequence(""), 0U);
}

// Every string of three bytes, and of a lead byte of four with each second byte, against the standard's
// definition: a sequence is well-formed when it decodes to a code point whose shortest form it is.
TEST(Utf8, TakesNothingElse) {
  const auto well_formed = [](const std::string& bytes, std::size_t length) {
    const auto at = [&](std::size_t i) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
    };
    std::uint32_t point = length == 1 ? at(0) : at(0) & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) point = point << 6 | (at(i) & 63);
    return point <= 0x10FFFF && encoded(point) == bytes.substr(0, length) &&
           !(point >= 0xD800 && point <= 0xDFFF);
  };
  for (std::uint32_t first = 0; first < 256; ++first) {
    for (std::uint32_t second = 0; second < 256; ++second) {
      for (const std::uint32_t third : {0x00U, 0x7FU, 0x80U, 0x9FU, 0xA0U, 0xBFU, 0xC0U, 0xFFU}) {
        const std::string bytes = {static_cast<char>(first), static_cast<char>(second),
                                   static_cast<char>(third), static_cast<char>(0x80)};
        std::size_t expected = 0;
        for (std::size_t length = 1; length <= 4 && expected == 0; ++length) {
          if (well_formed(bytes, length)) expected = length;
        }
        ASSERT_EQ(utf8_sequence(bytes), expected) << first << ' ' << second << ' ' << third;
      }
    }
  }
}

TEST(Utf8, JudgesWholeTexts) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\xA6"));
  EXPECT_FALSE(is_utf8("fine \xC3"));
  EXPECT_FALSE(is_utf8("\x80 fine"));
}

TEST(Utf8, ShowsWhatATerminalMustNotObey) {
  EXPECT_EQ(printable("plain \xC3\xBC", 100), "plain \xC3\xBC");
  EXPECT_EQ(printable("\x1B[2J\r\n\t\x7F", 100), "\\x1B[2J\\x0D\\x0A\\x09\\x7F");
  EXPECT_EQ(printable("\xC2\x9B", 100), "\\xC2\\x9B");
  EXPECT_EQ(printable("\xFF\xC3", 100), "\\xFF\\xC3");
  EXPECT_EQ(printable(std::string_view("\0", 1), 100), "\\x00");
}

TEST(Utf8, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "abc...");
  EXPECT_EQ(printable("ab\xC3\xBC", 3), "ab...");
  EXPECT_EQ(printable("ab\xC3\xBC", 4), "ab\xC3\xBC");
  EXPECT_EQ(printable("a", 0), "...");
}

}  // namespace
}  // namespace kvasir::base
