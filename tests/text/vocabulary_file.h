// Small vocabularies made in the test, as GGUF files in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "text/tokenizer.h"

namespace kvasir::text::test {

// Token types in a file. Source: the GGUF specification.
enum class Type : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

class VocabularyFile {
 public:
  explicit VocabularyFile(std::string_view kind, std::string_view pre_tokenizer = {});

  // Adds a token; its id is how many there were.
  VocabularyFile& token(std::string text, float score = 0, Type type = Type::kNormal);

  // Adds "left right", and the token that they make unless it is there.
  VocabularyFile& merge(const std::string& left, const std::string& right);

  // Adds any metadata, in place of an earlier value and of what the tokens would give.
  VocabularyFile& set(std::string key, gguf::Value value);
  VocabularyFile& set_id(const std::string& key, Token id) {
    return set("tokenizer.ggml." + key, gguf::Value::scalar(static_cast<std::uint32_t>(id)));
  }
  VocabularyFile& set_flag(const std::string& key, bool value) {
    return set("tokenizer.ggml." + key, gguf::Value::scalar(value));
  }
  VocabularyFile& without(std::string key) {
    absent_.push_back(std::move(key));
    return *this;
  }

  // The id of a token that is there.
  [[nodiscard]] Token id(std::string_view text) const;
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<float>& scores() const { return scores_; }
  [[nodiscard]] const std::vector<std::string>& merges() const { return merges_; }

  // The file, and the same opened.
  [[nodiscard]] std::vector<std::byte> bytes() const;
  [[nodiscard]] gguf::File open() const;
  [[nodiscard]] Result<std::unique_ptr<const Tokenizer>> load() const { return Tokenizer::load(open()); }

  // load() of a vocabulary that is right; ends the process otherwise.
  [[nodiscard]] std::unique_ptr<const Tokenizer> must_load() const;

 private:
  std::string kind_;
  std::string pre_tokenizer_;
  std::vector<std::string> tokens_;
  std::vector<float> scores_;
  std::vector<std::int32_t> types_;
  std::vector<std::string> merges_;
  std::vector<gguf::KeyValue> extra_;
  std::vector<std::string> absent_;
};

// A byte-pair vocabulary whose ids 0 to 255 are the bytes, with no merges yet.
[[nodiscard]] VocabularyFile byte_level(std::string_view pre_tokenizer);

// <unk>, <s>, </s>, the bytes as ids 3 to 258, and no text yet.
[[nodiscard]] VocabularyFile sentence_piece();

// How byte-level vocabularies write `bytes`.
[[nodiscard]] std::string in_characters(std::string_view bytes);

// tokenize() of a text that is taken; fails the test and answers nothing otherwise.
[[nodiscard]] std::vector<Token> ids_of(const Tokenizer& tokenizer, std::string_view text,
                                        const TokenizeOptions& options = {});

// detokenize() of ids that are taken.
[[nodiscard]] std::string text_of(const Tokenizer& tokenizer, const std::vector<Token>& ids);

// Any number below `end`, the same in each run.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t end);

  // So many units drawn from a list.
  std::string text(const std::vector<std::string>& units, std::size_t count);

 private:
  std::uint64_t state_;
};

}  // namespace kvasir::text::test
