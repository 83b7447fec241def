#include "system_faults.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string>

namespace kvasir::test {
namespace {

struct Armed {
  bool on = false;
  bool fired = false;
  SystemCall call = SystemCall::kRead;
  std::uint64_t left = 0;
  int code = 0;
};
Armed armed;
CallRecord* record = nullptr;
std::size_t transfer_limit = 0;
std::uint64_t transfers = 0;
bool nameless_files = true;

// Whether this call fails; sets errno.
bool fails(SystemCall call) noexcept {
  if (!armed.on || armed.call != call || armed.left-- != 0) return false;
  armed.fired = true;
  errno = armed.code;
  return true;
}

// Shortens a transfer, or says that it is interrupted instead.
bool interrupted(std::size_t& bytes) noexcept {
  if (transfer_limit == 0) return false;
  bytes = std::min(bytes, transfer_limit);
  if (transfers++ % 2 == 1) return false;
  errno = EINTR;
  return true;
}

ssize_t transfer(SystemCall call, long number, int descriptor, const void* bytes, std::size_t count,
                 off_t offset) {
  if (fails(call) || interrupted(count)) return -1;
  const ssize_t moved = ::syscall(number, descriptor, bytes, count, offset);
  if (record != nullptr && call == SystemCall::kWrite && moved > 0) {
    record->add({.kind = CallRecord::Call::Kind::kWrite,
                 .descriptor = descriptor,
                 .offset = static_cast<std::uint64_t>(offset),
                 .bytes = std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(moved))});
  }
  return moved;
}

}  // namespace

SystemFault::SystemFault(SystemCall call, std::uint64_t n, int code) noexcept {
  armed = {.on = true, .call = call, .left = n, .code = code};
}
SystemFault::~SystemFault() {
  armed.on = false;
}
bool SystemFault::fired() const noexcept {
  return armed.fired;
}

CallRecord::CallRecord() noexcept {
  record = this;
}
CallRecord::~CallRecord() {
  record = nullptr;
}

NoNamelessFiles::NoNamelessFiles() noexcept {
  nameless_files = false;
}
NoNamelessFiles::~NoNamelessFiles() {
  nameless_files = true;
}

ShortTransfers::ShortTransfers(std::size_t bytes) noexcept {
  transfer_limit = bytes;
  transfers = 0;
}
ShortTransfers::~ShortTransfers() {
  transfer_limit = 0;
}

}  // namespace kvasir::test

using kvasir::test::CallRecord;
using kvasir::test::fails;
using kvasir::test::nameless_files;
using kvasir::test::record;
using kvasir::test::SystemCall;
using kvasir::test::transfer;

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's parameters are reserved
// names
extern "C" {

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  return transfer(SystemCall::kRead, SYS_pread64, descriptor, bytes, count, offset);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  return transfer(SystemCall::kWrite, SYS_pwrite64, descriptor, bytes, count, offset);
}

int fsync(int descriptor) {
  if (fails(SystemCall::kSync)) return -1;
  const int done = static_cast<int>(::syscall(SYS_fsync, descriptor));
  if (record != nullptr && done == 0)
    record->add({.kind = CallRecord::Call::Kind::kSync, .descriptor = descriptor});
  return done;
}

int rename(const char* from, const char* to) noexcept {
  if (fails(SystemCall::kRename)) return -1;
  const int done = static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
  if (record != nullptr && done == 0)
    record->add({.kind = CallRecord::Call::Kind::kRename, .path = from, .to = to});
  return done;
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
  if (fails(SystemCall::kLink)) return -1;
  const int done = static_cast<int>(::syscall(SYS_linkat, from_directory, from, to_directory, to, flags));
  if (record != nullptr && done == 0) {
    const std::string name(from);  // /proc/self/fd/N
    record->add({.kind = CallRecord::Call::Kind::kLink,
                 .descriptor = std::stoi(name.substr(name.rfind('/') + 1)),
                 .to = to});
  }
  return done;
}

int open(const char* path, int flags, ...) {
  const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
  if (nameless && !nameless_files) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (fails(SystemCall::kOpen)) return -1;
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ((flags & O_CREAT) != 0 || nameless) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const int opened = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (record != nullptr && opened >= 0) {
    record->add({.kind = CallRecord::Call::Kind::kOpen,
                 .descriptor = opened,
                 .directory = !nameless && (flags & O_DIRECTORY) != 0,
                 .nameless = nameless,
                 .path = path});
  }
  return opened;
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
