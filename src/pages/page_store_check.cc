// The invariants of a page store, recounted from nothing.

#include <algorithm>
#include <string>
#include <tuple>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/compaction.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

std::unexpected<Error> broken(const std::string& what) {
  return fail(Outcome::kInternal, what);
}

// Adds one for each cell of a span, or of the spans, in [page * page_cells + cell].
void count_cells(const Run& run, std::uint32_t page_cells, std::vector<std::uint32_t>& counts) {
  if (in_tier(run.page)) return;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    ++counts[static_cast<std::size_t>(run.page) * page_cells + run.cell + i];
  }
}
void count_cells(const PageTable& cells, std::uint32_t page_cells, std::vector<std::uint32_t>& counts) {
  for (const Run& run : cells.runs()) count_cells(run, page_cells, counts);
}

Status check_spans(const PageTable& cells, std::uint64_t start, std::uint64_t length) {
  std::uint64_t ordinal = start;
  for (const Run& run : cells.runs()) {
    if (run.ordinal != ordinal || run.count == 0) return broken("S2: a gap in a page table");
    ordinal += run.count;
  }
  if (cells.start() != start || ordinal != length) return broken("S2: a page table of another length");
  return {};
}

}  // namespace

Status PageStore::check() const {
  return base::within_memory([&] { return check_invariants(); });
}

Status PageStore::check_invariants() const {
  std::uint64_t frames = free_frames_.size();
  std::vector<bool> seen(spec_.frames);
  for (const FrameId frame : free_frames_) {
    if (seen[static_cast<std::size_t>(frame)]) return broken("S1: a frame is free twice");
    seen[static_cast<std::size_t>(frame)] = true;
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    KVASIR_TRY(groups_[group].check());
    frames += std::uint64_t{groups_[group].pages_used()} * groups_[group].layers();
    for (std::uint32_t page = 0; page < groups_[group].page_count(); ++page) {
      if (groups_[group].held_cells(PageId{page}) == 0) continue;
      for (const FrameId frame : groups_[group].frames(PageId{page})) {
        if (seen[static_cast<std::size_t>(frame)]) return broken("S1: a frame has two owners");
        seen[static_cast<std::size_t>(frame)] = true;
      }
    }
    KVASIR_TRY(check_holders(group));
    KVASIR_TRY(check_index(group));
  }
  if (frames != spec_.frames)
    return broken("S1: " + std::to_string(frames) + " frames of " + std::to_string(spec_.frames));
  std::uint64_t promised = 0;
  for (const Table& table : tables_) promised += table.promised;
  if (promised != promised_) return broken("S6: the promises are summed wrongly");
  if (!promises_fit()) return broken("S6: more is promised than fits");
  KVASIR_TRY(check_tier_runs());
  KVASIR_TRY(index_.check());
  return check_checkpoints();
}

