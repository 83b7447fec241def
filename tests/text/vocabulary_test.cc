// Vocabularies that are wrong, unusual or say little.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;
constexpr TokenizeOptions kBeginEnd = {.add_begin_end = true};

// The code with which loading is refused, after checking that the message holds `part`.
Outcome refusal(const VocabularyFile& file, std::string_view part) {
  const auto tokenizer = file.load();
  if (tokenizer) return Outcome::kDone;
  EXPECT_NE(tokenizer.error().message().find(part), std::string::npos) << tokenizer.error().message();
  return tokenizer.error().code();
}

TEST(Vocabulary, IsNotFoundInAFileWithoutOne) {
  EXPECT_EQ(refusal(byte_level("gpt-2").without("tokenizer.ggml.model"), "no vocabulary"),
            Outcome::kNotFound);
  EXPECT_EQ(refusal(byte_level("gpt-2").without("tokenizer.ggml.tokens"), "no vocabulary"),
            Outcome::kNotFound);
  EXPECT_EQ(refusal(VocabularyFile("no_vocab").token("a"), "no vocabulary"), Outcome::kNotFound);
}

TEST(Vocabulary, OfAnUnknownKindIsRefusedByName) {
  EXPECT_EQ(refusal(VocabularyFile("plamo2").token("a"), "plamo2"), Outcome::kUnsupported);
  EXPECT_EQ(refusal(VocabularyFile("plamo2").token("a"), "rwkv"), Outcome::kUnsupported);
}

TEST(Vocabulary, WithTwoTokensOfOneSpellingIsRefused) {
  VocabularyFile file = byte_level("gpt-2");
  file.token("xyz").token("xyz");
  EXPECT_EQ(refusal(file, "the tokens 256 and 257 are both spelled 'xyz'"), Outcome::kCorrupt);
}

TEST(Vocabulary, WithFewerScoresOrTypesThanTokensIsRefused) {
  VocabularyFile file = sentence_piece();
  const std::vector<float> scores(10);
  file.set("tokenizer.ggml.scores", gguf::Value::array(std::span(scores)));
  EXPECT_EQ(refusal(file, "10 values for 259 tokens"), Outcome::kCorrupt);
  VocabularyFile other = sentence_piece();
  const std::vector<std::int32_t> types(258, 1);
  other.set("tokenizer.ggml.token_type", gguf::Value::array(std::span(types)));
  EXPECT_EQ(refusal(other, "258 values for 259 tokens"), Outcome::kCorrupt);
  other.set("tokenizer.ggml.token_type", gguf::Value::scalar(1.5F));
  EXPECT_EQ(refusal(other, "token_type"), Outcome::kCorrupt);
}

TEST(Vocabulary, WithAScoreThatIsNoNumberIsRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(refusal(sentence_piece().token("a", bad), "score of token 259"), Outcome::kCorrupt);
  }
}

TEST(Vocabulary, MayHaveWholeNumbersAsScoresAndNoneAtAll) {
  VocabularyFile file = sentence_piece().set_flag("add_space_prefix", false);
  file.token("a").token("b").token("c").token("ab").token("bc");
  std::vector<std::int32_t> scores(264);
  scores[263] = 5;
  file.set("tokenizer.ggml.scores", gguf::Value::array(std::span<const std::int32_t>(scores)));
  EXPECT_EQ(ids_of(*file.must_load(), "abc"), (Ids{259, 263}));
  EXPECT_EQ(ids_of(*file.without("tokenizer.ggml.scores").must_load(), "abc"), (Ids{262, 261}));
}

TEST(Vocabulary, WithIdsBeyondItsEndIsRefusedWithBothNumbers) {
  for (const std::string key :
       {"bos_token_id", "eos_token_id", "unknown_token_id", "eot_token_id", "fim_pad_token_id"}) {
    EXPECT_EQ(refusal(sentence_piece().set_id(key, 259), key + "' is 259, but the vocabulary has 259 tokens"),
              Outcome::kCorrupt);
  }
  EXPECT_EQ(
      refusal(sentence_piece().set("tokenizer.ggml.bos_token_id", gguf::Value::string("1")), "bos_token_id"),
      Outcome::kCorrupt);
}

