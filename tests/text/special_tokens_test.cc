// Tokens that texts name: which are found, what they take along, which end a generation.

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include "text/special_matcher.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;
constexpr TokenizeOptions kSpecial = {.parse_special = true};

TEST(SpecialTokens, AreNamedByTextOnlyWhereItMay) {
  VocabularyFile file = byte_level("gpt-2");
  file.token("<c>", 0, Type::kControl).token("<?>", 0, Type::kUnknown).token("<u>", 0, Type::kUserDefined);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "<c><?><u>", kSpecial), (Ids{256, 257, 258}));
  // User-defined tokens are found in any text, control tokens and the unknown one are plain text here.
  EXPECT_EQ(ids_of(*tokenizer, "<c><?><u>"), (Ids{'<', 'c', '>', '<', '?', '>', 258}));
  EXPECT_TRUE(tokenizer->is_special(256) && tokenizer->is_special(257));
  EXPECT_FALSE(tokenizer->is_special(258) || tokenizer->is_special('a') || tokenizer->is_special(-1));
}

TEST(SpecialTokens, LongerNamesWinWhereverTheyStand) {
  VocabularyFile file = byte_level("gpt-2");
  file.token("<a>", 0, Type::kControl).token("><b", 0, Type::kControl).token("a><b>", 0, Type::kControl);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "<a><b>", kSpecial), (Ids{'<', 258}));
  EXPECT_EQ(ids_of(*tokenizer, "<a><b<a>", kSpecial), (Ids{256, '<', 'b', 256}));
}

TEST(SpecialTokens, TakeWhiteSpaceAlongInPhi3) {
  VocabularyFile file = sentence_piece();
  file.token("<|user|>", 0, Type::kControl).token("<|endoftext|>", 0, Type::kControl);
  file.token("a").token("▁").token("▁a", 1);
  file.set("general.name", gguf::Value::string("Phi-3 mini"));
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "<|user|> \n a", kSpecial), (Ids{259, 263}));
  EXPECT_EQ(ids_of(*tokenizer, "<|endoftext|> a", kSpecial), (Ids{260, 262, 263}));
  EXPECT_EQ(ids_of(*tokenizer, "</s>  a", kSpecial), (Ids{2, 263}));
  EXPECT_EQ(ids_of(*tokenizer, "<s> a", kSpecial), (Ids{1, 262, 263}));
  EXPECT_EQ(ids_of(*tokenizer, "<|user|> \n ", kSpecial), (Ids{259}));
}

TEST(SpecialTokens, AMaskTakesTheWhiteSpaceBeforeIt) {
  VocabularyFile file = byte_level("jina-v2-de");
  file.token("<mask>", 0, Type::kControl);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a  <mask> b", kSpecial), (Ids{'a', 256, ' ', 'b'}));
  EXPECT_EQ(ids_of(*tokenizer, " \n<mask>", kSpecial), (Ids{256}));
}

TEST(SpecialTokens, EndAGenerationByKeyAndByName) {
  VocabularyFile file = byte_level("llama-bpe");
  file.token("<stop>", 0, Type::kControl).token("<|eot_id|>", 0, Type::kControl).token("<|im_end|>");
  file.token("<turn>", 0, Type::kControl).token("<|start_header_id|>", 0, Type::kControl);
  file.set_id("bos_token_id", 260).set_id("eos_token_id", 256).set_id("eot_token_id", 259);
  const auto tokenizer = file.must_load();
  for (const Token id : {256, 257, 258, 259}) EXPECT_TRUE(tokenizer->ends_generation(id)) << id;
  for (const Token id : {0, 255, 260, -1, 261}) EXPECT_FALSE(tokenizer->ends_generation(id)) << id;
  // A name that ends generations is a control token, though the file calls it text.
  EXPECT_EQ(ids_of(*tokenizer, "<|im_end|>").size(), 10U);
  EXPECT_EQ(ids_of(*tokenizer, "<|im_end|>", kSpecial), (Ids{258}));
}

