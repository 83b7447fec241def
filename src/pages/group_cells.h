// The pages of one group: which cells are held, by how many, and where the holes are.
//
// A holder is firm (a conversation, an open ticket) or soft: it yields under pressure (the prefix index, an
// open compaction). A used page stays where a cell of it has a firm holder.
//
// Invariants (docs/invariants.md)
//   C1  A cell is free exactly when its count of holders is 0.
//   C2  A page has frames exactly while at least one of its cells is held; it is then called used.
//   C3  free_cells() is the number of free cells in used pages: the holes.
//   C4  Every page that stays and has a hole is listed under the length of its longest hole.
//   C5  A held cell's storage position changes only with its contents, when two cells change places.
//   C6  A cell is evictable exactly when it is held and all its holders are soft; a used page whose held
//       cells all are counts in evictable_pages(), and free and evictable cells of the other used pages in
//       holes().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "pages/cell_mask.h"
#include "pages/types.h"

namespace kvasir::pages {

enum class Holder : std::uint8_t { kFirm, kSoft };

// Not thread-safe; owned by a PageStore. Nothing here allocates after create().
class GroupCells {
 public:
  // Room for `pages` pages. kOutOfMemory.
  [[nodiscard]] static Result<GroupCells> create(const GroupSpec& spec, std::uint32_t page_cells,
                                                 std::uint32_t pages);

  // Takes an unused page into use with these frames (one for each layer) and all cells free; the caller holds
  // some of its cells at once (C2). There must be one.
  [[nodiscard]] PageId open_page(std::span<const FrameId> frames) noexcept;

  // Adds a firm holder to free cells, which become held, and sets their storage positions from `position` on.
  void take(PageId page, CellRange cells, std::uint64_t position) noexcept;

  // Adds a holder to held cells.
  void hold(PageId page, CellRange cells, Holder holder) noexcept;

  // Removes a holder of each cell. Says whether the page became unused; its frames are then the caller's.
  [[nodiscard]] bool release(PageId page, CellRange cells, Holder holder) noexcept;

  // Removes all holders of cells, and says whether the page became unused.
  [[nodiscard]] bool release_all(PageId page, CellRange cells) noexcept;

  // Gives a cell that was just taken, and has one holder, so many firm and soft ones instead: at least one.
  void set_holders(CellAt at, std::uint32_t firm, std::uint32_t soft) noexcept;

  // Counts and positions of two held cells change places; their bytes and all who name them are the caller's.
  void swap(CellAt a, CellAt b) noexcept;

  // Moves counts and positions of held cells onto as many cells that were just taken, which lose their one
  // holder. Says whether the page they came from became unused.
  [[nodiscard]] bool move(CellAt from, CellAt to, std::uint32_t count) noexcept;

  void set_position(CellAt cell, std::uint64_t position) noexcept {
    positions_[at(cell.page, cell.cell)] = position;
  }

  // Free cells directly behind `cell` of a used page, at most `limit`.
  [[nodiscard]] std::uint32_t free_run_at(PageId page, std::uint32_t cell,
                                          std::uint32_t limit) const noexcept;

  // The longest hole of all pages that stay but `except`.
  struct Hole {
    PageId page{};
    CellRange cells;
  };
  [[nodiscard]] std::optional<Hole> longest_hole(std::optional<PageId> except = {}) const noexcept;

  // A hole of at least `count` cells in a page whose longest is as short as can be; the longest of all where
  // none is long enough.
  [[nodiscard]] std::optional<Hole> fitting_hole(std::uint32_t count, PageId except) const noexcept;

