#include "kvasir/conversation.h"

#include <algorithm>
#include <utility>

#include "api/parts.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "sample/sampler.h"

namespace kvasir {

using api::in_public_words;
using api::Used;
using engine::Engine;

namespace {

// What a draw depends on, besides its settings.
struct DrawnFrom {
  std::shared_ptr<const engine::Row> row;
  std::uint64_t seed = 0;
  std::uint64_t accepted = 0;
};

// A prompt's parts as one sequence of items.
struct Items {
  std::vector<Token> tokens;
  std::vector<float> vectors;
};

// A decoder that reads a source begins with a token of its own.
Status add_text(const api::ModelParts& model, const Text& text, bool at_start, Items& items) {
  const text::Tokenizer& tokenizer = *model.tokenizer;
  const std::optional<Token> start = model.model->network().start_token;
  const bool usual = at_start && (start.has_value() || tokenizer.adds_begin());
  const std::optional<Token> begin = start ? start : tokenizer.begin_token();
  KVASIR_ASSIGN(const std::vector<Token> tokens,
                api::tokens_of(tokenizer, text.text, text.options, begin, usual));
  items.tokens.insert(items.tokens.end(), tokens.begin(), tokens.end());
  return {};
}

Status add_vectors(std::size_t width, const Embeddings& vectors, Items& items) {
  if (vectors.values.size() % width != 0) {
    return fail(Outcome::kInvalidArgument,
                "an embedding vector of this model has " + std::to_string(width) + " numbers; " +
                    std::to_string(vectors.values.size()) + " are no whole vectors",
                {.wanted = width, .available = vectors.values.size()});
  }
  items.tokens.insert(items.tokens.end(), vectors.values.size() / width, kEmbedded);
  items.vectors.insert(items.vectors.end(), vectors.values.begin(), vectors.values.end());
  return {};
}

// What may be prompted as a token: kEmbedded stands for a vector only where a vector is given.
Status check_tokens(std::span<const Token> tokens, std::uint32_t vocabulary) {
  const auto bad = std::ranges::find_if(tokens, [](Token token) { return token < 0; });
  if (bad == tokens.end()) return {};
  return fail(
      Outcome::kInvalidArgument,
      "there is no token " + std::to_string(*bad) + ", the vocabulary has " + std::to_string(vocabulary),
      {.limit = vocabulary});
}

// `at_start`: they begin the conversation.
Result<Items> items_of(const api::ModelParts& model, std::span<const PromptPart> parts, bool at_start) {
  Items items;
  for (const PromptPart& part : parts) {
    if (const auto* const tokens = std::get_if<std::span<const Token>>(&part)) {
      KVASIR_TRY(check_tokens(*tokens, model.model->sizes().vocabulary));
      items.tokens.insert(items.tokens.end(), tokens->begin(), tokens->end());
    } else if (const auto* const text = std::get_if<Text>(&part)) {
      KVASIR_TRY(add_text(model, *text, at_start && items.tokens.empty(), items));
    } else if (const auto* const vectors = std::get_if<Embeddings>(&part)) {
      KVASIR_TRY(add_vectors(model.model->sizes().embedding, *vectors, items));
    }
  }
  if (items.tokens.empty())
    return fail(Outcome::kInvalidArgument, "there is nothing in this prompt; give it a token or a text");
  return items;
}

}  // namespace

Conversation::Conversation(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;

Conversation::Handle::~Handle() {
  if (auto to_post = take_node()) core->executor->post_close(std::move(to_post));
}

std::optional<Used> Conversation::Handle::find(const std::unique_ptr<Handle>& handle) noexcept {
  if (handle == nullptr || handle->node.load() == nullptr) return std::nullopt;
  return Used{handle->core, handle->id};
}

Result<Used> Conversation::Handle::use(const std::unique_ptr<Handle>& handle) {
  if (auto used = find(handle)) return *std::move(used);
  return fail(Outcome::kWrongState, handle == nullptr
                                        ? "this conversation was moved away; call what it was moved to"
                                        : "the conversation is closed");
}

ConversationId Conversation::id() const noexcept {
  return handle_ != nullptr ? handle_->id : ConversationId{UINT64_MAX};
}

Result<std::uint64_t> Conversation::prompt(std::span<const Token> tokens, const PromptOptions& options) {
  const PromptPart part = tokens;
  return prompt(std::span(&part, 1), options);
}

Result<std::uint64_t> Conversation::prompt(std::string_view text, const TextOptions& text_options,
                                           const PromptOptions& options) {
  const PromptPart part = Text{text, text_options};
  return prompt(std::span(&part, 1), options);
}

Result<std::uint64_t> Conversation::prompt(const Embeddings& vectors, const PromptOptions& options) {
  const PromptPart part = vectors;
  return prompt(std::span(&part, 1), options);
}

Result<std::uint64_t> Conversation::prompt(std::span<const PromptPart> parts, const PromptOptions& options) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(const Items items,
                  items_of(*used.core->model, parts, state() == ConversationState::kEmpty));
    const auto wanted = options.every_logit ? engine::LogitsWanted::kEvery : engine::LogitsWanted::kLast;
    return in_public_words(used.executor().change([&](Engine& engine) -> Result<std::uint64_t> {
      KVASIR_ASSIGN(const engine::Conversation* const conversation, std::as_const(engine).look(used.id));
      if (conversation->drawer != nullptr)
        return fail(Outcome::kWrongState, "the conversation generates; read it to its end, or cancel it");
      KVASIR_TRY(engine.prompt_mixed(used.id, {items.tokens, items.vectors}, wanted));
      return items.tokens.size();
    }));
  });
}

