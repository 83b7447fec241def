// Reads metadata values from a file that is not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/byte_reader.h"
#include "gguf/value.h"
#include "kvasir/result.h"

namespace kvasir::gguf {

// Reads values one after another; what it holds in memory is never larger than their bytes in the file, but
// for a small constant each and for each of at most kMaxNestedArrays arrays inside arrays. One thread at a
// time.
class ValueReader {
 public:
  // The bytes outlive the reader.
  explicit ValueReader(ByteReader& bytes) : bytes_(bytes) {}

  // The type's number and the value after it. kCorrupt, kUnsupported or kIo, naming the field.
  [[nodiscard]] Result<Value> read();

 private:
  [[nodiscard]] Result<ValueType> read_type();
  [[nodiscard]] Result<Value> read_array(int depth);
  [[nodiscard]] Result<std::vector<std::byte>> read_scalars(ValueType type, std::uint64_t count,
                                                            std::string_view field);
  [[nodiscard]] Result<Value> read_strings(std::uint64_t count);
  [[nodiscard]] Result<Value> read_arrays(std::uint64_t count, int depth);

  ByteReader& bytes_;
  std::uint64_t nested_ = 0;  // arrays inside arrays so far
};

}  // namespace kvasir::gguf