  [[nodiscard]] std::span<const FrameId> frames(PageId page) const noexcept {
    return std::span(frames_).subspan(static_cast<std::size_t>(page) * layers_, layers_);
  }
  [[nodiscard]] std::uint32_t holders(PageId page, std::uint32_t cell) const noexcept {
    return holders_[at(page, cell)];
  }
  [[nodiscard]] std::uint32_t soft_holders(PageId page, std::uint32_t cell) const noexcept {
    return soft_[at(page, cell)];
  }
  [[nodiscard]] std::uint64_t position(PageId page, std::uint32_t cell) const noexcept {
    return positions_[at(page, cell)];
  }
  [[nodiscard]] std::uint32_t held_cells(PageId page) const noexcept {
    return pages_[static_cast<std::uint32_t>(page)].held;
  }
  // Whether a cell of a used page has a firm holder.
  [[nodiscard]] bool stays(PageId page) const noexcept {
    const Page& entry = pages_[static_cast<std::uint32_t>(page)];
    return entry.held != entry.evictable;
  }
  [[nodiscard]] std::uint32_t firm_holders(PageId page, std::uint32_t cell) const noexcept {
    return holders_[at(page, cell)] - soft_[at(page, cell)];
  }
  // Grows with every change of a cell's holders or contents.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  [[nodiscard]] std::uint32_t layers() const noexcept { return layers_; }
  [[nodiscard]] std::uint32_t page_cells() const noexcept { return page_cells_; }
  [[nodiscard]] std::uint32_t page_count() const noexcept {
    return static_cast<std::uint32_t>(pages_.size());
  }
  [[nodiscard]] std::uint64_t free_cells() const noexcept { return free_cells_; }
  [[nodiscard]] std::uint64_t holes() const noexcept { return holes_; }
  // Of the holes of pages that stay, those that are free now.
  [[nodiscard]] std::uint64_t free_holes() const noexcept { return free_holes_; }
  [[nodiscard]] std::uint64_t evictable_cells() const noexcept { return evictable_cells_; }
  [[nodiscard]] std::uint32_t evictable_pages() const noexcept { return evictable_pages_; }
  [[nodiscard]] std::uint32_t pages_used() const noexcept {
    return static_cast<std::uint32_t>(pages_.size() - unused_.size());
  }

  // C1 to C4 and C6, for tests and checks: kInternal names the broken one.
  [[nodiscard]] Status check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Page {
    CellMask free;
    std::uint32_t held = 0;          // cells with at least one holder
    std::uint32_t evictable = 0;     // of them with soft holders only
    std::uint32_t longest_hole = 0;  // the list it is in; 0 while unused, full or evictable
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
  };

  GroupCells() = default;
  [[nodiscard]] std::size_t at(PageId page, std::uint32_t cell) const noexcept {
    return static_cast<std::size_t>(page) * page_cells_ + cell;
  }
  [[nodiscard]] bool evictable(std::size_t index) const noexcept {
    return holders_[index] != 0 && holders_[index] == soft_[index];
  }
  // Every change of a page's counts lies between these two, so that the sums over pages follow (C3, C6).
  void exchange(CellAt a, CellAt b, std::uint32_t count) noexcept;
  void before_change(const Page& page) noexcept;
  void after_change(std::uint32_t index) noexcept;
  bool close_if_unheld(std::uint32_t index) noexcept;
  [[nodiscard]] Status check_page(std::uint32_t index) const;
  [[nodiscard]] std::uint32_t hole_to_list(const Page& page) const noexcept;
  [[nodiscard]] std::optional<Hole> listed_hole(std::uint32_t length,
                                                std::optional<PageId> except) const noexcept;
  void relist(std::uint32_t index) noexcept;
  void unlink(std::uint32_t index) noexcept;

  std::uint32_t layers_ = 0;
  std::uint32_t page_cells_ = 0;
  std::uint64_t free_cells_ = 0;
  std::uint64_t holes_ = 0;
  std::uint64_t free_holes_ = 0;
  std::uint64_t evictable_cells_ = 0;
  std::uint32_t evictable_pages_ = 0;
  std::uint64_t changes_ = 0;
  std::vector<Page> pages_;
  std::vector<FrameId> frames_;                             // [page][layer]
  std::vector<std::uint32_t> holders_;                      // [page][cell]
  std::vector<std::uint32_t> soft_;                         // [page][cell]: of them soft
  std::vector<std::uint64_t> positions_;                    // [page][cell]
  std::vector<std::uint32_t> unused_;                       // a stack of unused pages
  std::array<std::uint32_t, kPageCellsMax + 1> by_hole_{};  // first page whose longest hole has this length
};

}  // namespace kvasir::pages
