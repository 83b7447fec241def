// Compaction: cells move so that conversations lie in fewer spans. One small ticket moves at most a page of
// cells; its owner copies the bytes between begin() and commit(), or drops it.
//
// A compaction never fails another call for space: a reservation that falls short destroys it first. It is
// invisible in the bits, and no planning counts on it.
//
// Invariants (docs/invariants.md)
//   M1  The sum of all tables' spans falls from one gathering to the next, so repeated compaction ends.
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
  // reservation has destroyed the compaction, kOutOfMemory; in both cases nothing has moved.
  [[nodiscard]] Result<std::uint32_t> commit();

  // Gives up: the reserved cells go back. Called by the store for a reservation that falls short.
  void destroy() noexcept;

 private:
  explicit Compaction(PageStore& store) : store_(&store) {}

  // A stretch of whole spans of one table that could lie side by side.
  struct Stretch {
    std::size_t table = 0;
    std::size_t first_run = 0;
    std::size_t runs = 0;
    std::uint32_t cells = 0;
  };

  [[nodiscard]] bool plan_group(std::uint32_t group, std::uint32_t budget, std::span<const TableId> stay);
  [[nodiscard]] std::optional<Stretch> best_stretch(std::uint32_t group, std::uint32_t most,
                                                    std::span<const TableId> stay) const;
  [[nodiscard]] bool gather(std::uint32_t group, const Stretch& stretch);
  [[nodiscard]] bool evacuate(std::uint32_t group, std::size_t gain, std::uint32_t budget,
                              std::span<const TableId> stay);
  [[nodiscard]] bool may_move(std::uint32_t group, CellAt from, std::uint32_t count,
                              std::span<const TableId> stay) const;
  void add_move(std::uint32_t group, CellAt from, CellAt to, std::uint32_t count);
  void give_back() noexcept;
  [[nodiscard]] std::int64_t change_of_spans(std::uint32_t group) const;

  PageStore* store_;
  std::vector<CopyCells> copies_;
};

}  // namespace kvasir::pages
