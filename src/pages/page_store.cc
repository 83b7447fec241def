#include "pages/page_store.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::pages {
namespace {

constexpr std::uint32_t kLayersMax = 4096;

std::unexpected<Error> no_memory(const char* what) {
  return fail(Outcome::kOutOfMemory, std::string("no memory for ") + what);
}

}  // namespace

Ticket::Ticket(Ticket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      plan_(std::move(other.plan_)),
      runs_(std::move(other.runs_)) {}

Ticket::~Ticket() {
  if (store_ == nullptr) return;
  for (std::size_t line = 0; line < plan_.size(); ++line) release_line(line, 0);
}

std::span<const Run> Ticket::new_runs(std::size_t line, std::size_t group) const noexcept {
  return runs_[line * store_->group_count() + group];
}

void Ticket::withdraw(std::size_t line) noexcept {
  release_line(line, 0);
}

// Gives back the line's cells behind the first `keep`; the runs then hold what is kept.
void Ticket::release_line(std::size_t line, std::uint64_t keep) noexcept {
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    std::vector<Run>& runs = runs_[line * store_->group_count() + group];
    std::uint64_t kept = 0;
    for (Run& run : runs) {
      const auto stay = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, keep - kept));
      if (stay < run.count) store_->release(group, run.page, {run.cell + stay, run.count - stay});
      run.count = stay;
      kept += stay;
    }
    while (!runs.empty() && runs.back().count == 0) runs.pop_back();
  }
}

void Ticket::commit(std::span<const std::uint64_t> accepted) noexcept {
  for (std::size_t line = 0; line < plan_.size(); ++line) {
    release_line(line, accepted[line]);
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      store_->install(plan_[line].table, group, new_runs(line, group));
    }
    const std::span<const Run> grown = new_runs(line, 0);
    if (!grown.empty()) store_->entry(plan_[line].table).length = grown.back().ordinal + grown.back().count;
  }
  store_ = nullptr;
}

Result<std::unique_ptr<PageStore>> PageStore::create(const StoreSpec& spec) {
  if (spec.page_cells == 0 || spec.page_cells % kCellsStep != 0 || spec.page_cells > kPageCellsMax) {
    return fail(Outcome::kInvalidArgument,
                "a page must have a multiple of " + std::to_string(kCellsStep) + " cells, at most " +
                    std::to_string(kPageCellsMax) + ", not " + std::to_string(spec.page_cells),
                {.wanted = spec.page_cells, .limit = kPageCellsMax, .setting = "--page"});
  }
  if (spec.groups.empty()) return fail(Outcome::kInvalidArgument, "a page store needs at least one group");
  for (const GroupSpec& group : spec.groups) {
    if (group.layers == 0 || group.layers > kLayersMax) {
      return fail(Outcome::kInvalidArgument, "a group of " + std::to_string(group.layers) + " layers",
                  {.wanted = group.layers, .limit = kLayersMax});
    }
  }
  std::unique_ptr<PageStore> store;
  try {
    store.reset(new PageStore(spec));
    store->free_frames_.reserve(spec.frames);
  } catch (const std::bad_alloc&) {
    return no_memory("the list of frames");
  }
  for (std::uint32_t frame = spec.frames; frame-- > 0;) store->free_frames_.push_back(FrameId{frame});
  for (const GroupSpec& group : spec.groups) {
    KVASIR_ASSIGN(GroupCells cells, GroupCells::create(group, spec.page_cells, spec.frames / group.layers));
    store->groups_.push_back(std::move(cells));
  }
  return store;
}

Result<TableId> PageStore::open() {
  try {
    if (closed_.empty()) {
      // Room to close it again later without allocating (S5).
      closed_.reserve(tables_.size() + 1);
      tables_.emplace_back();
      closed_.push_back(TableId{static_cast<std::uint32_t>(tables_.size() - 1)});
    }
    const TableId table = closed_.back();
    entry(table).runs.resize(groups_.size());
    entry(table).open = true;
    closed_.pop_back();
    return table;
  } catch (const std::bad_alloc&) {
    return no_memory("a page table");
  }
}

void PageStore::close(TableId table) noexcept {
  Table& closing = entry(table);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const Run& run : closing.runs[group]) release(group, run.page, {run.cell, run.count});
    closing.runs[group].clear();
  }
  closing.length = 0;
  closing.open = false;
  closed_.push_back(table);
}

