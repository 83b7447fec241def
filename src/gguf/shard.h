// One GGUF file, read and validated by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "gguf/gguf.h"
#include "gguf/value.h"
#include "kvasir/result.h"

namespace kvasir::gguf {

struct Shard {
  std::unique_ptr<base::ReadFile> file;
  std::uint32_t version = 0;
  std::uint64_t alignment = kDefaultAlignment;
  std::vector<KeyValue> metadata;
  std::vector<std::uint32_t> keys_by_name;
  std::vector<Tensor> tensors;  // their `shard` is 0 still

  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
};

// Reads the metadata and the tensors' descriptions and checks all of it but what concerns other shards: the
// split keys, and names that two shards share. kCorrupt, kUnsupported or kIo.
[[nodiscard]] Result<Shard> read_shard(std::unique_ptr<base::ReadFile> file);

}  // namespace kvasir::gguf
