// The operations of a history on tiers: cells leave the pool, come back, or do not.

#include <algorithm>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {
namespace {

bool names_any(const std::vector<CellAt>& cells, const CellRun& run) {
  return std::ranges::any_of(cells, [&](const CellAt& at) {
    return at.page == run.at.page && at.cell >= run.at.cell && at.cell < run.at.cell + run.count;
  });
}

}  // namespace

std::uint64_t StoreRun::spilled(const TwinConversation& conversation) const {
  std::uint64_t cells = 0;
  for (const auto& of_group : pages::test::cells_of(*store_, conversation.id)) {
    cells += static_cast<std::uint64_t>(
        std::ranges::count_if(of_group, [](const CellAt& at) { return in_tier(at.page); }));
  }
  return cells;
}

// A cell may go where each of its firm holders is a conversation that lets go of it.
bool StoreRun::may_go(const Recount& counted, std::size_t group, CellAt at,
                      const std::vector<std::uint8_t>& idle) const {
  std::uint32_t willing = 0;
  for (const auto& conversation : conversations_) {
    const auto id = static_cast<std::size_t>(conversation->id);
    if (id >= idle.size() || idle[id] == 0 || busy(*conversation)) continue;
    const std::vector<CellAt> cells = pages::test::cells_of(*store_, conversation->id)[group];
    willing += std::ranges::find(cells, at) != cells.end() ? 1 : 0;
  }
  return willing == counted.firm(group, at);
}

// Some conversations are idle, and cells of one of them go: none, some, or all that may.
void StoreRun::spill() {
  const TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  std::vector<std::uint8_t> idle;
  for (const auto& one : conversations_) {
    const auto id = static_cast<std::size_t>(one->id);
    if (idle.size() <= id) idle.resize(id + 1);
    idle[id] = one.get() == conversation || random_.percent(75) ? 1 : 0;
  }
  tell("spill " + std::to_string(static_cast<std::uint32_t>(conversation->id)));
  for (std::uint64_t runs = random_.percent(60) ? 1000 : random_.between(1, 3); runs > 0; --runs) {
    const auto run = store_->next_to_spill(conversation->id, idle);
    if (busy(*conversation)) {
      require(!run, "cells of a conversation in a ticket may be spilled");
      return;
    }
    if (!run) {
      const Recount counted = recount();
      const auto cells = pages::test::cells_of(*store_, conversation->id);
      for (std::size_t group = 0; group < cells.size(); ++group) {
        for (const CellAt& at : cells[group]) {
          require(in_tier(at.page) || !may_go(counted, group, at, idle), "a cell that may go is not spilled");
        }
      }
      return;
    }
    spill(*run, idle);
  }
}

void StoreRun::spill(const CellRun& run, const std::vector<std::uint8_t>& idle) {
  const Recount counted = recount();
  bool all = true;
  for (std::uint32_t i = 0; i < run.count; ++i)
    all = all && may_go(counted, run.group, {run.at.page, run.at.cell + i}, idle);
  require(all, "cells are to be spilled that somebody wants to keep");
  if (random_.percent(4)) {
    const std::uint64_t before = digest();
    const auto refused = store_->spill(run, TierBlock{0}, {});
    require(!refused, "cells are spilled that nobody lets go of");
    require_failure(refused.error(), Outcome::kWrongState, before);
  }
  bool shared = false;
  for (const auto& conversation : conversations_) {
    if (!names_any(pages::test::cells_of(*store_, conversation->id)[run.group], run)) continue;
    conversation->remembered = 0;
  }
  for (std::uint32_t i = 0; i < run.count; ++i)
    shared = shared || counted.firm(run.group, {run.at.page, run.at.cell + i}) > 1;
  if (shared) count(HardState::kSpillShared);
  const std::size_t lost = index_.forget_naming(run);
  evictions_seen_ += lost;
  if (lost > 0) count(HardState::kSpillUnindexed);
  const auto id = store_->spill(run, arena_->put_away(run), idle);
  require(id.has_value(), "a spill fails");
  follow_move(run.group, {run.group, run.at, {tier_page(*id), 0}, run.count});
  count(HardState::kSpill);
}

// Blocks of runs that nobody holds any more.
void StoreRun::follow_gone() {
  for (const TierBlock block : store_->tier_runs().gone()) {
    arena_->forget(block);
    count(HardState::kTierRunEnded);
  }
  store_->forget_gone_blocks();
  require(arena_->blocks() == store_->tier_runs().size(), "the tiers hold another number of runs");
}

void StoreRun::begin_return() {
  TwinConversation* conversation = nullptr;
  for (int attempt = 0; attempt < 6; ++attempt) {
    conversation = idle_conversation();
    if (conversation != nullptr && spilled(*conversation) > 0) break;
  }
  if (return_ || conversation == nullptr) return;
  begin_return(*conversation, random_.percent(50) ? 0 : random_length(store_->tokens_free()));
}

