// Checkpoints: where they are due, their preparation by a ticket, and who has which.

#include "pages/checkpoints.h"

#include <algorithm>
#include <utility>

#include "pages/page_store.h"

namespace kvasir::pages {

CheckpointId Checkpoints::add(Checkpoint checkpoint) {
  if (unused_.empty()) {
    // Room to remove every one later without allocating.
    unused_.reserve(all_.size() + 1);
    all_.emplace_back();
    unused_.push_back(CheckpointId{static_cast<std::uint32_t>(all_.size() - 1)});
  }
  const CheckpointId id = unused_.back();
  unused_.pop_back();
  at(id) = std::move(checkpoint);
  return id;
}

void Checkpoints::remove(CheckpointId id) noexcept {
  at(id) = Checkpoint{};
  unused_.push_back(id);
}

// The ordinals in a line at which a checkpoint is due: every some tokens, at the end of a prompt and at the
// last page boundary in it. Of more than a conversation may have, the last; and none whose window would have
// been written over by the time of the commit. `due` is empty before.
void PageStore::due_checkpoints(const Growth& growth, std::vector<std::uint64_t>& due) const {
  if (!has(GroupKind::kWindow) && !has(GroupKind::kRecurrent)) return;
  const std::uint64_t length = entry(growth.table).length;
  const std::uint64_t end = length + growth.count;
  std::uint64_t first = length + 1;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) != GroupKind::kWindow) continue;
    const std::uint64_t held = cells_of_line(group, {.count = growth.count, .fewest = growth.fewest});
    if (held < growth.count) first = std::max(first, end - held + kept_behind(group));
  }
  const std::uint64_t every = spec_.checkpoint_tokens;
  const std::uint64_t multiples = end / every - (first - 1) / every;
  const std::uint64_t some = std::min<std::uint64_t>(multiples, spec_.checkpoints_max);
  for (std::uint64_t i = some; i > 0; --i) due.push_back((end / every - (i - 1)) * every);
  if (growth.prompt > 0) {
    const std::uint64_t prompt_end = length + growth.prompt;
    for (const std::uint64_t ordinal : {prompt_end, prompt_end - prompt_end % spec_.page_cells}) {
      if (ordinal >= first && ordinal <= end) due.push_back(ordinal);
    }
  }
  std::ranges::sort(due);
  const auto rest = std::ranges::unique(due);
  due.erase(rest.begin(), rest.end());
  if (due.size() > spec_.checkpoints_max) {
    due.erase(due.begin(), due.end() - static_cast<std::ptrdiff_t>(spec_.checkpoints_max));
  }
}

// Where each line keeps checkpoints. Those in recurrent groups want states, which are taken if all that must
// fit does so beside them; the earlier ones go without.
void PageStore::plan_checkpoints(Ticket& ticket, Demand& demand) const {
  if (only_full_) return;
  for (std::size_t line = 0; line < ticket.memory_->plan.size(); ++line) {
    const Growth& growth = ticket.memory_->plan[line];
    std::vector<std::uint64_t>& due = ticket.memory_->due[line];
    due_checkpoints(growth, due);
    // The state of the line's end is there in any case.
    const bool at_end = !due.empty() && due.back() == entry(growth.table).length + growth.count;
    const std::size_t wanted = has(GroupKind::kRecurrent) ? due.size() - (at_end ? 1 : 0) : 0;
    const auto states = [&](std::uint64_t number) {
      Need need{};
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (kind(group) == GroupKind::kRecurrent) need[group] = number;
      }
      return need;
    };
    std::size_t had = wanted;
    while (had > 0 && !fit(demand.total, states(had))) --had;
    due.erase(due.begin(), due.begin() + static_cast<std::ptrdiff_t>(wanted - had));
    const Need need = states(had);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      demand.cells[group] += need[group];
      demand.total[group] += need[group];
    }
  }
}

// Takes the states of a line in a recurrent group: those for checkpoints, and that of its end.
void PageStore::reserve_states(Ticket& ticket, std::size_t line, std::size_t group) {
  Table& table = entry(ticket.memory_->plan[line].table);
  std::vector<StateWrite>& states = ticket.memory_->states[ticket.at(line, group)];
  states.reserve(ticket.memory_->due[line].size() + 1);
  table.cells[group].reserve(1);
  const auto take = [&](std::uint64_t ordinal) {
    const PageId state = open_page(group);
    groups_[group].take(state, {0, 1}, ordinal);
    states.push_back({ordinal, state});
  };
  for (const std::uint64_t ordinal : ticket.memory_->due[line]) take(ordinal);
  const std::uint64_t end = table.length + ticket.memory_->plan[line].count;
  if (states.empty() || states.back().ordinal != end) take(end);
}

