#include "pages/compaction.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::pages {
namespace {

// Stretches whose cells others hold too are tried, each on copies of all tables; more would cost more than
// they are likely to bring.
constexpr int kSharedAttemptsMax = 16;

std::uint64_t spans_of(std::span<const PageTable> tables) {
  return std::accumulate(tables.begin(), tables.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const PageTable& table) { return sum + table.runs().size(); });
}

}  // namespace

Result<std::unique_ptr<Compaction>> Compaction::begin(PageStore& store, std::uint32_t budget,
                                                      std::span<const TableId> stay) {
  return base::within_memory([&]() -> Result<std::unique_ptr<Compaction>> {
    if (store.compaction_ != nullptr) {
      return fail(Outcome::kWrongState, "a compaction is open; commit or drop it first");
    }
    std::unique_ptr<Compaction> compaction(new Compaction(store));
    store.compaction_ = compaction.get();
    const auto groups = static_cast<std::uint32_t>(store.group_count());
    // The group whose page was emptied last gathers into it before another takes its frames (M1).
    const std::uint32_t first = std::exchange(store.emptied_group_, 0);
    for (std::uint32_t i = 0; i < groups; ++i) {
      const std::uint32_t group = (first + i) % groups;
      if (store.kind(group) == GroupKind::kRecurrent) continue;  // a state lies nowhere better
      if (!compaction->plan({group, std::min(budget, store.page_cells()), stay})) continue;
      compaction->yield_targets(true);
      return compaction;
    }
    return nullptr;
  });
}

Compaction::~Compaction() {
  destroy();
}

void Compaction::give_back() noexcept {
  for (const CopyCells& copy : copies_) {
    const Holder target = yields_ ? Holder::kSoft : Holder::kFirm;
    store_->release(copy.group, copy.to.page, {copy.to.cell, copy.count}, target);
    store_->release(copy.group, copy.from.page, {copy.from.cell, copy.count}, Holder::kSoft);
  }
  copies_.clear();
  yields_ = false;
}

void Compaction::destroy() noexcept {
  if (store_ == nullptr) return;
  give_back();
  store_->compaction_ = nullptr;
  store_ = nullptr;
}

// Targets are held firmly while moves are planned and installed, and softly in between.
void Compaction::yield_targets(bool yield) noexcept {
  for (const CopyCells& copy : copies_) {
    const CellRange cells{copy.to.cell, copy.count};
    store_->groups_[copy.group].hold(copy.to.page, cells, yield ? Holder::kSoft : Holder::kFirm);
    store_->release(copy.group, copy.to.page, cells, yield ? Holder::kFirm : Holder::kSoft);
  }
  yields_ = yield;
}

// Gathers the stretch that joins most spans; where there is no place for one, empties a page so that the next
// compaction finds one.
bool Compaction::plan(const Task& task) {
  const std::uint32_t room = longest_room(task.group);
  int attempts = 0;
  for (const Stretch& stretch :
       stretches(task, tables_after_moves(task.group), std::min(room, task.budget))) {
    if (stretch.shared && ++attempts > kSharedAttemptsMax) continue;
    if (gather(task, stretch)) return true;
  }
  return room < store_->page_cells() && evacuate(task);
}

// The longest free run that a stretch could be moved to.
std::uint32_t Compaction::longest_room(std::uint32_t group) const noexcept {
  const GroupCells& cells = store_->groups_[group];
  if (store_->free_frames_.size() >= cells.layers()) return store_->page_cells();
  const auto hole = cells.longest_hole();
  return hole ? hole->cells.count : 0;
}

// All stretches that are worth a move of at most the budget, the best first.
std::vector<Compaction::Stretch> Compaction::stretches(const Task& task, std::span<const PageTable> tables,
                                                       std::uint32_t room) const {
  std::vector<Stretch> all;
  for (std::size_t table = 0; table < tables.size(); ++table) {
    if (stays(task, table)) continue;
    const std::span<const Run> runs = tables[table].runs();
    for (std::size_t first = 0; first < runs.size(); ++first) {
      Stretch stretch = longest_stretch(task, runs, first, room);
      stretch.table = table;
      if (stretch.runs > 0 && stretch.gain() > 0) all.push_back(stretch);
    }
  }
  std::ranges::sort(all, {}, [](const Stretch& one) {
    return std::make_tuple(-static_cast<std::ptrdiff_t>(one.gain()), one.cells, one.table, one.first_run);
  });
  return all;
}

