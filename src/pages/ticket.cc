// A step's reservation: from the plan to commit or back.

#include "pages/ticket.h"

#include <algorithm>
#include <utility>

#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

// Visits the cells of a ring as the last tokens before `end`, as many as it has: token i of the line lies in
// the cell i modulo their number. The ring's own ordinals are those of the first round.
template <class Visit>
void visit_ring(std::span<const Run> ring, std::uint64_t end, const Visit& visit) {
  const std::uint64_t length = ring.front().ordinal;
  const std::uint64_t size = ring.back().end() - length;
  const std::uint64_t first = std::max(end, size) - size;
  const auto visit_part = [&](std::uint64_t from, std::uint64_t to, std::uint64_t round) {
    for (const Run& slots : ring) {
      const std::uint64_t begin = std::max(slots.ordinal - length, from);
      const std::uint64_t behind = std::min(slots.end() - length, to);
      if (begin >= behind) continue;
      Run run = slots;
      run.cell += static_cast<std::uint32_t>(begin - (slots.ordinal - length));
      run.count = static_cast<std::uint32_t>(behind - begin);
      run.ordinal = length + round * size + begin;
      visit(run);
    }
  };
  visit_part(first % size, size, first / size);
  visit_part(0, first % size, first / size + 1);
}

}  // namespace

void Ticket::Memory::reset(std::size_t lines, std::size_t groups, bool only_full) {
  const auto empty = [](auto& lists, std::size_t count) {
    if (lists.size() < count) lists.resize(count);
    for (std::size_t i = 0; i < count; ++i) lists[i].clear();
  };
  plan.clear();
  progress.assign(lines, {});
  empty(runs, lines * groups);
  if (only_full) return;
  empty(rings, lines * groups);
  empty(states, lines * groups);
  empty(due, lines);
  empty(prepared, lines);
}

Ticket::Ticket(PageStore& store)
    : store_(&store), groups_(store.group_count()), memory_(store.take_ticket_memory()) {
  ++store.open_tickets_;
}

Ticket::Ticket(Ticket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      groups_(other.groups_),
      memory_(std::move(other.memory_)) {}

Ticket::~Ticket() {
  if (store_ == nullptr) return;
  for (std::size_t line = 0; line < memory_->plan.size(); ++line) withdraw(line);
  close();
}

// Within capacity: the store has room for the memory of every ticket it ever opened.
void Ticket::close() noexcept {
  --store_->open_tickets_;
  store_->ticket_memories_.push_back(std::move(memory_));
  store_ = nullptr;
}

std::unique_ptr<Ticket::Memory> PageStore::take_ticket_memory() {
  if (ticket_memories_.empty()) {
    ticket_memories_.reserve(ticket_memories_made_ + 1);
    ticket_memories_.push_back(std::make_unique<Ticket::Memory>());
    ++ticket_memories_made_;
  }
  std::unique_ptr<Ticket::Memory> memory = std::move(ticket_memories_.back());
  ticket_memories_.pop_back();
  return memory;
}

std::span<const Run> Ticket::new_runs(std::size_t line, std::size_t group) const noexcept {
  return memory_->runs[at(line, group)];
}

std::span<const StateWrite> Ticket::states(std::size_t line, std::size_t group) const noexcept {
  if (memory_->states.empty()) return {};
  return memory_->states[at(line, group)];
}

void Ticket::open_pass(std::size_t line, std::uint64_t end) noexcept {
  const std::uint64_t until = std::min(end, memory_->plan[line].count);
  if (until <= memory_->progress[line].opened) return;
  for (std::size_t group = 0; group < groups_ && !memory_->rings.empty(); ++group) {
    if (!memory_->rings[at(line, group)].empty()) show_ring(line, group, until);
  }
  memory_->progress[line].opened = until;
}

// Within capacity: one span more than the ring has, where a round ends inside one.
void Ticket::show_ring(std::size_t line, std::size_t group, std::uint64_t end) noexcept {
  std::vector<Run>& runs = memory_->runs[at(line, group)];
  if (runs.empty()) return;  // withdrawn
  const std::uint64_t length = store_->entry(memory_->plan[line].table).length;
  GroupCells& cells = store_->groups_[group];
  // Positions go on from cell to cell as ordinals do.
  const std::uint64_t before = cells.position(runs.front().page, runs.front().cell) - runs.front().ordinal;
  runs.clear();
  visit_ring(memory_->rings[at(line, group)], end, [&](const Run& run) {
    runs.push_back(run);
    if (run.end() <= length + memory_->progress[line].opened) return;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      cells.set_position({run.page, run.cell + i}, before + run.ordinal + i);
    }
  });
}

// Appends what a line will hold in a group when all of it is computed.
void Ticket::append_final(std::size_t line, std::size_t group, PageTable& cells) const {
  const std::vector<Run>& ring = memory_->rings[at(line, group)];
  if (ring.empty()) {
    for (const Run& run : memory_->runs[at(line, group)]) cells.append(run);
    return;
  }
  visit_ring(ring, memory_->plan[line].count, [&](const Run& run) {
    if (cells.empty()) cells.start_at(run.ordinal);
    cells.append(run);
  });
}

void Ticket::withdraw(std::size_t line) noexcept {
  repay(line, 0);
  release_cells(line, 0);
  end_line(line);
}

