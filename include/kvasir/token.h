// A token id, the one number that every room shares. A value header.
#pragma once

#include <cstdint>

namespace kvasir {

// An index into a model's vocabulary, from 0. Negative values never name a token.
using Token = std::int32_t;

// What stands in the place of an embedding vector in a list of tokens.
inline constexpr Token kEmbedded = -1;

}  // namespace kvasir
