// What a step takes: its need over every group, and the cells and states themselves.

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

// The part of a hole that a run takes: behind the middle where the hole lies behind cells of a conversation,
// which grows into it in its next steps. Else whoever grows beside others gets cell after cell between
// theirs.
CellRange part_of_hole(const GroupCells& cells, const GroupCells::Hole& hole, std::uint32_t limit) noexcept {
  const std::uint32_t count = std::min(limit, hole.cells.count);
  const std::uint32_t first = hole.cells.first;
  if (first == 0 || cells.firm_holders(hole.page, first - 1) == 0) return {first, count};
  return {first + std::min(hole.cells.count / 2, hole.cells.count - count), count};
}

}  // namespace

Status PageStore::check_plan(std::span<const Growth> plan) const {
  for (std::size_t line = 0; line < plan.size(); ++line) {
    const auto index = static_cast<std::size_t>(plan[line].table);
    if (index >= tables_.size() || !tables_[index].open) {
      return fail(Outcome::kInvalidArgument, "a plan names a conversation that is not open");
    }
    if (plan[line].count == 0) return fail(Outcome::kInvalidArgument, "a plan line grows by no cell");
    if (plan[line].fewest > plan[line].count)
      return fail(Outcome::kInvalidArgument, "a plan line accepts no fewer tokens than it has");
    for (std::size_t other = 0; other < line; ++other) {
      if (plan[other].table == plan[line].table) {
        return fail(Outcome::kInvalidArgument, "a plan names a conversation twice");
      }
    }
  }
  for (const Growth& growth : plan) {
    KVASIR_TRY(check_idle(growth.table));
    KVASIR_TRY(check_in_pool(growth.table));
  }
  return {};
}

// What reads or adds cells needs all of a conversation in the pool.
Status PageStore::check_in_pool(TableId table) const {
  const std::uint64_t away = cells_in_tiers(table);
  if (away == 0) return {};
  return fail(Outcome::kWrongState,
              std::to_string(away) + " cells of the conversation lie in a tier; let it return first",
              {.available = away});
}

// Only one ticket at a time can change a conversation (S9).
Status PageStore::check_idle(TableId table) const {
  if (!entry(table).busy) return {};
  return fail(Outcome::kBusy, "an open ticket is for this conversation; commit or drop it first");
}

// No conversation may grow beyond the last position.
Status PageStore::check_positions(std::span<const Growth> plan) const {
  for (const Growth& growth : plan) {
    const auto room = static_cast<std::uint64_t>(kPositionMax + 1 - next_position(growth.table));
    if (growth.count <= room) continue;
    return fail(
        Outcome::kInvalidArgument,
        "a conversation at position " + std::to_string(next_position(growth.table)) + " cannot grow by " +
            std::to_string(growth.count) + ", the last position is " + std::to_string(kPositionMax),
        {.wanted = growth.count, .available = room, .limit = static_cast<std::uint64_t>(kPositionMax)});
  }
  return {};
}

// What a line is to reserve. More than there are positions never fits.
LineInTicket PageStore::line_of(const Growth& growth) const noexcept {
  constexpr auto kMost = static_cast<std::uint64_t>(kPositionMax) + 1;
  const std::uint64_t count = std::min(growth.count, kMost);
  return {count, std::min(growth.fewest, count), std::min(entry(growth.table).promised, count)};
}

// The cells that a plan takes, what its conversations will still need for what is promised to them, and what
// the others will.
PageStore::Demand PageStore::demand_of(std::span<const Growth> plan, Need& others) const noexcept {
  Demand demand;
  others = promised_need();
  for (const Growth& growth : plan) {
    const Table& table = entry(growth.table);
    const LineInTicket line = line_of(growth);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const std::uint64_t cells = cells_of_line(group, line);
      demand.cells[group] += cells;
      demand.total[group] += cells + promise_need(table, line, group, table.promised - line.paid);
      others[group] -= promise_need(table, table.line, group, table.promised);
    }
  }
  return demand;
}

Result<Ticket> PageStore::begin(std::span<const Growth> plan) {
  return base::within_memory([&]() -> Result<Ticket> {
    KVASIR_TRY(check_plan(plan));
    Need others{};
    Demand demand = demand_of(plan, others);
    KVASIR_TRY(admit(demand.total, others));
    KVASIR_TRY(check_positions(plan));
    for (std::size_t group = 0; group < groups_.size(); ++group) demand.total[group] += others[group];
    Ticket ticket(*this);  // its end gives back what it has taken where memory ends
    ticket.memory_->reset(plan.size(), groups_.size(), only_full_);
    ticket.memory_->plan.assign(plan.begin(), plan.end());
    plan_checkpoints(ticket, demand);
    for (const Growth& growth : plan) drop_compaction_of(growth.table);
    make_room(demand);
    reserve(ticket, demand);
    return ticket;
  });
}

