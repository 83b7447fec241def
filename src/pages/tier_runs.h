// Cells that lie in tiers: who holds which of them. As pages do for the pool, a tier run counts the holders
// of each of its cells; its bytes are somebody else's.
//
// Invariants (docs/invariants.md)
//   L1  A tier run is known exactly while one of its cells has a holder; when it ends, what its bytes are
//       called is in gone(), once, until forget_gone().
//   L2  A held cell lies either in the pool or in one tier run, and all who hold it find it there.
//   L3  Cells in tiers are held by tables and snapshots, firmly, by checkpoints, softly, and by open
//       returns; by nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pages/cell_mask.h"
#include "pages/group_cells.h"
#include "pages/types.h"

namespace kvasir::pages {

// Not thread-safe; owned by a PageStore. Nothing here allocates but add().
class TierRuns {
 public:
  struct Cell {
    std::uint64_t position = 0;  // storage position
    std::uint32_t firm = 0;      // holders
    std::uint32_t soft = 0;
    std::uint32_t returns = 0;  // open ones that read it

    [[nodiscard]] bool held() const noexcept { return firm + soft + returns > 0; }
  };

  // A new run whose cells nobody holds yet; the caller lets them be held, or takes it back with remove().
  // Throws std::bad_alloc, having changed nothing.
  [[nodiscard]] TierRunId add(std::uint32_t group, std::uint32_t cells, TierBlock block);

  // Forgets a run that was never held, without a word in gone().
  void remove(TierRunId id) noexcept;

  [[nodiscard]] Cell& cell(TierRunId id, std::uint32_t index) noexcept { return at(id).cells[index]; }
  [[nodiscard]] const Cell& cell(TierRunId id, std::uint32_t index) const noexcept {
    return runs_[static_cast<std::size_t>(id)].cells[index];
  }

  // Holders come and go, in release_all() all but open returns; a run that nobody holds any more ends.
  void hold(TierRunId id, CellRange cells, Holder holder) noexcept;
  void release(TierRunId id, CellRange cells, Holder holder) noexcept;
  void release_all(TierRunId id, CellRange cells) noexcept;
  void begin_return(TierRunId id, CellRange cells) noexcept;
  void end_return(TierRunId id, CellRange cells) noexcept;

  [[nodiscard]] bool known(TierRunId id) const noexcept {
    return static_cast<std::size_t>(id) < runs_.size() && runs_[static_cast<std::size_t>(id)].used;
  }
  [[nodiscard]] std::uint32_t group(TierRunId id) const noexcept {
    return runs_[static_cast<std::size_t>(id)].group;
  }
  [[nodiscard]] std::uint32_t cells(TierRunId id) const noexcept {
    return static_cast<std::uint32_t>(runs_[static_cast<std::size_t>(id)].cells.size());
  }
  [[nodiscard]] TierBlock block(TierRunId id) const noexcept {
    return runs_[static_cast<std::size_t>(id)].block;
  }

  // Ids given so far, known ones and others, and the runs and held cells that there are.
  [[nodiscard]] std::size_t ids() const noexcept { return runs_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return runs_.size() - unused_.size(); }
  [[nodiscard]] std::uint64_t held_cells() const noexcept { return held_cells_; }

  // The bytes of runs that have ended, for their owner to drop.
  [[nodiscard]] std::span<const TierBlock> gone() const noexcept { return gone_; }
  void forget_gone() noexcept { gone_.clear(); }

 private:
  struct TierRun {
    std::uint32_t group = 0;
    std::uint32_t held = 0;  // cells with a holder
    TierBlock block{};
    std::vector<Cell> cells;
    bool used = false;
  };

  [[nodiscard]] TierRun& at(TierRunId id) noexcept { return runs_[static_cast<std::size_t>(id)]; }
  template <class Change>
  void change(TierRunId id, CellRange cells, const Change& change_one) noexcept;

  std::vector<TierRun> runs_;
  std::vector<TierRunId> unused_;
  std::vector<TierBlock> gone_;  // has places for all runs beside those in it
  std::uint64_t held_cells_ = 0;
};

}  // namespace kvasir::pages
