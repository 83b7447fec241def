// Where the bytes of spilled cells lie: in memory, and when that is full, the oldest of them on a disk.
//
// Bytes go in and come out whole and unchanged: each block has a checksum, which is compared whenever it
// comes back. A block is written to the disk by a thread of its own, from the memory where it lies, which is
// given up when all of it is written; and is read into staging memory, of which there is a fixed number of
// blocks beside the tiers' sizes. The file has no name (base::ScratchFile).
//
// A write that fails leaves its block in memory; a read that fails is the fault of its block alone.
//
// Invariants (docs/invariants.md)
//   D1  Blocks in memory are at most memory_bytes, and units taken of the file at most disk_bytes, at every
//       moment.
//   D2  Every block that was put and not dropped is whole in memory or on the disk.
//   D3  The thread that writes and reads touches the bytes of blocks that it was given, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "kvasir/result.h"
#include "pages/types.h"
#include "tiers/disk_space.h"

namespace kvasir::tiers {

struct TierSizes {
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;  // in whole units of DiskSpace::kUnitBytes; 0: no disk
  std::string directory;         // on whose disk the file is made
};

// What lies where, and what was moved.
struct TierUsage {
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t memory_bytes_max = 0;  // the most there ever were
  std::uint64_t disk_bytes_max = 0;
  std::uint64_t blocks_in_memory = 0;
  std::uint64_t blocks_on_disk = 0;
  std::uint64_t blocks_in_transit = 0;  // being written or read
  std::uint64_t bytes_written = 0;      // to the disk, and read from it
  std::uint64_t bytes_read = 0;
  std::uint64_t failures = 0;  // writes and reads that failed
};

using Block = pages::TierBlock;

// Bytes that stay as they are for as long as somebody looks at them.
struct BytesOfBlock {
  std::shared_ptr<const std::byte[]> bytes;
  std::size_t size = 0;

  [[nodiscard]] bool there() const noexcept { return bytes != nullptr; }
  [[nodiscard]] std::span<const std::byte> all() const noexcept { return {bytes.get(), size}; }
};

// Any thread may call.
class Tiers {
 public:
  // Opens the file where there is a disk. kInvalidArgument for a disk without memory before it or without a
  // directory; kNotFound, kIo; kOutOfMemory, also where the system starts no thread.
  [[nodiscard]] static Result<std::unique_ptr<Tiers>> create(const TierSizes& sizes, base::FileSystem& files);

  Tiers(const Tiers&) = delete;
  Tiers& operator=(const Tiers&) = delete;
  ~Tiers();

  // Called, from the own thread and without a lock, after each write and read. Set before the first use.
  void when_moved(std::function<void()> listener) { listener_ = std::move(listener); }

  // Whether put() has room for so many bytes: true, or false where there will be when what is being written
  // is on the disk, which is begun as needed. kNoSpace where there is none to be had, with the bytes; kIo of
  // the last write, where that is why, once: it is tried again afterwards; kOutOfMemory.
  [[nodiscard]] Result<bool> has_room(std::uint64_t bytes);

  // Keeps the bytes that `fill` writes, `count` of them. kNoSpace where has_room() does not answer true;
  // kOutOfMemory.
  [[nodiscard]] Result<Block> put(std::uint64_t count, const std::function<void(std::span<std::byte>)>& fill);

  // Asks for a block that will be looked at soon. False where it must be asked for again later, because all
  // staging memory is in use. kOutOfMemory.
  [[nodiscard]] Result<bool> want(Block block);

  // The bytes of a block; nothing where they must be asked for, or are being read. kIo and kCorrupt where
  // they cannot be had; asked for again afterwards, they are read again. kOutOfMemory.
  [[nodiscard]] Result<BytesOfBlock> look(Block block);
  void unwant(Block block) noexcept;

  // The bytes of a block at once, wherever it lies. kIo, kCorrupt, kOutOfMemory.
  [[nodiscard]] Result<BytesOfBlock> read(Block block) const;

  // A block that is no longer needed.
  void drop(Block block) noexcept;

  // Waits until something has been written or read, where anything is being. False where nothing is.
  bool wait();

  [[nodiscard]] TierUsage usage() const noexcept;
  [[nodiscard]] const TierSizes& sizes() const noexcept { return sizes_; }

 private:
  using Bytes = std::shared_ptr<std::byte[]>;

  struct Entry {
    std::uint64_t size = 0;
    std::uint64_t checksum = 0;
    Bytes memory;                 // nothing where it lies on the disk alone
    Bytes staged;                 // read from the disk
    std::vector<Extent> extents;  // its place on the disk, if it has one
    std::optional<Error> error;   // of the latest read
    bool writing = false;
    bool reading = false;
    bool wanted = false;  // what is being read
  };
  // What the own thread is to do.
  struct Task {
    std::uint64_t id = 0;
    bool writes = false;
    Bytes bytes;
    std::uint64_t size = 0;
    std::vector<Extent> extents;
  };

  explicit Tiers(TierSizes sizes) : sizes_(std::move(sizes)), space_(sizes_.disk_bytes) {}
  [[nodiscard]] Result<bool> make_room(std::uint64_t bytes) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] bool start_write(std::uint64_t id, Entry& entry) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status perform(const Task& task) const;
  [[nodiscard]] Status read_extents(std::span<const Extent> extents, std::span<std::byte> into) const;
  void finish(const Task& task, const Status& status) noexcept KVASIR_REQUIRES(mutex_);
  void forget(std::uint64_t id) noexcept KVASIR_REQUIRES(mutex_);
  void note_usage() noexcept KVASIR_REQUIRES(mutex_);
  void work() noexcept;

  const TierSizes sizes_;
  std::unique_ptr<base::ScratchFile> file_;
  std::function<void()> listener_;

  mutable base::Mutex mutex_;
  base::Condition work_;
  base::Condition done_;
  std::map<std::uint64_t, Entry> entries_ KVASIR_GUARDED_BY(mutex_);  // older ones first
  std::set<std::uint64_t> in_memory_ KVASIR_GUARDED_BY(mutex_);       // of those, oldest first
  DiskSpace space_ KVASIR_GUARDED_BY(mutex_);
  std::deque<Task> tasks_ KVASIR_GUARDED_BY(mutex_);
  std::uint64_t next_ KVASIR_GUARDED_BY(mutex_) = 1;
  std::uint64_t memory_used_ KVASIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t being_written_ KVASIR_GUARDED_BY(mutex_) = 0;  // bytes in memory that will be free then
  std::uint64_t staged_ KVASIR_GUARDED_BY(mutex_) = 0;         // blocks
  std::uint64_t finished_ KVASIR_GUARDED_BY(mutex_) = 0;       // tasks
  std::uint64_t under_way_ KVASIR_GUARDED_BY(mutex_) = 0;      // tasks
  std::optional<Error> write_error_ KVASIR_GUARDED_BY(mutex_);
  TierUsage usage_ KVASIR_GUARDED_BY(mutex_);
  bool stops_ KVASIR_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace kvasir::tiers