void PageStore::reserve(Ticket& ticket, const Demand& demand) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::uint64_t pages = fresh_pages(group, demand);
    for (std::size_t line = 0; line < ticket.memory_->plan.size(); ++line) {
      if (kind(group) == GroupKind::kRecurrent) {
        reserve_states(ticket, line, group);
      } else if (kind(group) != GroupKind::kCross) {
        reserve_line(ticket, line, group, pages);
      }
    }
  }
  for (std::size_t line = 0; line < ticket.memory_->plan.size() && !only_full_; ++line) {
    prepare_checkpoints(ticket, line);
  }
  for (const Growth& growth : ticket.memory_->plan) {
    Table& table = entry(growth.table);
    table.line = line_of(growth);
    table.promised -= table.line.paid;
    promised_ -= table.line.paid;
    table.busy = true;
  }
}

void PageStore::reserve_line(Ticket& ticket, std::size_t line, std::size_t group, std::uint64_t& pages) {
  std::vector<Run>& taken = ticket.memory_->runs[ticket.at(line, group)];
  PageTable& table = entry(ticket.memory_->plan[line].table).cells[group];
  Run before = table.empty() ? Run{} : table.runs().back();
  bool any_before = !table.empty();
  std::uint64_t ordinal = table.length();
  const LineInTicket planned = line_of(ticket.memory_->plan[line]);
  std::uint64_t left = cells_of_line(group, planned);
  const bool ring = left < planned.count;
  while (left > 0) {
    // Places for the run here and, at commit, in the table come first (S5): a failed allocation takes
    // nothing.
    if (taken.size() == taken.capacity()) taken.reserve(std::max<std::size_t>(8, taken.size() * 2));
    table.reserve(taken.size() + 1);
    // A new cell's storage position goes on from its predecessor's, so it has the same shift.
    const std::uint64_t position =
        any_before ? groups_[group].position(before.page, before.cell + before.count - 1) + 1 : 0;
    Run run = take_some(group, any_before ? &before : nullptr, position, left, pages);
    run.ordinal = ordinal;
    run.shift = before.shift;
    taken.push_back(run);
    before = run;
    any_before = true;
    ordinal += run.count;
    left -= run.count;
  }
  if (!ring) return;
  ticket.memory_->rings[ticket.at(line, group)] = taken;
  taken.reserve(taken.size() + 2);
  table.reserve(taken.size() + 2);
}

Status PageStore::make_places(TableId id, std::uint64_t count) {
  return base::within_memory([&]() -> Status {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kRecurrent || kind(group) == GroupKind::kCross) continue;
      const std::uint64_t held =
          kind(group) == GroupKind::kWindow ? std::min(count, kept_behind(group) + spec_.pass_tokens) : count;
      // One page more where the first begins in the middle of one, and one for a ticket's own foresight.
      entry(id).cells[group].reserve(held / spec_.page_cells + 2);
    }
    return {};
  });
}

// There must be frames.
PageId PageStore::open_page(std::size_t group) noexcept {
  GroupCells& cells = groups_[group];
  const PageId page = cells.open_page(std::span<const FrameId>(free_frames_).last(cells.layers()));
  free_frames_.resize(free_frames_.size() - cells.layers());
  return page;
}

// Takes up to `wanted` cells that lie side by side: those behind the predecessor, else a fresh page's, else
// of the longest hole. There is room: whoever calls has asked admit().
Run PageStore::take_some(std::size_t group, const Run* predecessor, std::uint64_t position,
                         std::uint64_t wanted, std::uint64_t& pages) noexcept {
  GroupCells& cells = groups_[group];
  const auto limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, cells.page_cells()));
  Run run;
  if (predecessor != nullptr) {
    run.page = predecessor->page;
    run.cell = predecessor->cell + predecessor->count;
    run.count = cells.free_run_at(run.page, run.cell, limit);
  }
  if (run.count == 0 && pages > 0) {
    --pages;
    run.page = open_page(group);
    run.cell = 0;
    run.count = limit;
  }
  if (run.count == 0) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): admit() has made sure that there is room
    const GroupCells::Hole hole = *cells.longest_hole();
    const CellRange part = part_of_hole(cells, hole, limit);
    run.page = hole.page;
    run.cell = part.first;
    run.count = part.count;
  }
  cells.take(run.page, {run.cell, run.count}, position);
  return run;
}

}  // namespace kvasir::pages
