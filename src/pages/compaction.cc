#include "pages/compaction.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::pages {
namespace {

// Stretches whose cells others hold too are tried one after the other; more would cost more than they are
// likely to bring. Where a page must be emptied first, each try looks at all spans.
constexpr int kSharedAttemptsMax = 256;
constexpr int kSharedAttemptsLater = 16;

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
    const std::uint32_t first = store.cursor_.group;
    for (std::uint32_t i = 0; i < groups; ++i) {
      const std::uint32_t group = (first + i) % groups;
      if (store.kind(group) == GroupKind::kRecurrent) continue;  // a state lies nowhere better
      if (!compaction->plan({group, std::min(budget, store.page_cells()), stay})) continue;
      compaction->yield_targets(true);
      return compaction;
    }
    for (HolderIndex& index : store.indexes_) index = {};  // until there is something to do again
    store.cursor_ = {};
    return nullptr;
  });
}

Compaction::~Compaction() {
  destroy();
}

// What the compaction itself holds makes no index wrong, which names lists of spans alone.
template <class Change>
void Compaction::change_holders(std::uint32_t group, const Change& change) noexcept {
  HolderIndex& index = store_->indexes_[group];
  EmptiedPage& emptied = store_->emptied_[group];
  const std::uint64_t before = store_->changes(group);
  change();
  if (index.current(before)) index.set_current(store_->changes(group));
  if (emptied.changes == before) emptied.changes = store_->changes(group);
}

void Compaction::give_back() noexcept {
  const Holder target = yields_ ? Holder::kSoft : Holder::kFirm;
  for (const CopyCells& copy : copies_) {
    change_holders(copy.group, [&] {
      store_->release(copy.group, copy.to.page, {copy.to.cell, copy.count}, target);
      store_->release(copy.group, copy.from.page, {copy.from.cell, copy.count}, Holder::kSoft);
    });
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
  for (std::size_t i = 0; i < copies_.size();) {
    const CopyCells& copy = copies_[i];
    CellRange cells{copy.to.cell, 0};
    while (i < copies_.size() && copies_[i].to == CellAt{copy.to.page, cells.first + cells.count})
      cells.count += copies_[i++].count;
    change_holders(copy.group, [&] {
      store_->groups_[copy.group].hold(copy.to.page, cells, yield ? Holder::kSoft : Holder::kFirm);
      store_->release(copy.group, copy.to.page, cells, yield ? Holder::kFirm : Holder::kSoft);
    });
  }
  yields_ = yield;
}

// Gathers the next stretch; where there is none, empties a page so that the next compaction finds one.
bool Compaction::plan(const Task& task) {
  const std::uint32_t room = longest_room(task.group);
  const auto spans = [&](std::size_t table) { return store_->tables_[table].cells[task.group].runs(); };
  int attempts = 0;
  const auto try_one = [&](const Stretch& stretch) {
    if (stretch.shared && ++attempts > kSharedAttemptsMax) return false;
    return gather(task, stretch);
  };
  if (sweep(task, std::min(room, task.budget), spans, try_one)) return true;
  return room < store_->page_cells() && evacuate(task);
}

// The longest free run that a stretch could be moved to.
std::uint32_t Compaction::longest_room(std::uint32_t group) const noexcept {
  const GroupCells& cells = store_->groups_[group];
  if (store_->free_frames_.size() >= cells.layers()) return store_->page_cells();
  const auto hole = cells.longest_hole();
  return hole ? hole->cells.count : 0;
}

// Tries every stretch that is worth a move to `room` cells, from the cursor on and round all tables, until
// one is taken: the cursor stands there then. So many compactions together look at each span a few times.
template <class Spans, class Try>
bool Compaction::sweep(const Task& task, std::uint32_t room, const Spans& spans_of, const Try& try_one) {
  const std::size_t tables = store_->tables_.size();
  CompactionCursor start{.group = task.group};
  if (store_->cursor_.group == task.group && store_->cursor_.table < tables) start = store_->cursor_;
  for (std::size_t i = 0; i <= tables && tables > 0; ++i) {
    const std::size_t table = (start.table + i) % tables;
    if (!store_->tables_[table].open || stays(task, table)) continue;
    const std::span<const Run> runs = spans_of(table);
    const auto at = std::ranges::upper_bound(runs, start.ordinal, {}, &Run::ordinal);
    const auto cursor = static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, at - runs.begin())) - 1;
    const std::size_t end = i == tables ? std::min(cursor, runs.size()) : runs.size();
    for (std::size_t first = i == 0 ? cursor : 0; first < end; ++first) {
      Stretch stretch = best_stretch(task, runs, first, room);
      if (stretch.runs == 0 || stretch.gain() == 0) continue;
      stretch.table = table;
      const CompactionCursor found{task.group, table, runs[first].ordinal};
      if (!try_one(stretch)) continue;
      store_->cursor_ = found;
      return true;
    }
  }
  return false;
}

