#include "gguf/byte_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "gguf/gguf.h"

namespace kvasir::gguf {
namespace {

constexpr std::uint64_t kBufferBytes = std::uint64_t{64} << 10;

}  // namespace

ByteReader::ByteReader(const base::ReadFile& file)
    : file_(file), limit_(std::min<std::uint64_t>(file.size(), kMaxMetadataBytes)) {}

Status ByteReader::expect(std::uint64_t count, std::uint64_t bytes_each, std::string_view field) const {
  const auto wanted = base::checked_mul(count, bytes_each);
  if (wanted && *wanted <= left()) return {};
  const std::uint64_t in_file = file_.size() - position_;
  if (wanted && *wanted <= in_file) {
    return fail(
        Outcome::kUnsupported,
        fmt::format("the {} ends beyond the first {} bytes, more metadata than is read", field, limit_),
        {.wanted = wanted, .available = left(), .limit = kMaxMetadataBytes});
  }
  const std::string need = bytes_each == 1 ? fmt::format("{} bytes", count)
                                           : fmt::format("{} times {} bytes or more", count, bytes_each);
  return fail(Outcome::kCorrupt,
              fmt::format("the file is incomplete or damaged: the {} at byte {} needs {}, but {} are left",
                          field, position_, need, in_file),
              {.wanted = wanted.value_or(UINT64_MAX), .available = in_file});
}

Status ByteReader::read(std::span<std::byte> into, std::string_view field) {
  KVASIR_TRY(expect(into.size(), 1, field));
  while (!into.empty()) {
    const std::uint64_t buffer_end = buffer_start_ + buffer_.size();
    if (position_ >= buffer_start_ && position_ < buffer_end) {
      const std::size_t taken = std::min<std::uint64_t>(into.size(), buffer_end - position_);
      std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(position_ - buffer_start_), taken,
                  into.begin());
      position_ += taken;
      into = into.subspan(taken);
    } else if (into.size() >= kBufferBytes) {
      KVASIR_TRY(file_.read_at(position_, into));
      position_ += into.size();
      return {};
    } else {
      buffer_.resize(std::min(kBufferBytes, left()));
      buffer_start_ = position_;
      if (Status filled = file_.read_at(position_, buffer_); !filled) {
        buffer_.clear();
        return filled;
      }
    }
  }
  return {};
}

Status ByteReader::skip(std::uint64_t bytes, std::string_view field) {
  KVASIR_TRY(expect(bytes, 1, field));
  position_ += bytes;
  return {};
}

}  // namespace kvasir::gguf
