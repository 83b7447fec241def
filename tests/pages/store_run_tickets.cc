// The operations of a history on tickets: steps and edits.

#include <algorithm>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {

// A new conversation often gets a prompt of some pages.
std::uint64_t StoreRun::random_growth(const TwinConversation& conversation, std::uint64_t beside) {
  const std::uint64_t page = store_->page_cells();
  if (conversation.cells.empty() && random_.percent(65)) return random_.between(page, 3 * page);
  if (compaction_ && random_.percent(60)) return std::max<std::uint64_t>(1, recount().largest(beside));
  return random_length(beside);
}

void StoreRun::begin_ticket() {
  if (ticket_) return;
  std::vector<Growth> plan;
  std::vector<TwinConversation*> who;
  const std::uint64_t lines =
      random_.percent(50) ? 1 : random_.between(1, std::min<std::size_t>(8, most_conversations_));
  std::uint64_t others = promised();
  while (who.size() < lines) {
    TwinConversation* const conversation = idle_conversation();
    if (conversation == nullptr || std::ranges::find(who, conversation) != who.end()) break;
    who.push_back(conversation);
    others -= conversation->promised;
    const bool as_promised = conversation->promised > 0 && random_.percent(70);
    plan.push_back({conversation->id, as_promised ? random_.between(1, conversation->promised)
                                                  : random_growth(*conversation, others)});
  }
  if (plan.empty()) return open_conversation();
  // Several lines that want all there is would never fit together.
  for (std::size_t line = 1; line < plan.size(); ++line) {
    if (random_.percent(70)) plan[line].count = random_.between(1, store_->page_cells() / 2);
  }
  if (random_.percent(60)) shrink(plan, who);
  begin(plan, who);
}

// Halves a plan until it fits, if it can.
void StoreRun::shrink(std::vector<Growth>& plan, const std::vector<TwinConversation*>& who) const {
  const Recount counted = recount();
  std::uint64_t need = 0;
  do {
    need = promised();
    for (std::size_t line = 0; line < plan.size(); ++line) {
      need += plan[line].count - std::min(plan[line].count, who[line]->promised);
    }
    if (counted.fits(need)) return;
    for (Growth& growth : plan) growth.count = std::max<std::uint64_t>(1, growth.count / 2);
  } while (need > promised() + plan.size());
}

void StoreRun::begin(const std::vector<Growth>& plan, const std::vector<TwinConversation*>& who) {
  std::string story = "begin";
  std::uint64_t need = 0;
  std::uint64_t others = promised();
  for (std::size_t line = 0; line < plan.size(); ++line) {
    need += std::max(plan[line].count, who[line]->promised);
    others -= who[line]->promised;
    story += " " + std::to_string(static_cast<std::uint32_t>(plan[line].table)) + "+" +
             std::to_string(plan[line].count);
  }
  tell(story);
  const Recount counted = recount();
  const bool fits = counted.fits(others + need);
  const std::uint64_t before = fits ? 0 : digest();
  auto ticket = store_->begin(plan);
  require(ticket.has_value() == fits, "begin() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    require(ticket.error().numbers().wanted == need &&
                ticket.error().numbers().available == counted.largest(others),
            "the numbers of a shortage: " + ticket.error().message());
    require_failure(ticket.error(), Outcome::kNoSpace, before);
    if (random_.percent(50)) close_conversation();
    return;
  }
  if (counted.largest(others) == need) count(HardState::kTightReservation);
  ticket_.emplace(std::move(*ticket));
  for (std::size_t i = 0; i < plan.size(); ++i) {
    Line line{.conversation = who[i], .promise_used = std::min(plan[i].count, who[i]->promised)};
    who[i]->promised -= line.promise_used;
    std::vector<TwinCell> cells = who[i]->cells;
    for (std::uint64_t n = 0; n < plan[i].count; ++n) {
      cells.push_back(who[i]->next_cell(cells, token_at(*who[i], cells.size())));
    }
    line.planned.assign(cells.end() - static_cast<std::ptrdiff_t>(plan[i].count), cells.end());
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      const Run& first = ticket_->ticket.new_runs(i, group).front();
      if (counted.held_in_page(group, first.page) > who[i]->cells.size())
        count(HardState::kAppendIntoSharedPage);
    }
    ticket_->lines.push_back(std::move(line));
  }
}

void StoreRun::begin_impossible_ticket() {
  const TwinConversation* const conversation = any_conversation();
  if (ticket_ || conversation == nullptr) return;
  tell("begin an impossible ticket");
  std::vector<Growth> plan = {{conversation->id, 1}};
  switch (random_.below(3)) {
    case 0:
      plan.push_back({conversation->id, 1});
      break;
    case 1:
      plan.push_back({TableId{static_cast<std::uint32_t>(4000 + random_.below(1000))}, 1});
      break;
    default:
      plan.front().count = 0;
  }
  const std::uint64_t before = digest();
  const auto ticket = store_->begin(plan);
  require(!ticket, "an impossible ticket begins");
  require_failure(ticket.error(), Outcome::kInvalidArgument, before);
}

