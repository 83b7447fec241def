// The invariants of an engine, recounted from nothing.

#include <string>

#include "base/try.h"
#include "engine/engine.h"

namespace kvasir::engine {
namespace {

std::unexpected<Error> broken(const std::string& what) {
  return fail(Outcome::kInternal, what);
}

}  // namespace

Status Engine::check() const {
  for (const Conversation& conversation : conversations_) {
    if (!conversation.open()) continue;
    const std::uint64_t cells = store_->length(conversation.table);
    if (cells != conversation.tokens.size() + conversation.borrowed) {
      return broken("E1: " + std::to_string(cells) + " cells of " +
                    std::to_string(conversation.tokens.size()) + " tokens");
    }
    if (conversation.borrowed > 0 && !step_open())
      return broken("E6: a conversation holds a borrowed beginning without a step");
  }
  // An open ticket's cells have a holder that the store does not find.
  return store_->tickets_open() ? Status() : store_->check();
}

}  // namespace kvasir::engine
