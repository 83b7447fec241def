// The operations of a history on steps.

#include <algorithm>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {

// A new conversation often gets a prompt of some pages.
std::uint64_t StoreRun::random_growth(const TwinConversation& conversation, std::uint64_t room) {
  const std::uint64_t page = store_->page_cells();
  const std::uint64_t owed = conversation.owed.size();
  if (owed > 0 && random_.percent(85)) return random_.percent(70) ? owed : random_.between(1, owed);
  if (conversation.cells.empty() && random_.percent(65)) return random_.between(page, 3 * page);
  if (compaction_ && random_.percent(60))
    return std::max<std::uint64_t>(1, std::min<std::uint64_t>(room, 600));
  if (!only_full() && random_.percent(30)) return random_.between(60, 200);
  return random_length(room);
}

void StoreRun::begin_ticket() {
  if (ticket_) return;
  std::vector<Growth> plan;
  std::vector<TwinConversation*> who;
  const std::uint64_t lines =
      random_.percent(50) ? 1 : random_.between(1, std::min<std::size_t>(8, most_conversations_));
  const std::uint64_t room = store_->tokens_free();
  while (who.size() < lines) {
    TwinConversation* conversation = idle_conversation();
    if (who.empty() && random_.percent(60) && conversation_behind() != nullptr)
      conversation = conversation_behind();
    if (conversation == nullptr || std::ranges::find(who, conversation) != who.end()) break;
    who.push_back(conversation);
    const bool as_promised = conversation->promised > 0 && random_.percent(70);
    const std::uint64_t growth =
        as_promised ? random_.between(1, conversation->promised)
                    : random_growth(*conversation, room + (who.size() == 1 ? conversation->promised : 0));
    plan.push_back({conversation->id, std::min<std::uint64_t>(growth, 900)});
  }
  if (plan.empty()) return open_conversation();
  // Several lines that want all there is would never fit together.
  for (std::size_t line = 1; line < plan.size(); ++line) {
    if (random_.percent(70)) plan[line].count = random_.between(1, store_->page_cells() / 2);
  }
  if (random_.percent(60)) shrink(plan, who);
  for (Growth& growth : plan) {
    if (random_.percent(has(GroupKind::kWindow) ? 60 : 25))
      growth.fewest = random_.percent(70) ? growth.count : random_.between(1, growth.count);
    if (random_.percent(50)) growth.prompt = growth.count + (random_.percent(50) ? 0 : random_.below(40));
  }
  begin(plan, who);
}

// Halves a plan until it fits, if it can.
void StoreRun::shrink(std::vector<Growth>& plan, const std::vector<TwinConversation*>& who) const {
  const Recount counted = recount();
  for (int attempt = 0; attempt < 10; ++attempt) {
    Need others{};
    Need need = need_of_plan(counted, plan, who, others);
    for (std::size_t group = 0; group < need.size(); ++group) need[group] += others[group];
    if (counted.fits(need)) return;
    for (Growth& growth : plan) growth.count = std::max<std::uint64_t>(1, growth.count / 2);
  }
}

LineInTicket StoreRun::line_of(const Growth& growth, const TwinConversation& conversation) {
  return {growth.count, growth.fewest, std::min(growth.count, conversation.promised)};
}

// What a plan needs, cells to be taken and promises that remain, and what the others' promises do.
Need StoreRun::need_of_plan(const Recount& counted, const std::vector<Growth>& plan,
                            const std::vector<TwinConversation*>& who, Need& others) const {
  Need need{};
  others = promised_need(counted);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Shape shape = only_full() ? Shape() : shape_of(*who[i]);
    const LineInTicket line = line_of(plan[i], *who[i]);
    const Need cells = cells_of(line);
    const Need rest = need_of(counted, shape, line, who[i]->promised - line.paid);
    const Need before = need_of(counted, shape, {}, who[i]->promised);
    for (std::size_t group = 0; group < need.size(); ++group) {
      need[group] += cells[group] + rest[group];
      others[group] -= before[group];
    }
  }
  return need;
}

