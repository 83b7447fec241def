// Writes the sections of an archive in order.
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
class Writer {
 public:
  // `level` of zstd is 1 to 19, or 0 for none; kInvalidArgument for another. The sink outlives the writer.
  [[nodiscard]] static Result<Writer> begin(Sink& sink, int level);

  Writer(Writer&&) noexcept;
  ~Writer();

  // One section of at most kSectionBytesMax bytes. Errors of the sink; kOutOfMemory.
  [[nodiscard]] Status section(Kind kind, std::span<const std::byte> content);

  // Contents of any length as sections of one kind; no section where there are none.
  [[nodiscard]] Status contents(Kind kind, std::span<const std::byte> content);

  // The end, and the sink's commit().
  [[nodiscard]] Status end();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // written so far

 private:
  struct Hash;
  Writer(Sink& sink, int level, std::unique_ptr<Hash> hash) noexcept;
  [[nodiscard]] Status put(std::span<const std::byte> bytes);
  [[nodiscard]] Status put_section(Kind kind, std::uint32_t flags, std::uint64_t size,
                                   std::span<const std::byte> stored);

  Sink* sink_;
  int level_;
  Compression compression_;
  std::unique_ptr<Hash> hash_;
  std::uint64_t sections_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace kvasir::archive
