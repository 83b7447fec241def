// Finds the tokens that a text names, and cuts it into them and the ordinary text between.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kvasir/token.h"
#include "text/byte_trie.h"
#include "text/vocabulary.h"

namespace kvasir::text {

// A stretch of a text: ordinary, or a token's name. Never empty.
struct Fragment {
  static constexpr Token kOrdinary = -1;

  std::size_t start = 0;
  std::size_t end = 0;
  Token token = kOrdinary;
};

// Longer names win over shorter ones wherever they stand in the text, then lower ids, then earlier places.
// User-defined tokens are always found, control tokens and the unknown one only where text may name special
// tokens. Source of the rules: llama.cpp.
//
// Immutable; any thread may call. The vocabulary must outlive it. May throw std::bad_alloc.
class SpecialMatcher {
 public:
  explicit SpecialMatcher(const Vocabulary& vocabulary);

  // The fragments of `text` in order. White space that a token takes along belongs to none. Time is linear in
  // the text for each different token that it names.
  [[nodiscard]] std::vector<Fragment> cut(std::string_view text, bool parse_special) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> named_in(std::string_view text) const;
  void find_token(Token token, std::string_view text, std::vector<Fragment>& fragments) const;

  const Vocabulary& vocabulary_;
  std::vector<Token> tokens_;        // best first
  ByteTrie names_;                   // values: indices of tokens_
  std::vector<std::uint32_t> back_;  // by node: where the longest proper suffix that is a node ends
};

}  // namespace kvasir::text
