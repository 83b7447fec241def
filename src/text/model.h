// The kinds of tokenizer behind one interface. Each takes text that names no special token.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "text/vocabulary.h"

namespace kvasir::text {

struct TokenizedText {
  std::vector<Token> ids;
  std::uint64_t left_out = 0;  // bytes that no token stands for

  // For `bytes` of text that have no token: the unknown token, or nothing where the vocabulary has none.
  void add_unknown(const Vocabulary& vocabulary, std::uint64_t bytes) {
    if (vocabulary.unknown) {
      ids.push_back(*vocabulary.unknown);
    } else {
      left_out += bytes;
    }
  }
};

// Immutable; any thread may call.
class TextModel {
 public:
  virtual ~TextModel() = default;

  // Appends the ids of `text`, at most kMaxTextBytes. Each stretch between special tokens is a text of its
  // own. Errors as Tokenizer::tokenize. May throw std::bad_alloc.
  [[nodiscard]] virtual Status tokenize(std::string_view text, TokenizedText& out) const = 0;
};

// One for each kind. The vocabulary must outlive it. kCorrupt says what in the file is wrong; may throw
// std::bad_alloc.
[[nodiscard]] Result<std::unique_ptr<const TextModel>> make_pairs_by_score(const Vocabulary& vocabulary);
[[nodiscard]] Result<std::unique_ptr<const TextModel>> make_pairs_by_rank(const Vocabulary& vocabulary,
                                                                          const gguf::File& file);
[[nodiscard]] Result<std::unique_ptr<const TextModel>> make_unigram(const Vocabulary& vocabulary,
                                                                    const gguf::File& file);
[[nodiscard]] Result<std::unique_ptr<const TextModel>> make_word_piece(const Vocabulary& vocabulary);
[[nodiscard]] Result<std::unique_ptr<const TextModel>> make_longest_match(const Vocabulary& vocabulary);

}  // namespace kvasir::text
