// Calls on single conversations: prompts, forks and edits. Each takes full effect at once or none.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"
#include "engine/open_step.h"
#include "sample/sampler.h"

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

// Tokens with room for those that are added, and for as many that are queued again before them, so that
// adding them cannot fail.
void reserve_more(Queue& queue, const PromptItems& items, std::size_t again) {
  const std::size_t all = queue.tokens.size() + items.tokens.size() + again;
  queue.tokens.reserve(all);
  queue.every.reserve(all);
  queue.vectors.reserve(queue.vectors.size() + items.vectors.size());
}

void append(Queue& queue, const PromptItems& items, LogitsWanted wanted) noexcept {
  queue.tokens.insert(queue.tokens.end(), items.tokens.begin(), items.tokens.end());
  queue.every.resize(queue.tokens.size(), wanted == LogitsWanted::kEvery ? 1 : 0);
  queue.vectors.insert(queue.vectors.end(), items.vectors.begin(), items.vectors.end());
}

}  // namespace

void Queue::pop(std::uint64_t count, std::size_t vector_width) noexcept {
  const auto end = static_cast<std::ptrdiff_t>(count);
  const auto embedded = std::count(tokens.begin(), tokens.begin() + end, kEmbedded);
  tokens.erase(tokens.begin(), tokens.begin() + end);
  every.erase(every.begin(), every.begin() + end);
  vectors.erase(vectors.begin(), vectors.begin() + embedded * static_cast<std::ptrdiff_t>(vector_width));
}

Status Engine::check_items(const PromptItems& items) const {
  const std::uint32_t vocabulary = model_->sizes().vocabulary;
  std::uint64_t embedded = 0;
  for (const Token token : items.tokens) {
    if (token == kEmbedded && !items.vectors.empty()) {
      ++embedded;
      continue;
    }
    if (token >= 0 && static_cast<std::uint32_t>(token) < vocabulary) continue;
    return fail(
        Outcome::kInvalidArgument,
        "there is no token " + std::to_string(token) + ", the vocabulary has " + std::to_string(vocabulary),
        {.limit = vocabulary});
  }
  const std::uint64_t floats = embedded * model_->sizes().embedding;
  if (floats != items.vectors.size()) {
    return fail(Outcome::kInvalidArgument,
                "an embedding vector of this model has " + std::to_string(model_->sizes().embedding) +
                    " numbers; " + std::to_string(items.vectors.size()) + " are no whole vectors",
                {.wanted = floats, .available = items.vectors.size()});
  }
  const auto bad = std::ranges::find_if(items.vectors, [](float value) { return !std::isfinite(value); });
  if (bad == items.vectors.end()) return {};
  return fail(Outcome::kInvalidArgument, "number " + std::to_string(bad - items.vectors.begin()) +
                                             " of the embedding vectors is not finite");
}

// `held` tokens are what `more` are added to.
Status Engine::check_length(const Conversation& conversation, std::uint64_t held, std::uint64_t more) const {
  const std::uint64_t context = std::min(options_.context, conversation.settings.max_length);
  const std::uint64_t limit = std::min(context, capacity_);
  const std::uint64_t room = limit - std::min(limit, held);
  if (more <= room) return {};
  const std::uint64_t wanted = base::checked_add(held, more).value_or(UINT64_MAX);
  const bool by_pool = capacity_ < context;
  const bool by_itself = !by_pool && context < options_.context;
  const char* const what = by_itself ? "it may reach " : "the context is ";
  return fail(Outcome::kNoSpace,
              "the conversation would be " + std::to_string(wanted) + " tokens long, " +
                  (by_pool ? "the whole pool holds " : what) + std::to_string(limit),
              {.wanted = wanted,
               .available = room,
               .limit = limit,
               .setting = by_pool ? "--pool" : (by_itself ? "max_length" : "--ctx")});
}

// Positions that a token may have: those that were learned, where there are such.
std::uint64_t Engine::positions() const noexcept {
  const auto& learned = model_->network().position_embedding;
  return learned ? learned->rows() : static_cast<std::uint64_t>(pages::kPositionMax) + 1;
}

