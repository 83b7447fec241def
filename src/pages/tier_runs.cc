#include "pages/tier_runs.h"

#include <algorithm>
#include <new>
#include <utility>

namespace kvasir::pages {

TierRunId TierRuns::add(std::uint32_t group, std::uint32_t cells, TierBlock block) {
  // Places first, so that every end of a run finds its own without allocating.
  const std::size_t known = size() + 1;
  if (gone_.capacity() < gone_.size() + known)
    gone_.reserve(std::max(gone_.size() + known, 2 * gone_.capacity()));
  if (unused_.empty()) {
    if (runs_.size() >= UINT32_MAX - kFirstTierPage) throw std::bad_alloc();  // no id is left
    if (unused_.capacity() < runs_.size() + 1)
      unused_.reserve(std::max(runs_.size() + 1, 2 * unused_.capacity()));
  }
  std::vector<Cell> places(cells);
  if (unused_.empty()) {
    runs_.emplace_back();
    unused_.push_back(TierRunId{static_cast<std::uint32_t>(runs_.size() - 1)});
  }
  const TierRunId id = unused_.back();
  unused_.pop_back();
  at(id) = {.group = group, .held = 0, .block = block, .cells = std::move(places), .used = true};
  return id;
}

void TierRuns::remove(TierRunId id) noexcept {
  at(id) = TierRun{};
  unused_.push_back(id);
}

// Changes the holders of cells, and ends a run that then has none (L1).
template <class Change>
void TierRuns::change(TierRunId id, CellRange cells, const Change& change_one) noexcept {
  TierRun& run = at(id);
  for (std::uint32_t i = cells.first; i < cells.first + cells.count; ++i) {
    Cell& cell = run.cells[i];
    const bool before = cell.held();
    change_one(cell);
    if (before == cell.held()) continue;
    run.held += before ? UINT32_MAX : 1;  // one less, or one more
    held_cells_ += before ? UINT64_MAX : 1;
  }
  if (run.held > 0) return;
  gone_.push_back(run.block);
  remove(id);
}

void TierRuns::hold(TierRunId id, CellRange cells, Holder holder) noexcept {
  change(id, cells, [&](Cell& cell) { ++(holder == Holder::kFirm ? cell.firm : cell.soft); });
}

void TierRuns::release(TierRunId id, CellRange cells, Holder holder) noexcept {
  change(id, cells, [&](Cell& cell) { --(holder == Holder::kFirm ? cell.firm : cell.soft); });
}

void TierRuns::release_all(TierRunId id, CellRange cells) noexcept {
  change(id, cells, [](Cell& cell) { cell.firm = cell.soft = 0; });
}

void TierRuns::begin_return(TierRunId id, CellRange cells) noexcept {
  change(id, cells, [](Cell& cell) { ++cell.returns; });
}

void TierRuns::end_return(TierRunId id, CellRange cells) noexcept {
  change(id, cells, [](Cell& cell) { --cell.returns; });
}

}  // namespace kvasir::pages
