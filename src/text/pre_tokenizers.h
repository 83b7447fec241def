// The pre-tokenizers of byte-pair vocabularies: the patterns that cut a text into words, and what goes with
// them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvasir::text {

// Patterns are PCRE2's. Each is applied to the pieces that the ones before left: what it matches is a piece
// of its own, and so is what lies between. None backtracks more than linearly.
struct PreTokenizer {
  std::span<const std::string_view> names;  // as files say them
  std::span<const std::string_view> patterns;
  bool takes_whole_words = false;  // a word that is a token is that token, whatever the merges say
  bool adds_begin = false;         // where the file does not say
  // Spaces are written U+2581 and bytes without a token <0xNN>, instead of each byte as a printable
  // character.
  bool spells_like_spm = false;
};

// The entry for a name; a file that names none gets that of "default". nullptr for unknown names.
[[nodiscard]] const PreTokenizer* find_pre_tokenizer(std::string_view name) noexcept;

// All of them. Lives as long as the process.
[[nodiscard]] std::span<const PreTokenizer> pre_tokenizers() noexcept;

// All names, separated by commas, for messages.
[[nodiscard]] std::string known_pre_tokenizers();

}  // namespace kvasir::text
