// The printable characters in which byte-level vocabularies write bytes.
// Source: the GPT-2 tokenizer; printable Latin-1 stands for itself, other bytes for U+0100 and on, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::text {

// The character for a byte, in UTF-8. Lives as long as the process.
[[nodiscard]] std::string_view character_of_byte(std::uint8_t byte) noexcept;

// The bytes that a token's text stands for. Characters that stand for no byte (in tokens that were added
// later) stand for themselves.
[[nodiscard]] std::string bytes_of_characters(std::string_view text);

}  // namespace kvasir::text
