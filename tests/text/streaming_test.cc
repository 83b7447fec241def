// Ids to text as they come.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Everything that a stream says for these ids; every chunk must be whole characters.
std::string stream(const Tokenizer& tokenizer, const Ids& ids, const StreamOptions& options = {}) {
  StreamingDetokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const Token id : ids) {
    const auto chunk = detokenizer.feed(id);
    if (!chunk) {
      ADD_FAILURE() << chunk.error().message();
      continue;
    }
    EXPECT_TRUE(options.raw_bytes || base::is_utf8(*chunk));
    text += *chunk;
  }
  text += detokenizer.finish();
  EXPECT_EQ(detokenizer.finish(), "");
  return text;
}

Ids bytes_as_ids(std::string_view bytes) {
  Ids ids;
  for (const char byte : bytes) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

TEST(StreamingDetokenizer, K52NeverSplitsACharacterWhereverItsTokensDo) {
  for (const std::string character : {"é", "日", "😀"}) {
    // Each way to cut the character in two tokens, and all its bytes alone.
    for (std::size_t cut = 1; cut < character.size(); ++cut) {
      VocabularyFile file = byte_level("gpt-2");
      file.token(in_characters("x" + character.substr(0, cut)))
          .token(in_characters(character.substr(cut) + "y"));
      const auto tokenizer = file.must_load();
      StreamingDetokenizer detokenizer(*tokenizer);
      EXPECT_EQ(*detokenizer.feed(256), "x");
      EXPECT_EQ(*detokenizer.feed(257), character + "y");
      EXPECT_EQ(detokenizer.finish(), "");
      const Ids ids = bytes_as_ids(fmt::format("a{0}{0}b", character));
      EXPECT_EQ(stream(*tokenizer, ids), text_of(*tokenizer, ids));
      EXPECT_EQ(stream(*tokenizer, ids).find(kReplacement), std::string::npos);
    }
  }
}

TEST(StreamingDetokenizer, K52FlushesTheTailOfACutCharacterExactlyOnce) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  for (const std::string tail : {"\xC3", "\xE6\x97", "\xE6", "\xF0\x9F\x98", "\xF0\x9F", "\xF0"}) {
    StreamingDetokenizer detokenizer(*tokenizer);
    StreamingDetokenizer raw(*tokenizer, {.raw_bytes = true});
    EXPECT_EQ(*detokenizer.feed('a'), "a");
    EXPECT_EQ(*raw.feed('a'), "a");
    for (const Token id : bytes_as_ids(tail)) {
      EXPECT_EQ(*detokenizer.feed(id), "");
      EXPECT_EQ(*raw.feed(id), "");
    }
    EXPECT_EQ(detokenizer.finish(), kReplacement);
    EXPECT_EQ(detokenizer.finish(), "");
    EXPECT_EQ(raw.finish(), tail);
    EXPECT_EQ(raw.finish(), "");
    EXPECT_EQ(*detokenizer.feed('b'), "b");
  }
}

// The Unicode Standard's own examples of how many U+FFFD a sequence becomes (section 3.9, tables 3-8 to
// 3-11).
TEST(StreamingDetokenizer, K53MakesOneReplacementOfEachMaximalPart) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  const auto replaced = [&](std::string_view bytes) {
    std::string text = stream(*tokenizer, bytes_as_ids(bytes));
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const bool is_replacement = text.compare(at, 3, kReplacement) == 0;
      shown += is_replacement ? '?' : text[at];
      at += is_replacement ? 3 : 1;
    }
    return shown;
  };
  EXPECT_EQ(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "????????A");  // overlong
  EXPECT_EQ(replaced("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "????????A");  // surrogates
  EXPECT_EQ(replaced("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), "?????A??B");  // beyond the last, lone
  EXPECT_EQ(replaced("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "????A");      // cut short
}

TEST(StreamingDetokenizer, K53IsValidUtf8AndInRawBytesExactForAnyBytes) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  Random random(6);
  const std::vector<std::string> units = {"a",    "é",    "日",   "😀",   "\x80", "\xC3", "\xE0",    "\x9F",
                                          "\xED", "\xA0", "\xF4", "\x90", "\xFF", "\xC0", "\xF0\x9F"};
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random.text(units, random.below(12));
    const Ids ids = bytes_as_ids(bytes);
    const std::string text = stream(*tokenizer, ids);
    EXPECT_TRUE(base::is_utf8(text));
    if (base::is_utf8(bytes)) {
      EXPECT_EQ(text, bytes);
    }
    EXPECT_EQ(stream(*tokenizer, ids, {.raw_bytes = true}), bytes);
  }
}

TEST(StreamingDetokenizer, GoesOnFromAPromptUnlessItBeginsTheText) {
  VocabularyFile file = sentence_piece();
  file.token("▁a");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(stream(*tokenizer, {259, 259}), " a a");
  EXPECT_EQ(stream(*tokenizer, {259, 259}, {.whole_text = true}), "a a");
  EXPECT_EQ(stream(*tokenizer, {259, 259}, {.whole_text = true}), text_of(*tokenizer, {259, 259}));
}

TEST(StreamingDetokenizer, RefusesAnIdBeyondTheVocabularyAndStaysAsItWas) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  StreamingDetokenizer detokenizer(*tokenizer);
  EXPECT_EQ(*detokenizer.feed(0xC3), "");
  for (const Token id : {256, -1, INT32_MAX, INT32_MIN}) {
    const auto refused = detokenizer.feed(id);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
    EXPECT_NE(refused.error().message().find(std::to_string(id)), std::string::npos);
    EXPECT_NE(refused.error().message().find("256"), std::string::npos);
  }
  EXPECT_EQ(*detokenizer.feed(0xA9), "é");
}

}  // namespace
}  // namespace kvasir::text::test
