// Moving cells from page to page: bytes that lie side by side, and lanes of rows. No arithmetic, so any
// element has its bits afterwards. Any thread; what is written must overlap nothing that is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::simd {

// The same move made `count` times, each time `step` bytes further on both sides: once for each head.
struct Repeat {
  std::size_t count = 1;
  std::size_t step = 0;
};

// Both kinds of moves fetch ahead: what lies `ahead` bytes from what is read comes next after all of this, so
// that whoever moves page after page never waits for memory. 0: nothing is known.
struct BytesMove {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  std::ptrdiff_t ahead = 0;
};

// Makes all moves, then all of them again a step further. Whole lines of memory are written past the caches.
void move_bytes(std::span<const BytesMove> moves, const Repeat& repeat) noexcept;

// Rows of sixteen lanes are moved in parts of sixteen bytes. A lookup says for each byte of a part of the
// target which byte of a part of some source's row it is; kNotHere where it comes from another source.
using LaneLookup = std::array<std::uint8_t, 16>;
inline constexpr std::uint8_t kNotHere = 0x80;

// The most sources of all parts of a row together: one for each lane.
inline constexpr std::size_t kLaneSourcesMax = 16;

// Rows of `parts` parts, 1, 2 or 4, one behind the other on both sides. Each part of a row is put together
// from `sources` sources: from[part * sources + i] is the part in the first row of one, lookups[...] what it
// gives. Every byte of the target is given by one of them.
struct LanesMove {
  std::byte* to = nullptr;
  std::size_t rows = 0;
  std::size_t parts = 1;
  std::size_t sources = 1;
  const std::byte* const* from = nullptr;
  const LaneLookup* lookups = nullptr;
  const std::ptrdiff_t* ahead = nullptr;  // [as from]
  bool read_soon = false;                 // else it is written past the caches
};

void move_lanes(const LanesMove& move, const Repeat& repeat) noexcept;

// Of rows of sixteen lanes of `unit_bytes` (1, 2 or 4), one behind the other, the lanes that have a bit.
void merge_lanes(const std::byte* from, std::byte* to, std::size_t rows, std::size_t unit_bytes,
                 std::uint16_t lanes) noexcept;

// What was written past the caches by this thread is there for all others. To be called after the last move,
// before anybody is told.
void end_moves() noexcept;

}  // namespace kvasir::simd
