// Where archives go and come from: bytes in order, one end only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "kvasir/archive.h"
#include "kvasir/result.h"

namespace kvasir::archive {

// One thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;

  // About so many bytes will be written in all: room for them may be made. kOutOfMemory.
  [[nodiscard]] virtual Status expect(std::uint64_t /*bytes*/) { return {}; }

  [[nodiscard]] virtual Status write(std::span<const std::byte> bytes) = 0;

  // All is there: what was written takes the place of what was. Without it nothing has happened, where the
  // sink can undo.
  [[nodiscard]] virtual Status commit() = 0;
};

class Source {
 public:
  virtual ~Source() = default;

  // The bytes that are left; nothing where that is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> left() const noexcept = 0;

  // Fills `into` wholly; kCorrupt where the bytes end before, kIo.
  [[nodiscard]] virtual Status read(std::span<std::byte> into) = 0;

  // The next `count` bytes where they lie already, for as long as the source; nothing, and nothing is read,
  // where they must be read() into memory.
  [[nodiscard]] virtual std::optional<std::span<const std::byte>> take(std::size_t /*count*/) { return {}; }
};

// A file that is replaced at commit(), and not before (base::ReplacingFile). Errors as FileSystem::replace().
[[nodiscard]] Result<std::unique_ptr<Sink>> file_sink(base::FileSystem& files, const std::string& path);

// In the place of what `bytes` hold, which outlive it: their memory is written over. Without commit() they
// are none, or as they were where nothing was written.
[[nodiscard]] std::unique_ptr<Sink> memory_sink(std::vector<std::byte>& bytes);

// A user's function, which outlives it. What it throws is kIo.
[[nodiscard]] std::unique_ptr<Sink> callback_sink(const WriteBytes& write);

// A file that is open, read from its beginning to its end.
[[nodiscard]] std::unique_ptr<Source> file_source(std::unique_ptr<base::ReadFile> file);

// Bytes that outlive it.
[[nodiscard]] std::unique_ptr<Source> memory_source(std::span<const std::byte> bytes);

// A user's function, which outlives it. What it throws, or an answer of more bytes than were asked for, is
// kIo.
[[nodiscard]] std::unique_ptr<Source> callback_source(const ReadBytes& read);

}  // namespace kvasir::archive