void StoreRun::begin(const std::vector<Growth>& plan, const std::vector<TwinConversation*>& who) {
  std::string story = "begin";
  for (const Growth& growth : plan) {
    story += " " + std::to_string(static_cast<std::uint32_t>(growth.table)) + "+" +
             std::to_string(growth.count) + " at least " + std::to_string(growth.fewest) + " prompt " +
             std::to_string(growth.prompt);
  }
  tell(story);
  if (const Outcome away = bring_back(who); away != Outcome::kDone) {
    const std::uint64_t before = digest();
    const auto refused = store_->begin(plan);
    require(!refused, "a step begins with a conversation that lies in a tier");
    count(HardState::kRefusedSpilled);
    return require_failure(refused.error(), away, before);
  }
  const Recount counted = recount();
  Need others{};
  const Need need = need_of_plan(counted, plan, who, others);
  Need total = others;
  Need more = others;
  for (std::size_t group = 0; group < total.size(); ++group) {
    total[group] += need[group];
    more[group] += need[group] + (need[group] > 0 ? 1 : 0);
  }
  const bool fits = counted.fits(total);
  const std::uint64_t before = fits ? 0 : digest();
  auto ticket = store_->begin(plan);
  require(ticket.has_value() == fits, "begin() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    require_shortage(ticket.error(), counted, need, others);
    require_failure(ticket.error(), Outcome::kNoSpace, before);
    if (random_.percent(50)) close_conversation();
    return;
  }
  if (!counted.fits(more)) count(HardState::kTightReservation);
  ticket_.emplace(std::move(*ticket));
  for (std::size_t i = 0; i < plan.size(); ++i) {
    TwinConversation& conversation = *who[i];
    Line line{.conversation = who[i], .fewest = plan[i].fewest};
    std::vector<TwinCell> cells = conversation.cells;
    for (std::uint64_t n = 0; n < plan[i].count; ++n) {
      const Token token =
          n < conversation.owed.size() ? conversation.owed[n] : token_at(conversation, cells.size());
      const bool sees_less = conversation.sees_less(cells.size(), spec_);
      cells.push_back(conversation.next_cell(cells, token));
      cells.back().touched = sees_less;
    }
    line.planned.assign(cells.end() - static_cast<std::ptrdiff_t>(plan[i].count), cells.end());
    line.due = due_checkpoints(conversation, plan[i]);
    conversation.line = line_of(plan[i], conversation);
    conversation.promised -= conversation.line.paid;
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      if (!keeps_tokens(spec_.groups[group])) continue;
      const Run& first = ticket_->ticket.new_runs(i, group).front();
      if (counted.held_in_page(group, first.page) > conversation.cells.size())
        count(HardState::kAppendIntoSharedPage);
      if (cells_of(conversation.line)[group] < conversation.line.count) count(HardState::kRingReused);
    }
    ticket_->lines.push_back(std::move(line));
  }
  expect_states(plan, counted, total);
  follow_evictions();
  follow_checkpoints();
}

// Where checkpoints should be kept in a line, if there are states for them.
std::vector<std::uint64_t> StoreRun::due_checkpoints(const TwinConversation& conversation,
                                                     const Growth& growth) const {
  std::vector<std::uint64_t> due;
  if (!has(GroupKind::kWindow) && !has(GroupKind::kRecurrent)) return due;
  const std::uint64_t length = conversation.cells.size();
  const std::uint64_t prompt_end = length + growth.prompt;
  const Need held = cells_of({.count = growth.count, .fewest = growth.fewest});
  for (std::uint64_t ordinal = length + 1; ordinal <= length + growth.count; ++ordinal) {
    bool wanted = ordinal % spec_.checkpoint_tokens == 0;
    if (growth.prompt > 0) {
      wanted |= ordinal == prompt_end || ordinal == prompt_end / spec_.page_cells * spec_.page_cells;
    }
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      if (spec_.groups[group].kind != GroupKind::kWindow || held[group] == growth.count) continue;
      // The ring holds no more than its last cells.
      if (ordinal < kept_behind(group) + (length + growth.count - held[group])) wanted = false;
    }
    if (wanted) due.push_back(ordinal);
  }
  while (due.size() > spec_.checkpoints_max) due.erase(due.begin());
  return due;
}

