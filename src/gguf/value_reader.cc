#include "gguf/value_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/try.h"
#include "gguf/gguf.h"

namespace kvasir::gguf {
namespace {

constexpr std::uint64_t kLengthBytes = 8;           // of a string
constexpr std::uint64_t kArrayHeaderBytes = 4 + 8;  // element type and count

}  // namespace

Result<Value> ValueReader::read() {
  KVASIR_ASSIGN(const ValueType type, read_type());
  if (type == ValueType::kArray) return read_array(1);
  Value value;
  value.type_ = value.element_type_ = type;
  std::uint64_t bytes = scalar_bytes(type);
  if (type == ValueType::kString) {
    KVASIR_ASSIGN(bytes, bytes_.number<std::uint64_t>("string length"));
    KVASIR_TRY(bytes_.expect(bytes, 1, "string"));
    value.bytes_.resize(bytes);
    KVASIR_TRY(bytes_.read(value.bytes_, "string"));
    return value;
  }
  KVASIR_ASSIGN(value.bytes_, read_scalars(type, 1, "value"));
  return value;
}

Result<ValueType> ValueReader::read_type() {
  KVASIR_ASSIGN(const auto number, bytes_.number<std::uint32_t>("value type"));
  if (number > static_cast<std::uint32_t>(ValueType::kFloat64)) {
    return fail(Outcome::kCorrupt, fmt::format("the value type is {}; 0 to 12 are known", number),
                {.wanted = number, .limit = 12});
  }
  return static_cast<ValueType>(number);
}

Result<Value> ValueReader::read_array(int depth) {
  KVASIR_ASSIGN(const ValueType type, read_type());
  KVASIR_ASSIGN(const auto count, bytes_.number<std::uint64_t>("array length"));
  if (type == ValueType::kString) return read_strings(count);
  if (type == ValueType::kArray) return read_arrays(count, depth);
  Value value;
  value.type_ = ValueType::kArray;
  value.element_type_ = type;
  KVASIR_ASSIGN(value.bytes_, read_scalars(type, count, "array"));
  return value;
}

Result<std::vector<std::byte>> ValueReader::read_scalars(ValueType type, std::uint64_t count,
                                                         std::string_view field) {
  KVASIR_TRY(bytes_.expect(count, scalar_bytes(type), field));
  std::vector<std::byte> scalars(count * scalar_bytes(type));
  KVASIR_TRY(bytes_.read(scalars, field));
  if (type == ValueType::kBool) {
    const auto bad = std::ranges::find_if(scalars, [](std::byte byte) { return byte > std::byte{1}; });
    if (bad != scalars.end()) {
      return fail(Outcome::kCorrupt,
                  fmt::format("a bool is {}; only 0 and 1 are allowed", std::to_integer<int>(*bad)));
    }
  }
  return scalars;
}

// Goes over the strings twice: the first time to learn what they need, so that memory is taken once and fits.
Result<Value> ValueReader::read_strings(std::uint64_t count) {
  KVASIR_TRY(bytes_.expect(count, kLengthBytes, "array of strings"));
  const std::uint64_t start = bytes_.position();
  std::uint64_t text_bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    KVASIR_ASSIGN(const auto length, bytes_.number<std::uint64_t>("string length"));
    KVASIR_TRY(bytes_.skip(length, "string"));
    text_bytes += length;
  }
  Value value;
  value.type_ = ValueType::kArray;
  value.element_type_ = ValueType::kString;
  std::uint64_t offset = (count + 1) * sizeof(std::uint64_t);
  value.bytes_.resize(offset + text_bytes);
  const std::span<std::byte> bytes(value.bytes_);
  bytes_.seek(start);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(&bytes[i * sizeof(offset)], &offset, sizeof(offset));
    KVASIR_ASSIGN(const auto length, bytes_.number<std::uint64_t>("string length"));
    if (length > bytes.size() - offset) return fail(Outcome::kCorrupt, "the file changes while it is read");
    KVASIR_TRY(bytes_.read(bytes.subspan(offset, length), "string"));
    offset += length;
  }
  std::memcpy(&bytes[count * sizeof(offset)], &offset, sizeof(offset));
  return value;
}

Result<Value> ValueReader::read_arrays(std::uint64_t count, int depth) {
  if (depth >= kMaxArrayDepth) {
    return fail(Outcome::kUnsupported,
                fmt::format("arrays lie more than {} deep inside each other", kMaxArrayDepth),
                {.limit = kMaxArrayDepth});
  }
  KVASIR_TRY(bytes_.expect(count, kArrayHeaderBytes, "array of arrays"));
  if (count > kMaxNestedArrays - nested_) {
    return fail(Outcome::kUnsupported,
                fmt::format("{} more arrays inside arrays; a file may hold {}", count, kMaxNestedArrays),
                {.wanted = count, .available = kMaxNestedArrays - nested_, .limit = kMaxNestedArrays});
  }
  nested_ += count;
  Value value;
  value.type_ = value.element_type_ = ValueType::kArray;
  value.nested_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    KVASIR_ASSIGN(Value element, read_array(depth + 1));
    value.nested_.push_back(std::move(element));
  }
  return value;
}

}  // namespace kvasir::gguf