// Of what is prompted next, behind all that is queued or has to be computed again.
std::uint64_t Engine::position_of_next(const Conversation& conversation) const noexcept {
  return static_cast<std::uint64_t>(next_position(conversation)) + conversation.dropped.size() +
         conversation.queue.size();
}

// Whether `more` tokens have positions from `next` on: a pass would refuse one that has none, for everybody.
Status Engine::check_positions(std::uint64_t next, std::uint64_t more) const {
  const std::uint64_t left = positions() - std::min(positions(), next);
  if (more <= left) return {};
  return fail(Outcome::kNoSpace,
              "the next token would be at position " + std::to_string(next) + ", the last one is " +
                  std::to_string(positions() - 1) + ": there are " + std::to_string(left) +
                  " positions for " + std::to_string(more) + " tokens; an edit can move them",
              {.wanted = more, .available = left, .limit = positions()});
}

// Memory for what is queued and `more` behind it, so that the steps which compute it need none.
Status Engine::make_places(Conversation& conversation, std::uint64_t more) {
  const std::uint64_t tokens = conversation.queue.size() + more;
  make_room(conversation.tokens, conversation.tokens.size() + tokens);
  return store_->make_places(conversation.table, tokens);
}

Result<std::uint64_t> Engine::prompt(ConversationId id, std::span<const Token> tokens, LogitsWanted wanted) {
  return prompt_mixed(id, {tokens, {}}, wanted);
}

Result<std::uint64_t> Engine::prompt_mixed(ConversationId id, const PromptItems& items, LogitsWanted wanted) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    if (conversation->drawer != nullptr)
      return fail(Outcome::kWrongState, "the conversation generates; read it to its end, or cancel it");
    KVASIR_TRY(check_source(*conversation));
    KVASIR_TRY(check_items(items));
    KVASIR_TRY(
        check_length(*conversation, conversation->length() + conversation->asked(), items.tokens.size()));
    KVASIR_TRY(check_positions(position_of_next(*conversation), items.tokens.size()));
    KVASIR_TRY(make_places(*conversation, items.tokens.size() + conversation->dropped.size()));
    reserve_more(conversation->queue, items, conversation->dropped.size());
    // Within what was reserved from here on.
    if (conversation->queue.empty()) asks(*conversation);
    wake(*conversation);
    append(conversation->queue, items, wanted);
    conversation->admitted = false;
    conversation->return_error.reset();
    return admit_if_possible(*conversation);
  });
}

Result<std::uint64_t> Engine::prompt_to(ConversationId id, std::span<const Token> tokens) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    if (tokens.empty())
      return fail(Outcome::kInvalidArgument, "a conversation cannot be prompted to nothing; rewind it to 0");
    KVASIR_TRY(check_source(*conversation));
    KVASIR_TRY(check_items({tokens, {}}));
    KVASIR_TRY(check_length(*conversation, 0, tokens.size()));
    KVASIR_ASSIGN(const std::vector<Token> all, history(id));
    const auto differs = std::ranges::mismatch(all, tokens).in1;
    std::uint64_t kept = static_cast<std::uint64_t>(differs - all.begin());
    if (all.size() == tokens.size() && kept == tokens.size() && conversation->last_logits != nullptr) {
      settle_again(*conversation);
      conversation->queue.clear();
      renew_promise(*conversation);
      return kept;
    }
    // The last token is computed, so that its logits come.
    kept = std::min<std::uint64_t>(kept, tokens.size() - 1);
    const std::uint64_t held = std::min<std::uint64_t>(kept, conversation->tokens.size());
    const auto next = static_cast<std::uint64_t>(store_->position_behind(conversation->table, held));
    KVASIR_TRY(check_positions(next, tokens.size() - held));
    Queue queue;
    reserve_more(queue, {tokens.subspan(kept), {}}, all.size());
    append(queue, {tokens.subspan(kept), {}}, LogitsWanted::kLast);
    make_room(conversation->tokens, tokens.size());
    std::vector<Token> dropped(all.begin() + static_cast<std::ptrdiff_t>(conversation->tokens.size()),
                               all.end());
    Queue before;
    std::swap(before, conversation->queue);
    const std::uint64_t again = std::exchange(conversation->again, 0);
    conversation->dropped.swap(dropped);
    if (Status rewound = rewind(id, kept); !rewound) {
      conversation->dropped.swap(dropped);
      conversation->again = again;
      conversation->queue = std::move(before);
      return fail(std::move(rewound).error());
    }
    conversation->queue = std::move(queue);
    wake(*conversation);
    conversation->drawn_queued = false;
    asks(*conversation);
    conversation->admitted = false;
    conversation->asked_index = false;
    conversation->return_error.reset();
    // Of what the index knows, the tokens that were dropped are kept already.
    const std::uint64_t again_before = conversation->again;
    const std::uint64_t known = admit_if_possible(*conversation);
    return kept + known - std::min(known, again_before);
  });
}

