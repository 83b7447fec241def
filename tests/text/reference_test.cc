// Ids and texts recorded from llama.cpp for public vocabularies.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/utf8.h"
#include "gguf/gguf.h"
#include "support/paths.h"
#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

struct Line {
  std::string text;
  std::string mode;
  std::vector<Token> ids;
  std::string detokenized;
};

std::string from_base64(std::string_view digits) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char digit : digits) {
    const std::size_t value = kDigits.find(digit);
    if (value == kDigits.npos) break;  // padding
    bits = bits << 6 | static_cast<unsigned>(value);
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8));
  }
  return bytes;
}

// What follows "key": on the line, up to `close`. The recorded lines are flat objects without escapes.
std::string_view field(std::string_view line, const std::string& key, char open, char close) {
  const std::size_t at = line.find('"' + key + "\":");
  const std::size_t start = line.find(open, at + key.size() + 3) + 1;
  return at == line.npos ? std::string_view() : line.substr(start, line.find(close, start) - start);
}

Line parse(std::string_view json) {
  Line line;
  line.text = from_base64(field(json, "text_b64", '"', '"'));
  line.mode = field(json, "mode", '"', '"');
  line.detokenized = from_base64(field(json, "detok_b64", '"', '"'));
  const std::string ids(field(json, "ids", '[', ']'));
  for (const char* at = ids.c_str(); *at != '\0';) {
    char* end = nullptr;
    line.ids.push_back(static_cast<Token>(std::strtol(at, &end, 10)));
    at = *end == ',' ? end + 1 : end;
  }
  return line;
}

TokenizeOptions options_of(const std::string& mode) {
  if (mode == "plain") return {};
  return {.add_begin_end = mode == "add_bos_parse_special", .parse_special = true};
}

class TokenizerReference : public testing::TestWithParam<std::string> {};

std::unique_ptr<const Tokenizer> load(const std::string& path) {
  auto file = gguf::File::open(base::system_files(), path);
  if (!file) {
    ADD_FAILURE() << file.error().message();
    return nullptr;
  }
  auto tokenizer = Tokenizer::load(*file);
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message();
    return nullptr;
  }
  return *std::move(tokenizer);
}

TEST_P(TokenizerReference, GivesTheRecordedIdsAndTextsOfEveryLine) {
  KVASIR_NEEDS_REFERENCE(vocabulary, "vocabs/" + GetParam() + ".gguf");
  KVASIR_NEEDS_REFERENCE(lines, "vocabs/" + GetParam() + ".jsonl");
  const auto tokenizer = load(vocabulary);
  ASSERT_NE(tokenizer, nullptr);
  std::ifstream stream(lines);
  int compared = 0;
  for (std::string json; std::getline(stream, json);) {
    const Line line = parse(json);
    EXPECT_EQ(text_of(*tokenizer, line.ids), line.detokenized) << json;
    const std::vector<Token> ids = ids_of(*tokenizer, line.text, options_of(line.mode));
    if (!base::is_utf8(line.text)) continue;  // see the next test
    EXPECT_EQ(ids, line.ids) << json;
    ++compared;
  }
  EXPECT_GE(compared, 200);
}

// llama.cpp puts U+FFFD in the place of what is not UTF-8 in some kinds; here nothing is lost in any.
TEST_P(TokenizerReference, KeepsBytesThatAreNotUtf8) {
  KVASIR_NEEDS_REFERENCE(vocabulary, "vocabs/" + GetParam() + ".gguf");
  const auto tokenizer = load(vocabulary);
  ASSERT_NE(tokenizer, nullptr);
  for (const std::string text :
       {"\xE2\x82", "abc\x80xyz", "\xC3(\xE2\x82", "\xF0\x9F\x98", "ok\xED\xA0\x80ok"}) {
    std::uint64_t left_out = 1;
    const auto ids = tokenizer->tokenize(text, {}, &left_out);
    ASSERT_TRUE(ids) << ids.error().message();
    EXPECT_EQ(left_out, 0U);
    EXPECT_EQ(text_of(*tokenizer, *ids), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Public, TokenizerReference,
                         testing::Values("llama-spm", "llama-bpe", "gpt-2", "phi-3", "qwen2", "falcon",
                                         "deepseek-llm"),
                         [](const auto& vocabulary) {
                           std::string name = vocabulary.param;
                           std::erase(name, '-');
                           return name;
                         });

// Case K50. A token's name cuts a text in two, each part a text of its own; only phi-3's tokens take white
// space.
TEST_P(TokenizerReference, K50TextBesideASpecialTokenIsATextOfItsOwn) {
  KVASIR_NEEDS_REFERENCE(vocabulary, "vocabs/" + GetParam() + ".gguf");
  const auto tokenizer = load(vocabulary);
  ASSERT_NE(tokenizer, nullptr);
  const bool strips = GetParam() == "phi-3";
  const std::string name = strips ? "<|user|>" : std::string(*tokenizer->piece(*tokenizer->end_token()));
  const Token token = *tokenizer->find(name);
  constexpr TokenizeOptions kSpecial = {.parse_special = true};
  for (const std::string before : {"", "word", "word ", " "}) {
    for (const std::string after : {"", "word", " word", "  word", "\n", "\n word"}) {
      const std::size_t stripped = strips ? std::min(after.find_first_not_of(" \n"), after.size()) : 0;
      std::vector<Token> expected = ids_of(*tokenizer, before);
      expected.push_back(token);
      for (const Token id : ids_of(*tokenizer, after.substr(stripped))) expected.push_back(id);
      const std::string text = fmt::format("{}{}{}", before, name, after);
      EXPECT_EQ(ids_of(*tokenizer, text, kSpecial), expected) << text;
    }
  }
  const std::vector<Token> plain = ids_of(*tokenizer, name);
  EXPECT_EQ(std::ranges::count(plain, token), 0);
}

}  // namespace
}  // namespace kvasir::text::test
