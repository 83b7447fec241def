#include "recount.h"

namespace kvasir::pages::test {

Recount::Recount(const PageStore& store, std::uint64_t frames)
    : store_(&store), frames_(frames), cells_(store.group_count()) {
  for (std::size_t group = 0; group < cells_.size(); ++group) {
    cells_[group].resize(std::size_t{store.group(group).page_count()} * store.group(group).page_cells());
  }
}

void Recount::add(std::size_t group, const Run& run, Holder holder) {
  for (std::uint32_t i = 0; i < run.count; ++i) add(group, CellAt{run.page, run.cell + i}, holder);
}

Recount::Cell& Recount::cell(std::size_t group, CellAt at) {
  spaces_.clear();
  if (in_tier(at.page)) return in_tiers_[{static_cast<std::uint32_t>(at.page), at.cell}];
  return cells_[group].at(static_cast<std::size_t>(at.page) * store_->group(group).page_cells() + at.cell);
}

void Recount::add(std::size_t group, CellAt at, Holder holder) {
  ++(holder == Holder::kFirm ? cell(group, at).firm : cell(group, at).soft);
}

void Recount::remove(std::size_t group, const Run& run, Holder holder) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    Cell& counted = cell(group, {run.page, run.cell + i});
    --(holder == Holder::kFirm ? counted.firm : counted.soft);
  }
}

Recount::Space Recount::space(std::size_t group) const {
  const std::uint32_t page_cells = store_->group(group).page_cells();
  Space space;
  for (std::size_t page = 0; page < store_->group(group).page_count(); ++page) {
    std::uint32_t held = 0;
    std::uint32_t firm = 0;
    for (std::size_t cell = page * page_cells; cell < (page + 1) * page_cells; ++cell) {
      firm += cells_[group][cell].firm > 0 ? 1 : 0;
      held += cells_[group][cell].firm + cells_[group][cell].soft > 0 ? 1 : 0;
    }
    space.used_pages += held > 0 ? 1 : 0;
    space.evictable_pages += held > 0 && firm == 0 ? 1 : 0;
    space.holes += firm > 0 ? page_cells - firm : 0;
  }
  return space;
}

void Recount::settle() const {
  if (!spaces_.empty()) return;
  for (std::size_t group = 0; group < cells_.size(); ++group) spaces_.push_back(space(group));
}

bool Recount::fits(const Need& cells) const {
  settle();
  std::uint64_t available = frames_;
  std::uint64_t wanted = 0;
  for (std::size_t group = 0; group < spaces_.size(); ++group) {
    available -= (spaces_[group].used_pages - spaces_[group].evictable_pages) * store_->group(group).layers();
  }
  for (std::size_t group = 0; group < spaces_.size(); ++group) {
    const std::uint64_t layers = store_->group(group).layers();
    const std::uint32_t page_cells = store_->group(group).page_cells();
    for (std::uint64_t there = spaces_[group].holes; there < cells[group]; there += page_cells) {
      wanted += layers;
      if (wanted > available) return false;
    }
  }
  return true;
}

std::uint64_t Recount::frames_free() const {
  settle();
  std::uint64_t frames = frames_;
  for (std::size_t group = 0; group < spaces_.size(); ++group) {
    frames -= spaces_[group].used_pages * store_->group(group).layers();
  }
  return frames;
}

bool Recount::any_page_free() const {
  for (std::size_t group = 0; group < cells_.size(); ++group) {
    if (frames_free() >= store_->group(group).layers()) return true;
  }
  return false;
}

std::uint32_t Recount::firm(std::size_t group, CellAt at) const {
  if (in_tier(at.page)) return in_tiers_.at({static_cast<std::uint32_t>(at.page), at.cell}).firm;
  return cells_[group]
      .at(static_cast<std::size_t>(at.page) * store_->group(group).page_cells() + at.cell)
      .firm;
}

std::uint32_t Recount::held_in_page(std::size_t group, PageId page) const {
  std::uint32_t held = 0;
  for (std::uint32_t cell = 0; cell < store_->group(group).page_cells(); ++cell) {
    const Cell& counted =
        cells_[group][static_cast<std::size_t>(page) * store_->group(group).page_cells() + cell];
    held += counted.firm + counted.soft > 0 ? 1 : 0;
  }
  return held;
}

std::string Recount::differences() const {
  if (frames_free() != store_->frames_free()) return "free frames";
  for (std::size_t group = 0; group < cells_.size(); ++group) {
    const GroupCells& cells = store_->group(group);
    for (std::size_t i = 0; i < cells_[group].size(); ++i) {
      const PageId page{static_cast<std::uint32_t>(i / store_->group(group).page_cells())};
      const auto cell = static_cast<std::uint32_t>(i % store_->group(group).page_cells());
      const Cell& counted = cells_[group][i];
      if (cells.soft_holders(page, cell) == counted.soft &&
          cells.holders(page, cell) == counted.firm + counted.soft) {
        continue;
      }
      return "group " + std::to_string(group) + ", page " + std::to_string(static_cast<std::uint32_t>(page)) +
             ", cell " + std::to_string(cell) + ": " + std::to_string(cells.holders(page, cell)) +
             " holders, " + std::to_string(cells.soft_holders(page, cell)) + " soft; counted " +
             std::to_string(counted.firm) + " firm, " + std::to_string(counted.soft) + " soft";
    }
  }
  for (const auto& [place, counted] : in_tiers_) {
    const TierRuns::Cell& cell = store_->tier_runs().cell(tier_run(PageId{place.first}), place.second);
    if (cell.firm != counted.firm || cell.soft != counted.soft) return "the holders of a cell in a tier";
  }
  return in_tiers_.size() == store_->tier_runs().held_cells() ? "" : "cells in tiers";
}

}  // namespace kvasir::pages::test
