// Writes a GGUF file, version 3: first everything is described, then the tensors' bytes stream through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "gguf/gguf.h"
#include "gguf/value.h"
#include "kvasir/result.h"
#include "quant/block_type.h"

namespace kvasir::gguf {

// add() and add_tensor() in any order, then begin(), then the tensors' bytes in the order they were added by
// write(), then commit(). What the reader would refuse is refused here. A Writer that is dropped before
// commit() leaves no file. One thread at a time. Holds the metadata, the descriptions and one small buffer;
// never tensor data.
class Writer {
 public:
  Writer() = default;

  // Describes metadata. The key "general.alignment" (a uint32, a power of two from 8 to kMaxAlignment) also
  // sets the alignment of the file. kInvalidArgument for a key that is empty, too long or not UTF-8, or a bad
  // alignment; kWrongState after begin(); kOutOfMemory.
  [[nodiscard]] Status add(std::string key, Value value);

  // Describes a tensor; `dims` fastest first. kInvalidArgument for a name as above, a shape or type that no
  // file can have; kWrongState after begin(); kOutOfMemory.
  [[nodiscard]] Status add_tensor(std::string name, quant::BlockType type, std::vector<std::uint64_t> dims);

  // Bytes the finished file will have, from what is described so far; at most 2^64 - 1.
  [[nodiscard]] std::uint64_t file_bytes() const noexcept;

  // Writes the header, the metadata and the descriptions. kInvalidArgument for keys or names that occur twice
  // and for more than a File takes, kWrongState if begun before: both leave the Writer as it was. Else as
  // ReplacingFile::write, or kOutOfMemory.
  [[nodiscard]] Status begin(std::unique_ptr<base::ReplacingFile> file);

  // Appends to the bytes of current(); full tensors are padded and followed by the next. kInvalidArgument
  // where `bytes` go beyond the current tensor's end, kWrongState before begin() or after the last tensor;
  // both write nothing. After kIo the Writer can only be dropped, and says so (kWrongState).
  [[nodiscard]] Status write(std::span<const std::byte> bytes);

  // The tensor that write() goes to, with its offset in the file, and how many of its bytes are there.
  // nullptr before begin() and after the last tensor.
  [[nodiscard]] const Tensor* current() const noexcept;
  [[nodiscard]] std::uint64_t current_written() const noexcept { return written_; }

  // Puts the file in place. kWrongState naming the tensor that lacks bytes, or before begin(); else as
  // ReplacingFile::commit.
  [[nodiscard]] Status commit();

 private:
  [[nodiscard]] Status describe(std::string key, Value value);
  [[nodiscard]] Status describe_tensor(std::string name, quant::BlockType type,
                                       std::vector<std::uint64_t> dims);
  [[nodiscard]] Status write_header(std::unique_ptr<base::ReplacingFile> file);
  [[nodiscard]] Status check_description(std::uint64_t header) const;
  [[nodiscard]] Status check_streaming() const;

  enum class Phase : std::uint8_t { kDescribing, kStreaming, kFailed, kDone };

  Phase phase_ = Phase::kDescribing;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<KeyValue> metadata_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<base::ReplacingFile> file_;
  std::size_t next_ = 0;       // the current tensor
  std::uint64_t written_ = 0;  // bytes of it that are in the file
};

}  // namespace kvasir::gguf
