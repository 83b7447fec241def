// Cutting texts into words: by hand, and against the patterns as the models' own files write them.

#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pre_tokenizers.h"

#include <gtest/gtest.h>
#include <pcre2.h>

#include <map>
#include <string>
#include <vector>

#include "text/splitter.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Words = std::vector<std::string>;

Words split(const PreTokenizer& pre, const std::string& text) {
  const auto splitter = Splitter::compile(pre);
  if (!splitter) {
    ADD_FAILURE() << splitter.error().message();
    return {};
  }
  const auto ends = splitter->split(text);
  if (!ends) {
    ADD_FAILURE() << ends.error().message();
    return {};
  }
  Words words;
  std::size_t start = 0;
  for (const std::uint32_t end : *ends) {
    words.push_back(text.substr(start, end - start));
    start = end;
  }
  EXPECT_EQ(start, text.size());
  return words;
}

Words split(std::string_view name, const std::string& text) {
  return split(*find_pre_tokenizer(name), text);
}

TEST(PreTokenizers, AFileThatNamesNoneGetsTheDefault) {
  EXPECT_EQ(find_pre_tokenizer(""), find_pre_tokenizer("default"));
  EXPECT_NE(find_pre_tokenizer("gpt-2"), find_pre_tokenizer("default"));
  EXPECT_EQ(find_pre_tokenizer("no such"), nullptr);
}

TEST(PreTokenizers, AreRefusedByNameWhereUnknownWithThoseThatAreKnown) {
  const auto refused = byte_level("klingon-9").load();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kUnsupported);
  for (const std::string_view part : {"klingon-9", "llama-bpe", "qwen2", "gpt-4o"}) {
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
  }
}

TEST(PreTokenizers, Gpt2TakesASpaceAlongAndContractionsApart) {
  EXPECT_EQ(split("gpt-2", "I'm he'll  do 12345 x!? \n"),
            (Words{"I", "'m", " he", "'ll", " ", " do", " 12345", " x", "!?", " \n"}));
  EXPECT_EQ(split("gpt-2", "I'M a\t\tb"), (Words{"I", "'", "M", " a", "\t", "\t", "b"}));
}

TEST(PreTokenizers, Llama3TakesThreeDigitsAndLineEndsWithWhatTheyFollow) {
  EXPECT_EQ(split("llama-bpe", "I'M 12345\n\n  if(x)\n  y"),
            (Words{"I", "'M", " ", "123", "45", "\n\n", " ", " if", "(x", ")\n", " ", " y"}));
  EXPECT_EQ(split("llama-bpe", " \n \n x"), (Words{" \n \n", " x"}));
}

TEST(PreTokenizers, Qwen2TakesOneDigit) {
  EXPECT_EQ(split("qwen2", "a 123"), (Words{"a", " ", "1", "2", "3"}));
  EXPECT_EQ(split("qwen2", "cafe\u0301 x"), (Words{"cafe", "\u0301", " x"}));
  EXPECT_EQ(split("qwen35", "cafe\u0301 x"), (Words{"cafe\u0301", " x"}));
}

TEST(PreTokenizers, FalconAndTheDefaultTakePunctuationFirst) {
  EXPECT_EQ(split("falcon", "a ,b `1234567"), (Words{"a", " ", ",", "b", " ", "`", "123", "456", "7"}));
  EXPECT_EQ(split("default", "a ,b `1234567"), (Words{"a", " ", ",", "b", " `", "123", "456", "7"}));
}

TEST(PreTokenizers, DeepseekTellsScriptsApart) {
  EXPECT_EQ(split("deepseek-llm", "ab 日本abc 12\n.. "),
            (Words{"ab", " ", "日本", "abc", " ", "12", "\n", "..", " "}));
  EXPECT_EQ(split("deepseek-v3", "日本abc1234 x"), (Words{"日本", "abc", "123", "4", " x"}));
  EXPECT_EQ(split("deepseek-coder", "ab 12 日.."), (Words{"ab", " ", "1", "2", " ", "日", ".."}));
}

TEST(PreTokenizers, Gpt4oAndTekkenTellCaseApart) {
  EXPECT_EQ(split("gpt-4o", "camelCaseÉcole HELLO'S 1234"),
            (Words{"camel", "Case", "École", " HELLO'S", " ", "123", "4"}));
  EXPECT_EQ(split("tekken", "camelCase it's 12"), (Words{"camel", "Case", " it", "'s", " ", "1", "2"}));
  EXPECT_EQ(split("gpt-4o", "日本ABC"), (Words{"日本", "ABC"}));
}

TEST(PreTokenizers, BytesThatAreNotUtf8AreWordsOfTheirOwn) {
  EXPECT_EQ(split("llama-bpe",
                  "ab\xFF\x80"
                  "cd\xE2\x82"),
            (Words{"ab", "\xFF\x80", "cd", "\xE2\x82"}));
  EXPECT_EQ(split("gpt-2", "\xED\xA0\x80"), (Words{"\xED\xA0\x80"}));
}

