// Damages GGUF files in every way that is tried, and judges what the reader makes of each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "raw_gguf.h"

namespace kvasir::gguf::test {

// What became of many damaged files.
struct Tally {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::int64_t most_beyond_size = 0;    // memory in use at once, in bytes, beyond the size of the file
  std::vector<std::string> complaints;  // the first few files that were judged wrongly, and how

  [[nodiscard]] std::uint64_t all() const { return accepted + refused; }
};

// Opens the file. A refusal must be a sentence of a fitting kind. A file that is accepted must be valid in
// itself: the fields that the File tells give back the very bytes before the tensor data, each tensor is
// where it says, inside and apart from the others, and reads as the bytes there. Memory stays within 64 MiB
// beyond the file. Answers a complaint that names what failed, or nothing.
[[nodiscard]] std::optional<std::string> judge(const Bytes& bytes, Tally& tally);

// The second half of that: what is wrong with this File for one that was read from `bytes`, or nothing.
[[nodiscard]] std::optional<std::string> judge_accepted(const File& file, const Bytes& bytes);

// One changed file, and what was changed.
using Examine = std::function<void(const Bytes&, const std::string&)>;

// Every prefix of the file, from none of it to all but one byte.
void cut_everywhere(const Bytes& file, const Examine& examine);

// Every number of the header set to each extreme that its width holds, and one up and one down.
void set_extremes(const Bytes& file, const Examine& examine);

// `count` files with one to four random bytes changed.
void flip_bytes(const Bytes& file, std::uint64_t count, std::uint64_t seed, const Examine& examine);

// An Examine that judges into the tally.
[[nodiscard]] Examine judging(Tally& tally);

}  // namespace kvasir::gguf::test
