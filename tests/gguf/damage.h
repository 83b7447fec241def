// Damages GGUF files in every way that is tried.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "raw_gguf.h"

namespace kvasir::gguf::test {

// One changed file, and what was changed.
using Examine = std::function<void(const Bytes&, const std::string&)>;

// Every prefix of the file, from none of it to all but one byte.
void cut_everywhere(const Bytes& file, const Examine& examine);

// Every number of the header set to each extreme that its width holds, and one up and one down.
void set_extremes(const Bytes& file, const Examine& examine);

// `count` files with one to four random bytes changed.
void flip_bytes(const Bytes& file, std::uint64_t count, std::uint64_t seed, const Examine& examine);

}  // namespace kvasir::gguf::test
