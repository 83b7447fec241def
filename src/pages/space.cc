// How much room there is, who it is promised to, and what the index must give up for it.
//
// The rule: over all groups, the sum of ceil(max(0, need - holes) / page) x layers is at most the free and
// evictable frames; holes include the evictable cells of pages that stay.

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "pages/compaction.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

std::uint64_t frames_beyond(std::uint64_t cells, std::uint64_t holes, std::uint32_t page_cells,
                            std::uint32_t layers) {
  const std::uint64_t rest = cells > holes ? cells - holes : 0;
  return base::div_up<std::uint64_t>(rest, page_cells) * layers;
}

}  // namespace

std::uint64_t PageStore::frames_needed(std::uint64_t cells) const noexcept {
  std::uint64_t frames = 0;
  for (const GroupCells& group : groups_) {
    frames += frames_beyond(cells, group.holes(), spec_.page_cells, group.layers());
  }
  return frames;
}

std::uint64_t PageStore::frames_needed_without_eviction(const GroupCells& group,
                                                        std::uint64_t cells) const noexcept {
  return frames_beyond(cells, group.free_cells(), spec_.page_cells, group.layers());
}

std::uint64_t PageStore::frames_to_be_had() const noexcept {
  std::uint64_t frames = free_frames_.size();
  for (const GroupCells& group : groups_) frames += std::uint64_t{group.evictable_pages()} * group.layers();
  return frames;
}

std::uint64_t PageStore::promised_but(TableId table) const noexcept {
  return promised_ - entry(table).promised;
}

// The largest number of cells, beside `beside` others, that fits in every group.
std::uint64_t PageStore::largest_fitting(std::uint64_t beside) const noexcept {
  const std::uint64_t frames = frames_to_be_had();
  std::uint64_t too_many = 1 + frames * spec_.page_cells;
  for (const GroupCells& group : groups_) too_many += group.holes();
  // The need grows with the number, so halving finds the largest that fits.
  std::uint64_t fitting = 0;
  while (fitting + 1 < too_many) {
    const std::uint64_t middle = fitting + (too_many - fitting) / 2;
    (frames_needed(beside + middle) <= frames ? fitting : too_many) = middle;
  }
  return fitting;
}

std::uint64_t PageStore::tokens_free() const noexcept {
  return largest_fitting(promised_);
}

bool PageStore::fits(TableId table, std::uint64_t count) const noexcept {
  return count <= largest_fitting(promised_but(table));
}

Status PageStore::admit(std::uint64_t wanted, std::uint64_t beside) {
  std::uint64_t available = largest_fitting(beside);
  if (wanted > available && compaction_ != nullptr) {
    compaction_->destroy();
    available = largest_fitting(beside);
  }
  if (wanted <= available) return {};
  return fail(Outcome::kNoSpace,
              "the cache has room for " + std::to_string(available) + " more tokens, " +
                  std::to_string(wanted) + " are wanted; a larger pool or fewer conversations help",
              {.wanted = wanted, .available = available, .setting = "--pool"});
}

Status PageStore::promise(TableId table, std::uint64_t count) {
  KVASIR_TRY(admit(count, promised_but(table)));
  promised_ = promised_but(table) + count;
  entry(table).promised = count;
  return {};
}

// Evicts until `cells` more cells of every group fit without eviction. admit() has said that it is possible.
void PageStore::make_room(std::uint64_t cells) noexcept {
  const auto fits_now = [&] {
    std::uint64_t frames = 0;
    for (const GroupCells& group : groups_) frames += frames_needed_without_eviction(group, cells);
    return frames <= free_frames_.size();
  };
  while (!fits_now()) {
    const auto oldest = index_.oldest();
    if (!oldest) return;
    evict(*oldest);
  }
}

void PageStore::evict(PrefixIndex::BlockId block) noexcept {
  const std::vector<PageTable> cells = index_.erase(block);
  for (std::size_t group = 0; group < groups_.size(); ++group)
    release(group, cells[group].runs(), Holder::kSoft);
}

void PageStore::forget() noexcept {
  while (const auto oldest = index_.oldest()) evict(*oldest);
}

// The spans of all tables, and the fewest that they could lie in.
std::uint64_t PageStore::count_spans(std::uint64_t& fewest) const noexcept {
  std::uint64_t spans = 0;
  fewest = 0;
  for (const Table& table : tables_) {
    for (const PageTable& cells : table.cells) {
      spans += cells.runs().size();
      fewest += base::div_up<std::uint64_t>(cells.length(), spec_.page_cells);
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
    report.held_cells += std::uint64_t{group.pages_used()} * spec_.page_cells - group.free_cells();
    report.evictable_cells += group.evictable_cells();
    report.hole_cells += group.free_cells();
  }
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
      for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
        const std::uint32_t firm =
            groups_[group].holders(run.page, cell) - groups_[group].soft_holders(run.page, cell);
        ++(firm == 1 ? holdings.own : holdings.shared);
      }
    }
  }
  return holdings;
}

}  // namespace kvasir::pages
