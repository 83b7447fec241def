// Reads the sections of an archive in order, and believes nothing before its checksum agrees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "archive/compression.h"
#include "archive/format.h"
#include "archive/stream.h"
#include "kvasir/result.h"

namespace kvasir::archive {

// One use; not thread-safe. After an error it can only be dropped.
class Reader {
 public:
  // kCorrupt for what is no archive, kUnsupported for a version that is not read. The source outlives the
  // reader.
  [[nodiscard]] static Result<Reader> begin(Source& source);

  Reader(Reader&&) noexcept;
  ~Reader();

  // The kind of the next section, kEnd behind the last: its head has been read and agrees with its checksum.
  // Errors as take().
  [[nodiscard]] Result<Kind> next();

  // What the next section holds, checked: where the source has it in memory, there. Valid until the next
  // call. kCorrupt where sizes or checksums do not agree, where the bytes end, or after the end; kIo;
  // kOutOfMemory. Sizes are checked against the bytes that are left, or else memory is taken as bytes come
  // in.
  [[nodiscard]] Result<std::span<const std::byte>> take();

  // The contents of all sections of a kind that come next, one behind the other. kCorrupt where they are more
  // than `limit` bytes.
  [[nodiscard]] Result<std::vector<std::byte>> contents(Kind kind, std::uint64_t limit);

  // Reads the end: the archive is whole, and nothing follows. kCorrupt where something else comes next.
  [[nodiscard]] Status end();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // read so far
  [[nodiscard]] std::uint64_t sections() const noexcept { return sections_; }

 private:
  struct Hash;
  struct Head {
    Kind kind{};
    std::uint32_t flags = 0;
    std::uint64_t stored = 0;
    std::uint64_t size = 0;
    std::uint64_t hash = 0;
  };
  Reader(Source& source, std::unique_ptr<Hash> hash) noexcept;
  [[nodiscard]] Status get(std::span<std::byte> into);
  [[nodiscard]] Status read_head();
  [[nodiscard]] Status check_sizes(const Head& head) const;
  [[nodiscard]] Result<std::span<const std::byte>> read_stored(std::uint64_t bytes);

  Source* source_;
  Compression compression_;
  std::unique_ptr<Hash> hash_;
  Head head_;
  bool has_head_ = false;
  std::vector<std::byte> stored_;
  std::vector<std::byte> expanded_;
  std::uint64_t sections_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace kvasir::archive