Status Conversation::wait() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().wait(used.id));
  });
}

Result<bool> Conversation::wait_for(std::chrono::nanoseconds time) {
  return base::within_memory([&]() -> Result<bool> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().wait_for(used.id, time.count()));
  });
}

Status Conversation::when_ready(std::function<void(const Status&)> callback) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    if (!callback) return fail(Outcome::kInvalidArgument, "there is no function to call in this callback");
    return in_public_words(used.executor().when_ready(used.id, std::move(callback)));
  });
}

Result<std::shared_ptr<const std::vector<float>>> Conversation::logits(std::uint64_t back) const {
  return base::within_memory([&]() -> Result<std::shared_ptr<const std::vector<float>>> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(
        used.executor().look([&](const Engine& engine) { return engine.row(used.id, back); }));
  });
}

Result<Token> Conversation::sample(const Sampler& sampler, std::uint64_t back) const {
  return base::within_memory([&]() -> Result<Token> {
    KVASIR_TRY(sample::check(sampler));
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(const DrawnFrom from,
                  in_public_words(used.executor().look([&](const Engine& engine) -> Result<DrawnFrom> {
                    KVASIR_ASSIGN(const engine::Conversation* const mine, engine.look(used.id));
                    KVASIR_ASSIGN(std::shared_ptr<const engine::Row> row, engine.row(used.id, back));
                    return DrawnFrom{std::move(row), mine->settings.seed, mine->accepted};
                  })));
    return sample::Sampler(sampler, from.seed).sample(*from.row, from.accepted);
  });
}

Result<Token> Conversation::sample_row(std::span<const float> row, const Sampler& sampler) const {
  return base::within_memory([&]() -> Result<Token> {
    KVASIR_TRY(sample::check(sampler));
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(const DrawnFrom from,
                  in_public_words(used.executor().look([&](const Engine& engine) -> Result<DrawnFrom> {
                    KVASIR_ASSIGN(const engine::Conversation* const mine, engine.look(used.id));
                    return DrawnFrom{nullptr, mine->settings.seed, mine->accepted};
                  })));
    const std::uint64_t vocabulary = used.core->model->model->sizes().vocabulary;
    if (row.size() != vocabulary) {
      return fail(Outcome::kInvalidArgument,
                  "a row of logits of this model has " + std::to_string(vocabulary) + " numbers, not " +
                      std::to_string(row.size()),
                  {.wanted = row.size(), .limit = vocabulary});
    }
    return sample::Sampler(sampler, from.seed).sample(row, from.accepted);
  });
}

