// GGUF files put together byte by byte, right or wrong, without the code that is tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "gguf/gguf.h"

namespace kvasir::gguf::test {

using Bytes = std::vector<std::byte>;

// A number of the format: where it lies and what it means.
struct Field {
  std::size_t offset;
  std::size_t width;
  std::string name;
};

// Appends fields and remembers where the numbers are.
class RawGguf {
 public:
  template <class T>
  RawGguf& number(T value, std::string name) {
    fields_.push_back({bytes_.size(), sizeof(T), std::move(name)});
    return raw(std::as_bytes(std::span(&value, 1)));
  }
  RawGguf& u32(std::uint32_t value, std::string name) { return number(value, std::move(name)); }
  RawGguf& u64(std::uint64_t value, std::string name) { return number(value, std::move(name)); }
  RawGguf& raw(std::span<const std::byte> bytes);
  RawGguf& text(std::string_view text, const std::string& name);  // its length and its bytes
  RawGguf& pad(std::size_t alignment);

  // Magic, version and counts.
  RawGguf& header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3);

  // A key and its value.
  RawGguf& entry(std::string_view key, const Value& of);
  // A key and its type; what follows is up to the caller.
  RawGguf& key(std::string_view key, ValueType type);

  // A description; `offset` counts from the tensor data.
  RawGguf& tensor(std::string_view name, std::span<const std::uint64_t> dims, std::uint32_t type,
                  std::uint64_t offset);

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }

 private:
  void value(const Value& value, const std::string& name);

  Bytes bytes_;
  std::vector<Field> fields_;
};

// The header, metadata and descriptions that `file`, which is no split, must have been read from: every field
// of the format as the File tells it.
[[nodiscard]] RawGguf image_of(const File& file);

// A small valid file with a value and an array of every type, arrays inside arrays, six tensor types and an
// alignment of its own.
[[nodiscard]] Bytes sample(std::uint32_t version = 3);

// What sample() holds.
[[nodiscard]] std::vector<KeyValue> sample_metadata();
struct SampleTensor {
  std::string name;
  quant::BlockType type;
  std::vector<std::uint64_t> dims;
  Bytes data;
};
[[nodiscard]] std::vector<SampleTensor> sample_tensors();
inline constexpr std::uint64_t kSampleAlignment = 64;

// Files in memory, as File::parse takes them.
[[nodiscard]] std::vector<std::unique_ptr<base::ReadFile>> in_memory(Bytes bytes);
[[nodiscard]] Result<File> parse(Bytes bytes);

// `count` bytes that differ by `seed`.
[[nodiscard]] Bytes noise(std::size_t count, std::uint64_t seed);

}  // namespace kvasir::gguf::test