Status Engine::refresh(ConversationId id) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    if (conversation->last_logits != nullptr || !conversation->queue.empty()) return {};
    if (conversation->length() == 0)
      return fail(Outcome::kNeedsPrompt, "the conversation is empty; prompt it");
    const Token last =
        conversation->dropped.empty() ? conversation->tokens.back() : conversation->dropped.back();
    if (last == kEmbedded)
      return fail(Outcome::kUnsupported, "the last token is an embedding vector, which is not kept");
    if (conversation->dropped.empty()) {
      const auto next = static_cast<std::uint64_t>(
          store_->position_behind(conversation->table, conversation->tokens.size() - 1));
      KVASIR_TRY(check_positions(next, 1));
    }
    Queue queue;
    KVASIR_ASSIGN(const std::uint64_t again, rewind_cost(id, conversation->length() - 1));
    reserve_more(queue, {{&last, 1}, {}}, conversation->dropped.size() + again);
    append(queue, {{&last, 1}, {}}, LogitsWanted::kLast);
    KVASIR_TRY(rewind(id, conversation->length() - 1));
    conversation->queue = std::move(queue);
    wake(*conversation);
    asks(*conversation);
    conversation->admitted = false;
    conversation->return_error.reset();
    admit_if_possible(*conversation);
    return {};
  });
}

Status Engine::cancel(ConversationId id) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    settle_again(*conversation);
    end_generation(*conversation, nullptr);
    stop_return(*conversation);
    conversation->reading_ended = true;
    conversation->queue.clear();
    conversation->drawn_queued = false;
    conversation->return_error.reset();
    if (conversation->in_step) {
      withdraw(*conversation);
    } else {
      renew_promise(*conversation);
    }
    return {};
  });
}

void Engine::stop_generation(ConversationId id, Drawer* drawer, const Error* error) noexcept {
  const Conversation* const found = peek(id);
  if (found == nullptr || found->drawer.get() != drawer) return;
  Conversation& conversation = conversations_[static_cast<std::size_t>(found - conversations_.data())];
  end_generation(conversation, error);
  if (!conversation.in_step) renew_promise(conversation);
}

void Engine::end_generation(Conversation& conversation, const Error* error) noexcept {
  if (conversation.drawer == nullptr) return;
  conversation.drawer->end(error);
  conversation.drawer.reset();
  conversation.draw_due = false;
  conversation.drawing = false;
}

Status Engine::generate(ConversationId id, const std::shared_ptr<Drawer>& drawer) {
  KVASIR_ASSIGN(const std::optional<FirstDraw> first, begin_generation(id, drawer));
  if (!first) return {};
  const Result<Draw> drawn = draw_first(*first);
  end_first_draw(*first, drawn);
  if (!drawn) return fail(drawn.error());
  return {};
}