// What is left of a line beside its cells: states, prepared checkpoints, and that its conversation is in use.
void Ticket::end_line(std::size_t line) noexcept {
  for (std::size_t group = 0; group < groups_ && !memory_->states.empty(); ++group) {
    for (const StateWrite& write : memory_->states[at(line, group)])
      store_->release(group, write.state, {0, 1}, Holder::kFirm);
    memory_->states[at(line, group)].clear();
  }
  if (!memory_->prepared.empty()) {
    for (const CheckpointId id : memory_->prepared[line]) store_->checkpoints_.remove(id);
    memory_->prepared[line].clear();
  }
  if (memory_->progress[line].ended) return;
  memory_->progress[line].ended = true;
  PageStore::Table& table = store_->entry(memory_->plan[line].table);
  table.line = {};
  table.busy = false;
}

// What the tokens behind the first `accepted` used up of a promise is promised again.
void Ticket::repay(std::size_t line, std::uint64_t accepted) noexcept {
  if (memory_->progress[line].ended) return;
  PageStore::Table& table = store_->entry(memory_->plan[line].table);
  const std::uint64_t unpaid = table.line.paid - std::min(table.line.paid, accepted);
  table.line.paid -= unpaid;
  table.promised += unpaid;
  store_->promised_ += unpaid;
}

// Gives back the line's cells behind the first `keep` tokens; the runs then hold what is kept.
void Ticket::release_cells(std::size_t line, std::uint64_t keep) noexcept {
  for (std::size_t group = 0; group < groups_; ++group) {
    std::vector<Run>& runs = memory_->runs[at(line, group)];
    if (runs.empty()) continue;
    const std::uint64_t end = store_->entry(memory_->plan[line].table).length + keep;
    for (Run& run : runs) {
      const std::uint64_t stay =
          end > run.ordinal ? std::min<std::uint64_t>(run.count, end - run.ordinal) : 0;
      const auto kept = static_cast<std::uint32_t>(stay);
      if (kept < run.count) {
        store_->release(group, run.page, {run.cell + kept, run.count - kept}, Holder::kFirm);
      }
      run.count = kept;
    }
    while (!runs.empty() && runs.back().count == 0) runs.pop_back();
  }
}

// How many of the accepted tokens have an end that the conversation can have: in a recurrent group one of
// which there is a state.
std::uint64_t Ticket::installable(std::size_t line, std::uint64_t accepted) const noexcept {
  if (accepted == memory_->plan[line].count || !store_->has(GroupKind::kRecurrent)) return accepted;
  const std::uint64_t length = store_->entry(memory_->plan[line].table).length;
  std::uint64_t installable = 0;
  for (const std::uint64_t ordinal : memory_->due[line]) {
    if (ordinal <= length + accepted) installable = ordinal - length;
  }
  return installable;
}

void Ticket::commit(std::span<const std::uint64_t> accepted) noexcept {
  for (std::size_t line = 0; line < memory_->plan.size(); ++line) {
    if (accepted[line] == 0 || memory_->progress[line].ended) {
      withdraw(line);
    } else {
      open_pass(line, memory_->plan[line].count);
      install_line(line, accepted[line]);
      end_line(line);
    }
  }
  ++store_->handovers_;
  close();
}

void Ticket::install_line(std::size_t line, std::uint64_t accepted) noexcept {
  PageStore::Table& table = store_->entry(memory_->plan[line].table);
  const std::uint64_t count = installable(line, accepted);
  // Of a promise what is accepted is used up; what must be computed again for it is promised anew.
  repay(line, accepted);
  table.promised += accepted - count;
  store_->promised_ += accepted - count;
  table.behind = std::max(table.behind, accepted) - count;
  release_cells(line, count);
  if (count == 0) return;
  const std::uint64_t length = table.length + count;
  keep_checkpoints(line, length);
  for (std::size_t group = 0; group < groups_; ++group) {
    if (store_->kind(group) == GroupKind::kRecurrent) {
      install_state(line, group, length);
    } else if (store_->kind(group) != GroupKind::kCross) {
      install_cells(line, group);
    }
  }
  table.length = length;
  store_->release_passed(table);
}

// Where a ring has been written over, all that was committed before lies below the release line by now.
void Ticket::install_cells(std::size_t line, std::size_t group) noexcept {
  PageTable& cells = store_->entry(memory_->plan[line].table).cells[group];
  std::vector<Run>& runs = memory_->runs[at(line, group)];
  if (runs.front().ordinal > cells.length()) {
    store_->release(group, cells.runs(), Holder::kFirm);
    cells.clear();
    cells.start_at(runs.front().ordinal);
  }
  for (const Run& run : runs) cells.append(run);
  runs.clear();
}

// The ticket's hold on the state becomes the conversation's.
void Ticket::install_state(std::size_t line, std::size_t group, std::uint64_t ordinal) noexcept {
  PageTable& cells = store_->entry(memory_->plan[line].table).cells[group];
  std::vector<StateWrite>& states = memory_->states[at(line, group)];
  const auto state = std::ranges::find(states, ordinal, &StateWrite::ordinal);
  store_->release(group, cells.runs(), Holder::kFirm);
  cells.clear();
  cells.append({.page = state->state, .count = 1});
  states.erase(state);
}

void Ticket::keep_checkpoints(std::size_t line, std::uint64_t end) noexcept {
  if (memory_->prepared.empty()) return;
  PageStore::Table& table = store_->entry(memory_->plan[line].table);
  for (const CheckpointId id : memory_->prepared[line]) {
    if (store_->checkpoints_.at(id).ordinal <= end) {
      store_->keep_checkpoint(table, id);
    } else {
      store_->checkpoints_.remove(id);
    }
  }
  memory_->prepared[line].clear();
}

}  // namespace kvasir::pages
