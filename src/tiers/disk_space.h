// Which parts of a scratch file are in use, in units of one size. Whatever is free serves anyone: what does
// not fit in one place lies in several.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::tiers {

// Units side by side.
struct Extent {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

// Not thread-safe.
class DiskSpace {
 public:
  static constexpr std::uint64_t kUnitBytes = 4096;

  // As many whole units as `bytes` hold. Throws std::bad_alloc.
  explicit DiskSpace(std::uint64_t bytes) : used_(bytes / kUnitBytes) {}

  [[nodiscard]] static std::uint64_t units_of(std::uint64_t bytes) noexcept {
    return (bytes + kUnitBytes - 1) / kUnitBytes;
  }

  // Takes so many free units, of which there must be enough. Throws std::bad_alloc, having taken none.
  [[nodiscard]] std::vector<Extent> take(std::uint64_t units);
  void give_back(std::span<const Extent> extents) noexcept;

  [[nodiscard]] std::uint64_t units() const noexcept { return used_.size(); }
  [[nodiscard]] std::uint64_t units_free() const noexcept { return used_.size() - units_used_; }

 private:
  std::vector<bool> used_;
  std::uint64_t units_used_ = 0;
  std::uint64_t from_ = 0;  // where the last search ended
};

}  // namespace kvasir::tiers
