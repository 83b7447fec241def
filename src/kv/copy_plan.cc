#include "kv/copy_plan.h"

#include <algorithm>
#include <tuple>

namespace kvasir::kv {

CopyPlan::CopyPlan(std::span<const pages::CopyCells> copies, simd::CacheElement keys) {
  runs_.reserve(copies.size());
  for (const pages::CopyCells& copy : copies) {
    runs_.push_back(
        {index_of(copy.from.page), copy.from.cell, index_of(copy.to.page), copy.to.cell, copy.count});
  }
  std::ranges::sort(runs_, {}, [](const Run& run) { return std::make_tuple(run.to_page, run.to); });
  add_segments();
  const std::size_t unit_bytes = simd::key_layout(keys, 1).unit_bytes;
  for (const Segment& segment : segments_) {
    numbers_.push_back(lanes_of(segment, unit_bytes));
    if (simd::is_blocks(keys)) scales_.push_back(lanes_of(segment, simd::CellLayout::kScaleBytes));
  }
}

// Few pages, and mostly the last: cells come in the order of their conversation.
std::uint32_t CopyPlan::index_of(pages::PageId page) {
  const auto found = std::ranges::find(pages_.rbegin(), pages_.rend(), page);
  if (found != pages_.rend()) return static_cast<std::uint32_t>(pages_.rend() - found) - 1;
  pages_.push_back(page);
  return static_cast<std::uint32_t>(pages_.size() - 1);
}

void CopyPlan::add_segments() {
  for (const Run& run : runs_) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const Cell to{run.to_page, run.to + i};
      const bool goes_on =
          !segments_.empty() && to.cell % simd::kCellLanes != 0 &&
          to == Cell{segments_.back().to.page, segments_.back().to.cell + segments_.back().count};
      if (!goes_on) segments_.push_back({.to = to});
      Segment& segment = segments_.back();
      segment.from[segment.count++] = {run.from_page, run.from + i};
    }
  }
}

bool CopyPlan::Segment::straight() const noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (from[i] != Cell{from[0].page, from[0].cell + i}) return false;
  }
  return from[0].cell % simd::kCellLanes + count <= simd::kCellLanes;
}

CopyPlan::Lanes CopyPlan::lanes_of(const Segment& segment, std::size_t unit_bytes) {
  constexpr std::size_t kPartBytes = std::tuple_size_v<simd::LaneLookup>;
  struct Source {
    Part part;
    simd::LaneLookup lookup;
  };
  std::vector<std::vector<Source>> sources(unit_bytes);  // [part of the target]
  const std::size_t first_lane = segment.to.cell % simd::kCellLanes;
  for (std::size_t i = 0; i < segment.count * unit_bytes; ++i) {
    const Cell& from = segment.from[i / unit_bytes];
    const std::size_t lane = from.cell % simd::kCellLanes;
    const std::size_t source_byte = lane * unit_bytes + i % unit_bytes;
    const std::size_t target_byte = first_lane * unit_bytes + i;
    const Part part{{from.page, from.cell - static_cast<std::uint32_t>(lane)},
                    static_cast<std::uint32_t>(source_byte / kPartBytes)};
    std::vector<Source>& all = sources[target_byte / kPartBytes];
    auto found = std::ranges::find(all, part, &Source::part);
    if (found == all.end()) {
      all.push_back({part, {}});
      found = all.end() - 1;
      found->lookup.fill(simd::kNotHere);
    }
    found->lookup[target_byte % kPartBytes] = static_cast<std::uint8_t>(source_byte % kPartBytes);
  }
  Lanes lanes{.parts = unit_bytes};
  for (const auto& all : sources) lanes.sources = std::max(lanes.sources, all.size());
  simd::LaneLookup nothing;
  nothing.fill(simd::kNotHere);
  // Every part of the target gets as many sources, some of which give nothing.
  const Part any = sources[first_lane * unit_bytes / kPartBytes].front().part;
  for (const auto& all : sources) {
    for (std::size_t i = 0; i < lanes.sources; ++i) {
      lanes.from.push_back(i < all.size() ? all[i].part : any);
      lanes.lookups.push_back(i < all.size() ? all[i].lookup : nothing);
    }
  }
  return lanes;
}

}  // namespace kvasir::kv
