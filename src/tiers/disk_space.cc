#include "tiers/disk_space.h"

namespace kvasir::tiers {

std::vector<Extent> DiskSpace::take(std::uint64_t units) {
  std::vector<Extent> extents;
  std::uint64_t found = 0;
  std::uint64_t unit = from_;
  // Found first, taken afterwards: memory that is missing changes nothing.
  while (found < units) {
    if (unit >= used_.size()) unit = 0;
    if (!used_[unit]) {
      const bool goes_on = !extents.empty() && extents.back().first + extents.back().count == unit;
      if (goes_on) {
        ++extents.back().count;
      } else {
        extents.push_back({unit, 1});
      }
      ++found;
    }
    ++unit;
  }
  for (const Extent& extent : extents) {
    for (std::uint64_t i = 0; i < extent.count; ++i) used_[extent.first + i] = true;
  }
  units_used_ += units;
  from_ = unit;
  return extents;
}

void DiskSpace::give_back(std::span<const Extent> extents) noexcept {
  for (const Extent& extent : extents) {
    for (std::uint64_t i = 0; i < extent.count; ++i) used_[extent.first + i] = false;
    units_used_ -= extent.count;
  }
}

}  // namespace kvasir::tiers