// From a span on elsewhere, or those after it behind it, where that saves as much and moves less.
Compaction::Stretch Compaction::best_stretch(const Task& task, std::span<const Run> runs, std::size_t first,
                                             std::uint32_t room) const {
  const Stretch elsewhere = longest_stretch(task, runs, first, room);
  const Stretch behind = first + 1 < runs.size() ? stretch_behind(task, runs, first + 1) : Stretch();
  if (behind.runs == 0) return elsewhere;
  // A full page is moved quicker than a part of one, and nothing will have to be moved behind it.
  if (elsewhere.cells + elsewhere.more == store_->page_cells() && elsewhere.gain() >= behind.gain())
    return elsewhere;
  if (elsewhere.runs == 0 || behind.gain() > elsewhere.gain()) return behind;
  return behind.gain() == elsewhere.gain() && behind.cells < elsewhere.cells ? behind : elsewhere;
}

// From a span on, as many of one shift as there is room for behind the span before them.
Compaction::Stretch Compaction::stretch_behind(const Task& task, std::span<const Run> runs,
                                               std::size_t first) const {
  const Run& before = runs[first - 1];
  if (before.shift != runs[first].shift || in_tier(before.page)) return {};
  const std::uint32_t most =
      store_->groups_[task.group].free_run_at(before.page, before.cell + before.count, task.budget);
  if (most < runs[first].count) return {};
  Stretch stretch = longest_stretch(task, runs, first, most);
  stretch.behind = true;
  return stretch;
}

// From a span on, as many of one shift as `most` cells hold. What is shared and what is not do not mix, so
// that a shared neighbour keeps nobody from moving.
Compaction::Stretch Compaction::longest_stretch(const Task& task, std::span<const Run> runs,
                                                std::size_t first, std::uint32_t most) const {
  if (in_tier(runs[first].page)) return {};
  Stretch stretch{.first_run = first, .shared = is_shared(task.group, runs[first])};
  for (const Run& run : runs.subspan(first)) {
    if (in_tier(run.page) || run.shift != runs[first].shift || stretch.cells == most) break;
    if (stretch.runs > 0 && is_shared(task.group, run) != stretch.shared) break;
    if (stretch.cells + run.count > most) {
      // A part of what is no full page itself: pages that are filled leave fewer of them, and holes, behind.
      if (!stretch.shared && run.count < store_->page_cells()) stretch.more = most - stretch.cells;
      break;
    }
    if (stretch.shared && !may_move(task, {run.page, run.cell}, run.count)) break;
    stretch.cells += run.count;
    ++stretch.runs;
  }
  return stretch;
}

// Whether another table holds one of the cells. A cell that a planned move has taken stands for its source.
bool Compaction::is_shared(std::uint32_t group, const Run& run) const noexcept {
  const GroupCells& cells = store_->groups_[group];
  const auto any = [&](PageId page, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t cell = first; cell < end; ++cell) {
      if (cells.firm_holders(page, cell) > 1) return true;
    }
    return false;
  };
  for (const CopyCells& copy : copies_) {
    if (copy.to.page != run.page) continue;
    const std::uint32_t first = std::max(run.cell, copy.to.cell);
    const std::uint32_t end = std::min(run.cell + run.count, copy.to.cell + copy.count);
    if (first >= end) continue;
    const std::uint32_t from = copy.from.cell + (first - copy.to.cell);
    if (any(copy.from.page, from, from + (end - first))) return true;
  }
  return any(run.page, run.cell, run.cell + run.count);
}

