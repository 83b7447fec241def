// RWKV's world vocabularies: cases derived by hand, and a naive twin. There are no recorded ids for this
// kind.

#include "text/longest_match.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;

TEST(LongestMatch, ReadsTheEscapesOfFiles) {
  EXPECT_EQ(unescape("a\\tb\\n\\r\\\\ \\'"), "a\tb\n\r\\ '");
  EXPECT_EQ(unescape("\\xff\\x0A\\xE6"), "\xFF\x0A\xE6");
  EXPECT_EQ(unescape("\\x4"), "x4");  // no two digits: the character itself
  EXPECT_EQ(unescape("\\xg1"), "xg1");
  EXPECT_EQ(unescape("a\\"), "a\\");
  EXPECT_EQ(unescape(""), "");
}

TEST(LongestMatch, TakesTheLongestTokenAtEachPlace) {
  VocabularyFile file("rwkv");
  file.token("<s>", 0, Type::kControl)
      .token("a")
      .token("ab")
      .token("abcd")
      .token("b")
      .token("c")
      .token("\\n");
  const auto tokenizer = file.must_load();
  // abcd does not fit, so the walk goes back to ab.
  EXPECT_EQ(ids_of(*tokenizer, "abcabcd\nb"), (Ids{2, 5, 3, 6, 4}));
  EXPECT_EQ(text_of(*tokenizer, {2, 6, 0}), "ab\n<s>");
}

TEST(LongestMatch, WorksOnBytesThatAreNoCharacters) {
  VocabularyFile file("rwkv");
  file.token("<s>", 0, Type::kControl).token("\\xe6").token("\\x97\\xa5").token("日\\xff");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "日"), (Ids{1, 2}));
  EXPECT_EQ(ids_of(*tokenizer, "日\xFF"), (Ids{3}));
  EXPECT_EQ(text_of(*tokenizer, {1, 2}), "日");
}

TEST(LongestMatch, LeavesOutWhatHasNoTokenAndCountsIt) {
  VocabularyFile file("rwkv");
  file.token("<s>", 0, Type::kControl).token("a").token("bcd");
  const auto tokenizer = file.must_load();
  std::uint64_t left_out = 0;
  EXPECT_EQ(*tokenizer->tokenize("abca", {}, &left_out), (Ids{1, 1}));
  EXPECT_EQ(left_out, 2U);
  const auto knowing = file.set_id("unknown_token_id", 0).must_load();
  EXPECT_EQ(ids_of(*knowing, "abca"), (Ids{1, 0, 0, 1}));
}

TEST(LongestMatch, AddsNothingAroundATextUnlessTheFileSaysSo) {
  VocabularyFile file("rwkv");
  file.token("<s>", 0, Type::kControl).token("a").set_id("bos_token_id", 0);
  EXPECT_EQ(ids_of(*file.must_load(), "a", {.add_begin_end = true}), (Ids{1}));
  EXPECT_EQ(ids_of(*file.set_flag("add_bos_token", true).must_load(), "a", {.add_begin_end = true}),
            (Ids{0, 1}));
}

TEST(LongestMatch, MatchesAsANaiveTwinDoesOverRandomVocabulariesAndTexts) {
  Random random(9);
  for (int round = 0; round < 50; ++round) {
    VocabularyFile file("rwkv");
    std::map<std::string, Token> ids;
    for (int i = 0; i < 20; ++i) {
      const std::string token = random.text({"a", "b", "é"}, 1 + random.below(5));
      if (!ids.try_emplace(token, static_cast<Token>(ids.size())).second) continue;
      file.token(token);
    }
    const auto tokenizer = file.must_load();
    for (int i = 0; i < 30; ++i) {
      const std::string text = random.text({"a", "b", "é"}, random.below(20));
      Ids expected;
      for (std::size_t at = 0; at < text.size();) {
        std::size_t length = text.size() - at;
        while (length > 0 && !ids.contains(text.substr(at, length))) --length;
        if (length > 0) expected.push_back(ids.at(text.substr(at, length)));
        at += std::max<std::size_t>(1, length);
      }
      EXPECT_EQ(ids_of(*tokenizer, text), expected) << text;
    }
  }
}

}  // namespace
}  // namespace kvasir::text::test
