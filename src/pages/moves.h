// Cells of one group that lie elsewhere afterwards, found by where they lie before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "pages/types.h"

namespace kvasir::pages {

class Moves {
 public:
  // No cell is moved twice. Throws std::bad_alloc.
  explicit Moves(std::span<const CopyCells> copies) : copies_(copies.begin(), copies.end()) {
    std::ranges::sort(copies_, {}, &Moves::key);
  }

  // By where they lie before.
  [[nodiscard]] std::span<const CopyCells> all() const noexcept { return copies_; }

  // Cuts `count` cells from `at` on into parts that stay side by side: visit(before, after, count) for each,
  // in order; one that is not moved has both alike.
  template <class Visit>
  void visit(CellAt at, std::uint32_t count, const Visit& visit) const {
    const std::uint32_t end = at.cell + count;
    auto copy = first_behind(at);
    while (at.cell < end) {
      if (copy == copies_.end() || copy->from.page != at.page || copy->from.cell >= end) {
        visit(at, at, end - at.cell);
        return;
      }
      if (at.cell < copy->from.cell) {
        visit(at, at, copy->from.cell - at.cell);
        at.cell = copy->from.cell;
      }
      const std::uint32_t into = at.cell - copy->from.cell;
      const std::uint32_t some = std::min(copy->count - into, end - at.cell);
      visit(at, CellAt{copy->to.page, copy->to.cell + into}, some);
      at.cell += some;
      ++copy;
    }
  }

  // Whether one of the cells moves.
  [[nodiscard]] bool any(CellAt at, std::uint32_t count) const noexcept {
    const auto copy = first_behind(at);
    return copy != copies_.end() && copy->from.page == at.page && copy->from.cell < at.cell + count;
  }

 private:
  static std::tuple<PageId, std::uint32_t> key(const CopyCells& copy) noexcept {
    return {copy.from.page, copy.from.cell};
  }

  // The first copy that ends behind a cell.
  [[nodiscard]] std::vector<CopyCells>::const_iterator first_behind(CellAt at) const noexcept {
    auto copy = std::ranges::upper_bound(copies_, std::make_tuple(at.page, at.cell), {}, &Moves::key);
    if (copy == copies_.begin()) return copy;
    const auto before = copy - 1;
    return before->from.page == at.page && before->from.cell + before->count > at.cell ? before : copy;
  }

  std::vector<CopyCells> copies_;
};

}  // namespace kvasir::pages
