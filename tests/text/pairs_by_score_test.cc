// SentencePiece-style vocabularies: ids derived by hand, and a naive twin.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;

// Ids: bytes from 3, then these from 259 on.
VocabularyFile small() {
  VocabularyFile file = sentence_piece();
  file.token("▁", -1).token("a", -2).token("b", -3).token("c", -4);  // 259 to 262
  file.token("ab", -10).token("bc", -5).token("▁a", -6).token("abc", -20).token("▁abc", -7);
  return file;
}

TEST(PairsByScore, TakesTheBestPairFirst) {
  const auto tokenizer = small().set_flag("add_space_prefix", false).must_load();
  // bc (-5) goes before ab (-10), and abc (-20) is then a with bc.
  EXPECT_EQ(ids_of(*tokenizer, "abc"), (Ids{266}));
  EXPECT_EQ(ids_of(*tokenizer, "abb"), (Ids{263, 261}));
  EXPECT_EQ(ids_of(*tokenizer, "bcc"), (Ids{264, 262}));
}

TEST(PairsByScore, TakesTheLeftmostOfEqualPairs) {
  VocabularyFile file = sentence_piece().set_flag("add_space_prefix", false);
  file.token("a").token("aa");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "aaaaa"), (Ids{260, 260, 259}));
}

TEST(PairsByScore, PutsASpaceBeforeATextAndAfterSpecialTokens) {
  const auto tokenizer = small().must_load();
  // ▁a (-6) loses to bc (-5), and ▁abc is ▁a with bc.
  EXPECT_EQ(ids_of(*tokenizer, "abc"), (Ids{267}));
  EXPECT_EQ(ids_of(*tokenizer, " abc"), (Ids{259, 267}));
  EXPECT_EQ(ids_of(*tokenizer, "abc</s>abc", {.parse_special = true}), (Ids{267, 2, 267}));
  EXPECT_EQ(ids_of(*tokenizer, ""), Ids{});
  EXPECT_EQ(ids_of(*tokenizer, "", {.add_begin_end = true}), (Ids{1}));
}

TEST(PairsByScore, SpellsCharactersWithoutATokenInBytes) {
  const auto tokenizer = small().set_flag("add_space_prefix", false).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "aé\n"), (Ids{260, 3 + 0xC3, 3 + 0xA9, 3 + 0x0A}));
  EXPECT_EQ(ids_of(*tokenizer,
                   "\xFF"
                   "a\xE4\xBD"),
            (Ids{3 + 0xFF, 260, 3 + 0xE4, 3 + 0xBD}));
  EXPECT_EQ(text_of(*tokenizer, {260, 3 + 0xC3, 3 + 0xA9}), "aé");
}

TEST(PairsByScore, WithoutByteTokensACharacterIsUnknownOnce) {
  VocabularyFile file("llama");
  file.token("<unk>", 0, Type::kUnknown).token("<s>", 0, Type::kControl).token("</s>", 0, Type::kControl);
  file.token("a").token("x", 0, Type::kNormal).set_flag("add_space_prefix", false);
  const auto tokenizer = file.must_load();
  std::uint64_t left_out = 7;
  const auto ids = tokenizer->tokenize("a日x", {}, &left_out);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, (Ids{3, 0, 4}));
  EXPECT_EQ(left_out, 0U);
}

TEST(PairsByScore, LeavesOutWhatHasNoTokenAtAllAndSaysHowMuch) {
  VocabularyFile file("llama");
  file.token("a").set_flag("add_space_prefix", false).set_flag("add_bos_token", false);
  file.set("tokenizer.ggml.unknown_token_id", gguf::Value::scalar(std::int32_t{-1}));
  const auto tokenizer = file.must_load();
  std::uint64_t left_out = 0;
  const auto ids = tokenizer->tokenize("a日a", {}, &left_out);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, (Ids{0, 0}));
  EXPECT_EQ(left_out, 3U);
}

