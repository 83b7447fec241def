#include "base/bytes.h"

#include <bit>
#include <cstring>
#include <string>

#include "base/checked.h"

namespace kvasir::base {

static_assert(std::endian::native == std::endian::little, "arrays of numbers are copied as they lie");

void ByteWriter::text(std::string_view text) {
  number(std::uint64_t{text.size()});
  bytes(std::as_bytes(std::span(text)));
}

void ByteWriter::floats(std::span<const float> values) {
  bytes(std::as_bytes(values));
}

void ByteWriter::integers(std::span<const std::int32_t> values) {
  bytes(std::as_bytes(values));
}

Result<std::int64_t> ByteReader::signed_number() {
  KVASIR_ASSIGN(const std::uint64_t value, number<std::uint64_t>());
  return static_cast<std::int64_t>(value);
}

Result<bool> ByteReader::flag() {
  KVASIR_ASSIGN(const std::uint8_t value, number<std::uint8_t>());
  if (value > 1) return fail(Outcome::kCorrupt, "a flag of " + std::to_string(value) + " is neither 0 nor 1");
  return value == 1;
}

Result<std::span<const std::byte>> ByteReader::take(std::uint64_t count) {
  if (count > bytes_.size()) {
    return fail(
        Outcome::kCorrupt,
        std::to_string(count) + " bytes are wanted where " + std::to_string(bytes_.size()) + " are left",
        {.wanted = count, .available = bytes_.size()});
  }
  const std::span<const std::byte> taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

Result<std::uint64_t> ByteReader::count(std::uint64_t bytes_each) {
  KVASIR_ASSIGN(const std::uint64_t number, this->number<std::uint64_t>());
  if (number > bytes_.size() / bytes_each) {
    return fail(Outcome::kCorrupt,
                std::to_string(number) + " things of at least " + std::to_string(bytes_each) +
                    " bytes are announced where " + std::to_string(bytes_.size()) + " bytes are left",
                {.wanted = number, .available = bytes_.size() / bytes_each});
  }
  return number;
}

Result<std::string_view> ByteReader::text() {
  KVASIR_ASSIGN(const std::uint64_t length, count(1));
  KVASIR_ASSIGN(const std::span<const std::byte> raw, take(length));
  return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
}

namespace {

template <class T>
Result<std::vector<T>> array_of(ByteReader& reader, std::uint64_t count) {
  KVASIR_ASSIGN(const std::span<const std::byte> raw,
                reader.take(checked_mul<std::uint64_t>(count, sizeof(T)).value_or(UINT64_MAX)));
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

}  // namespace

Result<std::vector<float>> ByteReader::floats(std::uint64_t count) {
  return array_of<float>(*this, count);
}

Result<std::vector<std::int32_t>> ByteReader::integers(std::uint64_t count) {
  return array_of<std::int32_t>(*this, count);
}

Status ByteReader::end() const {
  if (bytes_.empty()) return {};
  return fail(Outcome::kCorrupt, std::to_string(bytes_.size()) + " bytes are left over");
}

}  // namespace kvasir::base