// Whether a conversation must not move: its owner says so, or an open ticket is for it.
bool Compaction::stays(const Task& task, std::size_t table) const noexcept {
  return store_->tables_[table].busy ||
         std::ranges::find(task.stay, TableId{static_cast<std::uint32_t>(table)}) != task.stay.end();
}

// Whether no conversation that stays holds one of the cells.
bool Compaction::may_move(const Task& task, CellAt from, std::uint32_t count) const {
  const HolderIndex& index = store_->holder_index(task.group);
  bool may = true;
  index.visit(from.page, [&](const HolderIndex::Piece& piece) {
    const HolderIndex::Holder& holder = index.holder(piece);
    if (piece.cell >= from.cell + count || from.cell >= piece.cell + piece.count) return;
    may = may && (holder.kind != HolderIndex::Kind::kTable || !stays(task, holder.id));
  });
  return may;
}

bool Compaction::gather(const Task& task, const Stretch& stretch) {
  GroupCells& cells = store_->groups_[task.group];
  const std::span<const Run> all = store_->tables_[stretch.table].cells[task.group].runs();
  const std::uint32_t count = stretch.cells + stretch.more;
  copies_.reserve(stretch.runs + 1);
  const Run* predecessor = stretch.behind ? &all[stretch.first_run - 1] : nullptr;
  const auto hole = cells.longest_hole();
  std::uint64_t pages = stretch.behind || (hole && hole->cells.count >= count) ? 0 : 1;
  Run target;
  change_holders(task.group, [&] { target = store_->take_some(task.group, predecessor, 0, count, pages); });
  for (std::uint32_t done = 0; const Run& run : all.subspan(stretch.first_run)) {
    const std::uint32_t some = std::min(run.count, count - done);
    if (some == 0) break;
    add_move(task.group, {run.page, run.cell}, {target.page, target.cell + done}, some);
    done += some;
  }
  // Others could lie in more spans than this one saves (M1), or the frames be promised (S6).
  if ((!stretch.shared || growth_of(patches(Moves(copies_))) < 0) && store_->promises_fit()) return true;
  give_back();
  return false;
}

// Moves all cells of the emptiest page into holes elsewhere, if what can be gathered into the page then saves
// more spans than that costs. An open ticket holds cells that no table names yet, so no page can be known to
// be emptied then.
bool Compaction::evacuate(const Task& task) {
  if (store_->open_tickets_ > 0) return false;
  const std::uint64_t spans = spans_of(task.group);
  const EmptiedPage& last = store_->emptied_[task.group];
  if (last.changes == store_->changes(task.group) && spans >= last.spans) return false;  // M1
  const auto page = page_to_empty(task);
  if (!page) return false;
  copies_.reserve(store_->page_cells());
  move_out(task.group, *page);
  if (pays_later(task) && store_->promises_fit()) {
    emptied_at_ = spans;
    return true;
  }
  give_back();
  return false;
}

std::uint64_t Compaction::spans_of(std::uint32_t group) const noexcept {
  std::uint64_t spans = 0;
  for (const PageStore::Table& table : store_->tables_) {
    if (table.open) spans += table.cells[group].runs().size();
  }
  return spans;
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
    change_holders(group, [&] { cells.take(hole.page, {hole.cells.first, some}, 0); });
    add_move(group, {page, cell}, {hole.page, hole.cells.first}, some);
    cell += some;
  }
}