// A ticket takes states for the last of the due checkpoints, as many as fit.
void StoreRun::expect_states(const std::vector<Growth>& plan, const Recount& counted, Need need) {
  if (!has(GroupKind::kRecurrent)) return;
  const auto with_states = [&](std::uint64_t states) {
    Need more = need;
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      more[group] += spec_.groups[group].kind == GroupKind::kRecurrent ? states : 0;
    }
    return more;
  };
  for (std::size_t i = 0; i < plan.size(); ++i) {
    Line& line = ticket_->lines[i];
    const std::uint64_t end = line.conversation->cells.size() + plan[i].count;
    std::optional<std::vector<std::uint64_t>> ordinals;
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      if (spec_.groups[group].kind != GroupKind::kRecurrent) continue;
      std::vector<std::uint64_t> of_group;
      for (const StateWrite& write : ticket_->ticket.states(i, group)) of_group.push_back(write.ordinal);
      require(!of_group.empty() && of_group.back() == end, "a line has no state for its end");
      require(!ordinals || *ordinals == of_group, "two groups have states of different ordinals");
      ordinals = of_group;
    }
    if (line.due.empty() || line.due.back() != end) ordinals->pop_back();
    const std::uint64_t extra = ordinals->size() - (!ordinals->empty() && ordinals->back() == end ? 1 : 0);
    const std::size_t missing = line.due.size() - ordinals->size();
    require(ordinals->size() <= line.due.size() &&
                std::equal(ordinals->begin(), ordinals->end(),
                           line.due.begin() + static_cast<std::ptrdiff_t>(missing)),
            "states are reserved for other checkpoints than the last that are due");
    require(missing == 0 || !counted.fits(with_states(extra + 1)), "a state that fits is not reserved");
    require(counted.fits(with_states(extra)), "a state is reserved that does not fit");
    need = with_states(extra);
    line.due = *ordinals;
  }
}

void StoreRun::begin_impossible_ticket() {
  const TwinConversation* const conversation = any_conversation();
  if (ticket_ || conversation == nullptr) return;
  tell("begin an impossible ticket");
  std::vector<Growth> plan = {{conversation->id, 1}};
  Outcome outcome = Outcome::kInvalidArgument;
  switch (random_.below(4)) {
    case 0:
      plan.push_back({conversation->id, 1});
      break;
    case 1:
      plan.push_back({TableId{static_cast<std::uint32_t>(4000 + random_.below(1000))}, 1});
      break;
    case 2:
      plan.front().fewest = 2;
      break;
    default:
      plan.front().count = 0;
  }
  const std::uint64_t before = digest();
  const auto ticket = store_->begin(plan);
  require(!ticket, "an impossible ticket begins");
  require_failure(ticket.error(), outcome, before);
}

// A second ticket for a conversation.
void StoreRun::begin_busy() {
  const TwinConversation* conversation = any_conversation();
  if (ticket_) conversation = random_.one_of(ticket_->lines).conversation;
  if (conversation == nullptr || !busy(*conversation)) return;
  tell("begin for a busy conversation");
  const std::uint64_t before = digest();
  const Growth growth{conversation->id, 1};
  const auto ticket = store_->begin({&growth, 1});
  require(!ticket, "two tickets for one conversation");
  require_failure(ticket.error(), Outcome::kBusy, before);
  const EditOperation operation{EditOperation::Kind::kRemove, 0, 0, 0};
  const auto edit = store_->begin_edit(conversation->id, {&operation, 1});
  require(!edit, "an edit of a conversation in a ticket");
  require_failure(edit.error(), Outcome::kBusy, before);
  count(HardState::kRefusedBusy);
}

// Computes the next cells of each line.
void StoreRun::pass() {
  ++ticket_->passes;
  tell("pass " + std::to_string(ticket_->passes));
  const std::uint64_t from = ticket_->written;
  const std::uint64_t most = 2 * store_->page_cells();
  ticket_->written +=
      random_.between(1, has(GroupKind::kWindow) ? std::min<std::uint64_t>(most, spec_.pass_tokens) : most);
  for (std::size_t line = 0; line < ticket_->lines.size(); ++line) {
    if (!ticket_->lines[line].withdrawn) write_new(ticket_->lines[line], line, from);
  }
}

