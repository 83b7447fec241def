// The invariants of a page store, recounted from nothing.

#include <string>

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
  for (std::uint32_t i = 0; i < run.count; ++i) {
    ++counts[static_cast<std::size_t>(run.page) * page_cells + run.cell + i];
  }
}
void count_cells(const PageTable& cells, std::uint32_t page_cells, std::vector<std::uint32_t>& counts) {
  for (const Run& run : cells.runs()) count_cells(run, page_cells, counts);
}

Status check_spans(const PageTable& cells, std::uint64_t length) {
  std::uint64_t ordinal = 0;
  for (const Run& run : cells.runs()) {
    if (run.ordinal != ordinal || run.count == 0) return broken("S2: a gap in a page table");
    ordinal += run.count;
  }
  if (ordinal != length) return broken("S2: a page table of another length");
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
  }
  if (frames != spec_.frames)
    return broken("S1: " + std::to_string(frames) + " frames of " + std::to_string(spec_.frames));
  std::uint64_t promised = 0;
  for (const Table& table : tables_) promised += table.promised;
  if (promised != promised_) return broken("S6: the promises are summed wrongly");
  if (!promises_fit()) return broken("S6: more is promised than fits");
  return {};
}

Status PageStore::check_holders(std::size_t group) const {
  std::vector<std::uint32_t> firm(std::size_t{groups_[group].page_count()} * spec_.page_cells);
  std::vector<std::uint32_t> soft(firm.size());
  for (const Table& table : tables_) {
    if (!table.open) continue;
    KVASIR_TRY(check_spans(table.cells[group], table.length));
    count_cells(table.cells[group], spec_.page_cells, firm);
  }
  for (const PrefixIndex::BlockId block : index_.blocks()) {
    KVASIR_TRY(check_spans(index_.cells(block)[group], spec_.page_cells));
    count_cells(index_.cells(block)[group], spec_.page_cells, soft);
  }
  if (compaction_ != nullptr) {
    for (const CopyCells& copy : compaction_->copies()) {
      if (copy.group != group) continue;
      count_cells({.page = copy.from.page, .cell = copy.from.cell, .count = copy.count}, spec_.page_cells,
                  soft);
      count_cells({.page = copy.to.page, .cell = copy.to.cell, .count = copy.count}, spec_.page_cells, soft);
    }
  }
  for (std::size_t cell = 0; cell < firm.size(); ++cell) {
    const PageId page{static_cast<std::uint32_t>(cell / spec_.page_cells)};
    const auto in_page = static_cast<std::uint32_t>(cell % spec_.page_cells);
    if (soft[cell] != groups_[group].soft_holders(page, in_page) ||
        firm[cell] + soft[cell] != groups_[group].holders(page, in_page)) {
      return broken("S3: the holders of a cell of group " + std::to_string(group) + " are counted wrongly");
    }
  }
  return {};
}

}  // namespace kvasir::pages