void StoreRun::begin_return(TwinConversation& conversation, std::uint64_t wanted) {
  tell(story_[steps_ % story_.size()] + " return " +
       std::to_string(static_cast<std::uint32_t>(conversation.id)) + " for " + std::to_string(wanted) +
       " more");
  const std::uint64_t promised = std::max(conversation.promised, conversation.owed.size() + wanted);
  const Recount counted = recount();
  const Need others = promised_but(counted, conversation);
  Shape shape = shape_of(conversation);
  shape.returns = true;
  Need need = need_of(counted, shape, {}, promised);
  const auto cells = pages::test::cells_of(*store_, conversation.id);
  Need total = others;
  for (std::size_t group = 0; group < cells.size(); ++group) {
    need[group] += static_cast<std::uint64_t>(
        std::ranges::count_if(cells[group], [](const CellAt& at) { return in_tier(at.page); }));
    total[group] += need[group];
  }
  const bool fits = counted.fits(total);
  const std::uint64_t before = fits ? 0 : digest();
  auto ticket = store_->begin_return(conversation.id, wanted);
  require(ticket.has_value() == fits, "begin_return() and the rule differ");
  if (!fits) {
    count(HardState::kReturnRefused);
    require_shortage(ticket.error(), counted, need, others);
    return require_failure(ticket.error(), Outcome::kNoSpace, before);
  }
  for (const FetchCells& job : ticket->jobs()) arena_->perform(job);
  return_.emplace(std::move(*ticket), &conversation, conversation.promised);
  conversation.promised = promised;
  follow_evictions();
  follow_checkpoints();
  if (random_.percent(70)) end_return();
}

void StoreRun::end_return() {
  TwinConversation& conversation = *return_->conversation;
  const std::vector<FetchCells> jobs(return_->ticket.jobs().begin(), return_->ticket.jobs().end());
  if (random_.percent(15)) {
    tell(story_[steps_ % story_.size()] + " drop the return");
    conversation.promised = std::min(conversation.promised, return_->promised_before);
    return_.reset();
    count(HardState::kReturnDropped);
    return;
  }
  tell(story_[steps_ % story_.size()] + " end the return");
  bool edited = false;
  std::vector<TwinConversation*> moved;
  for (const auto& one : conversations_) {
    const auto cells = pages::test::cells_of(*store_, one->id);
    const bool names = std::ranges::any_of(jobs, [&](const FetchCells& job) {
      return names_any(cells[job.group], {job.group, {tier_page(job.run), job.first}, job.count});
    });
    if (!names) continue;
    moved.push_back(one.get());
    edited = edited || (edit_ && edit_->conversation == one.get());
  }
  const std::uint64_t before = edited ? digest() : 0;
  const Status done = return_->ticket.commit();
  require(done.has_value() == !edited, "a return does not end as it should");
  if (edited) {
    count(HardState::kReturnBusy);
    return require_failure(done.error(), Outcome::kBusy, before);
  }
  if (moved.size() > 1) count(HardState::kReturnShared);
  for (TwinConversation* const one : moved) one->remembered = 0;
  for (const FetchCells& job : jobs)
    follow_move(job.group, {job.group, {tier_page(job.run), job.first}, job.to, job.count});
  return_.reset();
  require(spilled(conversation) == 0, "a conversation that has returned has cells in a tier");
  count(HardState::kReturn);
}

// A fork of a conversation in a tier is being edited when that comes back.
void StoreRun::return_beside_edit() {
  TwinConversation* parent = nullptr;
  for (int attempt = 0; attempt < 6 && (parent == nullptr || spilled(*parent) == 0); ++attempt)
    parent = idle_conversation();
  if (edit_ || return_ || parent == nullptr || spilled(*parent) == 0 || !parent->owed.empty()) return;
  if (conversations_.size() >= most_conversations_) return;
  Recount counted = recount();
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    for (const Run& run : store_->runs(parent->id, group)) counted.add(group, run, Holder::kFirm);
  }
  if (!counted.fits(promised_need(counted))) return;
  tell("fork and edit");
  const auto id = store_->fork(parent->id);
  require(id.has_value(), "a fork that fits is refused");
  auto child = std::make_unique<TwinConversation>(*parent);
  child->id = *id;
  child->promised = 0;
  child->line = {};
  const EditOperation nothing{EditOperation::Kind::kShift, 0, 0, 0};
  auto ticket = store_->begin_edit(*id, {&nothing, 1});
  require(ticket.has_value(), "an edit of nothing is refused");
  edit_.emplace(std::move(*ticket), child.get(), *child, UINT64_MAX);
  conversations_.push_back(std::move(child));
  begin_return(*parent, 0);
  if (return_) end_return();
}

// Brings those back that are to compute; answers why a step must refuse them all the same, if it must.
Outcome StoreRun::bring_back(const std::vector<TwinConversation*>& who) {
  for (TwinConversation* const conversation : who) {
    if (spilled(*conversation) == 0 || busy(*conversation)) continue;
    if (!return_ && random_.percent(85)) begin_return(*conversation, 0);
    if (return_) end_return();
  }
  for (const TwinConversation* const conversation : who) {
    if (busy(*conversation)) return Outcome::kBusy;
    if (spilled(*conversation) > 0) return Outcome::kWrongState;
  }
  return Outcome::kDone;
}

}  // namespace kvasir::pages::test
