// Changes of a conversation's history and settings.

#include <algorithm>
#include <utility>

#include "api/parts.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "kvasir/conversation.h"

namespace kvasir {

using api::in_public_words;
using api::Used;
using engine::Engine;

namespace {

Result<pages::EditOperation> operation_of(const EditOperation& operation) {
  using Kind = pages::EditOperation::Kind;
  switch (operation.kind) {
    case EditOperation::Kind::kRemove:
      return pages::EditOperation{Kind::kRemove, operation.first, operation.count, operation.amount};
    case EditOperation::Kind::kMove:
      return pages::EditOperation{Kind::kShift, operation.first, operation.count, operation.amount};
    case EditOperation::Kind::kDivide:
      return pages::EditOperation{Kind::kDivide, operation.first, operation.count, operation.amount};
  }
  return fail(Outcome::kInvalidArgument,
              "there is no kind of edit " + std::to_string(static_cast<int>(operation.kind)));
}

// Edits are of what is computed: what is queued behind it was meant for the old history.
Status check_settled(const Engine& engine, ConversationId id) {
  KVASIR_ASSIGN(const engine::Conversation* const conversation, engine.look(id));
  if (conversation->in_step) return {};  // the edit itself says what that means
  if (conversation->drawer != nullptr)
    return fail(Outcome::kWrongState, "the conversation generates; read it to its end, or cancel it");
  if (conversation->queue.empty()) return {};
  return fail(Outcome::kWrongState,
              std::to_string(conversation->asked()) + " tokens are queued; wait for them, or cancel()",
              {.wanted = 0, .available = conversation->queue.size()});
}

}  // namespace

Status Conversation::edit(std::span<const EditOperation> operations) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    std::vector<pages::EditOperation> mine;
    mine.reserve(operations.size());
    for (const EditOperation& operation : operations) {
      KVASIR_ASSIGN(const pages::EditOperation one, operation_of(operation));
      mine.push_back(one);
    }
    const bool divides =
        std::ranges::find(operations, EditOperation::Kind::kDivide, &EditOperation::kind) != operations.end();
    return in_public_words(used.executor().edit(
        used.id,
        [&](Engine& engine) -> Status {
          KVASIR_TRY(check_settled(engine, used.id));
          return engine.edit(used.id, mine);
        },
        divides ? engine::Executor::Keys::kRewritten : engine::Executor::Keys::kStay));
  });
}

Result<std::uint64_t> Conversation::prompt_to(std::span<const Token> tokens) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    std::uint64_t kept = 0;
    KVASIR_TRY(in_public_words(used.executor().edit(used.id, [&](Engine& engine) -> Status {
      KVASIR_ASSIGN(kept, engine.prompt_to(used.id, tokens));
      return {};
    })));
    return kept;
  });
}

Status Conversation::rewind(std::uint64_t length) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().edit(used.id, [&](Engine& engine) -> Status {
      KVASIR_TRY(check_settled(engine, used.id));
      return engine.rewind(used.id, length);
    }));
  });
}

Status Conversation::remove(std::uint64_t first, std::uint64_t count) {
  const EditOperation operation{EditOperation::Kind::kRemove, first, count, 0};
  return edit(std::span(&operation, 1));
}

Status Conversation::shift_left(std::uint64_t keep, std::uint64_t count) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().edit(used.id, [&](Engine& engine) -> Status {
      KVASIR_TRY(check_settled(engine, used.id));
      return engine.shift_left(used.id, keep, count);
    }));
  });
}

Status Conversation::clear() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().clear(used.id));
  });
}

Result<std::uint64_t> Conversation::rewind_cost(std::uint64_t length) const {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(
        used.executor().look([&](const Engine& engine) { return engine.rewind_cost(used.id, length); }));
  });
}

Status Conversation::encode(std::span<const Token> source, const EncodeOptions& options) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().encode(used.id, source, options.progress));
  });
}

Status Conversation::encode(std::string_view source, const EncodeOptions& options) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(const std::vector<Token> tokens,
                  used.core->model->tokenizer->tokenize(source, {.add_begin_end = true}));
    return in_public_words(used.executor().encode(used.id, tokens, options.progress));
  });
}

Status Conversation::refresh() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(
        used.executor().edit(used.id, [&](Engine& engine) { return engine.refresh(used.id); }));
  });
}

template <class Change>
Status Conversation::set(const Change& change) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().change([&](Engine& engine) -> Status {
      KVASIR_ASSIGN(engine::ConversationSettings* const settings, engine.settings(used.id));
      change(*settings);
      return {};
    }));
  });
}

Status Conversation::reseed(std::uint64_t seed) {
  return set([&](engine::ConversationSettings& settings) { settings.seed = seed; });
}

Status Conversation::set_priority(int priority) {
  return set([&](engine::ConversationSettings& settings) { settings.priority = priority; });
}

Status Conversation::set_pinned(bool pinned) {
  return set([&](engine::ConversationSettings& settings) { settings.pinned = pinned; });
}

}  // namespace kvasir
