// WordPiece vocabularies (BERT): cases derived by hand from BERT's published rules. There are no recorded ids
// for this kind.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;

// [UNK] 0, [CLS] 1, [SEP] 2, then text from 3 on. A token that begins a word has U+2581 before it.
VocabularyFile bert(const std::vector<std::string>& tokens) {
  VocabularyFile file("bert");
  file.token("[UNK]", 0, Type::kUnknown).token("[CLS]", 0, Type::kControl).token("[SEP]", 0, Type::kControl);
  for (const std::string& token : tokens) file.token(token);
  return file;
}

TEST(WordPiece, SpellsWordsGreedilyInTheLongestTokens) {
  const auto tokenizer = bert({"▁un", "aff", "able", "▁unaff", "a", "ble", "▁a"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "unaffable"), (Ids{6, 5}));
  EXPECT_EQ(ids_of(*tokenizer, "  un  a\n"), (Ids{3, 9}));
  EXPECT_EQ(ids_of(*tokenizer, ""), Ids{});
}

TEST(WordPiece, AWordThatCannotBeSpelledToItsEndIsUnknownAsAWhole) {
  const auto tokenizer = bert({"▁un", "aff"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "unaffx un"), (Ids{0, 3}));
}

TEST(WordPiece, PunctuationSignsAndIdeographsAreWordsOfTheirOwn) {
  const auto tokenizer = bert({"▁a", "▁,", "▁日", "▁本", "▁$", "▁。", "▁b"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a,b"), (Ids{3, 4, 9}));
  EXPECT_EQ(ids_of(*tokenizer, "日本"), (Ids{5, 6}));
  EXPECT_EQ(ids_of(*tokenizer, "a$a。"), (Ids{3, 7, 3, 8}));
}

TEST(WordPiece, LowersCaseAndStripsAccentsUnlessTheFileSaysNot) {
  VocabularyFile file = bert({"▁cafe", "▁Café", "▁café", "▁über"});
  const auto uncased = file.must_load();
  EXPECT_EQ(ids_of(*uncased, "Café CAFÉ cafe\u0301"), (Ids{3, 3, 3}));
  file.set_flag("normalizer.lowercase", false);
  const auto cased = file.must_load();
  EXPECT_EQ(ids_of(*cased, "Café"), (Ids{4}));
  file.set_flag("normalizer.lowercase", true).set_flag("normalizer.strip_accents", false);
  const auto accented = file.must_load();
  EXPECT_EQ(ids_of(*accented, "CAFÉ Über"), (Ids{5, 6}));
}

TEST(WordPiece, DecomposesHangulAndKeepsSpacingMarks) {
  const auto tokenizer = bert({"▁ᄒ", "ᅡ", "ᆫ", "▁क", "ि"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "한 कि"), (Ids{3, 4, 5, 6, 7}));
}

TEST(WordPiece, DropsControlCharactersAndWhatIsNotUtf8) {
  const auto tokenizer = bert({"▁ab"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer,
                   "a\x01\u200D"
                   "b a\xFF"
                   "b a\uFFFD"
                   "b"),
            (Ids{3, 3, 3}));
  EXPECT_EQ(ids_of(*tokenizer, "ab\u00A0ab\u3000ab\tab"), (Ids{3, 3, 3, 3}));
}

TEST(WordPiece, PutsTheClassAndTheSeparatorAroundAText) {
  const auto tokenizer = bert({"▁a"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a", {.add_begin_end = true}), (Ids{1, 3, 2}));
  EXPECT_EQ(tokenizer->begin_token(), 1);
  EXPECT_EQ(tokenizer->end_token(), 2);
  const auto bare =
      bert({"▁a"}).set_flag("add_bos_token", false).set_flag("add_sep_token", false).must_load();
  EXPECT_EQ(ids_of(*bare, "a", {.add_begin_end = true}), (Ids{3}));
}

TEST(WordPiece, OrdinaryTextNeverBecomesAControlToken) {
  const auto tokenizer = bert({"▁[", "▁cls", "▁]"}).must_load();
  EXPECT_EQ(ids_of(*tokenizer, "[CLS]"), (Ids{3, 4, 5}));
  EXPECT_EQ(ids_of(*tokenizer, "[CLS]", {.parse_special = true}), (Ids{1}));
}

TEST(WordPiece, ReadsTokensBackWithASpaceBeforeEachWord) {
  const auto tokenizer = bert({"▁un", "aff"}).must_load();
  EXPECT_EQ(text_of(*tokenizer, {1, 3, 4, 3, 2}), "[CLS] unaff un[SEP]");
}

}  // namespace
}  // namespace kvasir::text::test