void StoreRun::write_new(const Line& line, std::size_t index, std::uint64_t from) {
  const std::uint64_t length = line.conversation->cells.size();
  const std::uint64_t count = line.planned.size();
  const std::uint64_t to = std::min(ticket_->written, count);
  const Need held = cells_of(line.conversation->line);
  ticket_->ticket.open_pass(index, to);
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    std::uint64_t cells = 0;
    for (const Run& run : ticket_->ticket.new_runs(index, group)) {
      for (std::uint32_t i = 0; i < run.count; ++i, ++cells) {
        const std::uint64_t at = run.ordinal + i - length;
        if (at >= from && at < to) arena_->write(group, {run.page, run.cell + i}, line.planned[at].contents);
      }
    }
    require(cells == (keeps_tokens(spec_.groups[group]) ? held[group] : 0),
            "a line has another number of new cells");
    const std::span<const StateWrite> states = ticket_->ticket.states(index, group);
    for (const StateWrite& write : states) {
      const std::uint64_t at = write.ordinal - length;
      if (at > from && at <= to) arena_->write(group, {write.state, 0}, line.planned[at - 1].contents);
    }
    // Between passes the last keeps the scan's state.
    if (!states.empty() && to > from && to < count)
      arena_->write(group, {states.back().state, 0}, line.planned[to - 1].contents);
  }
}

void StoreRun::withdraw() {
  const auto index = static_cast<std::size_t>(random_.below(ticket_->lines.size()));
  Line& line = ticket_->lines[index];
  if (line.withdrawn) return;
  count(HardState::kWithdrawal);
  tell("withdraw line " + std::to_string(index));
  ticket_->ticket.withdraw(index);
  give_back(line, 0);
  line.withdrawn = true;
}

// What a promise has paid for beyond the accepted cells is promised again.
void StoreRun::give_back(Line& line, std::uint64_t accepted) {
  if (line.withdrawn) return;
  line.conversation->promised +=
      line.conversation->line.paid - std::min(line.conversation->line.paid, accepted);
  line.conversation->line = {};
}

// Where a line's conversation and its new tokens lie, in windows the last of them.
StoreRun::Shape StoreRun::computed_by(std::size_t index) const {
  Shape shape = shape_of(*ticket_->lines[index].conversation);
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    if (!keeps_tokens(spec_.groups[group])) continue;
    std::vector<CellAt>& cells = shape.cells[group];
    for (const Run& run : ticket_->ticket.new_runs(index, group)) {
      if (run.ordinal > shape.starts[group] + cells.size()) {
        cells.clear();
        shape.starts[group] = run.ordinal;
      }
      for (std::uint32_t i = 0; i < run.count; ++i) cells.push_back({run.page, run.cell + i});
    }
  }
  return shape;
}

void StoreRun::keep_checkpoint(TwinConversation& conversation, std::uint64_t ordinal, const Shape& computed,
                               const std::vector<std::vector<StateWrite>>& states) {
  auto checkpoint = std::make_shared<TwinCheckpoint>();
  checkpoint->ordinal = ordinal;
  checkpoint->floors = conversation.floors;
  checkpoint->cells.resize(spec_.groups.size());
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    if (spec_.groups[group].kind == GroupKind::kWindow) {
      for (std::uint64_t at = computed.starts[group]; at < ordinal; ++at) {
        if (at + kept_behind(group) >= ordinal)
          checkpoint->cells[group].push_back(computed.cells[group].at(at - computed.starts[group]));
      }
    } else if (spec_.groups[group].kind == GroupKind::kRecurrent) {
      const auto state = std::ranges::find(states[group], ordinal, &StateWrite::ordinal);
      checkpoint->cells[group] = {{state->state, 0}};
    }
  }
  conversation.checkpoints.push_back(std::move(checkpoint));
  if (conversation.checkpoints.size() > spec_.checkpoints_max) {
    // Ends of prompts that are not at regular distances go first while they are more than half.
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < conversation.checkpoints.size(); ++i) {
      if (conversation.checkpoints[i]->ordinal % store_->spec().checkpoint_tokens != 0) ends.push_back(i);
    }
    const bool first_end =
        ends.size() > spec_.checkpoints_max / 2 && ends.front() + 1 < conversation.checkpoints.size();
    conversation.checkpoints.erase(conversation.checkpoints.begin() +
                                   static_cast<std::ptrdiff_t>(first_end ? ends.front() : 0));
  }
  count(HardState::kCheckpointKept);
}

