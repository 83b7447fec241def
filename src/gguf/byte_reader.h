// Reads the beginning of a file field by field, in few positioned reads, never beyond what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/try.h"
#include "kvasir/result.h"

namespace kvasir::gguf {

// A cursor. Each call names the field it is for: kCorrupt says that the file ends within it, kUnsupported
// that it lies beyond the metadata that is read (kMaxMetadataBytes), kIo comes from the file. One thread at a
// time.
class ByteReader {
 public:
  // The file outlives the reader.
  explicit ByteReader(const base::ReadFile& file);

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  // Bytes between the cursor and the end of the file, or of what is read of it.
  [[nodiscard]] std::uint64_t left() const noexcept { return limit_ - position_; }

  // Whether `count` things of at least `bytes_each` can still follow; asked before memory is taken for them.
  [[nodiscard]] Status expect(std::uint64_t count, std::uint64_t bytes_each, std::string_view field) const {
    if (bytes_each == 0 || count <= left() / bytes_each) return {};
    return fail(too_short(count, bytes_each, field));
  }

  // The next bytes.
  [[nodiscard]] Status read(std::span<std::byte> into, std::string_view field) {
    // A vocabulary is half a million fields of a few bytes.
    if (into.size() > buffered()) return read_on(into, field);
    copy_buffered(into);
    return {};
  }
  [[nodiscard]] Status skip(std::uint64_t bytes, std::string_view field) {
    KVASIR_TRY(expect(bytes, 1, field));
    position_ += bytes;
    return {};
  }
  void seek(std::uint64_t earlier_position) noexcept { position_ = earlier_position; }

  // The next number, little-endian.
  template <class T>
  [[nodiscard]] Result<T> number(std::string_view field) {
    T value{};
    KVASIR_TRY(read(std::as_writable_bytes(std::span(&value, 1)), field));
    return value;
  }

 private:
  // Bytes from the cursor on that are in memory.
  [[nodiscard]] std::uint64_t buffered() const noexcept {
    const std::uint64_t inside = position_ - buffer_start_;
    return position_ >= buffer_start_ && inside <= buffer_.size() ? buffer_.size() - inside : 0;
  }
  // Fills `into` from those bytes.
  void copy_buffered(std::span<std::byte> into) noexcept {
    if (into.empty()) return;
    std::memcpy(into.data(), buffer_.data() + (position_ - buffer_start_), into.size());
    position_ += into.size();
  }
  [[nodiscard]] Status read_on(std::span<std::byte> into, std::string_view field);
  [[nodiscard]] Error too_short(std::uint64_t count, std::uint64_t bytes_each, std::string_view field) const;

  const base::ReadFile& file_;
  std::uint64_t limit_;
  std::uint64_t position_ = 0;
  std::uint64_t buffer_start_ = 0;  // where in the file the buffered bytes lie
  std::vector<std::byte> buffer_;
};

}  // namespace kvasir::gguf
