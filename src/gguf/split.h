// Models that are cut into several GGUF files.
//
// Each shard says its place with the keys split.no (from 0) and split.count, and the first one how many
// tensors all hold together with split.tensors.count; the names are NAME-00001-of-0000N.gguf. Source:
// llama.cpp's gguf-split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gguf/shard.h"
#include "kvasir/result.h"

namespace kvasir::gguf {

struct SplitPlace {
  std::uint64_t number = 0;  // from 0
  std::uint64_t count = 1;
  std::optional<std::uint64_t> tensors;  // of all shards
};

// Where a shard says it belongs; a file without the keys, or with a count of 0 as merging leaves it, is 0
// of 1. kCorrupt for keys of a wrong type or range.
[[nodiscard]] Result<SplitPlace> split_place(const Shard& shard);

struct SplitName {
  std::string_view stem;     // into the path; up to "-00001-of-..."
  std::uint64_t number = 0;  // from 0; the name counts from 1
  std::uint64_t count = 0;

  // The path of another shard.
  [[nodiscard]] std::string sibling(std::uint64_t other_number) const;
};

// The parts of a shard's path, or nothing where it is not named like one.
[[nodiscard]] std::optional<SplitName> parse_split_name(std::string_view path);

}  // namespace kvasir::gguf
