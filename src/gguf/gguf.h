// A GGUF file as a validated description: metadata, and where each tensor's bytes lie. Versions 2 and 3, one
// file or the shards of a split.
//
// A file is hostile until validated. Everything is checked before it is believed, memory stays below the size
// of the metadata plus 64 MiB whatever the file claims, and the time is linear in that size (sorting names
// aside). Nothing is mapped: tensor data is read with positioned reads, so a file that changes later shows as
// an error of read().
//
// Source of the format: the GGUF specification (ggml, docs/gguf.md); of the split keys and names: llama.cpp's
// gguf-split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "gguf/value.h"
#include "kvasir/result.h"
#include "quant/block_type.h"

namespace kvasir::gguf {

// What is taken from one file. Beyond any model in use, and small enough that no file exhausts memory.
inline constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{256} << 20;  // all before the tensor data
inline constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kMaxTensors = std::uint64_t{1} << 17;  // over all shards
inline constexpr std::uint64_t kMaxNestedArrays = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kMaxNameBytes = 65535;  // of a key or a tensor's name
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::size_t kMaxDimensions = 4;

// Where a tensor's numbers lie, and their shape. A tensor of an open File has 1 to 4 dimensions, none 0,
// whole blocks in a row, and bytes that lie inside its file and overlap no other tensor's.
struct Tensor {
  std::string name;
  quant::BlockType type = quant::BlockType::kF32;
  std::vector<std::uint64_t> dims;  // fastest first
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  // from the start of its shard's file
  std::uint64_t bytes = 0;

  // Numbers in it, in a row (the fastest dimension), and rows.
  [[nodiscard]] std::uint64_t elements() const noexcept { return row_length() * rows(); }
  [[nodiscard]] std::uint64_t row_length() const noexcept { return dims.empty() ? 0 : dims[0]; }
  [[nodiscard]] std::uint64_t rows() const noexcept;
};

// An open GGUF file. Move-only, immutable; any thread may read.
class File {
 public:
  // Opens a file, or all shards of a split, of which `path` may be any: its siblings are found by their
  // names, NAME-00001-of-0000N.gguf. As FileSystem::open_read; kCorrupt says what is wrong and where;
  // kUnsupported for a version, byte order or tensor type that is not read, or more metadata than
  // kMaxMetadataBytes; kNotFound where a shard is missing; kOutOfMemory.
  [[nodiscard]] static Result<File> open(base::FileSystem& files, const std::string& path);

  // The same over files that are already open: one, or all shards of a split in order.
  [[nodiscard]] static Result<File> parse(std::vector<std::unique_ptr<base::ReadFile>> shards);

  // The value of a key, or nullptr. Pointers and views into the File live as long as it does, moves included.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;

  // Typed values. kNotFound where the key is absent, kCorrupt where the type or the range does not fit; both
  // name the key. kOutOfMemory. Integers of any width serve get_uint and get_int, and any number get_float.
  // The arrays are copies that can be up to eight times (16 times for strings: a view each) as large as in
  // the file; Value reads them in place.
  [[nodiscard]] Result<std::uint64_t> get_uint(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> get_int(std::string_view key) const;
  [[nodiscard]] Result<double> get_float(std::string_view key) const;
  [[nodiscard]] Result<bool> get_bool(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> get_string(std::string_view key) const;
  [[nodiscard]] Result<std::vector<double>> get_float_array(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> get_int_array(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string_view>> get_string_array(std::string_view key) const;

  // In file order. Of a split: the metadata of its first shard, the tensors of all, shard by shard.
  [[nodiscard]] std::span<const KeyValue> metadata() const noexcept { return metadata_; }
  [[nodiscard]] std::span<const Tensor> tensors() const noexcept { return tensors_; }

  // nullptr where there is none.
  [[nodiscard]] const Tensor* find_tensor(std::string_view name) const noexcept;

  // Fills `into` with the tensor's bytes from `offset_in_tensor` on. kInvalidArgument beyond its end or for a
  // tensor of another file; kIo; kCorrupt where the file has shrunk since it was opened.
  [[nodiscard]] Status read(const Tensor& tensor, std::uint64_t offset_in_tensor,
                            std::span<std::byte> into) const;

  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
  [[nodiscard]] std::uint64_t alignment() const noexcept { return alignment_; }  // of the first shard
  [[nodiscard]] std::uint32_t shard_count() const noexcept {
    return static_cast<std::uint32_t>(shards_.size());
  }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;  // of all shards

 private:
  friend class Assembler;  // puts validated shards together
  File() = default;

  std::vector<std::unique_ptr<base::ReadFile>> shards_;
  std::vector<KeyValue> metadata_;
  std::vector<Tensor> tensors_;
  std::vector<std::uint32_t> keys_by_name_;  // indices, sorted by what they name
  std::vector<std::uint32_t> tensors_by_name_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = kDefaultAlignment;
};

}  // namespace kvasir::gguf
