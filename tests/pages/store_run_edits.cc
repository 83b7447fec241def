// The operations of a history on edits.

#include <algorithm>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {

EditOperation StoreRun::random_operation(std::uint64_t length) {
  EditOperation operation;
  const std::uint64_t what = random_.below(10);
  operation.kind = what < 3   ? EditOperation::Kind::kRemove
                   : what < 5 ? EditOperation::Kind::kShift
                              : EditOperation::Kind::kDivide;
  operation.first = random_.below(length + 1);
  operation.count = random_.below(length - operation.first + 1);
  if (random_.percent(30)) operation.count = length - operation.first;
  if (operation.kind == EditOperation::Kind::kShift) {
    operation.amount = static_cast<std::int64_t>(random_.below(60)) - 20;
  } else if (operation.kind == EditOperation::Kind::kDivide) {
    operation.amount = static_cast<std::int64_t>(random_.between(1, 4));
  }
  return operation;
}

// Rewind, clear, a rolling window, or anything.
std::vector<EditOperation> StoreRun::random_edit(std::uint64_t length) {
  std::vector<EditOperation> operations;
  const std::uint64_t first = random_.below(length + 1);
  switch (random_.below(20)) {
    case 0:
    case 1:
    case 2:
      return {{EditOperation::Kind::kRemove, first, length - first, 0}};
    case 3:
      return {{EditOperation::Kind::kRemove, 0, length, 0}};
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: {
      const std::uint64_t count = random_.below(length - first + 1);
      return {
          {EditOperation::Kind::kRemove, first, count, 0},
          {EditOperation::Kind::kShift, first, length - first - count, -static_cast<std::int64_t>(count)}};
    }
    default:
      for (std::uint64_t left = random_.between(1, 3); left > 0; --left) {
        operations.push_back(random_operation(length));
        if (operations.back().kind == EditOperation::Kind::kRemove) length -= operations.back().count;
      }
      return operations;
  }
}

void StoreRun::begin_edit() {
  TwinConversation* const conversation = idle_conversation();
  if (edit_ || conversation == nullptr || conversation->cells.empty()) return;
  start_edit(*conversation, random_edit(conversation->cells.size()));
}

// Plays the operations through, one after the other.
StoreRun::ForeseenEdit StoreRun::foresee(const TwinConversation& conversation,
                                         const std::vector<EditOperation>& operations) {
  ForeseenEdit edit{.after = conversation};
  edit.marks.resize(spec_.groups.size());
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    for (std::uint64_t i = conversation.starts[group]; i < conversation.cells.size(); ++i)
      edit.marks[group].push_back(i);
  }
  if (!conversation.owed.empty()) edit.outcome = Outcome::kWrongState;
  ForeseenEdit unchanged = edit;
  for (const EditOperation& operation : operations) {
    if (edit.outcome == Outcome::kDone) edit.outcome = edit.after.judge(operation, spec_);
    if (edit.outcome != Outcome::kDone) break;
    if (changes_nothing(operation)) continue;
    edit.first_changed = std::min(edit.first_changed, operation.first);
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      if (!keeps_tokens(spec_.groups[group])) continue;
      const std::uint64_t start = edit.after.starts[group];
      for (std::uint64_t i = operation.first; i < operation.first + operation.count; ++i) {
        if (operation.kind == EditOperation::Kind::kDivide && i >= start) ++edit.rewritten[group];
      }
      if (operation.kind != EditOperation::Kind::kRemove) continue;
      const std::uint64_t first = std::max(operation.first, start) - start;
      const std::uint64_t end = std::max(operation.first + operation.count, start) - start;
      edit.marks[group].erase(edit.marks[group].begin() + static_cast<std::ptrdiff_t>(first),
                              edit.marks[group].begin() + static_cast<std::ptrdiff_t>(end));
    }
    edit.after.edit(operation, spec_, turns_);
  }
  // Positions that are what they were, with nothing taken out: nothing has happened.
  bool all_held = false;
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    all_held = all_held || (keeps_tokens(spec_.groups[group]) && conversation.starts[group] == 0);
  }
  const bool moved = std::ranges::any_of(
      operations, [](const EditOperation& one) { return one.kind != EditOperation::Kind::kRemove; });
  if (edit.outcome != Outcome::kDone || !moved || !all_held) return edit;
  if (!std::ranges::equal(edit.after.cells, conversation.cells, {}, &TwinCell::position, &TwinCell::position))
    return edit;
  return unchanged;
}

// The cells that stay and would have been given back before the last pass of what is promised.
Need StoreRun::promise_grows(const TwinConversation& conversation, const ForeseenEdit& edit) const {
  Need more{};
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    if (spec_.groups[group].kind != GroupKind::kWindow || conversation.promised == 0) continue;
    const std::uint64_t in_use = kept_behind(group) + spec_.pass_tokens;
    std::uint64_t now = 0;
    std::uint64_t then = 0;
    for (std::uint64_t i = 0; i < edit.marks[group].size(); ++i) {
      now += edit.marks[group][i] + in_use < conversation.cells.size() + conversation.promised ? 1 : 0;
      then += edit.after.starts[group] + i + in_use < edit.after.cells.size() + conversation.promised ? 1 : 0;
    }
    more[group] = now > then ? now - then : 0;
  }
  return more;
}

