// The system's own calls on files, made to fail or to do less: below the interface of base::FileSystem, where
// tests of base itself need faults.
//
// A program that links system_faults.cc has these calls replaced; unarmed, they do what they always do.
#pragma once

#include <cstdint>
#include <optional>

namespace kvasir::test {

enum class SystemCall : std::uint8_t { kRead, kWrite, kSync, kRename, kOpen };

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