// From a span on, as many of one shift as fit behind the span before them, or else into `room` cells. What is
// shared and what is not do not mix, so that a shared neighbour keeps nobody from moving.
Compaction::Stretch Compaction::longest_stretch(const Task& task, std::span<const Run> runs,
                                                std::size_t first, std::uint32_t room) const {
  const bool shared = is_shared(task.group, runs[first]);
  const auto up_to = [&](std::uint32_t most) {
    Stretch stretch{.first_run = first, .shared = shared};
    for (const Run& run : runs.subspan(first)) {
      if (run.shift != runs[first].shift || stretch.cells + run.count > most) break;
      if (is_shared(task.group, run) != shared) break;
      if (shared && !may_move(task, {run.page, run.cell}, run.count)) break;
      stretch.cells += run.count;
      ++stretch.runs;
    }
    return stretch;
  };
  if (first > 0 && runs[first - 1].shift == runs[first].shift) {
    const Run& before = runs[first - 1];
    Stretch stretch =
        up_to(store_->groups_[task.group].free_run_at(before.page, before.cell + before.count, task.budget));
    stretch.behind = true;
    if (stretch.runs > 0) return stretch;
  }
  return up_to(room);
}

// Whether another table holds one of the cells. A cell that a planned move has taken stands for its source.
bool Compaction::is_shared(std::uint32_t group, const Run& run) const noexcept {
  const GroupCells& cells = store_->groups_[group];
  for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
    CellAt at{run.page, cell};
    for (const CopyCells& copy : copies_) {
      if (at.page != copy.to.page || cell < copy.to.cell || cell >= copy.to.cell + copy.count) continue;
      at = {copy.from.page, copy.from.cell + (cell - copy.to.cell)};
      break;
    }
    if (cells.holders(at.page, at.cell) - cells.soft_holders(at.page, at.cell) > 1) return true;
  }
  return false;
}

// Whether a conversation must not move: its owner says so, or an open ticket is for it.
bool Compaction::stays(const Task& task, std::size_t table) const noexcept {
  return store_->tables_[table].busy ||
         std::ranges::find(task.stay, TableId{static_cast<std::uint32_t>(table)}) != task.stay.end();
}

// Whether no conversation that stays holds one of the cells.
bool Compaction::may_move(const Task& task, CellAt from, std::uint32_t count) const {
  for (std::size_t table = 0; table < store_->tables_.size(); ++table) {
    if (!store_->tables_[table].open || !stays(task, table)) continue;
    if (store_->tables_[table].cells[task.group].names_any(from, count)) return false;
  }
  return true;
}

bool Compaction::gather(const Task& task, const Stretch& stretch) {
  GroupCells& cells = store_->groups_[task.group];
  const std::span<const Run> all = store_->tables_[stretch.table].cells[task.group].runs();
  const std::span<const Run> runs = all.subspan(stretch.first_run, stretch.runs);
  copies_.reserve(runs.size());
  const Run* predecessor = stretch.behind ? &all[stretch.first_run - 1] : nullptr;
  const auto hole = cells.longest_hole();
  std::uint64_t pages = stretch.behind || (hole && hole->cells.count >= stretch.cells) ? 0 : 1;
  const Run target = store_->take_some(task.group, predecessor, 0, stretch.cells, pages);
  std::uint32_t at = target.cell;
  for (const Run& run : runs) {
    add_move(task.group, {run.page, run.cell}, {target.page, at}, run.count);
    at += run.count;
  }
  // Others could lie in more spans than this one saves (M1), or the frames be promised (S6).
  if (spans_of(tables_after_moves(task.group)) < spans_now(task.group) && store_->promises_fit()) return true;
  give_back();
  return false;
}

