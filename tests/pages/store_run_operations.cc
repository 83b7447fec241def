// The operations of a history on tables and compaction.

#include <algorithm>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {

// While a ticket or an edit is open, about every second operation moves it on.
void StoreRun::try_operation() {
  if (ticket_ && random_.percent(50)) {
    const std::uint64_t what = random_.below(100);
    if (what < 47) return pass();
    if (what < 55) return withdraw();
    if (what < 78) return commit_ticket();
    return abort_ticket();
  }
  if (edit_ && random_.percent(40)) return random_.percent(70) ? commit_edit() : abort_edit();
  if (encode_ && random_.percent(40)) return end_encode();
  if (return_ && random_.percent(50)) return end_return();
  if (random_.percent(6)) return spill();
  if (random_.percent(5)) return begin_return();
  if (random_.percent(8)) return return_beside_edit();
  if (!only_full() && random_.percent(14)) return rewind();
  if (!only_full() && random_.percent(9)) return return_and_catch_up();
  if (has(GroupKind::kRecurrent) && random_.percent(8)) return speculate();
  if (!only_full() && random_.percent(12)) return press();
  if (has(GroupKind::kCross) && random_.percent(20)) return begin_encode();
  if ((snapshot_ || restore_) && random_.percent(25)) return snapshot_ ? end_snapshot() : end_restore();
  if (random_.percent(6)) return random_.percent(40) ? take_snapshot() : restore();
  const std::uint64_t what = random_.below(1000);
  if (what < 20) return open_conversation();
  if (what < 46) return close_conversation();
  if (what < 116) return fork_conversation();
  if (what < 365) return begin_ticket();
  if (what < 370) return random_.percent(30) ? begin_impossible_ticket() : begin_busy();
  // Few edits are possible beside a recurrent group.
  if (what < 570) return has(GroupKind::kRecurrent) && random_.percent(60) ? begin_ticket() : begin_edit();
  if (what < 575) return begin_impossible_edit();
  if (what < 590) return swap_cells();
  if (what < 677) return promise();
  if (what < 685) return remember();
  if (what < 862) return adopt();
  if (what < 999) return compaction_ ? end_compaction() : begin_compaction();
  forget();
}

void StoreRun::forget() {
  tell("forget");
  store_->forget();
  evictions_seen_ = store_->prefix_counters().evictions;
  index_.clear();
}

void StoreRun::open_conversation() {
  if (conversations_.size() >= most_conversations_) return close_conversation();
  const auto id = store_->open();
  require(id.has_value(), "open() fails");
  tell("open " + std::to_string(static_cast<std::uint32_t>(*id)));
  auto conversation = std::make_unique<TwinConversation>();
  conversation->id = *id;
  conversation->salt = random_.percent(6) ? 1 : 0;
  conversation->script = random_.below(3);
  conversation->floors.resize(spec_.groups.size());
  conversation->starts.resize(spec_.groups.size());
  conversations_.push_back(std::move(conversation));
}

void StoreRun::close_conversation() {
  const TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  tell("close " + std::to_string(static_cast<std::uint32_t>(conversation->id)));
  const bool is_busy = busy(*conversation);
  require(store_->close(conversation->id) == (is_busy ? Outcome::kBusy : Outcome::kDone),
          "close() and open tickets differ");
  if (is_busy) return count(HardState::kRefusedBusy);
  if (ticket_) {
    for (Line& line : ticket_->lines) {
      if (line.conversation == conversation) line.conversation = nullptr;  // it was withdrawn
    }
  }
  std::erase_if(conversations_, [&](const auto& one) { return one.get() == conversation; });
}

void StoreRun::fork_conversation() {
  if (conversations_.size() >= most_conversations_) close_conversation();
  const TwinConversation* parent = any_conversation();
  if (TwinConversation* const behind = conversation_behind(); behind != nullptr && random_.percent(40))
    parent = behind;
  if (ticket_ && random_.percent(85)) parent = random_.one_of(ticket_->lines).conversation;
  if (parent == nullptr || conversations_.size() >= most_conversations_) return;
  if (busy(*parent)) count(HardState::kForkInsideTicket);
  tell("fork " + std::to_string(static_cast<std::uint32_t>(parent->id)));
  // What is promised to the parent may count on cells that it alone holds.
  Recount counted = recount();
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    for (const Run& run : store_->runs(parent->id, group)) counted.add(group, run, Holder::kFirm);
  }
  const bool fits = counted.fits(promised_need(counted));
  const std::uint64_t before = fits ? 0 : digest();
  const auto id = store_->fork(parent->id);
  require(id.has_value() == fits, "fork() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    return require_failure(id.error(), Outcome::kNoSpace, before);
  }
  if (!parent->owed.empty()) count(HardState::kBehindForked);
  auto child = std::make_unique<TwinConversation>(*parent);
  child->id = *id;
  child->promised = 0;
  child->line = {};
  if (random_.percent(20)) child->script = random_.below(3);
  conversations_.push_back(std::move(child));
}