TEST(PairsByScore, OrdinaryTextNeverBecomesAControlToken) {
  VocabularyFile file = sentence_piece().set_flag("add_space_prefix", false);
  // Every step on the way to "</s>" is a token, so merging alone would get there.
  file.token("<").token("/").token("s").token(">").token("</").token("s>", 1).token("<s");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "</s>"), (Ids{263, 264}));
  EXPECT_EQ(ids_of(*tokenizer, "<s>"), (Ids{259, 264}));
  EXPECT_EQ(ids_of(*tokenizer, "</s>", {.parse_special = true}), (Ids{2}));
}

TEST(PairsByScore, ReadsSpacesBackAndDropsTheOneItPutThere) {
  const auto tokenizer = small().must_load();
  EXPECT_EQ(text_of(*tokenizer, {267, 259, 265}), "abc  a");
  EXPECT_EQ(text_of(*tokenizer, {1, 267}), "<s> abc");
  const auto rest = tokenizer->detokenize(Ids{267}, {.continues = true});
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, " abc");
  EXPECT_EQ(*tokenizer->piece(267), " abc");
  EXPECT_EQ(*tokenizer->piece(3 + 0x41), "A");
}

TEST(PairsByScore, GemmaPutsNoSpaceBeforeATextAndFindsItsUserDefinedTokens) {
  VocabularyFile file = sentence_piece().set_flag("add_space_prefix", false);
  file.token("a")
      .token("▁")
      .token("▁a")
      .token("\n\n", 0, Type::kUserDefined)
      .token("  ", 0, Type::kUserDefined);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a a\n\na   a"), (Ids{259, 261, 262, 259, 263, 261}));
  EXPECT_EQ(text_of(*tokenizer, {261, 262, 263}), " a\n\n  ");
}

// The naive twin: of all neighbours that make a token, merge the best and leftmost, until none is left.
Ids naive(const VocabularyFile& file, const std::string& text) {
  std::map<std::string, Token> ids;
  for (std::size_t i = 259; i < file.tokens().size(); ++i) ids[file.tokens()[i]] = static_cast<Token>(i);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : 3;
    parts.push_back(text.substr(at, length) == " " ? "▁" : text.substr(at, length));
    at += length;
  }
  for (;;) {
    std::optional<std::size_t> best;
    float best_score = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ids.find(parts[i] + parts[i + 1]);
      if (found == ids.end()) continue;
      const float score = file.scores()[static_cast<std::size_t>(found->second)];
      if (!best || score > best_score) best = i, best_score = score;
    }
    if (!best) break;
    parts[*best] += parts[*best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
  Ids result;
  for (const std::string& part : parts) {
    if (const auto found = ids.find(part); found != ids.end()) {
      result.push_back(found->second);
    } else {
      for (const char byte : part) result.push_back(3 + static_cast<unsigned char>(byte));
    }
  }
  return result;
}

TEST(PairsByScore, MergesAsANaiveTwinDoesOverRandomVocabulariesAndTexts) {
  const std::vector<std::string> units = {"a", "b", "c", "é", "日", " ", "▁"};
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    VocabularyFile file = sentence_piece().set_flag("add_space_prefix", false);
    std::map<std::string, bool> seen;
    for (int i = 0; i < 40; ++i) {
      std::string piece = random.text({"a", "b", "c", "é", "日", "▁"}, 1 + random.below(4));
      if (std::exchange(seen[piece], true)) continue;
      // Few different scores, so that many are equal; both signs, and both zeros.
      file.token(piece, static_cast<float>(static_cast<int>(random.below(7)) - 3) *
                            (random.below(2) == 0 ? 1.0F : -1.0F));
    }
    const auto tokenizer = file.must_load();
    for (int i = 0; i < 40; ++i) {
      const std::string text = random.text(units, random.below(30));
      EXPECT_EQ(ids_of(*tokenizer, text), naive(file, text)) << text;
    }
  }
}

}  // namespace
}  // namespace kvasir::text::test
