// How much room there is, who it is promised to, and what the index must give up for it.
//
// The rule: over all groups, the sum of ceil(max(0, need - holes) / page) x layers is at most the free and
// evictable frames; holes include the evictable cells of pages that stay.

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "pages/compaction.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

std::uint64_t pages_beyond(std::uint64_t cells, std::uint64_t holes, std::uint32_t page_cells) {
  const std::uint64_t rest = cells > holes ? cells - holes : 0;
  return base::div_up<std::uint64_t>(rest, page_cells);
}

}  // namespace

std::uint64_t PageStore::frames_needed(const Need& cells) const noexcept {
  std::uint64_t frames = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    frames += pages_in_the_end(group, cells[group]) * groups_[group].layers();
  }
  return frames;
}

// Pages that a group needs for `cells` cells: with what is free now, and with all that can be evicted.
std::uint64_t PageStore::pages_now(std::size_t group, std::uint64_t cells) const noexcept {
  return pages_beyond(cells, groups_[group].free_holes(), groups_[group].page_cells());
}
std::uint64_t PageStore::pages_in_the_end(std::size_t group, std::uint64_t cells) const noexcept {
  return pages_beyond(cells, groups_[group].holes(), groups_[group].page_cells());
}

std::uint64_t PageStore::frames_to_be_had() const noexcept {
  std::uint64_t frames = free_frames_.size();
  for (const GroupCells& group : groups_) frames += std::uint64_t{group.evictable_pages()} * group.layers();
  return frames;
}

bool PageStore::fit(const Need& beside, const Need& need) const noexcept {
  Need total = beside;
  for (std::size_t group = 0; group < groups_.size(); ++group) total[group] += need[group];
  return frames_needed(total) <= frames_to_be_had();
}

// Whether what is promised fits (S6).
bool PageStore::promises_fit() const noexcept {
  return fit(promised_need(), {});
}

// The largest number of tokens that fits; whatever is more than one that does not fit does not either.
template <class Fits>
std::uint64_t PageStore::largest(const Fits& fits) const noexcept {
  std::uint64_t too_many = kPositionMax + 2;
  if (has(GroupKind::kFull)) {
    // More than that would not fit into an empty store of one group.
    too_many = std::min<std::uint64_t>(too_many, 2 + std::uint64_t{spec_.frames} * spec_.page_cells);
  }
  std::uint64_t fitting = 0;
  while (fitting + 1 < too_many) {
    const std::uint64_t middle = fitting + (too_many - fitting) / 2;
    (fits(middle) ? fitting : too_many) = middle;
  }
  return fitting;
}

std::uint64_t PageStore::tokens_free() const noexcept {
  const Need promised = promised_need();
  return largest([&](std::uint64_t tokens) { return fit(promised, need_of_unit(tokens)); });
}

std::uint64_t PageStore::tokens_for_new() const noexcept {
  const Need promised = promised_need();
  return largest([&](std::uint64_t tokens) { return fit(promised, need_of_new(tokens)); });
}

bool PageStore::fits(TableId id, std::uint64_t count) const noexcept {
  if (count > static_cast<std::uint64_t>(kPositionMax) + 1) return false;
  return fit(promised_but(entry(id)), promise_need(entry(id), entry(id).behind + count));
}

Status PageStore::admit(const Need& need, const Need& beside) const {
  if (fit(beside, need)) return {};
  const std::uint64_t wanted = *std::ranges::max_element(need);
  const std::uint64_t available = largest([&](std::uint64_t cells) {
    Need some = need;
    for (std::uint64_t& of_group : some) of_group = std::min(of_group, cells);
    return cells < wanted && fit(beside, some);
  });
  return fail(Outcome::kNoSpace,
              "the cache has room for " + std::to_string(available) + " more tokens, " +
                  std::to_string(wanted) + " are wanted; a larger pool or fewer conversations help",
              {.wanted = wanted, .available = available, .setting = "--pool"});
}

Status PageStore::promise(TableId id, std::uint64_t count) {
  Table& table = entry(id);
  // No number of tokens overflows: what is more than there are positions never fits.
  const std::uint64_t all =
      table.behind + std::min<std::uint64_t>(count, static_cast<std::uint64_t>(kPositionMax) + 2);
  KVASIR_TRY(base::within_memory([&] { return admit(promise_need(table, all), promised_but(entry(id))); }));
  promised_ += all - table.promised;
  table.promised = all;
  return {};
}

