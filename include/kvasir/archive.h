// Archives: conversations as bytes, to be put away and taken back at any time, into any cache with room.
// docs/formats/archive.md says what every byte means.
//
// A value header. The store in it is the API's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvasir/report.h"
#include "kvasir/result.h"

namespace kvasir {

namespace archive {
class Store;
}

namespace api {
struct Inside;
}

// Takes the next bytes of an archive, in order. What it answers other than success ends the save.
using WriteBytes = std::function<Status(std::span<const std::byte>)>;

// Fills the beginning of what it is given with the next bytes of an archive and answers how many, at least
// one; none at the end.
using ReadBytes = std::function<Result<std::size_t>(std::span<std::byte>)>;

// How far a save or load is, in bytes of keys, values and states.
struct ArchiveProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

struct SaveOptions {
  int compression = 0;  // a level of zstd, 1 to 19; 0: none

  // While others compute, the share of the time that this may take from them: 0 to 1, and 1 as fast as it
  // goes; any other number is kInvalidArgument.
  double background = 0.04;

  // Called now and then from the calling thread with no lock held. To answer false ends it: kCancelled.
  std::function<bool(const ArchiveProgress&)> progress = nullptr;
};

struct LoadOptions {
  // Where the keys and values cannot be used here (another type of cache, another numerics id, damage), the
  // tokens are queued instead, to be computed again at the positions 0, 1, ..., and a source is read again
  // before the call returns; else the archive is refused.
  bool recompute = false;
  double background = 0.04;  // as SaveOptions
  std::function<bool(const ArchiveProgress&)> progress = nullptr;
};

// What a save wrote or a load read.
struct ArchiveReport {
  std::uint64_t bytes = 0;       // of the archive
  std::uint64_t cell_bytes = 0;  // keys, values and states, uncompressed
  std::uint64_t cells = 0;       // those that several conversations share counted once
  std::uint64_t conversations = 0;
  std::uint64_t tokens = 0;             // computed ones, over all conversations
  std::uint64_t tokens_recomputed = 0;  // of a load: queued again because their cells could not be used
};

// Archives by name, in a directory or in memory.
//
// A name is 1 to 200 bytes of UTF-8 without control characters, '/', '\\' and ':', and neither begins nor
// ends with a dot or a space; any other is kInvalidArgument. Move-only. Any thread.
class ArchiveStore {
 public:
  // The files NAME.kvar of a directory. Nothing outside it is read or written: a name that is a symbolic link
  // is kInvalidArgument. kNotFound where the directory is not there; kInvalidArgument for what is none; kIo;
  // kOutOfMemory.
  [[nodiscard]] static Result<ArchiveStore> in_directory(const std::string& path);

  // As long as the store lives. kOutOfMemory.
  [[nodiscard]] static Result<ArchiveStore> in_memory();

  ArchiveStore(ArchiveStore&&) noexcept;
  ArchiveStore& operator=(ArchiveStore&&) noexcept;
  ~ArchiveStore();

  // The bytes of an archive. kNotFound; kIo; kOutOfMemory.
  [[nodiscard]] Result<std::vector<std::byte>> read(const std::string& name) const;

  // In the place of what had this name; all or nothing. kIo; kOutOfMemory.
  [[nodiscard]] Status write(const std::string& name, std::span<const std::byte> bytes);

  // Sorted. kNotFound for a directory that is gone; kIo; kOutOfMemory.
  [[nodiscard]] Result<std::vector<std::string>> list() const;

  // kNotFound; kIo; kOutOfMemory.
  [[nodiscard]] Status remove(const std::string& name);

 private:
  friend struct api::Inside;
  explicit ArchiveStore(std::unique_ptr<archive::Store> store) noexcept;
  std::unique_ptr<archive::Store> store_;
};

}  // namespace kvasir
