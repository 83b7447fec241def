// The operations of a history on tables, the index and compaction.

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
  const std::uint64_t what = random_.below(1000);
  if (what < 20) return open_conversation();
  if (what < 50) return close_conversation();
  if (what < 100) return fork_conversation();
  if (what < 345) return begin_ticket();
  if (what < 350) return begin_impossible_ticket();
  if (what < 515) return begin_edit();
  if (what < 520) return begin_impossible_edit();
  if (what < 535) return swap_cells();
  if (what < 622) return promise();
  if (what < 630) return remember();
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
  conversations_.push_back(std::move(conversation));
}

void StoreRun::close_conversation() {
  const TwinConversation* const conversation = idle_conversation();
  if (conversation == nullptr) return;
  tell("close " + std::to_string(static_cast<std::uint32_t>(conversation->id)));
  store_->close(conversation->id);
  std::erase_if(conversations_, [&](const auto& one) { return one.get() == conversation; });
}

void StoreRun::fork_conversation() {
  if (conversations_.size() >= most_conversations_) close_conversation();
  const TwinConversation* parent = any_conversation();
  if (ticket_ && random_.percent(85)) parent = random_.one_of(ticket_->lines).conversation;
  if (parent == nullptr || conversations_.size() >= most_conversations_) return;
  if (busy(*parent)) count(HardState::kForkInsideTicket);
  const auto id = store_->fork(parent->id);
  require(id.has_value(), "fork() fails");
  tell("fork " + std::to_string(static_cast<std::uint32_t>(parent->id)) + " to " +
       std::to_string(static_cast<std::uint32_t>(*id)));
  auto child = std::make_unique<TwinConversation>(*parent);
  child->id = *id;
  child->promised = 0;
  if (random_.percent(20)) child->script = random_.below(3);
  conversations_.push_back(std::move(child));
}

void StoreRun::promise() {
  TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  const std::uint64_t others = promised() - conversation->promised;
  const std::uint64_t wanted = random_.percent(15) ? 0 : random_length(others);
  const bool fits = recount().fits(others + wanted);
  const std::uint64_t before = fits ? 0 : digest();
  tell("promise " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + " " +
       std::to_string(wanted));
  require(store_->fits(conversation->id, wanted) == fits, "fits() and the rule differ");
  const Status status = store_->promise(conversation->id, wanted);
  require(status.has_value() == fits, "promise() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    return require_failure(status.error(), Outcome::kNoSpace, before);
  }
  conversation->promised = wanted;
}

void StoreRun::swap_cells() {
  if (ticket_ || edit_) return;
  const TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  const std::uint64_t length = conversation->cells.size();
  const std::uint64_t a = random_.below(length + 2);
  const std::uint64_t b = random_.below(length + 2);
  tell("swap " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + " " + std::to_string(a) +
       " " + std::to_string(b));
  const bool possible = std::max(a, b) < length;
  const std::uint64_t before = possible ? 0 : digest();
  const auto swaps = store_->swap(conversation->id, a, b);
  require(swaps.has_value() == possible, "swap() of tokens that are there and the length differ");
  if (!possible) return require_failure(swaps.error(), Outcome::kInvalidArgument, before);
  for (const SwapCells& swap : *swaps) {
    arena_->perform(swap);
    index_.swapped(swap);
  }
}

void StoreRun::remember() {
  TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  tell("remember " + std::to_string(static_cast<std::uint32_t>(conversation->id)));
  remember(*conversation);
}

void StoreRun::remember(TwinConversation& conversation) {
  store_->remember(conversation.id, conversation.tokens(), conversation.salt);
  index_.remember(conversation, store_->page_cells(), cells_of(*store_, conversation.id));
}

// Mostly by a new conversation.
void StoreRun::adopt() {
  if (random_.percent(50)) close_conversation();
  if (conversations_.size() < most_conversations_ && random_.percent(90)) open_conversation();
  TwinConversation* conversation = conversations_.empty() ? nullptr : conversations_.back().get();
  if (random_.percent(10)) conversation = any_conversation();
  if (conversation == nullptr || busy(*conversation)) return;
  std::vector<Token> tokens;
  for (std::uint64_t length = random_.between(store_->page_cells(), 6 * store_->page_cells());
       tokens.size() < length;) {
    tokens.push_back(token_at(*conversation, tokens.size()));
  }
  const std::uint64_t limit = random_.percent(80) ? tokens.size() - 1 : random_.below(tokens.size() + 10);
  tell("adopt by " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + ", at most " +
       std::to_string(limit));
  if (!conversation->cells.empty()) {
    const std::uint64_t before = digest();
    const auto refused = store_->adopt(conversation->id, tokens, limit, conversation->salt);
    require(!refused, "a conversation that is not empty adopts");
    return require_failure(refused.error(), Outcome::kWrongState, before);
  }
  Recount counted = recount();
  std::optional<Contents> last;
  std::uint64_t expected = 0;
  bool held_evictable = false;
  for (const TwinBlock* block : index_.find(conversation->salt, tokens, limit, store_->page_cells())) {
    bool evictable = false;
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      for (const CellAt& at : block->cells[group]) {
        evictable |= counted.firm(group, at) == 0;
        counted.add(group, at, Holder::kFirm);
      }
    }
    if (!counted.fits(promised())) break;
    held_evictable |= evictable;
    expected += store_->page_cells();
    last = block->key;
  }
  const auto found = store_->adopt(conversation->id, tokens, limit, conversation->salt);
  require(found.has_value(), "adopt() fails");
  require(*found == expected,
          "adopt() finds " + std::to_string(*found) + " tokens, not " + std::to_string(expected));
  if (expected == 0) return;
  if (held_evictable) count(HardState::kHitHoldsEvictable);
  index_.touch(*last);
  for (std::size_t i = 0; i < expected; ++i) {
    conversation->cells.push_back(conversation->next_cell(conversation->cells, tokens[i]));
  }
  conversation->remembered = expected;
}

void StoreRun::begin_compaction() {
  std::vector<TableId> stay;
  for (const auto& conversation : conversations_) {
    if (busy(*conversation) || random_.percent(3)) stay.push_back(conversation->id);
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
    for (const CopyCells& copy : compaction_->copies) arena_->perform(copy);
    compaction_->copied = true;
  }
  if (random_.percent(25)) return end_compaction();
  if (random_.percent(70)) begin_ticket();
}

void StoreRun::end_compaction() {
  if (random_.percent(20)) {
    tell("drop the compaction");
    compaction_.reset();
    return;
  }
  if (!compaction_->copied) {
    for (const CopyCells& copy : compaction_->copies) arena_->perform(copy);
  }
  tell(story_[steps_ % story_.size()] + " commit the compaction");
  const auto moved = compaction_->compaction->commit();
  if (moved) {
    for (const CopyCells& copy : compaction_->copies) index_.copied(copy);
  } else {
    require(moved.error().code() == Outcome::kWrongState && promised() > 0, "a compaction does not commit");
  }
  compaction_.reset();
}

}  // namespace kvasir::pages::test