Status PageStore::check_plan(std::span<const Growth> plan) const {
  for (std::size_t line = 0; line < plan.size(); ++line) {
    const auto index = static_cast<std::size_t>(plan[line].table);
    if (index >= tables_.size() || !tables_[index].open) {
      return fail(Outcome::kInvalidArgument, "a plan names a conversation that is not open");
    }
    if (plan[line].count == 0) return fail(Outcome::kInvalidArgument, "a plan line grows by no cell");
    for (std::size_t other = 0; other < line; ++other) {
      if (plan[other].table == plan[line].table) {
        return fail(Outcome::kInvalidArgument, "a plan names a conversation twice");
      }
    }
  }
  return {};
}

std::uint64_t PageStore::frames_needed(const GroupCells& group, std::uint64_t cells) const noexcept {
  const std::uint64_t beyond_holes = cells > group.free_cells() ? cells - group.free_cells() : 0;
  return base::div_up<std::uint64_t>(beyond_holes, spec_.page_cells) * group.layers();
}

std::uint64_t PageStore::frames_needed(std::uint64_t cells) const noexcept {
  std::uint64_t frames = 0;
  for (const GroupCells& group : groups_) frames += frames_needed(group, cells);
  return frames;
}

std::uint64_t PageStore::tokens_free() const noexcept {
  // frames_needed grows with the tokens, so the largest number that fits is found by halving.
  std::uint64_t fits = 0;
  std::uint64_t too_many = 1;
  for (const GroupCells& group : groups_) too_many += group.free_cells();
  too_many += std::uint64_t{frames_free()} * spec_.page_cells;
  while (fits + 1 < too_many) {
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (frames_needed(middle) <= frames_free() ? fits : too_many) = middle;
  }
  return fits;
}

Result<Ticket> PageStore::begin(std::span<const Growth> plan) {
  KVASIR_TRY(check_plan(plan));
  std::uint64_t wanted = 0;
  for (const Growth& growth : plan) wanted += std::min<std::uint64_t>(growth.count, UINT32_MAX);
  if (frames_needed(wanted) > frames_free()) {
    const std::uint64_t available = tokens_free();
    return fail(Outcome::kNoSpace,
                "the cache has room for " + std::to_string(available) + " more tokens, " +
                    std::to_string(wanted) + " are wanted; a larger pool or fewer conversations help",
                {.wanted = wanted, .available = available, .setting = "--pool"});
  }
  Ticket ticket(*this);
  try {
    ticket.plan_.assign(plan.begin(), plan.end());
    ticket.runs_.resize(plan.size() * groups_.size());
    reserve(ticket);
  } catch (const std::bad_alloc&) {
    // The ticket's end gives back what it had taken by then.
    return no_memory("a ticket");
  }
  return ticket;
}

void PageStore::reserve(Ticket& ticket) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    // Fresh pages are preferred to holes only with frames that no group needs: this one may open what is left
    // after the least need of those that follow.
    std::uint64_t cells = 0;
    for (const Growth& growth : ticket.plan_) cells += growth.count;
    std::uint64_t kept_back = 0;
    for (std::size_t later = group + 1; later < groups_.size(); ++later) {
      kept_back += frames_needed(groups_[later], cells);
    }
    std::uint64_t fresh_pages = (frames_free() - kept_back) / groups_[group].layers();
    for (std::size_t line = 0; line < ticket.plan_.size(); ++line)
      reserve_line(ticket, line, group, fresh_pages);
  }
}

void PageStore::reserve_line(Ticket& ticket, std::size_t line, std::size_t group,
                             std::uint64_t& fresh_pages) {
  std::vector<Run>& taken = ticket.runs_[line * groups_.size() + group];
  std::vector<Run>& table = entry(ticket.plan_[line].table).runs[group];
  std::uint64_t ordinal = entry(ticket.plan_[line].table).length;
  std::uint64_t left = ticket.plan_[line].count;
  while (left > 0) {
    // Places for the run here and, at commit, in the table come first (S5): a failed allocation takes
    // nothing.
    if (taken.size() == taken.capacity()) taken.reserve(std::max<std::size_t>(8, taken.size() * 2));
    const std::size_t wanted_capacity = table.size() + taken.size() + 1;
    if (table.capacity() < wanted_capacity) table.reserve(std::max(wanted_capacity, table.size() * 2));
    const Run* predecessor = !taken.empty() ? &taken.back() : (table.empty() ? nullptr : &table.back());
    const Run run = take_some(group, predecessor, ordinal, left, fresh_pages);
    taken.push_back(run);
    ordinal += run.count;
    left -= run.count;
  }
}

