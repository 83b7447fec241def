// The system's own calls on files, made to fail or to do less: below the interface of base::FileSystem, where
// tests of base itself need faults.
//
// A program that links system_faults.cc has these calls replaced; unarmed, they do what they always do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::test {

enum class SystemCall : std::uint8_t { kRead, kWrite, kSync, kLink, kRename, kOpen };

// While it lives, the n-th call of this kind (from 0) of the whole program fails with `code` (an errno). One
// at a time.
class SystemFault {
 public:
  SystemFault(SystemCall call, std::uint64_t n, int code) noexcept;
  SystemFault(const SystemFault&) = delete;
  SystemFault& operator=(const SystemFault&) = delete;
  ~SystemFault();

  [[nodiscard]] bool fired() const noexcept;
};

// Writes down the calls that change files while it lives, in order, those that succeed. One at a time.
class CallRecord {
 public:
  struct Call {
    enum class Kind : std::uint8_t { kOpen, kWrite, kSync, kLink, kRename };
    Kind kind = Kind::kOpen;
    int descriptor = -1;
    bool directory = false;    // of kOpen
    bool nameless = false;     // of kOpen: a new file without a name
    std::uint64_t offset = 0;  // of kWrite
    std::string bytes;
    std::string path;  // of kOpen and kRename
    std::string to;    // of kLink and kRename
  };
  CallRecord() noexcept;
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;
  ~CallRecord();

  [[nodiscard]] const std::vector<Call>& calls() const noexcept { return calls_; }
  void add(Call call) { calls_.push_back(std::move(call)); }

 private:
  std::vector<Call> calls_;
};

// While it lives, the file system knows no files without names.
class NoNamelessFiles {
 public:
  NoNamelessFiles() noexcept;
  NoNamelessFiles(const NoNamelessFiles&) = delete;
  NoNamelessFiles& operator=(const NoNamelessFiles&) = delete;
  ~NoNamelessFiles();
};

// While it lives, a read or write moves at most `bytes` bytes, and each second call is interrupted (EINTR)
// first.
class ShortTransfers {
 public:
  explicit ShortTransfers(std::size_t bytes) noexcept;
  ShortTransfers(const ShortTransfers&) = delete;
  ShortTransfers& operator=(const ShortTransfers&) = delete;
  ~ShortTransfers();
};

}  // namespace kvasir::test