// The cells of a page in which a span of some table begins, or that one ends before.
CellMask Compaction::where_spans_begin(std::uint32_t group, PageId page) const {
  CellMask begins;
  const HolderIndex& index = store_->holder_index(group);
  index.visit(page, [&](const HolderIndex::Piece& piece) {
    if (index.holder(piece).kind != HolderIndex::Kind::kTable) return;
    begins.insert(piece.cell);
    if (piece.cell + piece.count < store_->page_cells()) begins.insert(piece.cell + piece.count);
  });
  return begins;
}

// Whether the next compaction, once the planned moves are made, leaves fewer spans than there are now: the
// cursor stands where it will find the same stretch first, and there is a page to gather into then.
bool Compaction::pays_later(const Task& task) {
  const std::vector<HolderPatch> changed = patches(Moves(copies_));
  const std::int64_t growth = growth_of(changed);
  std::vector<PageTable> after(store_->tables_.size());
  for (std::size_t table = 0; table < after.size(); ++table) {
    if (store_->tables_[table].open) after[table] = store_->tables_[table].cells[task.group];
  }
  for (const auto& [holder, patch] : changed) {
    if (holder.kind == HolderIndex::Kind::kTable) after[holder.id].apply(patch);
  }
  const auto spans = [&](std::size_t table) { return after[table].runs(); };
  int attempts = 0;
  return sweep(task, task.budget, spans, [&](const Stretch& stretch) {
    if (!stretch.shared) return growth < static_cast<std::int64_t>(stretch.gain());
    return ++attempts <= kSharedAttemptsLater && growth + growth_by(after, stretch) < 0;
  });
}

// By how many spans all tables together grow where one's stretch is gathered.
std::int64_t Compaction::growth_by(std::span<const PageTable> tables, const Stretch& stretch) {
  const std::span<const Run> runs = tables[stretch.table].runs();
  // A page that nothing lies in stands for wherever the stretch will go.
  CellAt to{PageId{UINT32_MAX}, 0};
  if (stretch.behind) {
    const Run& before = runs[stretch.first_run - 1];
    to = {before.page, before.cell + before.count};
  }
  std::vector<CopyCells> copies;
  for (const Run& run : runs.subspan(stretch.first_run, stretch.runs)) {
    copies.push_back({0, {run.page, run.cell}, to, run.count});
    to.cell += run.count;
  }
  const Moves moves(copies);
  std::int64_t growth = 0;
  for (const PageTable& table : tables) {
    const bool moved = std::ranges::any_of(
        table.runs(), [&](const Run& run) { return moves.any({run.page, run.cell}, run.count); });
    if (moved) growth += table.patch_for(moves, table.start(), table.length()).growth();
  }
  return growth;
}

// The cells of `to` are taken. Those of `from` get a holder that yields, so that nobody's end frees them
// while they are copied.
void Compaction::add_move(std::uint32_t group, CellAt from, CellAt to, std::uint32_t count) {
  change_holders(group, [&] { store_->groups_[group].hold(from.page, {from.cell, count}, Holder::kSoft); });
  copies_.push_back({group, from, to, count});
}

std::vector<Compaction::HolderPatch> Compaction::patches(const Moves& moves) const {
  struct Part {
    std::uint32_t holder;
    std::uint64_t first;
    std::uint64_t end;
  };
  std::vector<HolderPatch> patches;
  if (moves.all().empty()) return patches;
  const std::uint32_t group = moves.all().front().group;
  const HolderIndex& index = store_->holder_index(group);
  std::vector<Part> parts;
  std::optional<PageId> done;
  for (const CopyCells& copy : moves.all()) {
    if (std::exchange(done, copy.from.page) == copy.from.page) continue;
    index.visit(copy.from.page, [&](const HolderIndex::Piece& piece) {
      if (moves.any({copy.from.page, piece.cell}, piece.count))
        parts.push_back({piece.holder, piece.ordinal, piece.ordinal + piece.count});
    });
  }
  std::ranges::sort(parts, {}, &Part::holder);
  for (auto part = parts.begin(); part != parts.end();) {
    Part all = *part;
    for (; part != parts.end() && part->holder == all.holder; ++part) {
      all.first = std::min(all.first, part->first);
      all.end = std::max(all.end, part->end);
    }
    const HolderIndex::Holder& holder = index.holders()[all.holder];
    patches.push_back({holder, store_->cells_of(holder)[group].patch_for(moves, all.first, all.end)});
  }
  return patches;
}

