// Numbers as little-endian bytes: how sections of files are written and, from bytes that nobody vouches for,
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/try.h"
#include "kvasir/result.h"

namespace kvasir::base {

// Appends to a list of bytes. Throws std::bad_alloc.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(&out) {}

  template <class T>
    requires std::is_unsigned_v<T>
  void number(T value) {
    const std::size_t at = out_->size();
    out_->resize(at + sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) (*out_)[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
  void signed_number(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void bytes(std::span<const std::byte> bytes) { out_->insert(out_->end(), bytes.begin(), bytes.end()); }

  // 64 bits of length, then the characters.
  void text(std::string_view text);

  // Floats and 32-bit integers, one behind the other, without their number.
  void floats(std::span<const float> values);
  void integers(std::span<const std::int32_t> values);

 private:
  std::vector<std::byte>* out_;
};

// Reads from the front of bytes. Every call answers kCorrupt where they end before; what is counted is
// checked against the bytes that are left before memory is taken.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_unsigned_v<T>
  [[nodiscard]] Result<T> number() {
    KVASIR_ASSIGN(const std::span<const std::byte> raw, take(sizeof(T)));
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(
          value | static_cast<T>(static_cast<T>(std::to_integer<std::uint8_t>(raw[i])) << (8 * i)));
    return value;
  }
  [[nodiscard]] Result<std::int64_t> signed_number();
  [[nodiscard]] Result<bool> flag();  // one byte, 0 or 1

  // The next `count` bytes, which stay where they are.
  [[nodiscard]] Result<std::span<const std::byte>> take(std::uint64_t count);

  // 64 bits that count things of at least `bytes_each` bytes.
  [[nodiscard]] Result<std::uint64_t> count(std::uint64_t bytes_each);
  [[nodiscard]] Result<std::string_view> text();
  [[nodiscard]] Result<std::vector<float>> floats(std::uint64_t count);
  [[nodiscard]] Result<std::vector<std::int32_t>> integers(std::uint64_t count);

  [[nodiscard]] std::uint64_t left() const noexcept { return bytes_.size(); }

  // kCorrupt where something is left.
  [[nodiscard]] Status end() const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace kvasir::base
