// Changes of a conversation's history and settings.

#include <utility>

#include "api/parts.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "kvasir/conversation.h"

namespace kvasir {

using engine::Engine;

namespace {

std::unexpected<Error> closed() {
  return fail(Outcome::kWrongState, "the conversation is closed");
}

pages::EditOperation operation_of(const EditOperation& operation) {
  using Kind = EditOperation::Kind;
  pages::EditOperation mine{pages::EditOperation::Kind::kRemove, operation.first, operation.count,
                            operation.amount};
  if (operation.kind == Kind::kMove) mine.kind = pages::EditOperation::Kind::kShift;
  if (operation.kind == Kind::kDivide) mine.kind = pages::EditOperation::Kind::kDivide;
  return mine;
}

// Edits are of what is computed: what is queued behind it was meant for the old history.
Status check_settled(const Engine& engine, ConversationId id) {
  KVASIR_ASSIGN(const engine::Conversation* const conversation, engine.look(id));
  if (conversation->in_step) return {};  // the edit itself says what that means
  if (conversation->drawer != nullptr)
    return fail(Outcome::kWrongState, "the conversation generates; read it to its end, or cancel it");
  if (conversation->queue.empty()) return {};
  return fail(Outcome::kWrongState,
              std::to_string(conversation->queue.size()) + " tokens are queued; wait for them, or cancel()",
              {.wanted = 0, .available = conversation->queue.size()});
}

}  // namespace

Status Conversation::edit(std::span<const EditOperation> operations) {
  return base::within_memory([&]() -> Status {
    if (!handle_->open()) return closed();
    std::vector<pages::EditOperation> mine;
    mine.reserve(operations.size());
    for (const EditOperation& operation : operations) mine.push_back(operation_of(operation));
    return handle_->core->executor->edit(handle_->id, [&](Engine& engine) -> Status {
      KVASIR_TRY(check_settled(engine, handle_->id));
      return engine.edit(handle_->id, mine);
    });
  });
}

Result<std::uint64_t> Conversation::prompt_to(std::span<const Token> tokens) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    if (!handle_->open()) return closed();
    std::uint64_t kept = 0;
    KVASIR_TRY(handle_->core->executor->edit(handle_->id, [&](Engine& engine) -> Status {
      KVASIR_ASSIGN(kept, engine.prompt_to(handle_->id, tokens));
      return {};
    }));
    return kept;
  });
}

Status Conversation::rewind(std::uint64_t length) {
  return base::within_memory([&]() -> Status {
    if (!handle_->open()) return closed();
    return handle_->core->executor->edit(handle_->id, [&](Engine& engine) -> Status {
      KVASIR_TRY(check_settled(engine, handle_->id));
      return engine.rewind(handle_->id, length);
    });
  });
}

Status Conversation::remove(std::uint64_t first, std::uint64_t count) {
  const EditOperation operation{EditOperation::Kind::kRemove, first, count, 0};
  return edit(std::span(&operation, 1));
}

Status Conversation::shift_left(std::uint64_t keep, std::uint64_t count) {
  return base::within_memory([&]() -> Status {
    if (!handle_->open()) return closed();
    return handle_->core->executor->edit(handle_->id, [&](Engine& engine) -> Status {
      KVASIR_TRY(check_settled(engine, handle_->id));
      return engine.shift_left(handle_->id, keep, count);
    });
  });
}

Status Conversation::clear() {
  return base::within_memory([&]() -> Status {
    KVASIR_TRY(cancel());
    return handle_->core->executor->edit(handle_->id,
                                         [&](Engine& engine) { return engine.rewind(handle_->id, 0); });
  });
}

Result<std::uint64_t> Conversation::rewind_cost(std::uint64_t length) const {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    if (!handle_->open()) return closed();
    const std::uint64_t held = this->length();
    if (length > held) {
      return fail(Outcome::kInvalidArgument,
                  "a conversation of " + std::to_string(held) + " tokens cannot be rewound to " +
                      std::to_string(length),
                  {.wanted = length, .limit = held});
    }
    return 0;  // every cell stands for itself in models of full attention
  });
}

Status Conversation::refresh() {
  if (!handle_->open()) return closed();
  return handle_->core->executor->edit(handle_->id,
                                       [&](Engine& engine) { return engine.refresh(handle_->id); });
}

Status Conversation::reseed(std::uint64_t seed) {
  if (!handle_->open()) return closed();
  return handle_->core->executor->change([&](Engine& engine) -> Status {
    KVASIR_ASSIGN(engine::ConversationSettings* const settings, engine.settings(handle_->id));
    settings->seed = seed;
    return {};
  });
}

Status Conversation::set_priority(int priority) {
  if (!handle_->open()) return closed();
  return handle_->core->executor->change([&](Engine& engine) -> Status {
    KVASIR_ASSIGN(engine::ConversationSettings* const settings, engine.settings(handle_->id));
    settings->priority = priority;
    return {};
  });
}

Status Conversation::set_pinned(bool pinned) {
  if (!handle_->open()) return closed();
  return handle_->core->executor->change([&](Engine& engine) -> Status {
    KVASIR_ASSIGN(engine::ConversationSettings* const settings, engine.settings(handle_->id));
    settings->pinned = pinned;
    return {};
  });
}

}  // namespace kvasir
