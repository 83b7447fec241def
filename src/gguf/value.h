// A metadata value of a GGUF file: a scalar, a string, or an array.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::gguf {

// The value's type number in a file. Source: the GGUF specification, "gguf_metadata_value_type".
enum class ValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "uint8", ..., "string", "array"; "unknown" for any other number. Never fails.
[[nodiscard]] std::string_view value_type_name(ValueType type) noexcept;

// Bytes of one scalar of this type in a file; 0 for strings, arrays and unknown numbers.
[[nodiscard]] std::size_t scalar_bytes(ValueType type) noexcept;

// Arrays may hold arrays, this many of them inside each other. The specification names no bound.
inline constexpr int kMaxArrayDepth = 8;

// The C++ types of scalars.
template <class T>
concept Scalar =
    std::same_as<T, std::uint8_t> || std::same_as<T, std::int8_t> || std::same_as<T, std::uint16_t> ||
    std::same_as<T, std::int16_t> || std::same_as<T, std::uint32_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, float> || std::same_as<T, bool> || std::same_as<T, std::uint64_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, double>;

template <Scalar T>
[[nodiscard]] constexpr ValueType value_type_of() noexcept {
  if constexpr (std::same_as<T, std::uint8_t>) return ValueType::kUint8;
  if constexpr (std::same_as<T, std::int8_t>) return ValueType::kInt8;
  if constexpr (std::same_as<T, std::uint16_t>) return ValueType::kUint16;
  if constexpr (std::same_as<T, std::int16_t>) return ValueType::kInt16;
  if constexpr (std::same_as<T, std::uint32_t>) return ValueType::kUint32;
  if constexpr (std::same_as<T, std::int32_t>) return ValueType::kInt32;
  if constexpr (std::same_as<T, float>) return ValueType::kFloat32;
  if constexpr (std::same_as<T, bool>) return ValueType::kBool;
  if constexpr (std::same_as<T, std::uint64_t>) return ValueType::kUint64;
  if constexpr (std::same_as<T, std::int64_t>) return ValueType::kInt64;
  if constexpr (std::same_as<T, double>) return ValueType::kFloat64;
}

// An immutable value that owns what it holds: arrays of scalars in their own width, arrays of strings as
// their bytes and an 8-byte offset each. Copyable; any thread may read. Accessors answer nothing where the
// type or the range does not fit; indices at or beyond size() answer nothing too.
class Value {
 public:
  // Makers. They may throw std::bad_alloc only.
  template <Scalar T>
  [[nodiscard]] static Value scalar(T value) {
    return scalar_from(value_type_of<T>(), &value, sizeof(T));
  }
  [[nodiscard]] static Value string(std::string_view text);
  template <Scalar T>
  [[nodiscard]] static Value array(std::span<const T> elements) {
    return array_from(value_type_of<T>(), std::as_bytes(elements));
  }
  [[nodiscard]] static Value strings(std::span<const std::string_view> elements);
  [[nodiscard]] static Value strings(std::span<const std::string> elements);

  // An array of arrays. kInvalidArgument where an element is not an array or the depth exceeds
  // kMaxArrayDepth.
  [[nodiscard]] static Result<Value> arrays(std::vector<Value> elements);

  [[nodiscard]] ValueType type() const noexcept { return type_; }
  [[nodiscard]] bool is_array() const noexcept { return type_ == ValueType::kArray; }

  // Of an array: what its elements are, and how many. Else type() and 1.
  [[nodiscard]] ValueType element_type() const noexcept { return element_type_; }
  [[nodiscard]] std::uint64_t size() const noexcept;

  // A scalar or a string. as_uint and as_int take any integer type (not bool) whose value fits; as_float any
  // number.
  [[nodiscard]] std::optional<std::uint64_t> as_uint() const noexcept;
  [[nodiscard]] std::optional<std::int64_t> as_int() const noexcept;
  [[nodiscard]] std::optional<double> as_float() const noexcept;
  [[nodiscard]] std::optional<bool> as_bool() const noexcept;
  [[nodiscard]] std::optional<std::string_view> as_string() const noexcept;  // valid while this value lives

  // The same of an array's element, in place. A scalar or a string is its own element 0.
  [[nodiscard]] std::optional<std::uint64_t> uint_at(std::uint64_t index) const noexcept;
  [[nodiscard]] std::optional<std::int64_t> int_at(std::uint64_t index) const noexcept;
  [[nodiscard]] std::optional<double> float_at(std::uint64_t index) const noexcept;
  [[nodiscard]] std::optional<bool> bool_at(std::uint64_t index) const noexcept;
  [[nodiscard]] std::optional<std::string_view> string_at(std::uint64_t index) const noexcept;
  [[nodiscard]] const Value* array_at(std::uint64_t index) const noexcept;  // nullptr where there is none

  // All elements of an array whose type is exactly T's, in place.
  template <Scalar T>
    requires(!std::same_as<T, bool>)
  [[nodiscard]] std::optional<std::span<const T>> elements() const noexcept {
    if (!is_array() || element_type_ != value_type_of<T>()) return std::nullopt;
    return std::span<const T>(reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T));
  }

  // A scalar, a string or the elements of an array of scalars as a file holds them; nothing of other arrays.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;

  // The depth of arrays inside each other: 0 for a scalar or string, 1 for an array of those.
  [[nodiscard]] int depth() const noexcept;

  // Equal types and equal bytes; floats compare by their bits.
  [[nodiscard]] bool operator==(const Value&) const = default;

 private:
  friend class ValueReader;  // fills a value from a file without a copy

  Value() = default;
  [[nodiscard]] static Value scalar_from(ValueType type, const void* bytes, std::size_t size);
  [[nodiscard]] static Value array_from(ValueType type, std::span<const std::byte> bytes);
  template <class Text>
  [[nodiscard]] static Value strings_from(std::span<const Text> elements);
  [[nodiscard]] const std::byte* scalar_at(
      std::uint64_t index) const noexcept;  // nullptr where there is none

  ValueType type_ = ValueType::kUint8;
  ValueType element_type_ = ValueType::kUint8;
  // A scalar, a string, the elements of an array of scalars, or of an array of n strings: n + 1 offsets into
  // this vector, 8 bytes each, then the texts.
  std::vector<std::byte> bytes_;
  std::vector<Value> nested_;  // the elements of an array of arrays
};

struct KeyValue {
  std::string key;
  Value value;
};

}  // namespace kvasir::gguf
