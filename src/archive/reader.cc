#include "archive/reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "archive/hash.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::archive {

struct Reader::Hash {
  WholeHash whole;
};

Reader::Reader(Source& source, std::unique_ptr<Hash> hash) noexcept
    : source_(&source), hash_(std::move(hash)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::begin(Source& source) {
  return base::within_memory([&]() -> Result<Reader> {
    Reader reader(source, std::make_unique<Hash>());
    std::array<std::byte, kBeginningBytes> beginning{};
    KVASIR_TRY(reader.get(beginning));
    if (!std::ranges::equal(std::as_bytes(std::span(kMagic)), std::span(beginning).first(kMagic.size())))
      return fail(Outcome::kCorrupt, "this is no Kvasir archive");
    const auto version = std::to_integer<std::uint8_t>(beginning.back());
    if (version != kVersion) {
      return fail(Outcome::kUnsupported,
                  "the archive is of version " + std::to_string(version) + ", this program reads version " +
                      std::to_string(kVersion),
                  {.wanted = version, .limit = kVersion});
    }
    reader.hash_->whole.add(beginning);
    return reader;
  });
}

Status Reader::get(std::span<std::byte> into) {
  KVASIR_TRY(source_->read(into));
  bytes_ += into.size();
  return {};
}

Status Reader::check_sizes(const Head& head) const {
  const std::string what = "section " + std::to_string(sections_) + " (" + kind_text(head.kind) + ")";
  if (head.flags > kCompressed)
    return fail(Outcome::kUnsupported, what + " has flags that this program does not know");
  const bool plain = head.flags == 0;
  const bool fits = head.size <= kSectionBytesMax && head.stored <= head.size &&
                    (plain == (head.stored == head.size)) &&
                    (plain || head.size <= head.stored * kCompressionMost);
  if (!fits) {
    return fail(
        Outcome::kCorrupt,
        what + " of " + std::to_string(head.stored) + " bytes cannot hold " + std::to_string(head.size),
        {.wanted = head.size, .available = head.stored, .limit = kSectionBytesMax});
  }
  const auto left = source_->left();
  if (!left || head.stored <= *left) return {};
  return fail(
      Outcome::kCorrupt,
      what + " claims " + std::to_string(head.stored) + " bytes where " + std::to_string(*left) + " are left",
      {.wanted = head.stored, .available = left});
}

Status Reader::read_head() {
  if (has_head_) return {};
  std::array<std::byte, kHeadBytes> bytes{};
  KVASIR_TRY(get(bytes));
  base::ByteReader in(bytes);
  KVASIR_ASSIGN(const auto kind, in.number<std::uint32_t>());
  Head head{.kind = Kind{kind}};
  KVASIR_ASSIGN(head.flags, in.number<std::uint32_t>());
  KVASIR_ASSIGN(head.stored, in.number<std::uint64_t>());
  KVASIR_ASSIGN(head.size, in.number<std::uint64_t>());
  KVASIR_ASSIGN(head.hash, in.number<std::uint64_t>());
  KVASIR_ASSIGN(const auto own, in.number<std::uint64_t>());
  if (own != base::checksum(std::span(bytes).first(kHeadBytes - sizeof(own)), sections_)) {
    return fail(Outcome::kCorrupt,
                "the head of section " + std::to_string(sections_) + " does not agree with its checksum");
  }
  KVASIR_TRY(check_sizes(head));
  if (head.kind != kEnd) hash_->whole.add(bytes);
  head_ = head;
  has_head_ = true;
  return {};
}

Result<Kind> Reader::next() {
  KVASIR_TRY(read_head());
  return head_.kind;
}

// Where the bytes that are left are not known, memory grows as they come in. What is written over is not
// cleared before.
Result<std::span<const std::byte>> Reader::read_stored(std::uint64_t bytes) {
  if (const auto there = source_->take(bytes)) {
    bytes_ += bytes;
    return *there;
  }
  const bool known = source_->left().has_value();
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t left = bytes - done;
    const std::uint64_t some =
        known ? left : std::min<std::uint64_t>(left, std::max<std::uint64_t>(done, kPieceBytes));
    stored_.resize(std::max<std::uint64_t>(stored_.size(), done + some));
    KVASIR_TRY(get(std::span(stored_).subspan(done, some)));
    done += some;
  }
  stored_.resize(bytes);
  return std::span<const std::byte>(stored_);
}

Result<std::span<const std::byte>> Reader::take() {
  return base::within_memory([&]() -> Result<std::span<const std::byte>> {
    KVASIR_TRY(read_head());
    KVASIR_ASSIGN(const std::span<const std::byte> stored, read_stored(head_.stored));
    if (base::checksum(stored) != head_.hash) {
      return fail(Outcome::kCorrupt, "section " + std::to_string(sections_) + " (" + kind_text(head_.kind) +
                                         ") does not agree with its checksum");
    }
    has_head_ = false;
    ++sections_;
    if (head_.flags == 0) return stored;
    expanded_.resize(head_.size);
    KVASIR_TRY(compression_.expand(stored, expanded_));
    return std::span<const std::byte>(expanded_);
  });
}

Result<std::vector<std::byte>> Reader::contents(Kind kind, std::uint64_t limit) {
  return base::within_memory([&]() -> Result<std::vector<std::byte>> {
    std::vector<std::byte> all;
    while (true) {
      KVASIR_ASSIGN(const Kind coming, next());
      if (coming != kind) return all;
      KVASIR_ASSIGN(const std::span<const std::byte> some, take());
      if (some.size() > limit - all.size())
        return fail(Outcome::kCorrupt, "more than " + std::to_string(limit) + " bytes of " + kind_text(kind),
                    {.limit = limit});
      all.insert(all.end(), some.begin(), some.end());
    }
  });
}

Status Reader::end() {
  KVASIR_ASSIGN(const Kind coming, next());
  if (coming != kEnd)
    return fail(Outcome::kCorrupt, "a section " + kind_text(coming) + " where the archive should end");
  const std::uint64_t sections = sections_;
  const std::uint64_t bytes = bytes_ - kHeadBytes;
  KVASIR_ASSIGN(const std::span<const std::byte> content, take());
  base::ByteReader in(content);
  KVASIR_ASSIGN(const auto its_sections, in.number<std::uint64_t>());
  KVASIR_ASSIGN(const auto its_bytes, in.number<std::uint64_t>());
  KVASIR_ASSIGN(const std::span<const std::byte> hash, in.take(16));
  KVASIR_TRY(in.end());
  if (its_sections != sections || its_bytes != bytes || !std::ranges::equal(hash, hash_->whole.value()))
    return fail(Outcome::kCorrupt, "the archive does not agree with the checksum of the whole");
  if (const auto left = source_->left(); left && *left > 0) {
    return fail(Outcome::kCorrupt, std::to_string(*left) + " bytes follow behind the archive's end",
                {.available = left});
  }
  return {};
}

}  // namespace kvasir::archive
