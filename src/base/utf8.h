// UTF-8 as bytes that may be anything: what is well-formed, and how to show the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::base {

// Bytes (1 to 4) of the well-formed sequence that `text` begins with, or 0 where it begins with none or is
// empty. Overlong forms, surrogates and numbers beyond U+10FFFF are not well-formed. Source: the Unicode
// Standard, table 3-7.
[[nodiscard]] std::size_t utf8_sequence(std::string_view text) noexcept;

// Whether all of `text` is well-formed. The empty text is.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

// `text` for a message or a terminal: control characters and ill-formed bytes as \xNN, and "..." for what
// goes beyond `limit` bytes of it. Always well-formed.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit);

}  // namespace kvasir::base