Result<std::optional<FirstDraw>> Engine::begin_generation(ConversationId id, std::shared_ptr<Drawer> drawer) {
  return base::within_memory([&]() -> Result<std::optional<FirstDraw>> {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    if (conversation->drawer != nullptr)
      return fail(Outcome::kWrongState, "the conversation generates already; cancel that first");
    conversation->return_error.reset();
    // What reads a source begins by itself.
    const std::optional<Token> start = model_->network().start_token;
    const bool starts = start && conversation->queue.empty() && conversation->length() == 0;
    if (starts) KVASIR_TRY(check_source(*conversation));
    if (conversation->queue.empty() && conversation->last_logits == nullptr && !starts)
      return fail(Outcome::kNeedsPrompt, "there are no logits to go on from; prompt or refresh first");
    if (starts) KVASIR_TRY(check_length(*conversation, 0, 1));
    KVASIR_TRY(make_places(*conversation, 1 + std::min(drawer->tokens_left(), room_of(*conversation))));
    reserve_more(conversation->queue, {{&kEmbedded, 1}, {}}, conversation->dropped.size() + 1);
    conversation->drawer = std::move(drawer);
    if (starts) {
      asks(*conversation);
      append(conversation->queue, {{&*start, 1}, {}}, LogitsWanted::kLast);
    }
    if (conversation->queue.empty()) {
      conversation->drawing = true;
      return first_draw_of(*conversation);
    }
    conversation->admitted = false;
    admit_if_possible(*conversation);
    return std::optional<FirstDraw>();
  });
}

FirstDraw Engine::first_draw_of(Conversation& conversation) noexcept {
  const auto index = static_cast<std::size_t>(&conversation - conversations_.data());
  return {.id = id_of(conversation, index),
          .drawer = conversation.drawer,
          .row = conversation.last_logits,
          .seed = conversation.settings.seed,
          .accepted = conversation.accepted,
          .room = room_of(conversation)};
}

std::optional<FirstDraw> Engine::take_first_draw() noexcept {
  const auto due = std::ranges::find(conversations_, true, &Conversation::draw_due);
  if (due == conversations_.end()) return std::nullopt;
  due->draw_due = false;
  due->drawing = true;
  return first_draw_of(*due);
}

Result<Draw> Engine::draw_first(const FirstDraw& first) {
  return base::within_memory(
      [&] { return first.drawer->draw(*first.row, first.seed, first.accepted, first.room); });
}

// The queue has had a place for the token since the generation began, and nothing else was queued meanwhile.
void Engine::end_first_draw(const FirstDraw& first, const Result<Draw>& drawn) noexcept {
  const Conversation* const found = peek(first.id);
  if (found == nullptr || found->drawer != first.drawer) return;
  Conversation& conversation = conversations_[static_cast<std::size_t>(found - conversations_.data())];
  conversation.drawing = false;
  if (!drawn) return end_generation(conversation, &drawn.error());
  first.drawer->publish();
  go_on_with(conversation, *drawn);
  if (!drawn->token) return;
  conversation.admitted = false;
  admit_if_possible(conversation);
}

Result<ConversationId> Engine::fork(ConversationId id, bool keep_seed) {
  return base::within_memory([&]() -> Result<ConversationId> {
    KVASIR_TRY(find(id));
    const std::size_t index = new_slot();
    KVASIR_ASSIGN(Conversation* const parent, find(id));
    Conversation child;
    child.life = Conversation::Life::kOpen;
    child.generation = conversations_[index].generation;
    child.settings = parent->settings;
    child.tokens.reserve(parent->tokens.size() + parent->queue.size());
    child.tokens.assign(parent->tokens.begin(), parent->tokens.end());
    child.source = parent->source;
    child.accepted = parent->accepted;
    child.first_embedded = parent->first_embedded;
    child.last_logits = parent->last_logits;
    child.kept = parent->kept;
    child.dropped = parent->dropped;
    child.again = parent->again;
    child.queue = parent->queue;
    child.drawn_queued = parent->drawn_queued;
    asks(child);
    child.used = ++uses_;
    // Different for each child, and the same whenever the same is done, whatever others do.
    if (!keep_seed) {
      const double draw =
          sample::keyed_uniform(parent->settings.seed, parent->forks | std::uint64_t{1} << 63);
      child.settings.seed = static_cast<std::uint64_t>(draw * 0x1p53);
    }
    // What the parent has borrowed shows nowhere yet.
    KVASIR_ASSIGN(child.table,
                  parent->borrowed > 0 ? store_->fork_source(parent->table) : store_->fork(parent->table));
    ++parent->forks;
    conversations_[index] = std::move(child);
    Conversation& made = conversations_[index];
    if (!made.queue.empty()) admit_if_possible(made);
    return id_of(made, index);
  });
}