// Moves all cells of the emptiest page into holes elsewhere, if what can be gathered into the page then saves
// more spans than that costs. An open ticket holds cells that no table names yet, so no page can be known to
// be emptied then.
bool Compaction::evacuate(const Task& task) {
  if (store_->open_tickets_ > 0) return false;
  const auto page = page_to_empty(task);
  if (!page) return false;
  copies_.reserve(store_->page_cells());
  move_out(task.group, *page);
  if (pays_later(task) && store_->promises_fit()) {
    store_->emptied_group_ = task.group;
    return true;
  }
  give_back();
  return false;
}

// The used page with the fewest cells, where they may move and find room in holes of others.
std::optional<PageId> Compaction::page_to_empty(const Task& task) const {
  const GroupCells& cells = store_->groups_[task.group];
  std::optional<PageId> emptiest;
  for (std::uint32_t index = 0; index < cells.page_count(); ++index) {
    const PageId page{index};
    const std::uint32_t held = cells.held_cells(page);
    if (held == 0 || held > task.budget || held == store_->page_cells()) continue;
    if (emptiest && held >= cells.held_cells(*emptiest)) continue;
    if (may_move(task, {page, 0}, store_->page_cells())) emptiest = page;
  }
  if (!emptiest) return std::nullopt;
  const std::uint32_t held = cells.held_cells(*emptiest);
  const std::uint32_t own_holes = cells.stays(*emptiest) ? store_->page_cells() - held : 0;
  if (cells.free_holes() - own_holes < held) return std::nullopt;
  return emptiest;
}

// Cells that lie side by side for all their holders go together, if there is a hole for them.
void Compaction::move_out(std::uint32_t group, PageId page) {
  GroupCells& cells = store_->groups_[group];
  const CellMask begins = where_spans_begin(group, page);
  for (std::uint32_t cell = 0; cell < store_->page_cells();) {
    std::uint32_t count = 0;
    while (cell + count < store_->page_cells() && cells.holders(page, cell + count) > 0 &&
           (count == 0 || !begins.contains(cell + count))) {
      ++count;
    }
    if (count == 0) {
      ++cell;
      continue;
    }
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): page_to_empty() has counted the holes
    const GroupCells::Hole hole = *cells.fitting_hole(count, page);
    const std::uint32_t some = std::min(count, hole.cells.count);
    cells.take(hole.page, {hole.cells.first, some}, 0);
    add_move(group, {page, cell}, {hole.page, hole.cells.first}, some);
    cell += some;
  }
}

// The cells of a page in which a span of some table begins, or that one ends before.
CellMask Compaction::where_spans_begin(std::uint32_t group, PageId page) const noexcept {
  CellMask begins;
  for (const PageStore::Table& table : store_->tables_) {
    if (!table.open) continue;
    for (const Run& run : table.cells[group].runs()) {
      if (run.page != page) continue;
      begins.insert(run.cell);
      if (run.cell + run.count < store_->page_cells()) begins.insert(run.cell + run.count);
    }
  }
  return begins;
}

// Whether the next compaction, once the planned moves are made, leaves fewer spans than there are now: it
// will find the same stretches in the same order, and a page to gather into (M1).
bool Compaction::pays_later(const Task& task) const {
  const std::vector<PageTable> after = tables_after_moves(task.group);
  const std::uint64_t spans = spans_of(after);
  int attempts = 0;
  for (const Stretch& stretch : stretches(task, after, task.budget)) {
    if (stretch.shared && ++attempts > kSharedAttemptsMax) continue;
    // A page that nothing lies in stands for wherever the stretch will go.
    CellAt to{PageId{UINT32_MAX}, 0};
    const std::span<const Run> runs = after[stretch.table].runs().subspan(stretch.first_run, stretch.runs);
    if (stretch.behind) {
      const Run& before = after[stretch.table].runs()[stretch.first_run - 1];
      to = {before.page, before.cell + before.count};
    }
    std::vector<PageTable> gathered = after;
    for (const Run& run : runs) {
      for (PageTable& table : gathered) {
        if (table.names_any({run.page, run.cell}, run.count)) {
          table = table.moved({run.page, run.cell}, to, run.count);
        }
      }
      to.cell += run.count;
    }
    const std::uint64_t in_the_end = spans_of(gathered);
    if (in_the_end < spans) return in_the_end < spans_now(task.group);
  }
  return false;
}