void StoreRun::promise() {
  TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  const Recount counted = recount();
  const std::uint64_t wanted = random_.percent(15) ? 0 : random_length(largest_for(counted, *conversation));
  const std::uint64_t all = wanted + conversation->owed.size();
  const Need others = promised_but(counted, *conversation);
  const Need need = need_of(counted, shape_of(*conversation), conversation->line, all);
  Need total = others;
  for (std::size_t group = 0; group < total.size(); ++group) total[group] += need[group];
  const bool fits = counted.fits(total);
  const std::uint64_t before = fits ? 0 : digest();
  tell("promise " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + " " +
       std::to_string(wanted));
  require(store_->fits(conversation->id, wanted) == fits, "fits() and the rule differ");
  const Status status = store_->promise(conversation->id, wanted);
  require(status.has_value() == fits, "promise() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    require_shortage(status.error(), counted, need, others);
    return require_failure(status.error(), Outcome::kNoSpace, before);
  }
  conversation->promised = all;
}

// Checkpoints and an open snapshot follow the cells that they hold.
template <class Job>
void StoreRun::follow_holders(std::uint32_t group, const Job& job) {
  std::vector<TwinCheckpoint*> seen;
  for (const auto& one : conversations_) {
    for (const auto& checkpoint : one->checkpoints) {
      if (std::ranges::find(seen, checkpoint.get()) != seen.end()) continue;
      seen.push_back(checkpoint.get());
      follow(checkpoint->cells[group], job);
    }
  }
  if (snapshot_) follow(snapshot_->cells[group], job);
}

void StoreRun::follow_move(std::uint32_t group, const CopyCells& copy) {
  follow_holders(group, copy);
}

void StoreRun::swap_cells() {
  const TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  const std::uint64_t length = conversation->cells.size();
  const std::uint64_t a = random_.below(length + 2);
  const std::uint64_t b = random_.below(length + 2);
  tell("swap " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + " " + std::to_string(a) +
       " " + std::to_string(b));
  Outcome outcome = Outcome::kDone;
  if (std::max(a, b) >= length) {
    outcome = Outcome::kInvalidArgument;
  } else if (ticket_ || edit_ || encode_ || return_ || restore_) {
    outcome = Outcome::kBusy;
    count(HardState::kRefusedBusy);
  } else if (!conversation->owed.empty()) {
    outcome = Outcome::kWrongState;
    count(HardState::kRefusedBehind);
  } else if (spilled(*conversation) > 0) {
    outcome = Outcome::kWrongState;
    count(HardState::kRefusedSpilled);
  }
  const std::uint64_t before = outcome == Outcome::kDone ? 0 : digest();
  const auto swaps = store_->swap(conversation->id, a, b);
  require(swaps.has_value() == (outcome == Outcome::kDone), "swap() and what is possible differ");
  if (!swaps) return require_failure(swaps.error(), outcome, before);
  std::size_t groups = 0;
  for (std::size_t group = 0; group < spec_.groups.size() && a != b; ++group) {
    if (keeps_tokens(spec_.groups[group]) && std::min(a, b) >= conversation->starts[group]) ++groups;
  }
  require(swaps->size() == groups, "cells of another number of groups change places");
  for (const SwapCells& swap : *swaps) {
    arena_->perform(swap);
    index_.swapped(swap);
    follow_holders(swap.group, swap);
  }
}

void StoreRun::begin_compaction() {
  std::vector<TableId> stay;
  for (const auto& conversation : conversations_) {
    if (random_.percent(3)) stay.push_back(conversation->id);
  }
  const auto budget = static_cast<std::uint32_t>(
      random_.percent(70) ? store_->page_cells() : random_.between(1, store_->page_cells()));
  const bool page_free = recount().any_page_free();
  tell("begin a compaction of " + std::to_string(budget));
  auto compaction = Compaction::begin(*store_, budget, stay);
  require(compaction.has_value(), "a compaction fails");
  if (*compaction == nullptr) return;
  if (!page_free) count(HardState::kCompactionWithoutFreePage);
  const std::span<const CopyCells> copies = (*compaction)->copies();
  compaction_.emplace(std::move(*compaction), std::vector<CopyCells>(copies.begin(), copies.end()));
  std::uint64_t cells = 0;
  for (const CopyCells& copy : copies) cells += copy.count;
  require(cells > 0 && cells <= budget,
          "a compaction moves " + std::to_string(cells) + " cells of " + std::to_string(budget));
  const auto second = Compaction::begin(*store_, budget, stay);
  require(!second && second.error().code() == Outcome::kWrongState, "two compactions at a time");
  if (random_.percent(50)) {
    arena_->perform(compaction_->copies);
    compaction_->copied = true;
  }
  if (random_.percent(25)) return end_compaction();
  if (random_.percent(85)) begin_ticket();
}

void StoreRun::end_compaction() {
  if (random_.percent(20)) {
    tell("drop the compaction");
    compaction_.reset();
    return;
  }
  if (!compaction_->copied) arena_->perform(compaction_->copies);
  tell(story_[steps_ % story_.size()] + " commit the compaction");
  const auto moved = compaction_->compaction->commit();
  if (moved) {
    for (const CopyCells& copy : compaction_->copies) {
      index_.copied(copy);
      follow_holders(copy.group, copy);
    }
  } else {
    require(moved.error().code() == Outcome::kWrongState && (ticket_ || promised() > 0),
            "a compaction does not commit");
  }
  compaction_.reset();
  if (moved && random_.percent(40)) begin_compaction();  // which goes on where this one has ended
}

}  // namespace kvasir::pages::test
