// Inside the room: one frame of zstd a section.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::archive {

// Keeps its memory from call to call. Not thread-safe.
class Compression {
 public:
  Compression();
  Compression(Compression&&) noexcept;
  Compression& operator=(Compression&&) noexcept;
  ~Compression();

  // `bytes` at a level of 1 to 19; an empty list where that is no shorter, or shorter than kCompressionMost
  // allows. kOutOfMemory.
  [[nodiscard]] Result<std::span<const std::byte>> compress(std::span<const std::byte> bytes, int level);

  // Exactly `size` bytes; kCorrupt where the frame holds more, fewer or none.
  [[nodiscard]] Status expand(std::span<const std::byte> stored, std::span<std::byte> into);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
  std::vector<std::byte> out_;
};

}  // namespace kvasir::archive