// The cells of `to` are taken. Those of `from` get a holder that yields, so that nobody's end frees them
// while they are copied.
void Compaction::add_move(std::uint32_t group, CellAt from, CellAt to, std::uint32_t count) {
  store_->groups_[group].hold(from.page, {from.cell, count}, Holder::kSoft);
  copies_.push_back({group, from, to, count});
}

// Every table of a group as it will be.
std::vector<PageTable> Compaction::tables_after_moves(std::uint32_t group) const {
  std::vector<PageTable> tables;
  tables.reserve(store_->tables_.size());
  for (const PageStore::Table& table : store_->tables_) {
    tables.push_back(table.open ? table.cells[group] : PageTable());
    for (const CopyCells& copy : copies_) {
      if (!tables.back().names_any(copy.from, copy.count)) continue;
      tables.back() = tables.back().moved(copy.from, copy.to, copy.count);
    }
  }
  return tables;
}

std::uint64_t Compaction::spans_now(std::uint32_t group) const noexcept {
  std::uint64_t spans = 0;
  for (const PageStore::Table& table : store_->tables_) {
    if (table.open) spans += table.cells[group].runs().size();
  }
  return spans;
}

bool Compaction::copies_cells_of(TableId table) const noexcept {
  return std::ranges::any_of(copies_, [&](const CopyCells& copy) {
    return store_->entry(table).cells[copy.group].names_any(copy.from, copy.count);
  });
}

Result<std::uint32_t> Compaction::commit() {
  return base::within_memory([&]() -> Result<std::uint32_t> {
    if (store_ == nullptr) return fail(Outcome::kWrongState, "the compaction gave way to a reservation");
    PageStore& store = *store_;
    std::vector<std::pair<PageTable*, PageTable>> patches;
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
    yield_targets(false);
    if (!store.promises_fit()) {
      destroy();
      return fail(Outcome::kWrongState, "the compaction gave way to a promise");
    }
    for (auto& [holder, after] : patches) std::swap(*holder, after);
    std::uint32_t moved = 0;
    for (const CopyCells& copy : copies_) {
      if (store.groups_[copy.group].move(copy.from, copy.to, copy.count))
        store.give_frames_back(copy.group, copy.from.page);
      store.release(copy.group, copy.to.page, {copy.to.cell, copy.count}, Holder::kSoft);
      moved += copy.count;
    }
    copies_.clear();
    destroy();
    return moved;
  });
}

Result<std::vector<SwapCells>> PageStore::swap(TableId table, std::uint64_t a, std::uint64_t b) {
  return base::within_memory([&]() -> Result<std::vector<SwapCells>> {
    if (std::max(a, b) >= length(table)) {
      return fail(Outcome::kInvalidArgument,
                  "there is no token " + std::to_string(std::max(a, b)) + " in a conversation of " +
                      std::to_string(length(table)),
                  {.wanted = std::max(a, b), .limit = length(table)});
    }
    if (open_tickets_ > 0) {
      return fail(Outcome::kBusy, "cells cannot change places while a ticket is open; close it first");
    }
    if (entry(table).behind > 0)
      return fail(Outcome::kWrongState, "the conversation is behind; let it catch up or rewind it first");
    std::vector<SwapCells> swaps;
    if (a == b) return swaps;
    std::vector<std::pair<PageTable*, PageTable>> patches;
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      const PageTable& cells = entry(table).cells[group];
      const bool has_tokens = kind(group) == GroupKind::kFull || kind(group) == GroupKind::kWindow;
      if (!has_tokens || std::min(a, b) < cells.start()) continue;
      const SwapCells swap{group, cells.cell_at(a), cells.cell_at(b)};
      swaps.push_back(swap);
      visit_holders(group, [&](PageTable& holder) {
        if (holder.names_any(swap.a, 1) || holder.names_any(swap.b, 1)) {
          patches.emplace_back(&holder, holder.exchanged(swap.a, swap.b));
        }
      });
    }
    // It may have copied what now changes.
    if (compaction_ != nullptr) compaction_->destroy();
    for (auto& [holder, after] : patches) std::swap(*holder, after);
    for (const SwapCells& swap : swaps) groups_[swap.group].swap(swap.a, swap.b);
    return swaps;
  });
}

}  // namespace kvasir::pages
