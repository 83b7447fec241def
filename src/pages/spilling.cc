// Which cells of idle conversations may leave the pool, and how all who hold them learn where they are.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/within_memory.h"
#include "pages/compaction.h"
#include "pages/page_store.h"

namespace kvasir::pages {

// Whether a table lets go of its cells: its owner says so, and no ticket is open for it.
bool PageStore::lets_go(std::size_t table, std::span<const std::uint8_t> idle) const noexcept {
  return tables_[table].open && !tables_[table].busy && table < idle.size() && idle[table] != 0;
}

// The cells of a run's page that conversations hold which do not let go of them, or snapshots.
CellMask PageStore::kept_cells(std::uint32_t group, const Run& run,
                               std::span<const std::uint8_t> idle) const noexcept {
  CellMask kept;
  const GroupCells& cells = groups_[group];
  bool shared = false;
  for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell)
    shared = shared || cells.firm_holders(run.page, cell) > 1;
  if (!shared) return kept;  // by the conversation that was asked about alone
  const auto keep = [&](const PageTable& others) {
    for (const Run& other : others.runs()) {
      if (other.page != run.page) continue;
      for (std::uint32_t i = 0; i < other.count; ++i) kept.insert(other.cell + i);
    }
  };
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    if (tables_[table].open && !lets_go(table, idle)) keep(tables_[table].cells[group]);
  }
  for (const Snapshot* const snapshot : snapshots_) keep(snapshot->cells_[group]);
  return kept;
}

std::optional<CellRun> PageStore::next_to_spill(TableId id,
                                                std::span<const std::uint8_t> idle) const noexcept {
  if (!lets_go(static_cast<std::size_t>(id), idle)) return std::nullopt;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    for (const Run& run : entry(id).cells[group].runs()) {
      if (in_tier(run.page)) continue;
      const CellMask kept = kept_cells(group, run, idle);
      std::uint32_t first = run.cell;
      const std::uint32_t end = run.cell + run.count;
      while (first < end && kept.contains(first)) ++first;
      std::uint32_t behind = first;
      while (behind < end && !kept.contains(behind)) ++behind;
      if (behind > first) return CellRun{group, {run.page, first}, behind - first};
    }
  }
  return std::nullopt;
}

// What the pool would have if everything were spilled that may be, and evicted that can be.
PageStore::Supply PageStore::supply_beside_idle(std::span<const std::uint8_t> idle) const {
  Supply supply{.frames = free_frames_.size()};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const GroupCells& cells = groups_[group];
    std::vector<std::uint32_t> going(std::size_t{cells.page_count()} * cells.page_cells());
    for (std::size_t table = 0; table < tables_.size(); ++table) {
      if (!lets_go(table, idle)) continue;
      for (const Run& run : tables_[table].cells[group].runs()) {
        if (in_tier(run.page)) continue;
        for (std::uint32_t i = 0; i < run.count; ++i)
          ++going[static_cast<std::size_t>(run.page) * cells.page_cells() + run.cell + i];
      }
    }
    for (std::uint32_t index = 0; index < cells.page_count(); ++index) {
      const PageId page{index};
      if (cells.held_cells(page) == 0) continue;
      std::uint32_t kept = 0;
      for (std::uint32_t cell = 0; cell < cells.page_cells(); ++cell) {
        const bool goes =
            cells.firm_holders(page, cell) <= going[std::size_t{index} * cells.page_cells() + cell];
        kept += goes ? 0 : 1;
      }
      if (kept == 0) {
        supply.frames += cells.layers();
      } else {
        supply.holes[group] += cells.page_cells() - kept;
      }
    }
  }
  return supply;
}

bool PageStore::could_fit(TableId id, std::uint64_t count, const Supply& supply) const noexcept {
  const Table& table = entry(id);
  const std::uint64_t all =
      table.behind + std::min<std::uint64_t>(count, static_cast<std::uint64_t>(kPositionMax) + 2);
  const Need beside = promised_but(table);
  const Need own = promise_need(table, all, true);
  std::uint64_t frames = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const std::uint64_t need = beside[group] + own[group] + table.cells[group].cells_in_tiers();
    const std::uint64_t rest = need - std::min(need, supply.holes[group]);
    frames += base::div_up<std::uint64_t>(rest, groups_[group].page_cells()) * groups_[group].layers();
  }
  return frames <= supply.frames;
}