// Frames of the pages that a group must open now although in the end, with everything evicted, what it is to
// hold would fit without them. They come out of what nobody needs.
std::uint64_t PageStore::frames_beyond_need(std::size_t group, const Demand& demand) const noexcept {
  const std::uint64_t now = pages_now(group, demand.cells[group]);
  const std::uint64_t in_the_end = pages_in_the_end(group, demand.total[group]);
  return now > in_the_end ? (now - in_the_end) * groups_[group].layers() : 0;
}

// Whether the cells can be taken without eviction, and the rest of the demand fits then.
bool PageStore::has_room_now(const Demand& demand) const noexcept {
  std::uint64_t now = 0;
  std::uint64_t beyond_need = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    now += pages_now(group, demand.cells[group]) * groups_[group].layers();
    beyond_need += frames_beyond_need(group, demand);
  }
  return now <= free_frames_.size() && frames_needed(demand.total) + beyond_need <= frames_to_be_had();
}

// Evicts until has_room_now(). admit() has said that it is possible: with all evicted it is the rule itself.
void PageStore::make_room(const Demand& demand) noexcept {
  if (compaction_ != nullptr && !has_room_now(demand)) compaction_->destroy();
  while (!has_room_now(demand) && evict_one()) {
  }
}

// Pages that a group may open. Fresh pages are preferred to holes only with frames left over: none is taken
// that the groups behind this one need now, or that the rest of the demand needs in the end. Whoever asks
// takes the cells group by group.
std::uint64_t PageStore::fresh_pages(std::size_t group, const Demand& demand) const noexcept {
  std::uint64_t needed_now = 0;
  std::uint64_t needed_in_the_end = 0;
  for (std::size_t other = 0; other < groups_.size(); ++other) {
    const std::uint64_t layers = groups_[other].layers();
    if (other > group) needed_now += pages_now(other, demand.cells[other]) * layers;
    if (other > group) needed_in_the_end += frames_beyond_need(other, demand);
    // The groups before this one have taken their cells.
    const std::uint64_t total = demand.total[other] - (other < group ? demand.cells[other] : 0);
    needed_in_the_end += pages_in_the_end(other, total) * layers;
  }
  const std::uint64_t layers = groups_[group].layers();
  const std::uint64_t spare = frames_to_be_had() - std::min(frames_to_be_had(), needed_in_the_end);
  return std::min((free_frames_.size() - needed_now) / layers,
                  pages_in_the_end(group, demand.total[group]) + spare / layers);
}

// A compaction that copies cells of this conversation gives way: they must stay while a ticket is open.
void PageStore::drop_compaction_of(TableId table) noexcept {
  if (compaction_ != nullptr && compaction_->copies_cells_of(table)) compaction_->destroy();
}

// The spans of all tables, and the fewest that they could lie in.
std::uint64_t PageStore::count_spans(std::uint64_t& fewest) const noexcept {
  std::uint64_t spans = 0;
  fewest = 0;
  for (const Table& table : tables_) {
    for (const PageTable& cells : table.cells) {
      const std::uint64_t in_tiers = table.tiered ? cells.cells_in_tiers() : 0;
      spans += cells.runs().size();
      if (in_tiers > 0)
        spans -= static_cast<std::uint64_t>(
            std::ranges::count_if(cells.runs(), [](const Run& run) { return in_tier(run.page); }));
      fewest += base::div_up<std::uint64_t>(cells.cells() - in_tiers, spec_.page_cells);
    }
  }
  return spans;
}

SpaceReport PageStore::space() const noexcept {
  SpaceReport report{.free = tokens_free(),
                     .promised = promised_,
                     .frames = spec_.frames,
                     .frames_free = free_frames_.size()};
  for (const GroupCells& group : groups_) {
    report.held_cells += std::uint64_t{group.pages_used()} * group.page_cells() - group.free_cells();
    report.evictable_cells += group.evictable_cells();
    report.hole_cells += group.free_cells();
  }
  report.tier_cells = tier_runs_.held_cells();
  checkpoints_.visit([&](CheckpointId, const Checkpoint&) { ++report.checkpoints; });
  std::uint64_t fewest = 0;
  const std::uint64_t spans = count_spans(fewest);
  if (spans > fewest) report.fragmentation = 1 - static_cast<double>(fewest) / static_cast<double>(spans);
  return report;
}

Holdings PageStore::holdings(TableId table) const noexcept {
  Holdings holdings{.promised = entry(table).promised};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const Run& run : runs(table, group)) {
      ++holdings.spans;
      if (in_tier(run.page)) {
        holdings.spilled += run.count;
        continue;
      }
      for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
        ++(groups_[group].firm_holders(run.page, cell) == 1 ? holdings.own : holdings.shared);
      }
    }
  }
  return holdings;
}

}  // namespace kvasir::pages
