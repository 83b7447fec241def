#include "gguf/value.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace kvasir::gguf {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are kept as the file holds them: little-endian");

template <class T>
T load(const std::byte* from) noexcept {
  T value{};
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// A scalar integer as a To, where it is an integer and fits.
template <class To>
std::optional<To> load_integer(ValueType type, const std::byte* from) noexcept {
  switch (type) {
    case ValueType::kUint8:
      return base::checked_cast<To>(load<std::uint8_t>(from));
    case ValueType::kInt8:
      return base::checked_cast<To>(load<std::int8_t>(from));
    case ValueType::kUint16:
      return base::checked_cast<To>(load<std::uint16_t>(from));
    case ValueType::kInt16:
      return base::checked_cast<To>(load<std::int16_t>(from));
    case ValueType::kUint32:
      return base::checked_cast<To>(load<std::uint32_t>(from));
    case ValueType::kInt32:
      return base::checked_cast<To>(load<std::int32_t>(from));
    case ValueType::kUint64:
      return base::checked_cast<To>(load<std::uint64_t>(from));
    case ValueType::kInt64:
      return base::checked_cast<To>(load<std::int64_t>(from));
    case ValueType::kFloat32:
    case ValueType::kFloat64:
    case ValueType::kBool:
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return std::nullopt;
}

std::optional<double> load_number(ValueType type, const std::byte* from) noexcept {
  if (type == ValueType::kFloat32) return load<float>(from);
  if (type == ValueType::kFloat64) return load<double>(from);
  if (type == ValueType::kUint64) return static_cast<double>(load<std::uint64_t>(from));
  if (const auto integer = load_integer<std::int64_t>(type, from)) return static_cast<double>(*integer);
  return std::nullopt;
}

}  // namespace

std::string_view value_type_name(ValueType type) noexcept {
  switch (type) {
    case ValueType::kUint8:
      return "uint8";
    case ValueType::kInt8:
      return "int8";
    case ValueType::kUint16:
      return "uint16";
    case ValueType::kInt16:
      return "int16";
    case ValueType::kUint32:
      return "uint32";
    case ValueType::kInt32:
      return "int32";
    case ValueType::kFloat32:
      return "float32";
    case ValueType::kBool:
      return "bool";
    case ValueType::kString:
      return "string";
    case ValueType::kArray:
      return "array";
    case ValueType::kUint64:
      return "uint64";
    case ValueType::kInt64:
      return "int64";
    case ValueType::kFloat64:
      return "float64";
  }
  return "unknown";
}

std::size_t scalar_bytes(ValueType type) noexcept {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return 0;
}

Value Value::scalar_from(ValueType type, const void* bytes, std::size_t size) {
  Value value;
  value.type_ = value.element_type_ = type;
  const auto* first = static_cast<const std::byte*>(bytes);
  value.bytes_.assign(first, first + size);
  return value;
}

Value Value::string(std::string_view text) {
  return scalar_from(ValueType::kString, text.data(), text.size());
}

Value Value::array_from(ValueType type, std::span<const std::byte> bytes) {
  Value value;
  value.type_ = ValueType::kArray;
  value.element_type_ = type;
  value.bytes_.assign(bytes.begin(), bytes.end());
  return value;
}

template <class Text>
Value Value::strings_from(std::span<const Text> elements) {
  Value value;
  value.type_ = ValueType::kArray;
  value.element_type_ = ValueType::kString;
  std::size_t end = (elements.size() + 1) * sizeof(std::uint64_t);
  for (const std::string_view text : elements) end += text.size();
  value.bytes_.resize(end);
  std::uint64_t offset = (elements.size() + 1) * sizeof(std::uint64_t);
  std::byte* slot = value.bytes_.data();
  for (const std::string_view text : elements) {
    std::memcpy(slot, &offset, sizeof(offset));
    slot += sizeof(offset);
    std::ranges::copy(std::as_bytes(std::span(text)),
                      value.bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    offset += text.size();
  }
  std::memcpy(slot, &offset, sizeof(offset));
  return value;
}

Value Value::strings(std::span<const std::string_view> elements) {
  return strings_from(elements);
}
Value Value::strings(std::span<const std::string> elements) {
  return strings_from(elements);
}

Result<Value> Value::arrays(std::vector<Value> elements) {
  Value value;
  value.type_ = value.element_type_ = ValueType::kArray;
  for (const Value& element : elements) {
    if (!element.is_array()) {
      return fail(Outcome::kInvalidArgument, "an array of arrays cannot hold a value of type " +
                                                 std::string(value_type_name(element.type())));
    }
  }
  value.nested_ = std::move(elements);
  if (value.depth() > kMaxArrayDepth) {
    return fail(Outcome::kInvalidArgument,
                "arrays lie " + std::to_string(value.depth()) + " deep inside each other; at most " +
                    std::to_string(kMaxArrayDepth) + " are taken",
                {.wanted = static_cast<std::uint64_t>(value.depth()), .limit = kMaxArrayDepth});
  }
  return value;
}

std::uint64_t Value::size() const noexcept {
  if (!is_array()) return 1;
  if (element_type_ == ValueType::kArray) return nested_.size();
  if (const std::size_t width = scalar_bytes(element_type_); width != 0) return bytes_.size() / width;
  // The first text begins where the offsets end.
  return bytes_.empty() ? 0 : load<std::uint64_t>(bytes_.data()) / sizeof(std::uint64_t) - 1;
}

const std::byte* Value::scalar_at(std::uint64_t index) const noexcept {
  const std::size_t width = scalar_bytes(element_type_);
  if (width == 0 || index >= bytes_.size() / width) return nullptr;
  return bytes_.data() + index * width;
}

std::optional<std::uint64_t> Value::as_uint() const noexcept {
  return is_array() ? std::nullopt : uint_at(0);
}
std::optional<std::int64_t> Value::as_int() const noexcept {
  return is_array() ? std::nullopt : int_at(0);
}
std::optional<double> Value::as_float() const noexcept {
  return is_array() ? std::nullopt : float_at(0);
}
std::optional<bool> Value::as_bool() const noexcept {
  return is_array() ? std::nullopt : bool_at(0);
}

std::optional<std::string_view> Value::as_string() const noexcept {
  if (type_ != ValueType::kString) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
}

std::optional<std::uint64_t> Value::uint_at(std::uint64_t index) const noexcept {
  const std::byte* from = scalar_at(index);
  return from == nullptr ? std::nullopt : load_integer<std::uint64_t>(element_type_, from);
}

std::optional<std::int64_t> Value::int_at(std::uint64_t index) const noexcept {
  const std::byte* from = scalar_at(index);
  return from == nullptr ? std::nullopt : load_integer<std::int64_t>(element_type_, from);
}

std::optional<double> Value::float_at(std::uint64_t index) const noexcept {
  const std::byte* from = scalar_at(index);
  return from == nullptr ? std::nullopt : load_number(element_type_, from);
}

std::optional<bool> Value::bool_at(std::uint64_t index) const noexcept {
  const std::byte* from = scalar_at(index);
  if (from == nullptr || element_type_ != ValueType::kBool) return std::nullopt;
  return *from != std::byte{0};
}

std::optional<std::string_view> Value::string_at(std::uint64_t index) const noexcept {
  if (element_type_ != ValueType::kString || index >= size()) return std::nullopt;
  if (!is_array()) return as_string();
  const std::byte* slot = bytes_.data() + index * sizeof(std::uint64_t);
  const auto begin = load<std::uint64_t>(slot);
  const auto end = load<std::uint64_t>(slot + sizeof(std::uint64_t));
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin);
}

const Value* Value::array_at(std::uint64_t index) const noexcept {
  return index < nested_.size() ? &nested_[index] : nullptr;
}

std::span<const std::byte> Value::bytes() const noexcept {
  if (is_array() && element_type_ == ValueType::kString) return {};
  return bytes_;
}

int Value::depth() const noexcept {
  if (!is_array()) return 0;
  int deepest = 0;
  for (const Value& element : nested_) deepest = std::max(deepest, element.depth());
  return deepest + 1;
}

}  // namespace kvasir::gguf