// Computes the next cells of each line.
void StoreRun::pass() {
  ++ticket_->passes;
  tell("pass " + std::to_string(ticket_->passes));
  const std::uint64_t from = ticket_->written;
  ticket_->written += random_.between(1, 2 * store_->page_cells());
  for (std::size_t line = 0; line < ticket_->lines.size(); ++line) {
    if (ticket_->lines[line].withdrawn) continue;
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      std::uint64_t index = 0;
      for (const Run& run : ticket_->ticket.new_runs(line, group)) {
        for (std::uint32_t i = 0; i < run.count; ++i, ++index) {
          if (index < from || index >= ticket_->written) continue;
          arena_->write(group, {run.page, run.cell + i}, ticket_->lines[line].planned[index].contents);
        }
      }
      require(index == ticket_->lines[line].planned.size(), "a line has another number of new cells");
    }
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
  const std::uint64_t used = std::min(line.promise_used, accepted);
  line.conversation->promised += line.promise_used - used;
  line.promise_used = 0;
}

void StoreRun::install(Line& line, std::uint64_t accepted) {
  if (line.promise_used > 0 && accepted > 0) count(HardState::kPromiseUsed);
  give_back(line, accepted);
  std::vector<TwinCell>& cells = line.conversation->cells;
  cells.insert(cells.end(), line.planned.begin(),
               line.planned.begin() + static_cast<std::ptrdiff_t>(accepted));
}

void StoreRun::commit_ticket() {
  while (std::ranges::any_of(ticket_->lines, [&](const Line& line) {
    return !line.withdrawn && line.planned.size() > ticket_->written;
  })) {
    pass();
  }
  tell("commit the ticket");
  std::vector<std::uint64_t> accepted;
  for (const Line& line : ticket_->lines) {
    accepted.push_back(line.withdrawn ? 0 : line.planned.size());
    if (accepted.back() > 0 && random_.percent(15)) {
      count(HardState::kPartialCommit);
      accepted.back() = random_.below(accepted.back());
    }
  }
  ticket_->ticket.commit(accepted);
  const bool shares = random_.percent(95);
  for (std::size_t line = 0; line < accepted.size(); ++line) {
    install(ticket_->lines[line], accepted[line]);
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

void StoreRun::start_edit(TwinConversation& conversation, const std::vector<EditOperation>& operations) {
  std::string story = "edit " + std::to_string(static_cast<std::uint32_t>(conversation.id));
  TwinConversation after = conversation;
  std::uint64_t rewritten = 0;
  bool valid = true;
  for (const EditOperation& operation : operations) {
    story += std::string(" ") + "rsd"[static_cast<int>(operation.kind)] + std::to_string(operation.first) +
             "+" + std::to_string(operation.count) + " by " + std::to_string(operation.amount);
    rewritten += operation.kind == EditOperation::Kind::kDivide ? operation.count : 0;
    after.edit(operation);
    valid &= std::ranges::all_of(after.cells, [](const TwinCell& cell) {
      return cell.position >= 0 && cell.position <= kPositionMax;
    });
  }
  tell(story);
  const bool fits = valid && recount().fits(promised() + rewritten);
  const std::uint64_t before = fits ? 0 : digest();
  const std::size_t blocks = store_->prefix_blocks();
  const std::size_t spans = store_->holdings(conversation.id).spans;
  auto ticket = store_->begin_edit(conversation.id, operations);
  require(ticket.has_value() == fits, "begin_edit() and the rule differ");
  if (!fits) {
    if (valid) count(HardState::kShortage);
    require(store_->prefix_blocks() == blocks, "a refused edit costs the index blocks");
    return require_failure(ticket.error(), valid ? Outcome::kNoSpace : Outcome::kInvalidArgument, before);
  }
  if (rewritten > 0) count(HardState::kDivision);
  edit_.emplace(std::move(*ticket), &conversation, std::move(after));
  for (const RotateCells& job : edit_->ticket.jobs()) arena_->perform(job);
  if (random_.percent(25)) return;
  if (random_.percent(20)) return abort_edit();
  commit_edit();
  if (store_->holdings(conversation.id).spans > spans) count(HardState::kSplitSpan);
}

void StoreRun::begin_impossible_edit() {
  TwinConversation* const conversation = idle_conversation();
  if (edit_ || conversation == nullptr) return;
  const std::uint64_t length = conversation->cells.size();
  std::vector<EditOperation> operations = random_edit(length);
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
  const std::uint64_t first_changed = edit_->ticket.first_changed();
  edit_->ticket.commit();
  conversation.cells = std::move(edit_->after.cells);
  conversation.remembered = std::min({conversation.remembered, conversation.cells.size(), first_changed});
  edit_.reset();
}

void StoreRun::abort_edit() {
  tell(story_[steps_ % story_.size()] + " drop the edit");
  edit_.reset();
}

}  // namespace kvasir::pages::test
