#include "archive/writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "archive/hash.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::archive {
namespace {

constexpr int kLevelMax = 19;

}  // namespace

struct Writer::Hash {
  WholeHash whole;
  std::vector<std::byte> head;
};

Writer::Writer(Sink& sink, int level, std::unique_ptr<Hash> hash) noexcept
    : sink_(&sink), level_(level), hash_(std::move(hash)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::begin(Sink& sink, int level) {
  return base::within_memory([&]() -> Result<Writer> {
    if (level < 0 || level > kLevelMax) {
      return fail(Outcome::kInvalidArgument,
                  "archives are compressed at a level of 1 to " + std::to_string(kLevelMax) +
                      ", or 0 for none, not " + std::to_string(level),
                  {.limit = kLevelMax, .setting = "compression"});
    }
    Writer writer(sink, level, std::make_unique<Hash>());
    std::vector<std::byte>& beginning = writer.hash_->head;
    base::ByteWriter out(beginning);
    out.bytes(std::as_bytes(std::span(kMagic)));
    out.number(kVersion);
    writer.hash_->whole.add(beginning);
    KVASIR_TRY(writer.put(beginning));
    return writer;
  });
}

Status Writer::put(std::span<const std::byte> bytes) {
  KVASIR_TRY(sink_->write(bytes));
  bytes_ += bytes.size();
  return {};
}

Status Writer::put_section(Kind kind, std::uint32_t flags, std::uint64_t size,
                           std::span<const std::byte> stored) {
  std::vector<std::byte>& head = hash_->head;
  head.clear();
  base::ByteWriter out(head);
  out.number(static_cast<std::uint32_t>(kind));
  out.number(flags);
  out.number(std::uint64_t{stored.size()});
  out.number(size);
  out.number(base::checksum(stored));
  out.number(base::checksum(head, sections_));
  if (kind != kEnd) hash_->whole.add(head);
  KVASIR_TRY(put(head));
  KVASIR_TRY(put(stored));
  ++sections_;
  return {};
}

Status Writer::section(Kind kind, std::span<const std::byte> content) {
  return base::within_memory([&]() -> Status {
    if (content.size() > kSectionBytesMax) {
      return fail(Outcome::kUnsupported, "a section of " + std::to_string(content.size()) + " bytes",
                  {.wanted = content.size(), .limit = kSectionBytesMax});
    }
    if (level_ > 0) {
      KVASIR_ASSIGN(const std::span<const std::byte> compressed, compression_.compress(content, level_));
      if (!compressed.empty()) return put_section(kind, kCompressed, content.size(), compressed);
    }
    return put_section(kind, 0, content.size(), content);
  });
}

Status Writer::contents(Kind kind, std::span<const std::byte> content) {
  while (!content.empty()) {
    const std::size_t some = std::min(kPieceBytes, content.size());
    KVASIR_TRY(section(kind, content.first(some)));
    content = content.subspan(some);
  }
  return {};
}

Status Writer::end() {
  return base::within_memory([&]() -> Status {
    std::vector<std::byte> content;
    base::ByteWriter out(content);
    out.number(sections_);
    out.number(bytes_);
    out.bytes(hash_->whole.value());
    KVASIR_TRY(put_section(kEnd, 0, content.size(), content));
    return sink_->commit();
  });
}

}  // namespace kvasir::archive
