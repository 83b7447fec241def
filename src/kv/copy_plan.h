// Which cells go where, the same in every layer of a group: made once, done by Arena::copy_cells() in each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pages/types.h"
#include "simd/cell_layout.h"
#include "simd/cell_moves.h"

namespace kvasir::kv {

// Immutable; any thread.
class CopyPlan {
 public:
  // Copies of one group. No cell that is copied to is any other of the cells named. `keys` is how the arena
  // stores keys. Throws std::bad_alloc.
  CopyPlan(std::span<const pages::CopyCells> copies, simd::CacheElement keys);

  // The pages that it names, each once.
  [[nodiscard]] std::span<const pages::PageId> pages() const noexcept { return pages_; }

 private:
  friend class Arena;

  // Cells side by side on both sides. A page is its index in pages().
  struct Run {
    std::uint32_t from_page = 0;
    std::uint32_t from = 0;
    std::uint32_t to_page = 0;
    std::uint32_t to = 0;
    std::uint32_t count = 0;
  };

  // A cell, or the first one of a group of lanes.
  struct Cell {
    std::uint32_t page = 0;
    std::uint32_t cell = 0;

    friend bool operator==(const Cell&, const Cell&) = default;
  };

  // Neighbouring lanes of one group that are copied to, and where each comes from.
  struct Segment {
    Cell to;
    std::uint32_t count = 0;
    std::array<Cell, simd::kCellLanes> from;

    [[nodiscard]] bool whole() const noexcept { return count == simd::kCellLanes; }
    // Whether the cells lie side by side in one group where they come from, too.
    [[nodiscard]] bool straight() const noexcept;
  };

  // Sixteen bytes of a row of lanes, see simd/cell_moves.h.
  struct Part {
    Cell group;
    std::uint32_t part = 0;

    friend bool operator==(const Part&, const Part&) = default;
  };

  // What simd::move_lanes() needs for a segment and a size of units, but for addresses.
  struct Lanes {
    std::size_t parts = 0;
    std::size_t sources = 0;
    std::vector<Part> from;                 // [part][source]
    std::vector<simd::LaneLookup> lookups;  // [part][source]
  };

  [[nodiscard]] static Lanes lanes_of(const Segment& segment, std::size_t unit_bytes);
  [[nodiscard]] std::uint32_t index_of(pages::PageId page);
  void add_segments();

  std::vector<pages::PageId> pages_;
  std::vector<Run> runs_;  // by where they go
  std::vector<Segment> segments_;
  std::vector<Lanes> numbers_;  // [segment]
  std::vector<Lanes> scales_;   // [segment]; of block types
};

}  // namespace kvasir::kv
