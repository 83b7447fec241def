// Judges what the reader makes of a file. Who links it links kvasir_test_allocations too: memory is part of
// the judgement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "damage.h"
#include "gguf/gguf.h"
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

// An Examine that judges into the tally.
[[nodiscard]] Examine judging(Tally& tally);

}  // namespace kvasir::gguf::test
