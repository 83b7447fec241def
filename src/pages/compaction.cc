#include "pages/compaction.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/try.h"

namespace kvasir::pages {

Result<std::unique_ptr<Compaction>> Compaction::begin(PageStore& store, std::uint32_t budget,
                                                      std::span<const TableId> stay) {
  if (store.compaction_ != nullptr) {
    return fail(Outcome::kWrongState, "a compaction is open; commit or drop it first");
  }
  try {
    std::unique_ptr<Compaction> compaction(new Compaction(store));
    store.compaction_ = compaction.get();
    budget = std::min(budget, store.page_cells());
    for (std::uint32_t group = 0; group < store.group_count(); ++group) {
      if (compaction->plan_group(group, budget, stay)) return compaction;
    }
    return nullptr;
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory to plan a compaction");
  }
}

Compaction::~Compaction() {
  destroy();
}

void Compaction::give_back() noexcept {
  for (const CopyCells& copy : copies_) {
    store_->release(copy.group, copy.to.page, {copy.to.cell, copy.count}, Holder::kFirm);
    store_->release(copy.group, copy.from.page, {copy.from.cell, copy.count}, Holder::kFirm);
  }
  copies_.clear();
}

void Compaction::destroy() noexcept {
  if (store_ == nullptr) return;
  give_back();
  store_->compaction_ = nullptr;
  store_ = nullptr;
}

// Gathers the stretch that joins most spans; where no place for one is left, empties a page so that the next
// compaction finds one.
bool Compaction::plan_group(std::uint32_t group, std::uint32_t budget, std::span<const TableId> stay) {
  const auto wished = best_stretch(group, budget, stay);
  if (!wished) return false;
  const GroupCells& cells = store_->groups_[group];
  std::uint32_t room = store_->free_frames_.size() >= cells.layers() ? store_->page_cells() : 0;
  if (room == 0) {
    if (const auto hole = cells.longest_hole()) room = hole->cells.count;
  }
  const auto stretch = best_stretch(group, std::min(room, budget), stay);
  if (stretch && gather(group, *stretch)) return true;
  // An open ticket holds cells that no table names yet, so no page can be known to be emptied then.
  return store_->open_tickets_ == 0 && room < store_->page_cells() && evacuate(group, wished->runs - 1, budget, stay);
}

std::optional<Compaction::Stretch> Compaction::best_stretch(std::uint32_t group, std::uint32_t most,
                                                            std::span<const TableId> stay) const {
  std::optional<Stretch> best;
  for (std::size_t table = 0; table < store_->tables_.size(); ++table) {
    const PageStore::Table& entry = store_->tables_[table];
    if (!entry.open || std::ranges::find(stay, TableId{static_cast<std::uint32_t>(table)}) != stay.end())
      continue;
    const std::span<const Run> runs = entry.cells[group].runs();
    std::size_t end = 0;
    std::uint32_t cells = 0;
    for (std::size_t first = 0; first < runs.size(); ++first) {
      // The longest stretch of equal shift from `first` on; it can only grow to the right as `first` goes on.
      end = std::max(end, first);
      while (end < runs.size() && runs[end].shift == runs[first].shift && cells + runs[end].count <= most) {
        cells += runs[end++].count;
      }
      const std::size_t count = end - first;
      if (count >= 2 && (!best || count > best->runs)) best = Stretch{table, first, count, cells};
      if (count > 0) cells -= runs[first].count;
    }
  }
  if (!best) return std::nullopt;
  const std::span<const Run> runs = store_->tables_[best->table].cells[group].runs();
  for (const Run& run : runs.subspan(best->first_run, best->runs)) {
    if (!may_move(group, {run.page, run.cell}, run.count, stay)) return std::nullopt;
  }
  return best;
}

// Whether no conversation of `stay` holds one of the cells.
bool Compaction::may_move(std::uint32_t group, CellAt from, std::uint32_t count,
                          std::span<const TableId> stay) const {
  return std::ranges::none_of(
      stay, [&](TableId table) { return store_->entry(table).cells[group].names_any(from, count); });
}

bool Compaction::gather(std::uint32_t group, const Stretch& stretch) {
  GroupCells& cells = store_->groups_[group];
  const std::span<const Run> all = store_->tables_[stretch.table].cells[group].runs();
  const std::vector<Run> runs(all.begin() + static_cast<std::ptrdiff_t>(stretch.first_run),
                              all.begin() + static_cast<std::ptrdiff_t>(stretch.first_run + stretch.runs));
  copies_.reserve(copies_.size() + runs.size());
  std::uint64_t pages = store_->free_frames_.size() / cells.layers();
  const Run* predecessor = stretch.first_run > 0 ? &all[stretch.first_run - 1] : nullptr;
  if (predecessor != nullptr && cells.free_run_at(predecessor->page, predecessor->cell + predecessor->count,
                                                  stretch.cells) < stretch.cells) {
    predecessor = nullptr;
  }
  const Run target = store_->take_some(group, predecessor, 0, stretch.cells, pages);
  std::uint32_t at = target.cell;
  for (const Run& run : runs) {
    add_move(group, {run.page, run.cell}, {target.page, at}, run.count);
    at += run.count;
  }
  if (change_of_spans(group) < 0) return true;
  give_back();  // other holders would lie in more spans than this one saves (M1)
  return false;
}

// Moves all cells of the emptiest page into holes elsewhere, if that adds fewer spans than `gain`, which the
// page then serves to save.
bool Compaction::evacuate(std::uint32_t group, std::size_t gain, std::uint32_t budget,
                          std::span<const TableId> stay) {
  GroupCells& cells = store_->groups_[group];
  std::optional<PageId> emptiest;
  for (std::uint32_t page = 0; page < cells.page_count(); ++page) {
    const std::uint32_t held = cells.held_cells(PageId{page});
    if (held == 0 || held > budget || held == store_->page_cells()) continue;
    if (emptiest && held >= cells.held_cells(*emptiest)) continue;
    if (may_move(group, {PageId{page}, 0}, store_->page_cells(), stay)) emptiest = PageId{page};
  }
  if (!emptiest) return false;
  const std::uint32_t held = cells.held_cells(*emptiest);
  if (cells.free_cells() - (store_->page_cells() - held) < held) return false;
  copies_.reserve(held);
  for (std::uint32_t cell = 0; cell < store_->page_cells();) {
    std::uint32_t count = 0;
    while (cell + count < store_->page_cells() && cells.holders(*emptiest, cell + count) > 0) ++count;
    if (count == 0) {
      ++cell;
      continue;
    }
    const GroupCells::Hole hole = *cells.longest_hole(*emptiest);
    const std::uint32_t some = std::min(count, hole.cells.count);
    cells.take(hole.page, {hole.cells.first, some}, 0);
    add_move(group, {*emptiest, cell}, {hole.page, hole.cells.first}, some);
    cell += some;
  }
  if (change_of_spans(group) < static_cast<std::int64_t>(gain)) return true;
  give_back();
  return false;
}

// The cells of `to` are taken. Those of `from` are held like by a fork, so that nobody's end frees them while
// they are copied.
void Compaction::add_move(std::uint32_t group, CellAt from, CellAt to, std::uint32_t count) {
  store_->groups_[group].hold(from.page, {from.cell, count}, Holder::kFirm);
  copies_.push_back({group, from, to, count});
}

// How many spans the planned moves add to all tables of a group; negative where they save some.
std::int64_t Compaction::change_of_spans(std::uint32_t group) const {
  std::int64_t change = 0;
  for (const PageStore::Table& table : store_->tables_) {
    if (!table.open) continue;
    PageTable after = table.cells[group];
    for (const CopyCells& copy : copies_) {
      if (after.names_any(copy.from, copy.count)) after = after.moved(copy.from, copy.to, copy.count);
    }
    change += static_cast<std::int64_t>(after.runs().size()) -
              static_cast<std::int64_t>(table.cells[group].runs().size());
  }
  return change;
}

Result<std::uint32_t> Compaction::commit() {
  if (store_ == nullptr) return fail(Outcome::kWrongState, "the compaction gave way to a reservation");
  PageStore& store = *store_;
  std::vector<std::pair<PageTable*, PageTable>> patches;
  try {
    // All new tables first: a failed allocation leaves everything in its old place (M2).
    for (std::uint32_t group = 0; group < store.group_count(); ++group) {
      store.visit_holders(group, [&](PageTable& holder) {
        PageTable after = holder;
        bool any = false;
        for (const CopyCells& copy : copies_) {
          if (copy.group != group || !after.names_any(copy.from, copy.count)) continue;
          after = after.moved(copy.from, copy.to, copy.count);
          any = true;
        }
        if (any) patches.emplace_back(&holder, std::move(after));
      });
    }
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory to move cells");
  }
  for (auto& [holder, after] : patches) std::swap(*holder, after);
  std::uint32_t moved = 0;
  for (const CopyCells& copy : copies_) {
    if (store.groups_[copy.group].move(copy.from, copy.to, copy.count))
      store.give_frames_back(copy.group, copy.from.page);
    store.release(copy.group, copy.to.page, {copy.to.cell, copy.count}, Holder::kFirm);
    moved += copy.count;
  }
  copies_.clear();
  destroy();
  return moved;
}

Result<std::vector<SwapCells>> PageStore::swap(TableId table, std::uint64_t a, std::uint64_t b) {
  if (std::max(a, b) >= length(table)) {
    return fail(Outcome::kInvalidArgument,
                "there is no token " + std::to_string(std::max(a, b)) + " in a conversation of " +
                    std::to_string(length(table)),
                {.wanted = std::max(a, b), .limit = length(table)});
  }
  std::vector<SwapCells> swaps;
  if (a == b) return swaps;
  std::vector<std::pair<PageTable*, PageTable>> patches;
  try {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      const PageTable& cells = entry(table).cells[group];
      const SwapCells swap{group, cells.cell_at(a), cells.cell_at(b)};
      swaps.push_back(swap);
      visit_holders(group, [&](PageTable& holder) {
        if (holder.names_any(swap.a, 1) || holder.names_any(swap.b, 1)) {
          patches.emplace_back(&holder, holder.exchanged(swap.a, swap.b));
        }
      });
    }
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory to exchange cells");
  }
  for (auto& [holder, after] : patches) std::swap(*holder, after);
  for (const SwapCells& swap : swaps) groups_[swap.group].swap(swap.a, swap.b);
  return swaps;
}

}  // namespace kvasir::pages