TEST(SpecialTokens, AFamilyThatUsesAnEndNameForSomethingElseKeepsIt) {
  VocabularyFile harmony = byte_level("gpt-4o");
  harmony.token("<|end|>", 0, Type::kControl).token("<|return|>", 0, Type::kControl);
  harmony.token("<|call|>", 0, Type::kControl).token("<|channel|>", 0, Type::kControl);
  const auto tokenizer = harmony.must_load();
  EXPECT_FALSE(tokenizer->ends_generation(256));
  EXPECT_TRUE(tokenizer->ends_generation(257) && tokenizer->ends_generation(258));
  EXPECT_FALSE(tokenizer->is_special(256) || tokenizer->is_special(259));

  VocabularyFile gemma("gemma4");
  gemma.token("</s>").token("<|tool_response>").token("<eos>", 0, Type::kControl).token("a").merge("a", "a");
  const auto other = gemma.must_load();
  EXPECT_FALSE(other->ends_generation(0));
  EXPECT_TRUE(other->ends_generation(1) && other->ends_generation(2));
}

TEST(SpecialTokens, FillingTokensAreControlTokensAndSomeEnd) {
  VocabularyFile file = byte_level("qwen2");
  file.token("<|fim_prefix|>").token("<fim_prefix>").token("<|fim_pad|>").token("<|file_sep|>");
  const auto tokenizer = file.must_load();
  EXPECT_TRUE(tokenizer->is_special(256));
  EXPECT_FALSE(tokenizer->is_special(257));  // one token of a kind, the first in the list of names
  EXPECT_FALSE(tokenizer->ends_generation(256));
  EXPECT_TRUE(tokenizer->ends_generation(258) && tokenizer->ends_generation(259));
}

// Case K50, for each kind: a special token before 'word', ' word', '  word' and a line end, at the start, in
// the middle and at the end. Expected by the kinds' rules: what follows is a text of its own.
struct Kind {
  const char* name;
  VocabularyFile file;
  Token token;       // named "<x>"
  Ids word;          // "word"
  Ids spaced;        // " word"
  Ids twice_spaced;  // "  word"
  Ids line_end;      // "\n"
};

std::vector<Kind> kinds() {
  VocabularyFile by_score = sentence_piece();
  by_score.token("<x>", 0, Type::kControl).token("▁").token("word").token("▁word", 1).token("wo").token("rd");
  by_score.token("w").token("o").token("r").token("d");
  VocabularyFile by_rank = byte_level("llama-bpe");
  by_rank.token("<x>", 0, Type::kControl)
      .token("word")
      .token("Ġword")
      .token("ĊĊ")
      .set_flag("add_bos_token", false);
  VocabularyFile unigram("t5");
  unigram.token("<pad>", 0, Type::kControl)
      .token("</s>", 0, Type::kControl)
      .token("<unk>", 0, Type::kUnknown);
  unigram.token("<x>", 0, Type::kControl).token("▁word", -1).token("▁", -3);
  unigram.set_flag("add_space_prefix", true).set_flag("remove_extra_whitespaces", true);
  VocabularyFile word_piece("bert");
  word_piece.token("[UNK]", 0, Type::kUnknown)
      .token("[CLS]", 0, Type::kControl)
      .token("[SEP]", 0, Type::kControl);
  word_piece.token("<x>", 0, Type::kControl).token("▁word");
  VocabularyFile longest("rwkv");
  longest.token("<x>", 0, Type::kControl).token("word").token(" word").token(" ").token("\\n");
  std::vector<Kind> all;
  all.push_back({"llama", by_score, 259, {262}, {260, 262}, {260, 260, 262}, {260, 3 + '\n'}});
  all.push_back({"gpt2", by_rank, 256, {257}, {258}, {' ', 258}, {'\n'}});
  all.push_back({"t5", unigram, 3, {4}, {4}, {4}, {5, 2}});
  all.push_back({"bert", word_piece, 3, {4}, {4}, {4}, {}});
  all.push_back({"rwkv", longest, 0, {1}, {2}, {3, 2}, {4}});
  return all;
}

