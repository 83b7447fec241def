// How files write the tokens of RWKV's world vocabulary.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::text {

// The bytes that a token's text stands for: \t \n \r, \xNN for any byte, and a backslash before any other
// character for that character.
[[nodiscard]] std::string unescape(std::string_view text);

}  // namespace kvasir::text
