// Files behind an interface, so that tests can make each call fail: the rooms' only way to the file system.
// Invariants (docs/invariants.md)
//   B1  Until its commit a replaced file's target holds the old bytes, afterwards the new ones, always whole.
//   B2  Reads are positioned: no cursor is shared and nothing is mapped, so no file can fault
//       later.
//   B3  A scratch file has no name while it is written: whatever ends the process frees its space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::base {

// An open file for reading. Any thread may call; calls do not influence each other.
class ReadFile {
 public:
  virtual ~ReadFile() = default;

  // Bytes in the file when it was opened.
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;

  // Fills `into` with the bytes from `offset` on, all of them or an error: kCorrupt where the file ends
  // before, kIo where the system refuses. On error the content of `into` is unspecified.
  [[nodiscard]] virtual Status read_at(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

// A file that will replace its target. It is written without a name where the file system knows such files,
// else beside the target. Nothing shows at the target before commit(); destruction without commit removes
// what was written. One thread at a time.
class ReplacingFile {
 public:
  virtual ~ReplacingFile() = default;

  // Appends. On kIo the file can only be dropped.
  [[nodiscard]] virtual Status write(std::span<const std::byte> bytes) = 0;

  // Overwrites bytes that were appended earlier, such as a header whose numbers are known at the end.
  [[nodiscard]] virtual Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

  // Syncs, renames over the target, syncs the directory. kIo leaves the old target in place, unless only the
  // last sync failed: then the new one is there, and the message says so.
  [[nodiscard]] virtual Status commit() = 0;
};

// Space on a disk that has no name: it is gone with whoever opened it, however that ends. Any thread; calls
// on different bytes do not influence each other.
class ScratchFile {
 public:
  virtual ~ScratchFile() = default;

  // All bytes or kIo, then of unknown content; the file grows as far as it is written.
  [[nodiscard]] virtual Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

  // As ReadFile::read_at().
  [[nodiscard]] virtual Status read_at(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // kNotFound, or kIo; a directory or other special file is kInvalidArgument.
  [[nodiscard]] virtual Result<std::unique_ptr<ReadFile>> open_read(const std::string& path) = 0;

  // The same, but for a symbolic link, wherever it leads: kInvalidArgument.
  [[nodiscard]] virtual Result<std::unique_ptr<ReadFile>> open_here(const std::string& path) = 0;

  // The names in a directory, in no order: of its files, links and directories alike. kNotFound, kIo;
  // kInvalidArgument for what is no directory.
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;

  // Starts replacing (or creating) `path`; where that is a symbolic link, what it leads to. Who may read and
  // write it stays as it was. kInvalidArgument for what is there and no regular file; kNotFound where its
  // directory does not exist, else kIo.
  [[nodiscard]] virtual Result<std::unique_ptr<ReplacingFile>> replace(const std::string& path) = 0;

  // An empty scratch file on the disk of `directory`. kNotFound where that does not exist, else kIo.
  [[nodiscard]] virtual Result<std::unique_ptr<ScratchFile>> scratch(const std::string& directory) = 0;

  // Whether a file of any kind has this name; whether that is a symbolic link.
  [[nodiscard]] virtual bool exists(const std::string& path) = 0;
  [[nodiscard]] virtual bool is_link(const std::string& path) = 0;

  // kNotFound or kIo.
  [[nodiscard]] virtual Status remove(const std::string& path) = 0;
};

// Removes a file that is no longer wanted, where it is still there, when its scope ends.
class RemoveAtEnd {
 public:
  RemoveAtEnd(FileSystem& files, std::string path) : files_(&files), path_(std::move(path)) {}
  RemoveAtEnd(const RemoveAtEnd&) = delete;
  RemoveAtEnd& operator=(const RemoveAtEnd&) = delete;
  ~RemoveAtEnd();

 private:
  FileSystem* files_;
  std::string path_;
};

// The operating system's own files. Lives as long as the process. None of them takes the number of a standard
// stream, even where the process runs without: what others print would go into the file.
[[nodiscard]] FileSystem& system_files();

// Asks the system to keep nothing of a file in memory, so that reading it reads the disk: for measurements.
void forget_cached(const std::string& path) noexcept;

// Bytes in memory as a ReadFile, owned by it.
[[nodiscard]] std::unique_ptr<ReadFile> memory_file(std::vector<std::byte> bytes);

// Everything a descriptor delivers until its end, such as standard input. kNoSpace beyond `limit` bytes, kIo,
// or kCancelled where a signal breaks the waiting off and `stop`, if there is one, then says so.
[[nodiscard]] Result<std::vector<std::byte>> read_descriptor(int descriptor, std::uint64_t limit,
                                                             const std::function<bool()>& stop = {});

// The whole content of a file. kNoSpace beyond `limit` bytes; else as open_read and read_at.
[[nodiscard]] Result<std::vector<std::byte>> read_whole(FileSystem& files, const std::string& path,
                                                        std::uint64_t limit);

}  // namespace kvasir::base