// A new wish: what it waits for counts from now on.
void Engine::asks(Conversation& conversation) noexcept {
  conversation.arrival = arrivals_++;
  conversation.begun = conversation.arrival;
}

// After a change of the history from an ordinal on, which may be its end now.
void Engine::forget_rows_from(Conversation& conversation, std::uint64_t ordinal,
                              std::uint64_t length) noexcept {
  std::erase_if(conversation.kept, [&](const KeptRow& kept) { return kept.ordinal >= ordinal; });
  conversation.last_logits.reset();
  // Where all behind the change is gone, the last row may be among those that were kept.
  if (length == ordinal && !conversation.kept.empty() && conversation.kept.back().ordinal + 1 == ordinal) {
    conversation.last_logits = conversation.kept.back().row;
  }
}

Status Engine::edit(ConversationId id, std::span<const EditOperation> operations) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    KVASIR_TRY(check_caught_up(*conversation));
    stop_return(*conversation);
    KVASIR_ASSIGN(pages::EditTicket ticket, store_->begin_edit(conversation->table, operations));
    std::vector<Token> tokens = conversation->tokens;
    edit_tokens(tokens, operations);
    // Nothing fails from here on.
    for (const pages::RotateCells& job : ticket.jobs()) rotate(job);
    const std::uint64_t first = ticket.first_changed();
    if (first < conversation->tokens.size()) forget_rows_from(*conversation, first, tokens.size());
    const auto vector = std::ranges::find(tokens, kEmbedded);
    if (vector != tokens.end()) {
      conversation->first_embedded = std::min<std::uint64_t>(
          conversation->first_embedded, static_cast<std::uint64_t>(vector - tokens.begin()));
    } else {
      conversation->first_embedded = UINT64_MAX;
    }
    conversation->tokens.swap(tokens);
    ticket.commit();
    drop_gone_blocks();
    return {};
  });
}

namespace {

std::unexpected<Error> no_such_length(std::uint64_t held, std::uint64_t length) {
  return fail(
      Outcome::kInvalidArgument,
      "a conversation of " + std::to_string(held) + " tokens cannot be rewound to " + std::to_string(length),
      {.wanted = length, .limit = held});
}

}  // namespace

// Whether its cells are those of all its tokens.
Status Engine::check_caught_up(const Conversation& conversation) const {
  const std::uint64_t behind = conversation.dropped.size() + conversation.again;
  if (behind == 0) return {};
  return fail(Outcome::kWrongState,
              std::to_string(behind) + " tokens of the conversation must be computed again first; prompt it",
              {.available = behind});
}

Result<std::uint64_t> Engine::rewind_cost(ConversationId id, std::uint64_t length) const {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    if (length > conversation->length()) return no_such_length(conversation->length(), length);
    const std::uint64_t computed = std::min<std::uint64_t>(length, conversation->tokens.size());
    return length - computed + store_->rewind_cost(conversation->table, computed);
  });
}

// To a length among the tokens that are to be computed again.
Status Engine::rewind_within_again(Conversation& conversation, std::uint64_t length) {
  const std::uint64_t held = conversation.tokens.size();
  if (store_->behind(conversation.table) > 0) {
    const auto rewound = store_->rewind(conversation.table, length);
    if (!rewound) return fail(rewound.error());
  }
  // Nothing fails from here on.
  const std::uint64_t fewer = conversation.length() - length;
  conversation.reserved -= std::min(conversation.reserved, fewer);
  forget_rows_from(conversation, length, length);
  if (conversation.again == 0) {
    conversation.dropped.resize(length - held);
    return {};
  }
  Queue& queue = conversation.queue;
  const auto first = static_cast<std::ptrdiff_t>(length - held);
  const auto end = static_cast<std::ptrdiff_t>(conversation.again);
  queue.tokens.erase(queue.tokens.begin() + first, queue.tokens.begin() + end);
  queue.every.erase(queue.every.begin() + first, queue.every.begin() + end);
  conversation.again = length - held;
  return {};
}

