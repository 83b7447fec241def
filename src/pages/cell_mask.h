// A set of cells of one page, as bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "pages/types.h"

namespace kvasir::pages {

// A run of cells inside one page.
struct CellRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const CellRange&, const CellRange&) = default;
};

class CellMask {
 public:
  // The cells [0, cells).
  [[nodiscard]] static CellMask all(std::uint32_t cells) noexcept {
    CellMask mask;
    for (std::uint32_t cell = 0; cell < cells; ++cell) mask.insert(cell);
    return mask;
  }

  void insert(std::uint32_t cell) noexcept { words_[cell / 64] |= std::uint64_t{1} << (cell % 64); }
  void erase(std::uint32_t cell) noexcept { words_[cell / 64] &= ~(std::uint64_t{1} << (cell % 64)); }
  [[nodiscard]] bool contains(std::uint32_t cell) const noexcept {
    return (words_[cell / 64] >> (cell % 64) & 1) != 0;
  }

  [[nodiscard]] std::uint32_t size() const noexcept {
    std::uint32_t size = 0;
    for (const std::uint64_t word : words_) size += static_cast<std::uint32_t>(std::popcount(word));
    return size;
  }

  // How many cells from `first` on are in the set without a gap, at most up to `end`.
  [[nodiscard]] std::uint32_t run_at(std::uint32_t first, std::uint32_t end) const noexcept {
    std::uint32_t cell = first;
    while (cell < end) {
      const std::uint32_t left = 64 - cell % 64;
      const auto ones = static_cast<std::uint32_t>(std::countr_one(words_[cell / 64] >> (cell % 64)));
      if (ones < left) return std::min(cell + ones, end) - first;
      cell += left;
    }
    return end - first;
  }

  // The longest run, the first of equal ones; count 0 where the set is empty.
  [[nodiscard]] CellRange longest_run(std::uint32_t end) const noexcept {
    CellRange longest;
    for (std::uint32_t cell = 0; cell < end;) {
      const std::uint32_t count = run_at(cell, end);
      if (count > longest.count) longest = {cell, count};
      cell += count + 1;
    }
    return longest;
  }

 private:
  std::array<std::uint64_t, kPageCellsMax / 64> words_{};
};

}  // namespace kvasir::pages
