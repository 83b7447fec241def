// Who may compute: the need of what is queued is promised as a whole before its first piece, so that none of
// those who run ever lacks room. Who does not fit waits, in order.

#include <algorithm>
#include <optional>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"

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
  return conversation.drawer == nullptr || conversation.drawer->has_place();
}

bool Engine::runs(const Conversation& conversation) const noexcept {
  return wants_room(conversation) && conversation.admitted;
}

std::uint64_t Engine::need_of(const Conversation& conversation) const noexcept {
  std::uint64_t ahead = conversation.drawer != nullptr ? conversation.drawer->tokens_ahead() : 0;
  ahead = std::min(ahead, room_of(conversation));
  // Those in an open step have their cells.
  return std::max(conversation.reserved, conversation.queue.size() + ahead) -
         std::min(conversation.step_tokens, conversation.queue.size());
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
    const std::uint64_t common = common_beginning(std::span(conversation.queue.tokens).first(useful),
                                                  other.tokens, other.queue.tokens);
    return common / page * page > other.tokens.size();
  });
}

// Takes from the index what it knows of the beginning of an empty conversation's queue.
Result<std::uint64_t> Engine::take_known_beginning(Conversation& conversation) {
  if (!options_.share_prefixes || conversation.asked_index || !conversation.tokens.empty()) return 0;
  const std::span<const Token> queued = conversation.queue.tokens;
  // A hit stops before the first token whose logits are wanted, the last at the latest, and before a vector.
  const auto wanted = std::ranges::find(conversation.queue.every, std::uint8_t{1});
  const auto vector = std::ranges::find(queued, kEmbedded);
  const std::uint64_t limit =
      std::min({static_cast<std::uint64_t>(wanted - conversation.queue.every.begin()),
                static_cast<std::uint64_t>(vector - queued.begin()), std::uint64_t{queued.size() - 1}});
  conversation.tokens.reserve(queued.size());
  KVASIR_ASSIGN(const std::uint64_t taken,
                store_->adopt(conversation.table, queued, limit, conversation.settings.salt));
  conversation.asked_index = true;
  conversation.tokens.assign(queued.begin(), queued.begin() + static_cast<std::ptrdiff_t>(taken));
  conversation.accepted += taken;
  conversation.queue.pop(taken, model_->sizes().embedding);
  return taken;
}

// Whether `a` is offered room before `b`.
bool Engine::comes_before(const Conversation& a, const Conversation& b) noexcept {
  if (a.settings.priority != b.settings.priority) return a.settings.priority > b.settings.priority;
  return a.arrival < b.arrival;
}

// Promises all that the conversation needs, or says what is missing. Whoever found no room before and is
// passed over by this one counts it; who was passed over too often lets nobody before him.
Status Engine::admit(Conversation& conversation) {
  const auto waits_before = [&](const Conversation& other) {
    return other.refused && wants_room(other) && comes_before(other, conversation);
  };
  const auto patient = std::ranges::find_if(conversations_, [&](const Conversation& other) {
    return waits_before(other) && other.passed_over >= kPassedOverMax;
  });
  if (patient != conversations_.end()) {
    return fail(Outcome::kNoSpace, "another conversation has waited for room for long and comes first",
                {.wanted = need_of(conversation), .available = 0, .setting = "--pool"});
  }
  if (Status promised = store_->promise(conversation.table, need_of(conversation)); !promised) {
    conversation.refused = true;
    return promised;
  }
  for (Conversation& other : conversations_) {
    if (waits_before(other)) ++other.passed_over;
  }
  conversation.admitted = true;
  conversation.refused = false;
  conversation.passed_over = 0;
  conversation.shortage.reset();
  return {};
}

// At once, where nothing stands in the way; else it waits for its turn. Answers the tokens that the index
// knew.
std::uint64_t Engine::admit_if_possible(Conversation& conversation) noexcept {
  try {
    if (!wants_room(conversation) || twin_is_computed(conversation)) return 0;
    const Result<std::uint64_t> taken = take_known_beginning(conversation);
    if (!taken) return 0;
    static_cast<void>(admit(conversation));
    return *taken;
  } catch (const std::bad_alloc&) {
    return 0;  // it is tried again before each step
  }
}

void Engine::admit_those_that_wait() {
  std::vector<std::size_t> waiting;
  for (std::size_t index = 0; index < conversations_.size(); ++index) {
    Conversation& conversation = conversations_[index];
    conversation.shortage.reset();
    if (wants_room(conversation) && !conversation.admitted) waiting.push_back(index);
  }
  std::ranges::sort(waiting, [&](std::size_t a, std::size_t b) {
    return comes_before(conversations_[a], conversations_[b]);
  });
  for (const std::size_t index : waiting) {
    Conversation& conversation = conversations_[index];
    if (twin_is_computed(conversation)) continue;
    static_cast<void>(take_known_beginning(conversation));
    if (const Status admitted = admit(conversation); !admitted) conversation.shortage = admitted.error();
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
    conversation.shortage.reset();
  }
  // What was promised and is needed no more serves others. A token that was just drawn may find no room: then
  // its conversation waits like any other.
  if (conversation.admitted || conversation.queue.empty()) {
    const Status promised = store_->promise(conversation.table, need_of(conversation));
    if (!promised) conversation.admitted = false;
  }
}

const Error* Engine::first_shortage() const noexcept {
  const Conversation* first = nullptr;
  for (const Conversation& conversation : conversations_) {
    if (!conversation.open() || !conversation.shortage) continue;
    if (first == nullptr || comes_before(conversation, *first)) first = &conversation;
  }
  return first != nullptr && first->shortage ? &*first->shortage : nullptr;
}

Status Engine::reserve(ConversationId id, std::uint64_t tokens) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    const std::uint64_t queued = conversation->queue.size();
    KVASIR_TRY(check_length(*conversation, conversation->tokens.size() + queued, tokens));
    const std::uint64_t before = std::exchange(conversation->reserved, queued + tokens);
    const Status promised = store_->promise(conversation->table, need_of(*conversation));
    if (promised) {
      conversation->admitted = !conversation->queue.empty();
      return {};
    }
    conversation->reserved = before;
    return fail(promised.error());
  });
}

bool Engine::fits(ConversationId id, std::uint64_t tokens) const noexcept {
  const Conversation* const conversation = peek(id);
  if (conversation == nullptr || tokens > room_of(*conversation)) return false;
  const std::uint64_t queued = conversation->queue.size() - conversation->step_tokens;
  return store_->fits(conversation->table, queued + tokens);
}

}  // namespace kvasir::engine