// Whether every firm holder of these cells lets go of them.
bool PageStore::may_spill(const CellRun& run, std::span<const std::uint8_t> idle) const noexcept {
  const GroupCells& cells = groups_[run.group];
  std::array<std::uint32_t, kPageCellsMax> holders{};
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    if (!lets_go(table, idle)) continue;
    for (const Run& other : tables_[table].cells[run.group].runs()) {
      if (other.page != run.at.page) continue;
      for (std::uint32_t i = 0; i < other.count; ++i) ++holders[other.cell + i];
    }
  }
  for (std::uint32_t cell = run.at.cell; cell < run.at.cell + run.count; ++cell) {
    const std::uint32_t firm = cells.firm_holders(run.at.page, cell);
    if (firm == 0 || firm != holders[cell]) return false;
  }
  return true;
}

// Tables, snapshots and checkpoints as they are once cells are found elsewhere. Throws std::bad_alloc.
std::vector<PageStore::Patch> PageStore::patches_of(std::size_t group, const Moves& moves) {
  std::vector<Patch> patches;
  for (Table& table : tables_) {
    if (!table.open || !table.cells[group].names_any(moves)) continue;
    patches.push_back({&table, &table.cells[group], table.cells[group].relocated(moves)});
  }
  for (Snapshot* const snapshot : snapshots_) {
    PageTable& cells = snapshot->cells_[group];
    if (cells.names_any(moves)) patches.push_back({nullptr, &cells, cells.relocated(moves)});
  }
  checkpoints_.visit([&](CheckpointId, Checkpoint& checkpoint) {
    PageTable& cells = checkpoint.cells[group];
    if (cells.names_any(moves)) patches.push_back({nullptr, &cells, cells.relocated(moves)});
  });
  return patches;
}

Result<TierRunId> PageStore::spill(const CellRun& run, TierBlock block, std::span<const std::uint8_t> idle) {
  return base::within_memory([&]() -> Result<TierRunId> {
    if (!may_spill(run, idle))
      return fail(Outcome::kWrongState, "a conversation that is not idle holds these cells");
    const std::vector<PrefixIndex::BlockId> doomed = index_.naming(run);
    const TierRunId id = tier_runs_.add(run.group, run.count, block);
    const CopyCells move{run.group, run.at, {tier_page(id), 0}, run.count};
    std::vector<Patch> patches;
    try {
      patches = patches_of(run.group, Moves({&move, 1}));
    } catch (const std::bad_alloc&) {
      tier_runs_.remove(id);
      throw;
    }
    // Nothing fails from here on. What an open compaction copies, or copies to, may be among them.
    if (compaction_ != nullptr) compaction_->destroy();
    for (const PrefixIndex::BlockId one : doomed) evict(one);
    GroupCells& cells = groups_[run.group];
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const CellAt from{run.at.page, run.at.cell + i};
      TierRuns::Cell& cell = tier_runs_.cell(id, i);
      cell.position = cells.position(from.page, from.cell);
      hold_in_tier(id, i, cells.firm_holders(from.page, from.cell), cells.soft_holders(from.page, from.cell));
    }
    install(patches);
    if (cells.release_all(run.at.page, {run.at.cell, run.count})) give_frames_back(run.group, run.at.page);
    return id;
  });
}

void PageStore::hold_in_tier(TierRunId id, std::uint32_t cell, std::uint32_t firm,
                             std::uint32_t soft) noexcept {
  for (std::uint32_t i = 0; i < firm; ++i) tier_runs_.hold(id, {cell, 1}, Holder::kFirm);
  for (std::uint32_t i = 0; i < soft; ++i) tier_runs_.hold(id, {cell, 1}, Holder::kSoft);
}

// What the index has lost is offered to it again when it is back.
void PageStore::install(std::span<Patch> patches) noexcept {
  ++handovers_;
  for (Patch& patch : patches) {
    std::swap(*patch.cells, patch.after);
    if (patch.table == nullptr) continue;
    patch.table->tiered = cells_in_tiers(*patch.table) > 0;
    patch.table->remembered = 0;
  }
}

std::uint64_t PageStore::cells_in_tiers(const Table& table) const noexcept {
  std::uint64_t cells = 0;
  for (const PageTable& of_group : table.cells) cells += of_group.cells_in_tiers();
  return cells;
}

}  // namespace kvasir::pages
