// A step's reservation: from the plan to commit or back.

#include "pages/ticket.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

constexpr std::uint32_t kLayersMax = 4096;

}  // namespace

Ticket::Ticket(PageStore& store) noexcept : store_(&store) {
  ++store.open_tickets_;
}

Ticket::Ticket(Ticket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      plan_(std::move(other.plan_)),
      runs_(std::move(other.runs_)),
      paid_(std::move(other.paid_)) {}

Ticket::~Ticket() {
  if (store_ == nullptr) return;
  for (std::size_t line = 0; line < plan_.size(); ++line) release_line(line, 0);
  --store_->open_tickets_;
}

std::span<const Run> Ticket::new_runs(std::size_t line, std::size_t group) const noexcept {
  return runs_[line * store_->group_count() + group];
}

void Ticket::withdraw(std::size_t line) noexcept {
  release_line(line, 0);
}

// Gives back the line's cells behind the first `keep`, and what of a promise they had used up; the runs then
// hold what is kept.
void Ticket::release_line(std::size_t line, std::uint64_t keep) noexcept {
  const std::uint64_t unpaid = paid_[line] - std::min(paid_[line], keep);
  paid_[line] -= unpaid;
  store_->entry(plan_[line].table).promised += unpaid;
  store_->promised_ += unpaid;
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    std::vector<Run>& runs = runs_[line * store_->group_count() + group];
    std::uint64_t left = keep;
    for (Run& run : runs) {
      const auto stay = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, left));
      if (stay < run.count) {
        store_->release(group, run.page, {run.cell + stay, run.count - stay}, Holder::kFirm);
      }
      run.count = stay;
      left -= stay;
    }
    while (!runs.empty() && runs.back().count == 0) runs.pop_back();
  }
}

void Ticket::commit(std::span<const std::uint64_t> accepted) noexcept {
  for (std::size_t line = 0; line < plan_.size(); ++line) {
    release_line(line, accepted[line]);
    PageStore::Table& table = store_->entry(plan_[line].table);
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      for (const Run& run : new_runs(line, group)) table.cells[group].append(run);
    }
    table.length = table.cells.front().length();
  }
  --store_->open_tickets_;
  store_ = nullptr;
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

// Cells that a plan takes, and what remains promised to its conversations beyond that.
std::uint64_t PageStore::need_of(std::span<const Growth> plan) const noexcept {
  std::uint64_t need = 0;
  for (const Growth& growth : plan)
    need += std::min<std::uint64_t>(std::max(growth.count, entry(growth.table).promised), kPositionMax);
  return need;
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

Result<Ticket> PageStore::begin(std::span<const Growth> plan) {
  return base::within_memory([&]() -> Result<Ticket> {
    KVASIR_TRY(check_plan(plan));
    std::uint64_t others = promised_;
    for (const Growth& growth : plan) others -= entry(growth.table).promised;
    const std::uint64_t need = need_of(plan);
    KVASIR_TRY(admit(need, others));
    KVASIR_TRY(check_positions(plan));
    Demand demand{.total = need + others};
    for (const Growth& growth : plan) demand.cells += growth.count;
    Ticket ticket(*this);  // its end gives back what it has taken where memory ends
    ticket.runs_.resize(plan.size() * groups_.size());
    ticket.paid_.resize(plan.size());
    ticket.plan_.assign(plan.begin(), plan.end());
    for (const Growth& growth : plan) drop_compaction_of(growth.table);
    make_room(demand);
    reserve(ticket, demand);
    return ticket;
  });
}

void PageStore::reserve(Ticket& ticket, const Demand& demand) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::uint64_t pages = fresh_pages(group, demand);
    for (std::size_t line = 0; line < ticket.plan_.size(); ++line) reserve_line(ticket, line, group, pages);
  }
  for (std::size_t line = 0; line < ticket.plan_.size(); ++line) {
    Table& table = entry(ticket.plan_[line].table);
    ticket.paid_[line] = std::min(table.promised, ticket.plan_[line].count);
    table.promised -= ticket.paid_[line];
    promised_ -= ticket.paid_[line];
  }
}

void PageStore::reserve_line(Ticket& ticket, std::size_t line, std::size_t group, std::uint64_t& pages) {
  std::vector<Run>& taken = ticket.runs_[line * groups_.size() + group];
  PageTable& table = entry(ticket.plan_[line].table).cells[group];
  Run before = table.empty() ? Run{} : table.runs().back();
  bool any_before = !table.empty();
  std::uint64_t ordinal = table.length();
  std::uint64_t left = ticket.plan_[line].count;
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
}

// Takes up to `wanted` cells that lie side by side: those behind the predecessor, else a fresh page's, else
// the longest hole's. There is room: whoever calls has asked admit().
Run PageStore::take_some(std::size_t group, const Run* predecessor, std::uint64_t position,
                         std::uint64_t wanted, std::uint64_t& pages) noexcept {
  GroupCells& cells = groups_[group];
  const auto limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, spec_.page_cells));
  Run run;
  if (predecessor != nullptr) {
    run.page = predecessor->page;
    run.cell = predecessor->cell + predecessor->count;
    run.count = cells.free_run_at(run.page, run.cell, limit);
  }
  if (run.count == 0 && pages > 0) {
    --pages;
    std::array<FrameId, kLayersMax> frames{};
    for (std::uint32_t layer = 0; layer < cells.layers(); ++layer) {
      frames[layer] = free_frames_.back();
      free_frames_.pop_back();
    }
    run.page = cells.open_page(std::span(frames).first(cells.layers()));
    run.cell = 0;
    run.count = limit;
  }
  if (run.count == 0) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): admit() has made sure that there is room
    const GroupCells::Hole hole = *cells.longest_hole();
    run.page = hole.page;
    run.cell = hole.cells.first;
    run.count = std::min(limit, hole.cells.count);
  }
  cells.take(run.page, {run.cell, run.count}, position);
  return run;
}

}  // namespace kvasir::pages