// L1 to L3.
Status PageStore::check_tier_runs() const {
  std::vector<std::vector<TierRuns::Cell>> counted(tier_runs_.ids());
  for (std::uint32_t id = 0; id < counted.size(); ++id) counted[id].resize(tier_runs_.cells(TierRunId{id}));
  bool unknown = false;
  const auto count = [&](std::size_t group, const PageTable& cells, Holder holder) {
    for (const Run& run : cells.runs()) {
      if (!in_tier(run.page)) continue;
      const TierRunId id = tier_run(run.page);
      if (!tier_runs_.known(id) || tier_runs_.group(id) != group ||
          std::uint64_t{run.cell} + run.count > tier_runs_.cells(id)) {
        unknown = true;
        return;
      }
      for (std::uint32_t i = run.cell; i < run.cell + run.count; ++i) {
        TierRuns::Cell& cell = counted[static_cast<std::size_t>(id)][i];
        ++(holder == Holder::kFirm ? cell.firm : cell.soft);
      }
    }
  };
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const Table& table : tables_) {
      if (!table.open) continue;
      count(group, table.cells[group], Holder::kFirm);
      if (!table.tiered && table.cells[group].cells_in_tiers() > 0)
        return broken("L2: a table does not know that its cells lie in a tier");
    }
    for (const Snapshot* const snapshot : snapshots_) count(group, snapshot->cells_[group], Holder::kFirm);
    checkpoints_.visit(
        [&](CheckpointId, const Checkpoint& one) { count(group, one.cells[group], Holder::kSoft); });
    for (const PrefixIndex::BlockId block : index_.blocks()) {
      if (index_.cells(block)[group].cells_in_tiers() > 0) return broken("L3: the index names a tier");
    }
  }
  if (unknown) return broken("L2: somebody names a tier run that is not there");
  std::uint64_t held = 0;
  for (std::uint32_t id = 0; id < counted.size(); ++id) {
    std::uint32_t of_run = 0;
    for (std::uint32_t i = 0; i < counted[id].size(); ++i) {
      const TierRuns::Cell& cell = tier_runs_.cell(TierRunId{id}, i);
      if (cell.firm != counted[id][i].firm || cell.soft != counted[id][i].soft || cell.returns > 0)
        return broken("L3: the holders of a cell in a tier are counted wrongly");
      of_run += cell.held() ? 1 : 0;
    }
    if (tier_runs_.known(TierRunId{id}) != (of_run > 0)) return broken("L1: a tier run that nobody holds");
    held += of_run;
  }
  return held == tier_runs_.held_cells() ? Status() : broken("L1: the cells in tiers are counted wrongly");
}

// S2, S7 and S8 for one group of a table.
Status PageStore::check_table(const Table& table, std::size_t group) const {
  const PageTable& cells = table.cells[group];
  const std::uint64_t length = table.length;
  switch (kind(group)) {
    case GroupKind::kFull:
      return check_spans(cells, 0, length);
    case GroupKind::kWindow: {
      const std::uint64_t seen =
          std::max(table.floors[group], length - std::min(length, spec_.groups[group].width));
      if (cells.start() + kept_behind(group) < length || (cells.start() > 0 && cells.start() > seen))
        return broken("S7: a release line of " + std::to_string(cells.start()) + " at length " +
                      std::to_string(length));
      return check_spans(cells, cells.start(), length);
    }
    case GroupKind::kRecurrent: {
      if (cells.cells() != (length > 0 ? 1 : 0)) return broken("S8: a conversation without its state");
      if (length == 0) return {};
      const Run& state = cells.runs().front();
      if (position(group, state.page, 0) != length) return broken("S8: a state of another length");
      return {};
    }
    case GroupKind::kCross:
      return check_spans(cells, 0, cells.length());
  }
  return {};
}

Status PageStore::check_checkpoints() const {
  std::vector<std::uint32_t> owners;
  std::size_t owned = 0;
  checkpoints_.visit([&](CheckpointId id, const Checkpoint&) {
    owners.resize(std::max(owners.size(), static_cast<std::size_t>(id) + 1));
    ++owned;
  });
  for (const Table& table : tables_) {
    std::uint64_t before = 0;
    for (const CheckpointId id : table.checkpoints) {
      const Checkpoint& checkpoint = checkpoints_.at(id);
      if (checkpoint.ordinal <= before || checkpoint.ordinal > table.length)
        return broken("K1: a checkpoint at " + std::to_string(checkpoint.ordinal));
      before = checkpoint.ordinal;
      if (static_cast<std::size_t>(id) >= owners.size() || checkpoint.owners == 0)
        return broken("K3: a conversation has a checkpoint that is gone");
      ++owners[static_cast<std::size_t>(id)];
    }
  }
  Status wrong;
  checkpoints_.visit([&](CheckpointId id, const Checkpoint& checkpoint) {
    if (owners[static_cast<std::size_t>(id)] != checkpoint.owners)
      wrong = broken("K3: the owners of a checkpoint are counted wrongly");
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const PageTable& cells = checkpoint.cells[group];
      const std::uint64_t floor = checkpoint.floors[group];
      const std::uint64_t ordinal = checkpoint.ordinal;
      if (kind(group) == GroupKind::kRecurrent &&
          (cells.cells() != 1 || position(group, cells.runs().front().page, 0) != ordinal)) {
        wrong = broken("K2: a checkpoint without its state");
      }
      if (kind(group) != GroupKind::kWindow) continue;
      const std::uint64_t seen = std::max(floor, ordinal - std::min(ordinal, spec_.groups[group].width));
      if (cells.length() != ordinal || (cells.start() > 0 && cells.start() > seen))
        wrong = broken("K2: a checkpoint without its window");
    }
  });
  // While no ticket is open none is prepared.
  if (wrong && open_tickets_ == 0 && owned != checkpoints_.size())
    return broken("K3: a checkpoint is left behind");
  return wrong;
}

