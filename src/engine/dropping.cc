// Conversations whose cells are given up while their tokens stay: the tokens are computed again before
// whatever is queued next.

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"

namespace kvasir::engine {

Status Engine::drop(ConversationId id) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    KVASIR_TRY(check_away(*conversation));
    if (conversation->first_embedded != UINT64_MAX) {
      return fail(Outcome::kUnsupported,
                  "the conversation holds embedding vectors, which are not kept; spill() it");
    }
    if (!store_->clean(conversation->table)) {
      return fail(Outcome::kUnsupported,
                  "the conversation was edited: its tokens computed again would be another one; spill() it");
    }
    std::vector<Token> dropped;
    dropped.reserve(conversation->tokens.size() + conversation->dropped.size());
    dropped = conversation->tokens;
    dropped.insert(dropped.end(), conversation->dropped.begin(), conversation->dropped.end());
    stop_return(*conversation);
    if (const auto rewound = store_->rewind(conversation->table, 0); !rewound) return fail(rewound.error());
    // Nothing fails from here on.
    conversation->dropped = std::move(dropped);
    conversation->tokens.clear();
    conversation->asked_index = false;
    conversation->return_error.reset();
    give_reservation_back(*conversation);
    drop_gone_blocks();
    return {};
  });
}

// Queues what was dropped, before what follows it. Throws std::bad_alloc, having changed nothing.
void Engine::wake(Conversation& conversation) {
  if (conversation.dropped.empty()) return;
  Queue& queue = conversation.queue;
  const std::size_t all = queue.size() + conversation.dropped.size();
  queue.tokens.reserve(all);
  queue.every.reserve(all);
  queue.tokens.insert(queue.tokens.begin(), conversation.dropped.begin(), conversation.dropped.end());
  queue.every.insert(queue.every.begin(), conversation.dropped.size(), 0);
  conversation.again = conversation.dropped.size();
  conversation.dropped.clear();
}

// What is queued again is only dropped, as before. Throws std::bad_alloc, having changed nothing.
void Engine::settle_again(Conversation& conversation) {
  if (conversation.again == 0) return;
  const auto first = conversation.queue.tokens.begin();
  conversation.dropped.assign(first, first + static_cast<std::ptrdiff_t>(conversation.again));
  if (!conversation.in_step) conversation.queue.pop(conversation.again, model_->sizes().embedding);
  conversation.again = 0;
}

Result<std::vector<Token>> Engine::history(ConversationId id) const {
  return base::within_memory([&]() -> Result<std::vector<Token>> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    std::vector<Token> all;
    all.reserve(conversation->length());
    all = conversation->tokens;
    const auto queued = conversation->queue.tokens.begin();
    all.insert(all.end(), queued, queued + static_cast<std::ptrdiff_t>(conversation->again));
    all.insert(all.end(), conversation->dropped.begin(), conversation->dropped.end());
    return all;
  });
}

}  // namespace kvasir::engine
