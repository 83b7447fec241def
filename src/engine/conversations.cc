// Calls on single conversations: prompts, forks and edits. Each takes full effect at once or none.

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"

namespace kvasir::engine {
namespace {

using pages::EditOperation;
using Kind = pages::EditOperation::Kind;

// What edits do to the list of tokens.
void edit_tokens(std::vector<Token>& tokens, std::span<const EditOperation> operations) {
  for (const EditOperation& operation : operations) {
    if (operation.kind != Kind::kRemove) continue;
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(operation.first);
    tokens.erase(first, first + static_cast<std::ptrdiff_t>(operation.count));
  }
}

}  // namespace

// `held` tokens are what the prompt is added to.
Status Engine::check_prompt(const Conversation&, std::span<const Token> tokens, std::uint64_t held) const {
  const std::uint32_t vocabulary = model_->sizes().vocabulary;
  for (const Token token : tokens) {
    if (token >= 0 && static_cast<std::uint32_t>(token) < vocabulary) continue;
    return fail(
        Outcome::kInvalidArgument,
        "there is no token " + std::to_string(token) + ", the vocabulary has " + std::to_string(vocabulary),
        {.limit = vocabulary});
  }
  const std::uint64_t room = options_.context - std::min(options_.context, held);
  if (tokens.size() <= room) return {};
  return fail(
      Outcome::kNoSpace,
      "the conversation would be " + std::to_string(held + tokens.size()) + " tokens long, the context is " +
          std::to_string(options_.context),
      {.wanted = held + tokens.size(), .available = room, .limit = options_.context, .setting = "--ctx"});
}

Result<std::uint64_t> Engine::prompt(ConversationId id, std::span<const Token> tokens, LogitsWanted wanted) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    KVASIR_TRY(check_prompt(*conversation, tokens, conversation->tokens.size() + conversation->queue.size()));
    std::uint64_t shared = 0;
    conversation->queue.reserve(conversation->queue.size() + tokens.size());
    conversation->every.reserve(conversation->queue.size() + tokens.size());
    if (options_.share_prefixes && wanted == LogitsWanted::kLast && !tokens.empty() &&
        conversation->tokens.empty() && conversation->queue.empty()) {
      conversation->tokens.reserve(tokens.size());
      // A hit stops before the last token: its logits are wanted.
      KVASIR_ASSIGN(shared, store_->adopt(conversation->table, tokens, tokens.size() - 1, kNoSalt));
    }
    // Within what was reserved from here on.
    conversation->tokens.insert(conversation->tokens.end(), tokens.begin(),
                                tokens.begin() + static_cast<std::ptrdiff_t>(shared));
    conversation->queue.insert(conversation->queue.end(),
                               tokens.begin() + static_cast<std::ptrdiff_t>(shared), tokens.end());
    conversation->every.resize(conversation->queue.size(), wanted == LogitsWanted::kEvery ? 1 : 0);
    return shared;
  });
}

Result<std::uint64_t> Engine::prompt_to(ConversationId id, std::span<const Token> tokens) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    if (tokens.empty())
      return fail(Outcome::kInvalidArgument, "a conversation cannot be prompted to nothing; rewind it to 0");
    KVASIR_TRY(check_prompt(*conversation, tokens, 0));
    const auto differs = std::ranges::mismatch(conversation->tokens, tokens).in1;
    std::uint64_t kept = static_cast<std::uint64_t>(differs - conversation->tokens.begin());
    if (conversation->tokens.size() == tokens.size() && kept == tokens.size() &&
        conversation->last_logits != nullptr) {
      conversation->queue.clear();
      conversation->every.clear();
      return kept;
    }
    // The last token is computed, so that its logits come.
    kept = std::min<std::uint64_t>(kept, tokens.size() - 1);
    conversation->queue.reserve(tokens.size());
    conversation->every.reserve(tokens.size());
    KVASIR_TRY(rewind(id, kept));
    conversation->queue.assign(tokens.begin() + static_cast<std::ptrdiff_t>(kept), tokens.end());
    conversation->every.assign(conversation->queue.size(), 0);
    return kept;
  });
}

Status Engine::clear_queue(ConversationId id) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    conversation->queue.clear();
    conversation->every.clear();
    return {};
  });
}

Result<ConversationId> Engine::fork(ConversationId id) {
  return base::within_memory([&]() -> Result<ConversationId> {
    KVASIR_TRY(find(id));
    const std::size_t index = new_slot();
    const Conversation& parent = conversations_[static_cast<std::size_t>(id)];
    Conversation child{.tokens = parent.tokens,
                       .queue = parent.queue,
                       .every = parent.every,
                       .last_logits = parent.last_logits,
                       .open = true};
    KVASIR_ASSIGN(child.table, store_->fork(parent.table));
    conversations_[index] = std::move(child);
    return ConversationId{static_cast<std::uint32_t>(index)};
  });
}

Status Engine::edit(ConversationId id, std::span<const EditOperation> operations) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    KVASIR_ASSIGN(pages::EditTicket ticket, store_->begin_edit(conversation->table, operations));
    std::vector<Token> tokens = conversation->tokens;
    edit_tokens(tokens, operations);
    // Nothing fails from here on.
    for (const pages::RotateCells& job : ticket.jobs()) rotate(job);
    if (ticket.first_changed() < conversation->tokens.size()) conversation->last_logits.reset();
    conversation->tokens.swap(tokens);
    ticket.commit();
    return {};
  });
}

Status Engine::rewind(ConversationId id, std::uint64_t length) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    const std::uint64_t held = conversation->tokens.size();
    if (length > held) {
      return fail(Outcome::kInvalidArgument,
                  "a conversation of " + std::to_string(held) + " tokens cannot be rewound to " +
                      std::to_string(length),
                  {.wanted = length, .limit = held});
    }
    const EditOperation remove{Kind::kRemove, length, held - length, 0};
    return edit(id, {&remove, 1});
  });
}

Status Engine::shift_left(ConversationId id, std::uint64_t keep, std::uint64_t count) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Conversation* const conversation, find_idle(id));
    const std::uint64_t held = conversation->tokens.size();
    if (keep > held || count > held - keep) {
      return fail(Outcome::kInvalidArgument,
                  "a conversation of " + std::to_string(held) + " tokens cannot keep " +
                      std::to_string(keep) + " and drop " + std::to_string(count),
                  {.wanted = keep, .limit = held});
    }
    if (count == 0) return {};  // nothing moves
    const EditOperation operations[] = {
        {Kind::kRemove, keep, count, 0},
        {Kind::kShift, keep, held - keep - count, -static_cast<std::int64_t>(count)}};
    return edit(id, operations);
  });
}

Status Engine::fill(ConversationId id, std::span<const Token> tokens) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    KVASIR_TRY(check_prompt(*conversation, tokens, conversation->tokens.size() + conversation->queue.size()));
    if (tokens.empty()) return {};
    const pages::Growth growth{conversation->table, tokens.size()};
    KVASIR_ASSIGN(pages::Ticket ticket, store_->begin({&growth, 1}));
    conversation->tokens.insert(conversation->tokens.end(), tokens.begin(), tokens.end());
    ticket.commit({&growth.count, 1});
    conversation->last_logits.reset();
    return {};
  });
}

Result<pages::Holdings> Engine::holdings(ConversationId id) const {
  return base::within_memory([&]() -> Result<pages::Holdings> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    return store_->holdings(conversation->table);
  });
}

}  // namespace kvasir::engine