std::int64_t Compaction::growth_of(std::span<const HolderPatch> patches) noexcept {
  std::int64_t growth = 0;
  for (const auto& [holder, patch] : patches) {
    if (holder.kind == HolderIndex::Kind::kTable) growth += patch.growth();
  }
  return growth;
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
    const std::uint32_t group = copies_.front().group;
    HolderIndex& index = store.holder_index(group);
    // Room for all new spans first: a failed allocation leaves everything in its old place (M2).
    const Moves moves(copies_);
    const std::vector<HolderPatch> changed = patches(moves);
    for (const auto& [holder, patch] : changed) {
      if (patch.growth() > 0) store.cells_of(holder)[group].reserve(static_cast<std::size_t>(patch.growth()));
    }
    yield_targets(false);
    if (!store.promises_fit()) {
      destroy();
      return fail(Outcome::kWrongState, "the compaction gave way to a promise");
    }
    EmptiedPage& emptied = store.emptied_[group];
    const bool follows = emptied.changes == store.changes(group);
    for (const auto& [holder, patch] : changed) store.cells_of(holder)[group].apply(patch);
    std::uint32_t moved = 0;
    for (const CopyCells& copy : copies_) {
      if (store.groups_[group].move(copy.from, copy.to, copy.count))
        store.give_frames_back(group, copy.from.page);
      store.release(group, copy.to.page, {copy.to.cell, copy.count}, Holder::kSoft);
      moved += copy.count;
    }
    copies_.clear();
    if (emptied_at_) emptied.spans = *emptied_at_;
    if (emptied_at_ || follows) emptied.changes = store.changes(group);
    store.follow_moves(index, group, moves);
    destroy();
    return moved;
  });
}

HolderIndex& PageStore::holder_index(std::size_t group) {
  HolderIndex& index = indexes_[group];
  if (index.current(changes(group))) return index;
  fill_index(index, group);
  index.set_current(changes(group));
  return index;
}

void PageStore::fill_index(HolderIndex& index, std::size_t group) const {
  index.reset(groups_[group].page_count());
  for (std::uint32_t table = 0; table < tables_.size(); ++table) {
    if (tables_[table].open)
      index.add({HolderIndex::Kind::kTable, table}, tables_[table].cells[group].runs());
  }
  for (std::uint32_t i = 0; i < snapshots_.size(); ++i)
    index.add({HolderIndex::Kind::kSnapshot, i}, snapshots_[i]->cells_[group].runs());
  for (const PrefixIndex::BlockId block : index_.blocks())
    index.add({HolderIndex::Kind::kBlock, block}, index_.cells(block)[group].runs());
  checkpoints_.visit([&](CheckpointId id, const Checkpoint& checkpoint) {
    index.add({HolderIndex::Kind::kCheckpoint, static_cast<std::uint32_t>(id)},
              checkpoint.cells[group].runs());
  });
}

// Without memory for it the index is made anew when it is needed next.
void PageStore::follow_moves(HolderIndex& index, std::size_t group, const Moves& moves) noexcept {
  try {
    index.move(moves);
    index.set_current(changes(group));
  } catch (const std::bad_alloc&) {
    index.set_current({});
  }
}

std::span<PageTable> PageStore::cells_of(const HolderIndex::Holder& holder) noexcept {
  switch (holder.kind) {
    case HolderIndex::Kind::kTable:
      return tables_[holder.id].cells;
    case HolderIndex::Kind::kSnapshot:
      return snapshots_[holder.id]->cells_;
    case HolderIndex::Kind::kBlock:
      return index_.cells(holder.id);
    case HolderIndex::Kind::kCheckpoint:
      return checkpoints_.at(CheckpointId{holder.id}).cells;
  }
  return {};
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
    KVASIR_TRY(check_in_pool(table));
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