TEST(Vocabulary, MaySayThatItHasNoSuchToken) {
  VocabularyFile file = sentence_piece();
  file.set("tokenizer.ggml.bos_token_id", gguf::Value::scalar(std::uint32_t{UINT32_MAX}));
  file.set("tokenizer.ggml.eos_token_id", gguf::Value::scalar(std::int32_t{-1}));
  const auto tokenizer = file.must_load();
  EXPECT_EQ(tokenizer->begin_token(), std::nullopt);
  EXPECT_EQ(tokenizer->end_token(), std::nullopt);
  EXPECT_FALSE(tokenizer->adds_begin());
}

TEST(Vocabulary, WithATokenForAByteThatNamesNoneIsRefused) {
  for (const std::string bad : {"<0xG0>", "<0x1>", "x", "<0x123>"}) {
    VocabularyFile file("llama");
    file.token("<unk>").token(bad, 0, Type::kByte);
    EXPECT_EQ(refusal(file, "stands for a byte"), Outcome::kCorrupt) << bad;
  }
}

TEST(Vocabulary, MayHaveEmptyTokensThatNoTextBecomes) {
  for (const std::string kind : {"llama", "gpt2", "t5", "bert", "rwkv"}) {
    VocabularyFile file(kind, kind == "gpt2" ? "gpt-2" : "");
    file.token("<unk>", 0, Type::kUnknown)
        .token("")
        .token("", 0, Type::kControl)
        .token("", 0, Type::kUserDefined);
    file.token("a").token("▁a");
    const auto tokenizer = file.set_id("bos_token_id", 2).set_id("eos_token_id", 3).must_load();
    const Ids ids = ids_of(*tokenizer, "a a", {.parse_special = true});
    for (const Token id : {1, 2, 3}) EXPECT_EQ(std::ranges::find(ids, id), ids.end()) << kind;
    EXPECT_EQ(text_of(*tokenizer, {1, 2, 3}), "");
  }
}

TEST(Vocabulary, WithMergesThatAreNoneIsRefused) {
  const std::vector<std::vector<std::string>> bad = {{"ab"}, {"a b", ""}, {"a "}, {" "}};
  for (const auto& merges : bad) {
    VocabularyFile file = byte_level("gpt-2");
    file.set("tokenizer.ggml.merges", gguf::Value::strings(std::span(merges)));
    EXPECT_EQ(refusal(file, "merge " + std::to_string(merges.size() - 1)), Outcome::kCorrupt);
  }
  EXPECT_EQ(refusal(byte_level("gpt-2").without("tokenizer.ggml.merges"), "merges"), Outcome::kCorrupt);
  EXPECT_EQ(refusal(byte_level("gpt-2").set("tokenizer.ggml.merges", gguf::Value::scalar(1.0F)), "merges"),
            Outcome::kCorrupt);
}

TEST(Vocabulary, BeyondWhatIsTakenIsRefusedWithBothNumbers) {
  VocabularyFile file = byte_level("gpt-2");
  file.token(std::string(std::size_t{16} << 20, 'x'), 0, Type::kControl);
  EXPECT_EQ(refusal(file, "at most 16777216 are taken"), Outcome::kUnsupported);
  const std::vector<std::string> merges = {"a " + std::string(std::size_t{64} << 20, 'b')};
  VocabularyFile other = byte_level("gpt-2");
  other.set("tokenizer.ggml.merges", gguf::Value::strings(std::span(merges)));
  EXPECT_EQ(refusal(other, "at most 67108864 are taken"), Outcome::kUnsupported);
  const std::vector<std::string_view> many((std::size_t{1} << 22) + 1, "a b");
  other.set("tokenizer.ggml.merges", gguf::Value::strings(std::span(many)));
  EXPECT_EQ(refusal(other, "4194305 merges"), Outcome::kUnsupported);
}

