// Who may compute: the need of what is queued is promised as a whole before its first piece, so that none of
// those who run ever lacks room. Who does not fit waits, in order.
//
// What the index knows of a beginning is taken together with the promise for the rest, or given back. A
// prompt that is admitted at once shows it at once. Where the next step admits, it is borrowed until the
// commit, and what was promised before is remembered: both are undone with a step that fails or is cancelled
// (P1).

#include <algorithm>
#include <optional>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"
#include "engine/open_step.h"

namespace kvasir::engine {
namespace {

// Tokens that two conversations begin with alike: `mine` is what one has queued, the other has computed
// `held` and queued `queue` behind it.
std::uint64_t common_beginning(std::span<const Token> mine, std::span<const Token> held,
                               std::span<const Token> queue) {
  const auto differs = std::ranges::mismatch(mine, held);
  const auto common = static_cast<std::uint64_t>(differs.in1 - mine.begin());
  if (differs.in2 != held.end()) return common;
  const auto more = std::ranges::mismatch(mine.subspan(common), queue);
  return common + static_cast<std::uint64_t>(more.in1 - mine.subspan(common).begin());
}

}  // namespace

// Whether something is queued that could be computed if there were room.
bool Engine::wants_room(const Conversation& conversation) const noexcept {
  if (!conversation.open() || conversation.queue.empty() || conversation.in_step) return false;
  if (conversation.return_error) return false;
  return conversation.drawer == nullptr || conversation.drawer->has_place();
}

// Whom a step may take (E4).
bool Engine::runs(const Conversation& conversation) const noexcept {
  return wants_room(conversation) && conversation.admitted;
}

std::uint64_t Engine::need_of(const Conversation& conversation) const noexcept {
  return need_of(conversation, conversation.reserved);
}

// Beyond the tokens that it is behind by, which are promised in any case.
std::uint64_t Engine::need_of(const Conversation& conversation, std::uint64_t reserved) const noexcept {
  std::uint64_t ahead = conversation.drawer != nullptr ? conversation.drawer->tokens_ahead() : 0;
  ahead = std::min(ahead, room_of(conversation));
  // Those in an open step have their cells.
  const std::uint64_t need = std::max(reserved, conversation.queue.size() + ahead) -
                             std::min(conversation.step_tokens, conversation.queue.size());
  return need - std::min(need, store_->behind(conversation.table));
}

// Whether another conversation is about to commit a beginning that this one could take from the index then.
bool Engine::twin_is_computed(const Conversation& conversation) const {
  if (!options_.share_prefixes || !conversation.tokens.empty()) return false;
  const std::uint64_t page = options_.page_cells;
  // The last token is computed in any case.
  const std::uint64_t useful = (conversation.queue.size() - 1) / page * page;
  if (useful == 0) return false;
  return std::ranges::any_of(conversations_, [&](const Conversation& other) {
    if (&other == &conversation || !(other.in_step || (runs(other) && other.waited == 0))) return false;
    if (other.settings.salt != conversation.settings.salt || other.first_embedded != UINT64_MAX) return false;
    if (!std::ranges::equal(source_of(other), source_of(conversation))) return false;
    const std::uint64_t common = common_beginning(std::span(conversation.queue.tokens).first(useful),
                                                  other.tokens, other.queue.tokens);
    return common / page * page > other.tokens.size() + other.borrowed;
  });
}

// Lets an empty conversation hold what the index knows of the beginning of its queue, without showing it.
Status Engine::borrow_beginning(Conversation& conversation) {
  if (!options_.share_prefixes || conversation.asked_index) return {};
  if (!conversation.tokens.empty() || store_->behind(conversation.table) > 0) return {};
  const std::span<const Token> queued = conversation.queue.tokens;
  // A hit stops before the first token whose logits are wanted, the last at the latest, and before a vector.
  const auto wanted = std::ranges::find(conversation.queue.every, std::uint8_t{1});
  const auto vector = std::ranges::find(queued, kEmbedded);
  const std::uint64_t limit =
      std::min({static_cast<std::uint64_t>(wanted - conversation.queue.every.begin()),
                static_cast<std::uint64_t>(vector - queued.begin()), std::uint64_t{queued.size() - 1}});
  KVASIR_TRY(base::within_memory([&]() -> Status {
    make_room(conversation.tokens, queued.size());
    return {};
  }));
  KVASIR_ASSIGN(conversation.borrowed,
                store_->adopt(conversation.table, queued, limit, conversation.settings.salt));
  conversation.step_tokens = conversation.borrowed;
  conversation.asked_index = true;
  return {};
}

// Within what borrow_beginning() took memory for. Answers how many tokens that are.
std::uint64_t Engine::show_beginning(Conversation& conversation) noexcept {
  const std::uint64_t taken = std::exchange(conversation.borrowed, 0);
  const auto first = conversation.queue.tokens.begin();
  conversation.tokens.insert(conversation.tokens.end(), first, first + static_cast<std::ptrdiff_t>(taken));
  const std::uint64_t again = std::min(taken, conversation.again);
  // The row of the last token that was dropped is not that of one behind it.
  if (taken > again) conversation.last_logits.reset();
  conversation.again -= again;
  conversation.accepted += taken - again;
  conversation.reserved -= std::min(conversation.reserved, taken);
  conversation.step_tokens -= std::min(conversation.step_tokens, taken);
  conversation.queue.pop(taken, model_->sizes().embedding);
  return taken;
}

void Engine::return_beginning(Conversation& conversation) noexcept {
  if (conversation.borrowed == 0) return;
  store_->return_beginning(conversation.table);
  conversation.step_tokens -= std::min(conversation.step_tokens, conversation.borrowed);
  conversation.borrowed = 0;
  conversation.asked_index = false;
}

// Whether `a` is offered room before `b`.
bool Engine::comes_before(const Conversation& a, const Conversation& b) noexcept {
  if (a.settings.priority != b.settings.priority) return a.settings.priority > b.settings.priority;
  return a.arrival < b.arrival;
}

// Promises all that the conversation needs, at least so much, or says what is missing. One that lies in a
// tier begins to return with it, one at a time. Whoever found no room before and is passed over by this one
// counts it; who was passed over too often lets nobody before him.
Status Engine::promise_all(Conversation& conversation, std::uint64_t at_least) {
  const std::uint64_t need = std::max(need_of(conversation), at_least);
  const auto waits_before = [&](const Conversation& other) {
    return other.refused && wants_room(other) && comes_before(other, conversation);
  };
  const auto patient = std::ranges::find_if(conversations_, [&](const Conversation& other) {
    return waits_before(other) && other.passed_over >= kPassedOverMax;
  });
  if (patient != conversations_.end()) {
    return fail(Outcome::kNoSpace, "another conversation has waited for room for long and comes first",
                {.wanted = need, .available = 0, .setting = "--pool"});
  }
  const bool away = store_->cells_in_tiers(conversation.table) > 0;
  Status promised = away ? begin_return(conversation, need) : store_->promise(conversation.table, need);
  if (!promised) {
    conversation.refused = promised.error().code() == Outcome::kNoSpace;
    return promised;
  }
  for (Conversation& other : conversations_) {
    if (waits_before(other)) ++other.passed_over;
  }
  return {};
}

// A known beginning and the promise for the rest, or neither. Who lies in a tier is admitted when it is back.
Status Engine::admit(Conversation& conversation, std::uint64_t at_least) {
  const bool away = store_->cells_in_tiers(conversation.table) > 0;
  if (away && returning_) return {};
  KVASIR_TRY(borrow_beginning(conversation));
  Status promised = base::within_memory([&] { return promise_all(conversation, at_least); });
  if (!promised) {
    return_beginning(conversation);
    return promised;
  }
  conversation.admitted = !away;
  conversation.paused = false;
  conversation.refused = false;
  conversation.passed_over = 0;
  conversation.shortage.reset();
  conversation.promised_before.reset();
  return {};
}

// At once, where nothing stands in the way; else it waits for its turn. Answers the tokens that the index
// knew.
std::uint64_t Engine::admit_if_possible(Conversation& conversation) noexcept {
  // Who gets nothing, for want of memory too, is asked again before each step.
  if (!wants_room(conversation) || twin_is_computed(conversation) || !admit(conversation, 0)) return 0;
  return show_beginning(conversation);
}

// Whether asking again would bring the answer of the last time, which then need not be put into words again.
bool Engine::stays_refused(const Conversation& conversation, std::uint64_t free) const noexcept {
  if (conversation.shortage == nullptr || !conversation.refused || conversation.short_free != free)
    return false;
  const bool may_find_more =
      options_.share_prefixes && conversation.tokens.empty() && !conversation.asked_index;
  const std::uint64_t need = need_of(conversation);
  return !may_find_more && conversation.short_of == need && !store_->fits(conversation.table, need);
}

// For the step that begins. kOutOfMemory, where some may have been admitted.
Status Engine::admit_those_that_wait(std::vector<std::size_t>& waiting) {
  waiting.clear();
  for (std::size_t index = 0; index < conversations_.size(); ++index) {
    Conversation& conversation = conversations_[index];
    if (wants_room(conversation) && !conversation.admitted) {
      waiting.push_back(index);
    } else {
      conversation.shortage.reset();
    }
  }
  std::ranges::sort(waiting, [&](std::size_t a, std::size_t b) {
    return comes_before(conversations_[a], conversations_[b]);
  });
  std::uint64_t free = store_->tokens_free();
  for (const std::size_t index : waiting) {
    Conversation& conversation = conversations_[index];
    const bool twin = twin_is_computed(conversation);
    if (!twin && stays_refused(conversation, free)) continue;
    conversation.shortage.reset();
    if (twin) continue;
    // No less than before while the step is open: it may have to be undone.
    const std::uint64_t before = store_->promised(conversation.table);
    Status admitted = admit(conversation, before);
    if (admitted) {
      if (conversation.admitted) conversation.promised_before = before;
      free = store_->tokens_free();
    } else if (admitted.error().code() == Outcome::kNoSpace) {
      conversation.shortage = std::make_shared<const Error>(shortage_with_reason(admitted.error()));
      conversation.short_of = need_of(conversation);
      conversation.short_free = free;
    } else {
      return admitted;
    }
  }
  return {};
}

// As it was before the step that begins, or is open, admitted it.
void Engine::undo_admission(Conversation& conversation) noexcept {
  return_beginning(conversation);
  if (!conversation.promised_before) return;
  conversation.admitted = false;
  // No more than what is promised now, so it fits.
  static_cast<void>(store_->promise(conversation.table, *conversation.promised_before));
  conversation.promised_before.reset();
}

void Engine::undo_admissions() noexcept {
  for (Conversation& conversation : conversations_) {
    if (conversation.open()) undo_admission(conversation);
  }
}

// After what a conversation needs has changed by something that is done already.
void Engine::renew_promise(Conversation& conversation) noexcept {
  if (conversation.queue.empty()) {
    conversation.admitted = false;
    conversation.asked_index = false;
    conversation.refused = false;
    conversation.passed_over = 0;
    conversation.waited = 0;
    conversation.paused = false;
    conversation.shortage.reset();
  }
  // What was promised and is needed no more serves others. A token that was just drawn may find no room: then
  // its conversation waits like any other.
  if (conversation.admitted || conversation.queue.empty()) {
    const Status promised = store_->promise(conversation.table, need_of(conversation));
    if (!promised) conversation.admitted = false;
    conversation.promised_before.reset();
  }
}

const Error* Engine::first_shortage() const noexcept {
  const Conversation* first = nullptr;
  for (const Conversation& conversation : conversations_) {
    if (!conversation.open() || !conversation.shortage) continue;
    if (first == nullptr || comes_before(conversation, *first)) first = &conversation;
  }
  return first != nullptr ? first->shortage.get() : nullptr;
}

Status Engine::reserve(ConversationId id, std::uint64_t tokens) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    const std::uint64_t queued = conversation->queue.size() + conversation->dropped.size();
    KVASIR_TRY(check_length(*conversation, conversation->tokens.size() + queued, tokens));
    if (store_->cells_in_tiers(conversation->table) > 0) {
      if (tokens == 0 && conversation->queue.empty()) {
        stop_return(*conversation);
        give_reservation_back(*conversation);
        return {};
      }
      return fail(
          Outcome::kWrongState,
          "the conversation lies in a tier; bring it back, or prompt it, before room is reserved for more");
    }
    KVASIR_TRY(store_->promise(conversation->table, need_to_reserve(*conversation, tokens)));
    conversation->reserved = queued + tokens;
    conversation->promised_before.reset();
    if (conversation->queue.empty()) return {};
    // What waited has its room now, and does not make room for others any more.
    conversation->admitted = true;
    conversation->paused = false;
    conversation->refused = false;
    conversation->passed_over = 0;
    conversation->shortage.reset();
    return {};
  });
}

// Of one that nothing is queued for. Less than is promised always fits.
void Engine::give_reservation_back(Conversation& conversation) noexcept {
  conversation.reserved = 0;
  static_cast<void>(store_->promise(conversation.table, need_of(conversation)));
}

// What is borrowed may have to be computed after all.
std::uint64_t Engine::need_to_reserve(const Conversation& conversation, std::uint64_t tokens) const noexcept {
  const std::uint64_t queued = conversation.queue.size() + conversation.dropped.size();
  return need_of(conversation, queued + tokens) + conversation.borrowed;
}

bool Engine::fits(ConversationId id, std::uint64_t tokens) const noexcept {
  const Conversation* const conversation = peek(id);
  if (conversation == nullptr || tokens > room_of(*conversation)) return false;
  const std::uint64_t need = need_to_reserve(*conversation, tokens);
  if (store_->cells_in_tiers(conversation->table) == 0) return store_->fits(conversation->table, need);
  const auto fits = base::within_memory([&]() -> Result<bool> {
    return store_->could_fit(conversation->table, need, store_->supply_beside_idle({}));
  });
  return fits && *fits;
}

}  // namespace kvasir::engine
