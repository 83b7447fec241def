// Compaction: cells move so that conversations lie in fewer spans. One small ticket moves at most a page of
// cells; its owner copies the bytes between begin() and commit(), or drops it.
//
// A compaction never fails another call for space: its cells yield like those of the index, and a reservation
// that needs them destroys it first. It is invisible in the bits, and no planning counts on it.
//
// The level it reaches, repeated with a budget of a page until begin() answers a null pointer: where
// conversations share nothing and have no shifts, and a page can still be opened, the figure of fragmentation
// in SpaceReport is below 1/2, since any two neighbouring spans then fill more than a page together. Without
// a page to open it goes on as long as emptying one saves more spans than it costs; a null pointer says that
// nothing more is worth it.
//
// Invariants (docs/invariants.md)
//   M1  A gathering lowers the sum of all tables' spans; a page is emptied only while that sum is lower than
//       when one was emptied last, or somebody else has changed something since. So repeated compaction ends,
//       with any budgets.
//   M2  Until commit every table names the old cells; afterwards every holder names the new ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "pages/page_store.h"
#include "pages/types.h"

namespace kvasir::pages {

class Compaction {
 public:
  // Plans one move of at most `budget` cells (and a page). Conversations in `stay` are left where they are. A
  // null pointer where nothing is worth moving. kWrongState while another compaction is open, kOutOfMemory.
  [[nodiscard]] static Result<std::unique_ptr<Compaction>> begin(PageStore& store, std::uint32_t budget,
                                                                 std::span<const TableId> stay = {});

  Compaction(const Compaction&) = delete;
  Compaction& operator=(const Compaction&) = delete;
  ~Compaction();

  // The bytes to copy. All different cells; none may be written by anyone else until commit.
  [[nodiscard]] std::span<const CopyCells> copies() const noexcept { return copies_; }

  // Lets every holder find the cells in their new place; answers how many moved. kWrongState where a
  // reservation has destroyed the compaction or what was promised since would not fit beside it,
  // kOutOfMemory; nothing has moved then.
  [[nodiscard]] Result<std::uint32_t> commit();

  // Gives up: the reserved cells go back. Called by the store for a reservation that needs them.
  void destroy() noexcept;

 private:
  friend class PageStore;

  // Neighbouring spans of one table that could lie side by side: behind the span before them, or elsewhere.
  struct Stretch {
    std::size_t table = 0;
    std::size_t first_run = 0;
    std::size_t runs = 0;
    std::uint32_t cells = 0;
    std::uint32_t more = 0;  // cells of the span behind them that fill the page
    bool behind = false;
    bool shared = false;  // other tables hold cells of it

    // Spans that moving it saves this table.
    [[nodiscard]] std::size_t gain() const noexcept { return behind ? runs : runs - 1; }
  };

  // What a plan is made for: the group, at most so many cells, and the tables that stay where they are.
  struct Task {
    std::uint32_t group = 0;
    std::uint32_t budget = 0;
    std::span<const TableId> stay;
  };

  // A list of spans, and what of it changes.
  struct HolderPatch {
    HolderIndex::Holder holder;
    PageTable::Patch patch;
  };

  explicit Compaction(PageStore& store) : store_(&store) {}
  [[nodiscard]] bool copies_cells_of(TableId table) const noexcept;

  // Plans: moves into copies_, their targets taken; false leaves nothing behind.
  [[nodiscard]] bool plan(const Task& task);
  [[nodiscard]] bool gather(const Task& task, const Stretch& stretch);
  [[nodiscard]] bool evacuate(const Task& task);
  [[nodiscard]] std::optional<PageId> page_to_empty(const Task& task) const;
  void move_out(std::uint32_t group, PageId page);
  [[nodiscard]] CellMask where_spans_begin(std::uint32_t group, PageId page) const;
  void add_move(std::uint32_t group, CellAt from, CellAt to, std::uint32_t count);

  // What could be moved, and what that would save.
  template <class Spans, class Try>
  [[nodiscard]] bool sweep(const Task& task, std::uint32_t room, const Spans& spans_of, const Try& try_one);
  [[nodiscard]] Stretch best_stretch(const Task& task, std::span<const Run> runs, std::size_t first,
                                     std::uint32_t room) const;
  [[nodiscard]] Stretch stretch_behind(const Task& task, std::span<const Run> runs, std::size_t first) const;
  [[nodiscard]] Stretch longest_stretch(const Task& task, std::span<const Run> runs, std::size_t first,
                                        std::uint32_t most) const;
  [[nodiscard]] bool pays_later(const Task& task);
  [[nodiscard]] std::uint64_t spans_of(std::uint32_t group) const noexcept;
  [[nodiscard]] bool stays(const Task& task, std::size_t table) const noexcept;
  [[nodiscard]] bool may_move(const Task& task, CellAt from, std::uint32_t count) const;
  [[nodiscard]] bool is_shared(std::uint32_t group, const Run& run) const noexcept;
  [[nodiscard]] std::uint32_t longest_room(std::uint32_t group) const noexcept;

  // What the planned moves change, and by how many spans all tables grow.
  [[nodiscard]] std::vector<HolderPatch> patches(const Moves& moves) const;
  [[nodiscard]] static std::int64_t growth_by(std::span<const PageTable> tables, const Stretch& stretch);
  [[nodiscard]] static std::int64_t growth_of(std::span<const HolderPatch> patches) noexcept;

  template <class Change>
  void change_holders(std::uint32_t group, const Change& change) noexcept;
  void yield_targets(bool yield) noexcept;
  void give_back() noexcept;

  PageStore* store_;
  std::vector<CopyCells> copies_;            // of one group
  bool yields_ = false;                      // the cells that are copied to are held softly
  std::optional<std::uint64_t> emptied_at_;  // spans there were, where a page is emptied
};

}  // namespace kvasir::pages