TEST(SpecialTokens, K50GivesTheSameIdsWhereverTheTokenStands) {
  for (const Kind& kind : kinds()) {
    const auto tokenizer = kind.file.must_load();
    const auto joined = [](std::initializer_list<Ids> parts) {
      Ids all;
      for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
      return all;
    };
    const std::pair<std::string, Ids> rests[] = {
        {"word", kind.word}, {" word", kind.spaced}, {"  word", kind.twice_spaced}, {"\n", kind.line_end}};
    const Ids token = {kind.token};
    for (const auto& [text, ids] : rests) {
      EXPECT_EQ(ids_of(*tokenizer, "<x>" + text, kSpecial), joined({token, ids}))
          << kind.name << ": " << text;
      EXPECT_EQ(ids_of(*tokenizer, "word<x>" + text, kSpecial), joined({kind.word, token, ids})) << kind.name;
      EXPECT_EQ(ids_of(*tokenizer, text + "<x>", kSpecial), joined({ids, token}))
          << kind.name << ": " << text;
      EXPECT_EQ(ids_of(*tokenizer, "<x><x>" + text, kSpecial), joined({token, token, ids})) << kind.name;
    }
  }
}

// The naive twin: for each token, longest first, cut every ordinary stretch at its leftmost occurrence.
struct Stretch {
  std::string text;
  Token token;
};

std::vector<Stretch> naive(const Vocabulary& vocabulary, const std::string& text) {
  std::list<Stretch> stretches = {{text, Fragment::kOrdinary}};
  for (std::size_t length = text.size(); length > 0; --length) {
    for (Token id = 0; id < static_cast<Token>(vocabulary.size()); ++id) {
      const std::string name(vocabulary.spelling(id));
      if (name.size() != length || vocabulary.traits_of(id).normal) continue;
      for (auto at = stretches.begin(); at != stretches.end(); ++at) {
        const std::size_t found = at->token == Fragment::kOrdinary ? at->text.find(name) : std::string::npos;
        if (found == std::string::npos) continue;
        const std::string right = at->text.substr(found + length);
        at->text.resize(found);
        stretches.insert(std::next(at), {{name, id}, {right, Fragment::kOrdinary}});
        ++at;
      }
    }
  }
  std::vector<Stretch> result;
  for (const Stretch& stretch : stretches) {
    if (!stretch.text.empty()) result.push_back(stretch);
  }
  return result;
}

TEST(SpecialMatcher, CutsAsANaiveTwinDoesOverRandomNamesAndTexts) {
  Random random(5);
  const std::vector<std::string> units = {"<", ">", "|", "a", "\n"};
  for (int round = 0; round < 100; ++round) {
    VocabularyFile file = byte_level("gpt-2");
    for (int i = 0; i < 12; ++i) {
      const std::string name = random.text(units, 2 + random.below(4));
      if (std::ranges::find(file.tokens(), name) != file.tokens().end()) continue;
      file.token(name, 0, Type::kUserDefined);
    }
    const auto vocabulary = read_vocabulary(file.open());
    ASSERT_TRUE(vocabulary);
    const SpecialMatcher matcher(*vocabulary);
    for (int i = 0; i < 30; ++i) {
      const std::string text = random.text(units, random.below(30));
      std::vector<Stretch> expected = naive(*vocabulary, text);
      const std::vector<Fragment> found = matcher.cut(text, false);
      ASSERT_EQ(found.size(), expected.size()) << text;
      for (std::size_t n = 0; n < found.size(); ++n) {
        EXPECT_EQ(text.substr(found[n].start, found[n].end - found[n].start), expected[n].text);
        EXPECT_EQ(found[n].token, expected[n].token) << text;
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::text::test