void StoreRun::start_edit(TwinConversation& conversation, const std::vector<EditOperation>& operations) {
  std::string story = "edit " + std::to_string(static_cast<std::uint32_t>(conversation.id));
  for (const EditOperation& operation : operations) {
    story += std::string(" ") + "rsd"[static_cast<int>(operation.kind)] + std::to_string(operation.first) +
             "+" + std::to_string(operation.count) + " by " + std::to_string(operation.amount);
  }
  tell(story);
  ForeseenEdit edit = foresee(conversation, operations);
  if (!conversation.owed.empty()) count(HardState::kRefusedBehind);
  if (edit.outcome == Outcome::kUnsupported) count(HardState::kRefusedMove);
  if (edit.outcome == Outcome::kDone && edit.rewritten != Need{} && spilled(conversation) > 0) {
    const Outcome away = random_.percent(70) ? bring_back({&conversation}) : Outcome::kWrongState;
    if (away == Outcome::kDone) return start_edit(conversation, operations);
    edit.outcome = away;
    count(HardState::kRefusedSpilled);
  }
  const Recount counted = recount();
  const Need promises = promised_need(counted);
  const Need more = edit.outcome == Outcome::kDone ? promise_grows(conversation, edit) : Need{};
  Need need = edit.rewritten;
  Need total = promises;
  for (std::size_t group = 0; group < total.size(); ++group) {
    need[group] += more[group];
    total[group] += need[group];
  }
  if (edit.outcome == Outcome::kDone && !counted.fits(total)) edit.outcome = Outcome::kNoSpace;
  const std::uint64_t before = edit.outcome == Outcome::kDone ? 0 : digest();
  const std::size_t blocks = store_->prefix_blocks();
  const std::size_t spans = store_->holdings(conversation.id).spans;
  auto ticket = store_->begin_edit(conversation.id, operations);
  require(ticket.has_value() == (edit.outcome == Outcome::kDone), "begin_edit() and the rule differ");
  if (!ticket) {
    if (edit.outcome == Outcome::kNoSpace) {
      count(HardState::kShortage);
      require_shortage(ticket.error(), counted, need, promises);
    }
    require(store_->prefix_blocks() == blocks, "a refused edit costs the index blocks");
    return require_failure(ticket.error(), edit.outcome, before);
  }
  follow_evictions();
  follow_checkpoints();
  if (edit.rewritten != Need{}) count(HardState::kDivision);
  if (edit.after.floors != conversation.floors) count(HardState::kFloorRaised);
  edit_more_ = more;
  edit_.emplace(std::move(*ticket), &conversation, std::move(edit.after), edit.first_changed);
  for (const RotateCells& job : edit_->ticket.jobs()) arena_->perform(job);
  if (random_.percent(25)) return;
  if (random_.percent(20)) return abort_edit();
  commit_edit();
  if (store_->holdings(conversation.id).spans > spans) count(HardState::kSplitSpan);
}

void StoreRun::begin_impossible_edit() {
  TwinConversation* const conversation = idle_conversation();
  if (edit_ || conversation == nullptr || !conversation->owed.empty()) return;
  const std::uint64_t length = conversation->cells.size();
  std::vector<EditOperation> operations;
  if (only_full() && spec_.positions_can_move) operations = random_edit(length);
  std::uint64_t left = length;
  for (const EditOperation& operation : operations) {
    left -= operation.kind == EditOperation::Kind::kRemove ? operation.count : 0;
  }
  switch (random_.below(4)) {
    case 0:
      operations.push_back({EditOperation::Kind::kRemove, left + 1, 0, 0});
      break;
    case 1:
      operations.push_back({EditOperation::Kind::kShift, 0, left + 1, 0});
      break;
    case 2:
      operations.push_back({EditOperation::Kind::kDivide, 0, left, 0});
      break;
    default:
      operations.push_back({EditOperation::Kind::kRemove, 1, UINT64_MAX, 0});
  }
  tell("an impossible edit of " + std::to_string(static_cast<std::uint32_t>(conversation->id)));
  const std::uint64_t before = digest();
  const auto ticket = store_->begin_edit(conversation->id, operations);
  require(!ticket, "an impossible edit begins");
  require_failure(ticket.error(), Outcome::kInvalidArgument, before);
}

void StoreRun::commit_edit() {
  TwinConversation& conversation = *edit_->conversation;
  tell(story_[steps_ % story_.size()] + " commit the edit");
  const std::uint64_t first_changed = edit_->first_changed;
  require(edit_->ticket.first_changed() == first_changed, "an edit begins elsewhere");
  edit_->ticket.commit();
  edit_more_ = {};
  conversation.cells = std::move(edit_->after.cells);
  conversation.floors = std::move(edit_->after.floors);
  conversation.starts = std::move(edit_->after.starts);
  conversation.drop_checkpoints_above(first_changed);
  conversation.remembered = std::min({conversation.remembered, conversation.cells.size(), first_changed});
  edit_.reset();
}

void StoreRun::abort_edit() {
  tell(story_[steps_ % story_.size()] + " drop the edit");
  edit_more_ = {};
  edit_.reset();
}

}  // namespace kvasir::pages::test