// Makes the checkpoints of a line, of cells that its ticket has taken: the commit only lets them be held.
void PageStore::prepare_checkpoints(Ticket& ticket, std::size_t line) {
  if (ticket.memory_->due[line].empty()) return;
  Table& table = entry(ticket.memory_->plan[line].table);
  std::vector<CheckpointId>& prepared = ticket.memory_->prepared[line];
  prepared.reserve(ticket.memory_->due[line].size());
  table.checkpoints.reserve(table.checkpoints.size() + ticket.memory_->due[line].size());
  std::vector<PageTable> cells(groups_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) != GroupKind::kWindow) continue;
    const std::vector<Run>& ring = ticket.memory_->rings[ticket.at(line, group)];
    if (ring.empty()) cells[group] = table.cells[group];
    ticket.append_final(line, group, cells[group]);
  }
  for (const std::uint64_t ordinal : ticket.memory_->due[line]) {
    Checkpoint checkpoint{.ordinal = ordinal, .cells = {}, .floors = table.floors};
    checkpoint.cells.resize(groups_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kWindow) {
        const std::uint64_t keep = std::min(ordinal, kept_behind(group));
        const std::uint64_t first = std::max(cells[group].start(), ordinal - keep);
        checkpoint.cells[group] = cells[group].part(first, ordinal, first);
      } else if (kind(group) == GroupKind::kRecurrent) {
        const std::vector<StateWrite>& states = ticket.memory_->states[ticket.at(line, group)];
        const auto state = std::ranges::find(states, ordinal, &StateWrite::ordinal);
        checkpoint.cells[group].append({.page = state->state, .count = 1});
      }
    }
    prepared.push_back(checkpoints_.add(std::move(checkpoint)));
  }
}

// Which of too many checkpoints goes: the oldest end of a prompt, where more than half are such, so that many
// short prompts leave those at regular distances; else the oldest. The newest stays.
std::size_t PageStore::first_to_go(const Table& table) const noexcept {
  const auto regular = [&](CheckpointId id) {
    return checkpoints_.at(id).ordinal % spec_.checkpoint_tokens == 0;
  };
  const auto ends =
      table.checkpoints.size() - static_cast<std::size_t>(std::ranges::count_if(table.checkpoints, regular));
  if (ends <= spec_.checkpoints_max / 2) return 0;
  const auto oldest = std::ranges::find_if_not(table.checkpoints, regular);
  const auto index = static_cast<std::size_t>(oldest - table.checkpoints.begin());
  return index + 1 < table.checkpoints.size() ? index : 0;
}

// Gives a prepared checkpoint to its conversation, which lets go of another where it has too many.
void PageStore::keep_checkpoint(Table& table, CheckpointId id) noexcept {
  Checkpoint& checkpoint = checkpoints_.at(id);
  for (std::size_t group = 0; group < groups_.size(); ++group)
    hold(group, checkpoint.cells[group].runs(), Holder::kSoft);
  checkpoint.owners = 1;
  checkpoint.used = index_.tick();
  table.checkpoints.push_back(id);
  if (table.checkpoints.size() <= spec_.checkpoints_max) return;
  const std::size_t gone = first_to_go(table);
  disown_checkpoint(table.checkpoints[gone]);
  table.checkpoints.erase(table.checkpoints.begin() + static_cast<std::ptrdiff_t>(gone));
}

void PageStore::own_checkpoint(CheckpointId id) noexcept {
  ++checkpoints_.at(id).owners;
}

void PageStore::disown_checkpoint(CheckpointId id) noexcept {
  Checkpoint& checkpoint = checkpoints_.at(id);
  if (--checkpoint.owners > 0) return;
  for (std::size_t group = 0; group < groups_.size(); ++group)
    release(group, checkpoint.cells[group].runs(), Holder::kSoft);
  checkpoints_.remove(id);
}

void PageStore::drop_checkpoints_above(Table& table, std::uint64_t ordinal) noexcept {
  while (!table.checkpoints.empty() && checkpoints_.at(table.checkpoints.back()).ordinal > ordinal) {
    disown_checkpoint(table.checkpoints.back());
    table.checkpoints.pop_back();
  }
}

}  // namespace kvasir::pages
