#include "tiers/tiers.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/checksum.h"
#include "base/log.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::tiers {
namespace {

// Blocks that are read ahead of whoever wants them.
constexpr std::uint64_t kStagedMax = 8;

// Bytes that are written to the disk ahead of whoever wants room in memory.
constexpr std::uint64_t kAheadMax = std::uint64_t{64} << 20;

std::unexpected<Error> changed() {
  return fail(Outcome::kCorrupt,
              "the bytes of a spilled conversation are not what was put away; drop() it, and its tokens are "
              "computed again");
}

}  // namespace

Result<std::unique_ptr<Tiers>> Tiers::create(const TierSizes& sizes, base::FileSystem& files) {
  return base::within_memory([&]() -> Result<std::unique_ptr<Tiers>> {
    if (sizes.disk_bytes > 0 && sizes.memory_bytes == 0) {
      return fail(Outcome::kInvalidArgument,
                  "the disk is reached through the memory tier, which has no bytes",
                  {.wanted = sizes.disk_bytes, .limit = 0, .setting = "memory_tier_bytes"});
    }
    if (sizes.disk_bytes > 0 && sizes.directory.empty()) {
      return fail(Outcome::kInvalidArgument, "there is no directory for what is spilled to disk",
                  {.setting = "spill_directory"});
    }
    if (sizes.disk_bytes == 0) return std::unique_ptr<Tiers>(new Tiers(sizes));
    KVASIR_ASSIGN(auto file, files.scratch(sizes.directory));
    std::unique_ptr<Tiers> tiers;
    try {
      tiers.reset(new Tiers(sizes));
    } catch (const std::bad_alloc&) {
      return fail(Outcome::kOutOfMemory, "out of memory",
                  {.wanted = sizes.disk_bytes, .setting = "disk_tier_bytes"});
    }
    tiers->file_ = std::move(file);
    try {
      tiers->thread_ = std::thread([mine = tiers.get()] { mine->work(); });
    } catch (const std::system_error&) {
      return fail(Outcome::kOutOfMemory, "the system starts no more threads");
    }
    return tiers;
  });
}