Result<Generation> Conversation::generate(const GenerateOptions& options) {
  return base::within_memory([&]() -> Result<Generation> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(auto generation, engine::TextGeneration::create(*used.core->model->tokenizer, options));
    auto state = std::make_unique<Generation::State>();
    *state = {used.core, generation, used.id};
    KVASIR_TRY(in_public_words(used.executor().generate(used.id, generation)));
    return Generation(std::move(state));
  });
}

Result<Conversation> Conversation::fork(bool keep_seed) {
  return base::within_memory([&]() -> Result<Conversation> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return Handle::make(used.core, [&](Engine& engine) { return engine.fork(used.id, keep_seed); });
  });
}

std::uint64_t Conversation::seed() const noexcept {
  const auto used = Handle::find(handle_);
  if (!used) return 0;
  return used->executor().look([&](const Engine& engine) {
    const engine::Conversation* const conversation = engine.peek(used->id);
    return conversation != nullptr ? conversation->settings.seed : 0;
  });
}

Result<std::vector<Token>> Conversation::tokens() const {
  return base::within_memory([&]() -> Result<std::vector<Token>> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(
        used.executor().look([&](const Engine& engine) { return engine.history(used.id); }));
  });
}

std::uint64_t Conversation::length() const noexcept {
  return info().length;
}

ConversationState Conversation::state() const noexcept {
  const auto used = Handle::find(handle_);
  // An executor that is closed by a callback of a step ends its conversations with that step.
  if (!used || used->executor().closed()) return ConversationState::kClosed;
  return used->executor().look([&](const Engine& engine) {
    const engine::Conversation* const conversation = engine.peek(used->id);
    if (conversation == nullptr) return ConversationState::kClosed;
    if (conversation->in_step) return ConversationState::kComputing;
    if (conversation->shortage) return ConversationState::kWaiting;
    if (!conversation->queue.empty()) return ConversationState::kQueued;
    if (conversation->length() == 0) return ConversationState::kEmpty;
    if (!conversation->dropped.empty()) return ConversationState::kDropped;
    if (engine.residence(*conversation) != engine::Residence::kPool) return ConversationState::kSpilled;
    return conversation->last_logits != nullptr ? ConversationState::kReady : ConversationState::kNeedsPrompt;
  });
}

ConversationInfo Conversation::info() const noexcept {
  const auto used = Handle::find(handle_);
  if (!used) return {};
  return used->executor().look([&](const Engine& engine) {
    ConversationInfo info;
    const engine::Conversation* const conversation = engine.peek(used->id);
    if (conversation == nullptr) return info;
    info.length = conversation->length();
    info.queued = conversation->asked();
    info.dropped = conversation->dropped.size() + conversation->again;
    // What is dropped was never edited: its positions are its ordinals.
    info.position =
        info.dropped > 0 ? static_cast<std::int64_t>(info.length) : engine.next_position(*conversation);
    if (const auto holdings = engine.holdings(used->id)) {
      info.promised = holdings->promised;
      info.own = holdings->own;
      info.shared = holdings->shared;
      info.spilled = holdings->spilled;
    }
    return info;
  });
}

bool Conversation::fits(std::uint64_t tokens) const noexcept {
  const auto used = Handle::find(handle_);
  return used && used->executor().look([&](const Engine& engine) { return engine.fits(used->id, tokens); });
}

Status Conversation::reserve(std::uint64_t tokens) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().reserve(used.id, tokens));
  });
}

Status Conversation::spill() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().spill(used.id));
  });
}

Status Conversation::drop() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().drop(used.id));
  });
}

Status Conversation::cancel() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return in_public_words(used.executor().cancel(used.id));
  });
}

void Conversation::close() noexcept {
  const auto used = Handle::find(handle_);
  if (!used || handle_->take_node() == nullptr) return;
  used->executor().close_conversation(used->id);
}

}  // namespace kvasir
