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

Error ByteReader::too_short(std::uint64_t count, std::uint64_t bytes_each, std::string_view field) const {
  const auto wanted = base::checked_mul(count, bytes_each);
  const std::uint64_t in_file = file_.size() - position_;
  if (wanted && *wanted <= in_file) {
    return {Outcome::kUnsupported,
            fmt::format("the {} ends beyond the first {} bytes, more metadata than is read", field, limit_),
            {.wanted = wanted, .available = left(), .limit = kMaxMetadataBytes}};
  }
  const std::string need = bytes_each == 1 ? fmt::format("{} bytes", count)
                                           : fmt::format("{} times {} bytes or more", count, bytes_each);
  return {Outcome::kCorrupt,
          fmt::format("the file is incomplete or damaged: the {} at byte {} needs {}, but {} are left", field,
                      position_, need, in_file),
          {.wanted = wanted.value_or(UINT64_MAX), .available = in_file}};
}

Status ByteReader::read_on(std::span<std::byte> into, std::string_view field) {
  KVASIR_TRY(expect(into.size(), 1, field));
  while (!into.empty()) {
    if (const std::uint64_t here = std::min<std::uint64_t>(into.size(), buffered()); here > 0) {
      copy_buffered(into.first(here));
      into = into.subspan(here);
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

}  // namespace kvasir::gguf