Status PageStore::check_holders(std::size_t group) const {
  const std::uint32_t page_cells = groups_[group].page_cells();
  std::vector<std::uint32_t> firm(std::size_t{groups_[group].page_count()} * page_cells);
  std::vector<std::uint32_t> soft(firm.size());
  for (const Table& table : tables_) {
    if (!table.open) continue;
    KVASIR_TRY(check_table(table, group));
    count_cells(table.cells[group], page_cells, firm);
  }
  for (const Snapshot* const snapshot : snapshots_) count_cells(snapshot->cells_[group], page_cells, firm);
  for (const PrefixIndex::BlockId block : index_.blocks()) {
    const PageTable& cells = index_.cells(block)[group];
    const bool may_lack = kind(group) != GroupKind::kFull;
    if (!cells.empty() || !may_lack) KVASIR_TRY(check_spans(cells, 0, page_cells));
    count_cells(cells, page_cells, soft);
  }
  checkpoints_.visit([&](CheckpointId, const Checkpoint& checkpoint) {
    count_cells(checkpoint.cells[group], page_cells, soft);
  });
  if (compaction_ != nullptr) {
    for (const CopyCells& copy : compaction_->copies()) {
      if (copy.group != group) continue;
      count_cells({.page = copy.from.page, .cell = copy.from.cell, .count = copy.count}, page_cells, soft);
      count_cells({.page = copy.to.page, .cell = copy.to.cell, .count = copy.count}, page_cells, soft);
    }
  }
  for (std::size_t cell = 0; cell < firm.size(); ++cell) {
    const PageId page{static_cast<std::uint32_t>(cell / page_cells)};
    const auto in_page = static_cast<std::uint32_t>(cell % page_cells);
    if (soft[cell] != groups_[group].soft_holders(page, in_page) ||
        firm[cell] + soft[cell] != groups_[group].holders(page, in_page)) {
      return broken("S3: the holders of a cell of group " + std::to_string(group) + " are counted wrongly");
    }
  }
  return {};
}

// M3, where an index says that it is current.
Status PageStore::check_index(std::size_t group) const {
  if (!indexes_[group].current(changes(group))) return {};
  HolderIndex anew;
  fill_index(anew, group);
  const auto named = [&](const HolderIndex& index) {
    std::vector<std::tuple<std::uint32_t, std::uint32_t, HolderIndex::Kind, std::uint32_t, std::uint64_t>>
        all;
    for (std::uint32_t page = 0; page < groups_[group].page_count(); ++page) {
      index.visit(PageId{page}, [&](const HolderIndex::Piece& piece) {
        const HolderIndex::Holder& holder = index.holder(piece);
        for (std::uint32_t i = 0; i < piece.count; ++i)
          all.emplace_back(page, piece.cell + i, holder.kind, holder.id, piece.ordinal + i);
      });
    }
    std::ranges::sort(all);
    return all;
  };
  if (named(anew) != named(indexes_[group])) return broken("M3: the index of holders names others");
  return {};
}

}  // namespace kvasir::pages