// The patterns of the models' tokenizer.json files, in the order they are applied.
const std::map<std::string, Words>& textbook() {
  static const std::string gpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  static const std::string suffix = R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))";
  static const std::string spaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  static const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  static const std::string before = R"([^\r\n\p{L}\p{N}]?)";
  static const auto cased = [](const std::string& after, const std::string& numbers) {
    return before + upper + "*" + lower + "+" + after + "|" + before + upper + "+" + lower + "*" + after +
           "|" + numbers + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" + spaces;
  };
  static const auto words = [](const std::string& numbers) {
    return suffix + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" + numbers + R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" + spaces;
  };
  static const std::map<std::string, Words> patterns = {
      {"default", {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {"falcon", {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, "[0-9][0-9][0-9]"}},
      {"gpt-2", {gpt2}},
      {"starcoder", {R"(\p{N})", gpt2}},
      {"llama-bpe", {words(R"(\p{N}{1,3})")}},
      {"dbrx", {words(R"(\p{N}{1,3})")}},
      {"qwen2", {words(R"(\p{N})")}},
      {"qwen35",
       {suffix + R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" + spaces}},
      // The letters of the file's list that random texts have are those with case.
      {"deepseek-llm",
       {R"([\r\n])", R"(\s?[\p{Lu}\p{Ll}\p{Lt}]+)", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)",
        R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N}+)"}},
      {"deepseek-coder",
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
        R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N})"}},
      {"deepseek-v3",
       {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" +
            spaces}},
      {"bloom", {R"( ?[^(\s|.,!?…。，、।۔،)]+)"}},
      {"viking", {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"}},
      {"tekken", {cased("", R"(\p{N})")}},
      {"gpt-4o", {cased(suffix + "?", R"(\p{N}{1,3})")}},
      {"jais-2",
       {suffix + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S))"
                 R"(|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S))"
                 R"(|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"}},
      {"exaone-moe",
       {suffix + R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
                 R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}},
      {"bailingmoe",
       {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
      {"seed-coder", {suffix + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)" + spaces}},
      {"gemma4", {R"([^\n]+|[\n]+)"}},
  };
  return patterns;
}

// Applies one pattern to each piece, keeping what lies between matches.
Words cut_by(const std::string& pattern, const Words& pieces) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, nullptr);
  EXPECT_NE(code, nullptr) << pattern << " at " << offset;
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(code, nullptr);
  Words words;
  for (const std::string& piece : pieces) {
    std::size_t start = 0;  // of what is not yet a word
    std::size_t at = 0;     // where the next match may begin
    const auto add = [&](std::size_t end) {
      if (end > start) words.push_back(piece.substr(start, end - start));
      start = end;
    };
    while (at < piece.size() && pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(),
                                            at, 0, data, nullptr) > 0) {
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
      add(range[0]);
      add(range[1]);
      at = range[1];
    }
    add(piece.size());
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return words;
}

TEST(PreTokenizers, CutAsTheModelsOwnPatternsDoOverRandomTexts) {
  const std::vector<std::string> units = {
      "a",   "s",   "T",  "re", "É",  "é",    "日",     "ǅ",      "ʰ",      "\u0301", "ा",      "1",     "23",
      "٣",   "½",   " ",  "  ", "\n", "\r\n", "\t",     "\u00A0", "\u3000", "\u0085", "\u2028", "'",     "'s",
      "'LL", "'re", ".",  ",",  "!",  "-",    "_",      "/",      "$",      "+",      "`",      "|",     "(",
      "。",  "！",  "、", "…",  "€",  "😀",   "\u200D", "\x01",   "<",      "[",      "\\",     "\u0964"};
  Random random(3);
  for (const auto& [name, patterns] : textbook()) {
    const PreTokenizer* pre = find_pre_tokenizer(name);
    ASSERT_NE(pre, nullptr) << name;
    for (int i = 0; i < 3000; ++i) {
      // Every other text of few different units, so that runs are long.
      const std::vector<std::string> few = {units[random.below(units.size())],
                                            units[random.below(units.size())], " "};
      const std::uint64_t length = random.below(25);
      const std::string text = random.text(i % 2 == 0 ? units : few, length);
      Words expected = {text};
      for (const std::string& pattern : patterns) expected = cut_by(pattern, expected);
      if (text.empty()) expected.clear();
      EXPECT_EQ(split(*pre, text), expected) << name << ": " << text;
    }
  }
}

TEST(PreTokenizers, AllCompileAndKeepEveryByte) {
  Random random(4);
  for (const PreTokenizer& pre : pre_tokenizers()) {
    for (int i = 0; i < 50; ++i) {
      std::string bytes;
      for (std::uint64_t n = random.below(40); n > 0; --n) bytes += static_cast<char>(random.below(256));
      Words words = split(pre, bytes);
      std::string joined;
      for (const std::string& word : words) joined += word;
      EXPECT_EQ(joined, bytes) << pre.names[0];
    }
  }
}

}  // namespace
}  // namespace kvasir::text::test
