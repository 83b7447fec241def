// What a GGUF file says about its tokens, checked: the ground on which each kind of tokenizer stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "text/pre_tokenizers.h"
#include "text/spellings.h"

namespace kvasir::text {

enum class VocabularyKind : std::uint8_t { kPairsByScore, kPairsByRank, kUnigram, kWordPiece, kLongestMatch };

// What a token is. The file gives one of the first six; names add to them (special_tokens.h).
struct TokenTraits {
  bool normal : 1 = false;
  bool unknown : 1 = false;
  bool control : 1 = false;
  bool user_defined : 1 = false;
  bool unused : 1 = false;
  bool byte : 1 = false;
  bool strips_left : 1 = false;   // where text names it, white space before goes with it
  bool strips_right : 1 = false;  // the same after it

  // Whether ordinary text may become this token. The others are reached by name, or stand for bytes.
  [[nodiscard]] bool in_text() const noexcept { return !unknown && !control && !byte; }
};

// Immutable once read; any thread may read.
struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kPairsByScore;
  std::string kind_name;                          // as the file says it
  std::string pre_name;                           // as the file says it, or empty
  const PreTokenizer* pre_tokenizer = nullptr;    // of kPairsByRank
  Spellings spellings;                            // token texts as the file writes them, by id
  std::vector<float> scores;                      // one for each token, never NaN; 0 where the file has none
  std::vector<TokenTraits> traits;                // one for each token
  std::vector<bool> ends;                         // whether a token ends generation
  std::size_t longest = 0;                        // bytes of the longest text
  std::optional<Token> begin, end, unknown;       // always ids of this vocabulary
  std::optional<Token> adds_begin, adds_end;      // what goes around a whole text on request
  bool adds_space_prefix = false;                 // a space before a text (and after special tokens)
  bool merges_spaces = false;                     // runs of spaces become one, outer ones go
  bool lowercases = true, strips_accents = true;  // of kWordPiece

  [[nodiscard]] std::uint32_t size() const noexcept { return spellings.size(); }
  [[nodiscard]] std::string_view spelling(Token id) const noexcept {
    return spellings[static_cast<std::uint32_t>(id)];
  }
  [[nodiscard]] const TokenTraits& traits_of(Token id) const noexcept {
    return traits[static_cast<std::size_t>(id)];
  }

  // By exact spelling: any token, or one that ordinary text may become.
  [[nodiscard]] std::optional<Token> find(std::string_view spelling) const noexcept;
  [[nodiscard]] std::optional<Token> find_in_text(std::string_view spelling) const noexcept;

  // The token that SentencePiece writes <0xNN>.
  [[nodiscard]] std::optional<Token> find_byte(std::uint8_t byte) const noexcept;
};

// What is taken from a file: several times the largest vocabularies in use, and little enough that none
// exhausts memory (tries over the texts need some 30 bytes for each of theirs).
inline constexpr std::uint64_t kMaxSpellingBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxMergeBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxMerges = std::uint64_t{1} << 22;

// kUnsupported, with both numbers, where the strings of an array have more than `limit` bytes together.
[[nodiscard]] Status check_bytes(const gguf::Value& strings, std::string_view key, std::uint64_t limit);

// kNotFound where the file holds no vocabulary; kUnsupported names an unknown kind or pre-tokenizer and the
// known ones; kCorrupt says what is wrong. May throw std::bad_alloc.
[[nodiscard]] Result<Vocabulary> read_vocabulary(const gguf::File& file);

// The value of a token that stands for a byte: its spelling is <0xNN>. Nothing for other spellings.
[[nodiscard]] std::optional<std::uint8_t> byte_of_spelling(std::string_view spelling) noexcept;

}  // namespace kvasir::text