Tiers::~Tiers() {
  {
    const base::Lock held(mutex_);
    stops_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<bool> Tiers::has_room(std::uint64_t bytes) {
  return base::within_memory([&]() -> Result<bool> {
    const base::Lock held(mutex_);
    return make_room(bytes);
  });
}

// What is in memory stays within its size (D1): begins to write the oldest blocks until what is free, and
// what will be, suffices.
Result<bool> Tiers::make_room(std::uint64_t bytes) {
  const std::uint64_t free = sizes_.memory_bytes - memory_used_;
  if (free >= bytes) return true;
  if (write_error_) {
    Error error = *write_error_;
    write_error_.reset();
    return fail(std::move(error));
  }
  if (bytes <= sizes_.memory_bytes) {
    // More than is asked for, so that whoever comes next need not wait for a disk each time.
    const std::uint64_t wanted = std::max(bytes, std::min(sizes_.memory_bytes / 8, kAheadMax));
    for (const std::uint64_t id : in_memory_) {
      if (free + being_written_ >= wanted) break;
      Entry& entry = entries_.at(id);
      if (!entry.writing && !start_write(id, entry)) break;
    }
    if (free + being_written_ >= bytes) return false;
  }
  return fail(Outcome::kNoSpace,
              "the tiers have room for " +
                  std::to_string(free + space_.units_free() * DiskSpace::kUnitBytes) + " more bytes, " +
                  std::to_string(bytes) + " are wanted in one piece; larger tiers help",
              {.wanted = bytes,
               .available = free,
               .limit = sizes_.memory_bytes + sizes_.disk_bytes,
               .setting = sizes_.disk_bytes > 0 ? "disk_tier_bytes" : "memory_tier_bytes"});
}

// False where the disk has no room for the block (D1). Throws std::bad_alloc.
bool Tiers::start_write(std::uint64_t id, Entry& entry) {
  const std::uint64_t units = DiskSpace::units_of(entry.size);
  if (space_.units_free() < units) return false;
  Task& task = tasks_.emplace_back();
  try {
    entry.extents = space_.take(units);
    task = {.id = id, .writes = true, .bytes = entry.memory, .size = entry.size, .extents = entry.extents};
  } catch (const std::bad_alloc&) {
    space_.give_back(entry.extents);
    entry.extents.clear();
    tasks_.pop_back();
    throw;
  }
  entry.writing = true;
  being_written_ += entry.size;
  ++under_way_;
  note_usage();
  work_.notify_all();
  return true;
}

Result<Block> Tiers::put(std::uint64_t count, const std::function<void(std::span<std::byte>)>& fill) {
  return base::within_memory([&]() -> Result<Block> {
    {
      const base::Lock held(mutex_);
      KVASIR_ASSIGN(const bool room, make_room(count));
      if (!room)
        return fail(Outcome::kNoSpace, "the memory tier is being emptied", {.wanted = count, .available = 0});
      memory_used_ += count;
    }
    std::uint64_t id = 0;
    try {
      Bytes bytes(new std::byte[count]);
      const std::span<std::byte> all(bytes.get(), count);
      fill(all);
      const std::uint64_t checksum = base::checksum(all);
      const base::Lock held(mutex_);
      id = next_;
      entries_[id] = {.size = count, .checksum = checksum, .memory = std::move(bytes)};
      in_memory_.insert(id);
      ++next_;
      note_usage();
      return Block{id};
    } catch (const std::bad_alloc&) {
      const base::Lock held(mutex_);
      if (id != 0) entries_.erase(id);
      memory_used_ -= count;
      throw;
    }
  });
}

Result<bool> Tiers::want(Block block) {
  return base::within_memory([&]() -> Result<bool> {
    const base::Lock held(mutex_);
    const auto id = static_cast<std::uint64_t>(block);
    Entry& entry = entries_.at(id);
    entry.wanted = true;
    if (entry.memory != nullptr || entry.staged != nullptr || entry.reading || entry.error) return true;
    if (staged_ >= kStagedMax) return false;
    Bytes bytes(new std::byte[entry.size]);
    // Reading goes before writing: somebody waits for it.
    tasks_.push_front(
        {.id = id, .writes = false, .bytes = std::move(bytes), .size = entry.size, .extents = entry.extents});
    entry.reading = true;
    ++staged_;
    ++under_way_;
    work_.notify_all();
    return true;
  });
}

Result<BytesOfBlock> Tiers::look(Block block) {
  return base::within_memory([&]() -> Result<BytesOfBlock> {
    const base::Lock held(mutex_);
    Entry& entry = entries_.at(static_cast<std::uint64_t>(block));
    if (entry.error) return fail(*std::exchange(entry.error, std::nullopt));
    const Bytes& bytes = entry.memory != nullptr ? entry.memory : entry.staged;
    if (bytes == nullptr) return BytesOfBlock{};
    if (base::checksum({bytes.get(), entry.size}) != entry.checksum) return changed();
    return BytesOfBlock{bytes, entry.size};
  });
}

void Tiers::unwant(Block block) noexcept {
  const base::Lock held(mutex_);
  const auto found = entries_.find(static_cast<std::uint64_t>(block));
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.error.reset();
  entry.wanted = false;
  if (entry.staged == nullptr) return;  // what is being read is given up when it is there
  entry.staged.reset();
  --staged_;
}

Result<BytesOfBlock> Tiers::read(Block block) const {
  return base::within_memory([&]() -> Result<BytesOfBlock> {
    BytesOfBlock bytes;
    std::vector<Extent> extents;
    std::uint64_t checksum = 0;
    {
      const base::Lock held(mutex_);
      const Entry& entry = entries_.at(static_cast<std::uint64_t>(block));
      bytes = {entry.memory, entry.size};
      checksum = entry.checksum;
      if (!bytes.there()) extents = entry.extents;
    }
    if (!bytes.there()) {
      const Bytes read(new std::byte[bytes.size]);
      KVASIR_TRY(read_extents(extents, {read.get(), bytes.size}));
      bytes.bytes = read;
    }
    if (base::checksum(bytes.all()) != checksum) return changed();
    return bytes;
  });
}

Status Tiers::read_extents(std::span<const Extent> extents, std::span<std::byte> into) const {
  for (const Extent& extent : extents) {
    const std::size_t some = std::min<std::size_t>(into.size(), extent.count * DiskSpace::kUnitBytes);
    KVASIR_TRY(file_->read_at(extent.first * DiskSpace::kUnitBytes, into.first(some)));
    into = into.subspan(some);
  }
  return {};
}

void Tiers::drop(Block block) noexcept {
  const base::Lock held(mutex_);
  forget(static_cast<std::uint64_t>(block));
}

// What is being written or read keeps its place on the disk and its memory until that is over.
void Tiers::forget(std::uint64_t id) noexcept {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.memory != nullptr) in_memory_.erase(id);
  if (entry.memory != nullptr && !entry.writing) memory_used_ -= entry.size;
  if (entry.staged != nullptr) --staged_;
  if (!entry.writing && !entry.reading) space_.give_back(entry.extents);
  entries_.erase(found);
  note_usage();
}

// Without the lock: of what others touch meanwhile it sees the bytes that the task holds (D3).
Status Tiers::perform(const Task& task) const {
  const std::span<std::byte> all(task.bytes.get(), task.size);
  if (!task.writes) return read_extents(task.extents, all);
  std::span<const std::byte> left = all;
  for (const Extent& extent : task.extents) {
    const std::size_t some = std::min<std::size_t>(left.size(), extent.count * DiskSpace::kUnitBytes);
    KVASIR_TRY(file_->write_at(extent.first * DiskSpace::kUnitBytes, left.first(some)));
    left = left.subspan(some);
  }
  return {};
}

void Tiers::work() noexcept {
  const base::Lock held(mutex_);
  while (true) {
    while (!stops_ && tasks_.empty()) work_.wait(mutex_);
    if (stops_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    Status status;
    {
      const base::Unlock meanwhile(mutex_);
      status = base::within_memory([&] { return perform(task); });
    }
    finish(task, status);
    ++finished_;
    --under_way_;
    const base::Unlock meanwhile(mutex_);
    task.bytes.reset();
    done_.notify_all();
    if (listener_) listener_();
  }
}

void Tiers::finish(const Task& task, const Status& status) noexcept {
  const auto found = entries_.find(task.id);
  const bool dropped = found == entries_.end();
  std::optional<Error> error;
  if (!status) {
    ++usage_.failures;
    try {
      error = status.error();
    } catch (const std::bad_alloc&) {
      error.emplace(status.error().code(), std::string());
    }
  } else {
    (task.writes ? usage_.bytes_written : usage_.bytes_read) += task.size;
  }
  if (!task.writes) {
    const bool wanted = !dropped && found->second.wanted;
    if (!wanted || error) --staged_;
    if (dropped) return space_.give_back(task.extents);
    found->second.reading = false;
    if (!wanted) return;
    found->second.error = std::move(error);
    if (!found->second.error) found->second.staged = task.bytes;
    return;
  }
  being_written_ -= task.size;
  if (dropped) {
    memory_used_ -= task.size;
    return space_.give_back(task.extents);
  }
  Entry& entry = found->second;
  entry.writing = false;
  if (error) {  // it stays in memory (D2)
    space_.give_back(entry.extents);
    entry.extents.clear();
    base::log(LogLevel::kWarn, [&] {
      return std::to_string(entry.size) +
             " bytes stay in memory, which were to go to the disk: " + error->message();
    });
    write_error_ = std::move(error);
  } else {
    entry.memory.reset();
    in_memory_.erase(task.id);
    memory_used_ -= entry.size;
  }
  note_usage();
}

bool Tiers::wait() {
  const base::Lock held(mutex_);
  if (under_way_ == 0) return false;
  const std::uint64_t before = finished_;
  while (finished_ == before) done_.wait(mutex_);
  return true;
}

void Tiers::note_usage() noexcept {
  usage_.memory_bytes_max = std::max(usage_.memory_bytes_max, memory_used_);
  usage_.disk_bytes_max =
      std::max(usage_.disk_bytes_max, (space_.units() - space_.units_free()) * DiskSpace::kUnitBytes);
}

TierUsage Tiers::usage() const noexcept {
  const base::Lock held(mutex_);
  TierUsage usage = usage_;
  usage.memory_bytes = memory_used_;
  usage.disk_bytes = (space_.units() - space_.units_free()) * DiskSpace::kUnitBytes;
  usage.blocks_in_memory = in_memory_.size();
  usage.blocks_on_disk = entries_.size() - in_memory_.size();
  usage.blocks_in_transit = under_way_;
  return usage;
}

}  // namespace kvasir::tiers