// Takes up to `wanted` cells that lie side by side: those behind the predecessor, else a fresh page's, else
// the longest hole's.
Run PageStore::take_some(std::size_t group, const Run* predecessor, std::uint64_t ordinal,
                         std::uint64_t wanted, std::uint64_t& fresh_pages) noexcept {
  GroupCells& cells = groups_[group];
  const auto limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, spec_.page_cells));
  Run run{.ordinal = ordinal};
  if (predecessor != nullptr) {
    run.page = predecessor->page;
    run.cell = predecessor->cell + predecessor->count;
    run.count = cells.free_run_at(run.page, run.cell, limit);
  }
  if (run.count == 0 && fresh_pages > 0) {
    --fresh_pages;
    std::array<FrameId, kLayersMax> frames;
    for (std::uint32_t layer = 0; layer < cells.layers(); ++layer) {
      frames[layer] = free_frames_.back();
      free_frames_.pop_back();
    }
    run.page = cells.open_page(std::span(frames).first(cells.layers()));
    run.cell = 0;
    run.count = limit;
  }
  if (run.count == 0) {
    // begin() found room for all, so there is a hole.
    const GroupCells::Hole hole = *cells.longest_hole();
    run.page = hole.page;
    run.cell = hole.cells.first;
    run.count = std::min(limit, hole.cells.count);
  }
  cells.take(run.page, {run.cell, run.count}, ordinal);
  return run;
}

void PageStore::release(std::size_t group, PageId page, CellRange cells) noexcept {
  if (!groups_[group].release(page, cells)) return;
  for (const FrameId frame : groups_[group].frames(page)) free_frames_.push_back(frame);
}

// Appends runs to a table, joined to its last where they go on in the same cells.
void PageStore::install(TableId table, std::size_t group, std::span<const Run> runs) noexcept {
  std::vector<Run>& into = entry(table).runs[group];
  for (const Run& run : runs) {
    if (!into.empty() && into.back().page == run.page && into.back().cell + into.back().count == run.cell) {
      into.back().count += run.count;
    } else {
      into.push_back(run);
    }
  }
}

Status PageStore::check() const {
  std::uint64_t frames = free_frames_.size();
  std::vector<std::vector<std::uint32_t>> holders;
  for (const GroupCells& group : groups_) {
    KVASIR_TRY(group.check());
    frames += std::uint64_t{group.pages_used()} * group.layers();
    holders.emplace_back(std::size_t{spec_.frames / group.layers()} * spec_.page_cells);
  }
  if (frames != spec_.frames) {
    return fail(Outcome::kInternal,
                "S1: " + std::to_string(frames) + " frames of " + std::to_string(spec_.frames));
  }
  KVASIR_TRY(check_tables(holders));
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (std::size_t cell = 0; cell < holders[group].size(); ++cell) {
      const PageId page{static_cast<std::uint32_t>(cell / spec_.page_cells)};
      if (holders[group][cell] !=
          groups_[group].holders(page, static_cast<std::uint32_t>(cell % spec_.page_cells))) {
        return fail(Outcome::kInternal,
                    "S3: the holders of a cell of group " + std::to_string(group) + " differ");
      }
    }
  }
  return {};
}

Status PageStore::check_tables(std::vector<std::vector<std::uint32_t>>& holders) const {
  for (const Table& table : tables_) {
    if (!table.open) continue;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      std::uint64_t ordinal = 0;
      for (const Run& run : table.runs[group]) {
        if (run.ordinal != ordinal || run.count == 0)
          return fail(Outcome::kInternal, "S2: a gap in a page table");
        ordinal += run.count;
        for (std::uint32_t i = 0; i < run.count; ++i) {
          ++holders[group][static_cast<std::size_t>(run.page) * spec_.page_cells + run.cell + i];
        }
      }
      if (ordinal != table.length) return fail(Outcome::kInternal, "S2: a page table of another length");
    }
  }
  return {};
}

}  // namespace kvasir::pages