TEST(Vocabulary, WithValuesOfTheWrongTypeIsRefused) {
  const auto number = gguf::Value::scalar(std::uint32_t{1});
  for (const std::string key : {"model", "pre", "tokens", "add_bos_token", "add_space_prefix", "scores"}) {
    EXPECT_EQ(refusal(byte_level("gpt-2").set("tokenizer.ggml." + key, number), "tokenizer.ggml." + key),
              Outcome::kCorrupt);
  }
}

// Case K51, the part that vocabularies decide: who adds a begin token.
TEST(Vocabulary, K51AddsABeginTokenAsTheFileSaysAndElseAsItsKindDoes) {
  const auto begins = [](const VocabularyFile& file) { return file.must_load()->adds_begin(); };
  EXPECT_TRUE(begins(sentence_piece()));
  EXPECT_FALSE(begins(sentence_piece().set_flag("add_bos_token", false)));
  EXPECT_FALSE(begins(byte_level("gpt-2").set_id("bos_token_id", 5)));
  EXPECT_TRUE(begins(byte_level("gpt-2").set_id("bos_token_id", 5).set_flag("add_bos_token", true)));
  EXPECT_TRUE(begins(byte_level("llama-bpe").set_id("bos_token_id", 5)));
  EXPECT_TRUE(begins(byte_level("tekken").set_id("bos_token_id", 5)));
  EXPECT_FALSE(begins(byte_level("llama-bpe")));  // it has none
  EXPECT_EQ(refusal(byte_level("gpt-2").set_flag("add_bos_token", true), "add_bos_token"), Outcome::kCorrupt);
  EXPECT_EQ(refusal(byte_level("gpt-2").set_flag("add_eos_token", true), "add_eos_token"), Outcome::kCorrupt);
}

TEST(Vocabulary, K51AddsBeginAndEndExactlyOnceAndOnlyOnRequest) {
  VocabularyFile file = sentence_piece().set_flag("add_eos_token", true);
  file.token("▁a");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a"), (Ids{259}));
  EXPECT_EQ(ids_of(*tokenizer, "a", kBeginEnd), (Ids{1, 259, 2}));
  EXPECT_EQ(ids_of(*tokenizer, "", kBeginEnd), (Ids{1, 2}));
  // A text that names the begin token has what it says: who writes it must not ask for another.
  EXPECT_EQ(ids_of(*tokenizer, "<s>a", {.parse_special = true}), (Ids{1, 259}));
  EXPECT_EQ(tokenizer->kind(), "llama");
  EXPECT_EQ(tokenizer->pre_tokenizer(), "");
}

TEST(Tokenizer, RefusesATextBeyondItsLimit) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  // Never read: only its length is.
  const auto refused = tokenizer->tokenize({"", kMaxTextBytes + 1}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(refused.error().numbers().limit, kMaxTextBytes);
}

TEST(Tokenizer, RefusesAnIdThatIsNotInTheVocabulary) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  for (const Token id : {256, -1, INT32_MAX, INT32_MIN}) {
    const auto text = tokenizer->detokenize(Ids{'a', id});
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code(), Outcome::kInvalidArgument);
    EXPECT_NE(text.error().message().find("token " + std::to_string(id)), std::string::npos);
    EXPECT_NE(text.error().message().find("256 tokens"), std::string::npos);
    EXPECT_FALSE(tokenizer->piece(id));
  }
}

TEST(Tokenizer, GivesTheSameIdsToManyThreadsAtOnce) {
  VocabularyFile file = byte_level("llama-bpe");
  file.merge("a", "b").merge("ab", "c").token("<x>", 0, Type::kControl);
  const auto tokenizer = file.must_load();
  const std::string text = "abc ab 123 <x> caf\xC3\xA9 \n\n ab";
  const Ids expected = ids_of(*tokenizer, text, {.parse_special = true});
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (int& count : same) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const auto ids = tokenizer->tokenize(text, {.parse_special = true});
        count += ids && *ids == expected && *tokenizer->detokenize(*ids) == text ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(same.size(), 200));
}

}  // namespace
}  // namespace kvasir::text::test