// Keeps the first `kept` tokens; those of `again` behind them are to be computed again, in place of what was.
// There is room for them in the queue where something waits there.
void Engine::take_back(Conversation& conversation, std::uint64_t kept, std::vector<Token>& again) noexcept {
  Queue& queue = conversation.queue;
  const std::uint64_t before = conversation.dropped.size() + conversation.again;
  if (conversation.reserved > 0) {
    conversation.reserved += again.size();
    conversation.reserved -= std::min(conversation.reserved, before);
  }
  conversation.tokens.resize(kept);
  if (conversation.first_embedded >= kept) conversation.first_embedded = UINT64_MAX;
  conversation.dropped.clear();
  const auto old = static_cast<std::ptrdiff_t>(conversation.again);
  queue.tokens.erase(queue.tokens.begin(), queue.tokens.begin() + old);
  queue.every.erase(queue.every.begin(), queue.every.begin() + old);
  conversation.again = 0;
  if (queue.empty()) {
    conversation.dropped.swap(again);
    return;
  }
  queue.tokens.insert(queue.tokens.begin(), again.begin(), again.end());
  queue.every.insert(queue.every.begin(), again.size(), 0);
  conversation.again = again.size();
}

Status Engine::rewind(ConversationId id, std::uint64_t length) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    const std::uint64_t held = conversation->tokens.size();
    if (length > conversation->length()) return no_such_length(conversation->length(), length);
    if (length == conversation->length()) return {};
    if (length >= held) return rewind_within_again(*conversation, length);
    const std::uint64_t cost = store_->rewind_cost(conversation->table, length);
    const auto first = conversation->tokens.begin() + static_cast<std::ptrdiff_t>(length - cost);
    std::vector<Token> again(first, first + static_cast<std::ptrdiff_t>(cost));
    if (std::ranges::find(again, kEmbedded) != again.end()) {
      return fail(Outcome::kUnsupported,
                  "embedding vectors, which are not kept, would have to be computed again; what is computed "
                  "from tokens since the last checkpoint can be rewound to",
                  {.wanted = length, .limit = held});
    }
    if (cost > 0 && store_->edited_between(conversation->table, length - cost, length)) {
      return fail(Outcome::kUnsupported,
                  "the conversation was edited: the tokens that would have to be computed again would not be "
                  "what they were; it can be rewound less far, or to before the edit",
                  {.wanted = length, .limit = held});
    }
    conversation->queue.tokens.reserve(conversation->queue.size() + cost);
    conversation->queue.every.reserve(conversation->queue.size() + cost);
    stop_return(*conversation);
    if (const auto rewound = store_->rewind(conversation->table, length); !rewound)
      return fail(rewound.error());
    // Nothing fails from here on.
    forget_rows_from(*conversation, length, length);
    take_back(*conversation, length - cost, again);
    drop_gone_blocks();
    return {};
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
    KVASIR_TRY(check_items({tokens, {}}));
    KVASIR_TRY(
        check_length(*conversation, conversation->tokens.size() + conversation->queue.size(), tokens.size()));
    if (tokens.empty()) return {};
    const pages::Growth growth{conversation->table, tokens.size(), tokens.size()};
    KVASIR_TRY(check_caught_up(*conversation));
    KVASIR_ASSIGN(pages::Ticket ticket, store_->begin({&growth, 1}));
    conversation->tokens.insert(conversation->tokens.end(), tokens.begin(), tokens.end());
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      for (const pages::StateWrite& write : ticket.states(0, group))
        arena_.fill_state(states_[group], store_->group(group).frames(write.state), 0);
    }
    ticket.commit({&growth.count, 1});
    conversation->last_logits.reset();
    return {};
  });
}

}  // namespace kvasir::engine
