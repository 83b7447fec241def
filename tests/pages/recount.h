// Holders and space of a page store, counted anew from what holds cells, and the rule of space written out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pages/page_store.h"
#include "twin.h"

namespace kvasir::pages::test {

class Recount {
 public:
  // `frames` are all there are.
  Recount(const PageStore& store, std::uint64_t frames);

  void add(std::size_t group, const Run& run, Holder holder);
  void add(std::size_t group, CellAt at, Holder holder);

  // Takes a holder away again.
  void remove(std::size_t group, const Run& run, Holder holder);

  // Whether so many more cells of each group can be had: over all groups, the sum of
  // ceil(max(0, cells - holes) / page) x layers is at most the free and evictable frames.
  [[nodiscard]] bool fits(const Need& cells) const;

  // Frames in no page that holds a cell.
  [[nodiscard]] std::uint64_t frames_free() const;
  [[nodiscard]] bool any_page_free() const;

  // Firm holders of a cell, and how many cells of a page are free.
  [[nodiscard]] std::uint32_t firm(std::size_t group, CellAt at) const;
  [[nodiscard]] std::uint32_t held_in_page(std::size_t group, PageId page) const;

  // Compares with the counts that the store keeps; says what differs, nothing where all agrees.
  [[nodiscard]] std::string differences() const;

 private:
  struct Cell {
    std::uint32_t firm = 0;
    std::uint32_t soft = 0;
  };
  struct Space {
    std::uint64_t holes = 0;
    std::uint64_t evictable_pages = 0;
    std::uint64_t used_pages = 0;
  };

  [[nodiscard]] Cell& cell(std::size_t group, CellAt at);
  [[nodiscard]] Space space(std::size_t group) const;
  void settle() const;

  const PageStore* store_;
  std::uint64_t frames_;
  std::vector<std::vector<Cell>> cells_;                              // [group][page * page_cells + cell]
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cell> in_tiers_;  // [tier page, cell]
  // Of all groups, found at the first question behind the last addition.
  mutable std::vector<Space> spaces_;
};

}  // namespace kvasir::pages::test