void StoreRun::install(Line& line, std::uint64_t accepted, const Shape& computed,
                       const std::vector<std::vector<StateWrite>>& states) {
  TwinConversation& conversation = *line.conversation;
  if (conversation.line.paid > 0 && accepted > 0) count(HardState::kPromiseUsed);
  give_back(line, accepted);
  if (accepted == 0) return;
  const std::uint64_t length = conversation.cells.size();
  // In a recurrent group a line accepted in part ends at the last state that there is.
  std::uint64_t kept = accepted;
  if (has(GroupKind::kRecurrent) && accepted < line.planned.size()) {
    kept = 0;
    for (const std::uint64_t ordinal : line.due) {
      if (ordinal <= length + accepted) kept = ordinal - length;
    }
    count(kept == accepted ? HardState::kStateKept : HardState::kStateMissed);
  }
  conversation.promised += accepted - kept;
  std::vector<Token> tokens = conversation.owed;
  if (accepted >= tokens.size()) {
    tokens.clear();
    for (std::uint64_t i = 0; i < accepted; ++i) tokens.push_back(line.planned[i].token);
  }
  if (!conversation.owed.empty() && kept == tokens.size()) count(HardState::kBehindCaughtUp);
  conversation.owed.assign(tokens.begin() + static_cast<std::ptrdiff_t>(kept), tokens.end());
  if (kept == 0) return;
  conversation.cells.insert(conversation.cells.end(), line.planned.begin(),
                            line.planned.begin() + static_cast<std::ptrdiff_t>(kept));
  for (const std::uint64_t ordinal : line.due) {
    if (ordinal <= length + kept) keep_checkpoint(conversation, ordinal, computed, states);
  }
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    if (spec_.groups[group].kind != GroupKind::kWindow || length + kept <= kept_behind(group)) continue;
    const std::uint64_t start = length + kept - kept_behind(group);
    if (start <= conversation.starts[group]) continue;
    conversation.starts[group] = start;
    count(HardState::kWindowRelease);
  }
}

void StoreRun::commit_ticket() {
  while (std::ranges::any_of(ticket_->lines, [&](const Line& line) {
    return !line.withdrawn && line.planned.size() > ticket_->written;
  })) {
    pass();
  }
  tell("commit the ticket");
  std::vector<std::uint64_t> accepted;
  std::vector<Shape> computed;
  std::vector<std::vector<std::vector<StateWrite>>> states;
  for (std::size_t i = 0; i < ticket_->lines.size(); ++i) {
    const Line& line = ticket_->lines[i];
    accepted.push_back(line.withdrawn ? 0 : line.planned.size());
    computed.push_back(line.withdrawn ? Shape() : computed_by(i));
    states.emplace_back();
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      const std::span<const StateWrite> of_group = ticket_->ticket.states(i, group);
      states.back().emplace_back(of_group.begin(), of_group.end());
    }
    if (accepted.back() == 0) continue;
    if (!in_part_ && !random_.percent(has(GroupKind::kRecurrent) ? 30 : 15)) continue;
    count(HardState::kPartialCommit);
    accepted.back() = random_.percent(10) ? 0 : random_.between(line.fewest, accepted.back());
    // Sometimes where there is a state.
    if (line.due.empty() || random_.percent(40)) continue;
    const std::uint64_t at_state = line.due.front() - line.conversation->cells.size();
    if (at_state >= line.fewest) accepted.back() = at_state;
  }
  ticket_->ticket.commit(accepted);
  const bool shares = random_.percent(95);
  for (std::size_t line = 0; line < accepted.size(); ++line) {
    if (ticket_->lines[line].withdrawn) continue;
    install(ticket_->lines[line], accepted[line], computed[line], states[line]);
    if (shares) remember(*ticket_->lines[line].conversation);
  }
  ticket_.reset();
}

void StoreRun::abort_ticket() {
  if (ticket_->passes >= 2) count(HardState::kAbortAfterPassTwo);
  tell("abort the ticket after " + std::to_string(ticket_->passes) + " passes");
  for (Line& line : ticket_->lines) give_back(line, 0);
  ticket_.reset();
}

}  // namespace kvasir::pages::test
