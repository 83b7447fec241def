// What the vocabularies that SentencePiece makes have in common: how they write a space.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::text {

// U+2581, which stands for a space in token texts.
inline constexpr std::string_view kWrittenSpace = "\xE2\x96\x81";

// Bytes of the character that `text` begins with; 1 where it begins with none. `text` is not empty.
[[nodiscard]] std::size_t character_length(std::string_view text) noexcept;

// `text` with each space as a written one, and one more before it if `prefix`.
[[nodiscard]] std::string write_spaces(std::string_view text, bool prefix);

// The opposite: written spaces as spaces.
[[nodiscard]] std::string read_spaces(std::string_view text);

}  // namespace kvasir::text
