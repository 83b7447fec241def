#include "kvasir/conversation.h"

#include <algorithm>
#include <utility>

#include "api/parts.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "sample/sampler.h"

namespace kvasir {

using engine::Engine;

namespace {

std::unexpected<Error> closed() {
  return fail(Outcome::kWrongState, "the conversation is closed");
}

// A prompt's parts as one sequence of items.
struct Items {
  std::vector<Token> tokens;
  std::vector<float> vectors;
};

Status add_text(const text::Tokenizer& tokenizer, const Text& text, bool at_start, Items& items) {
  KVASIR_ASSIGN(const std::vector<Token> tokens,
                tokenizer.tokenize(text.text, {.parse_special = text.options.parse_special}));
  const std::optional<Token> begin = tokenizer.begin_token();
  const bool wanted = text.options.add_begin == AddBegin::kYes ||
                      (text.options.add_begin == AddBegin::kAuto && at_start && tokenizer.adds_begin());
  if (wanted && !begin) return fail(Outcome::kInvalidArgument, "this vocabulary has no begin token");
  // A text that spells it does not get it twice.
  if (wanted && (tokens.empty() || tokens.front() != *begin)) items.tokens.push_back(*begin);
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

}  // namespace

Conversation::Conversation(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}
Conversation::Conversation(Conversation&&) noexcept = default;

Conversation& Conversation::operator=(Conversation&& other) noexcept {
  if (handle_ != nullptr && handle_->open()) handle_->core->executor->post_close(std::move(handle_->node));
  handle_ = std::move(other.handle_);
  return *this;
}

Conversation::~Conversation() {
  if (handle_ != nullptr && handle_->open()) handle_->core->executor->post_close(std::move(handle_->node));
}

ConversationId Conversation::id() const noexcept {
  return handle_->id;
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
    if (!handle_->open()) return closed();
    const api::ModelParts& model = *handle_->core->model;
    bool at_start = state() == ConversationState::kEmpty;
    Items items;
    for (const PromptPart& part : parts) {
      if (const auto* const tokens = std::get_if<std::span<const Token>>(&part)) {
        KVASIR_TRY(check_tokens(*tokens, model.model->sizes().vocabulary));
        items.tokens.insert(items.tokens.end(), tokens->begin(), tokens->end());
      } else if (const auto* const text = std::get_if<Text>(&part)) {
        KVASIR_TRY(add_text(*model.tokenizer, *text, at_start && items.tokens.empty(), items));
      } else if (const auto* const vectors = std::get_if<Embeddings>(&part)) {
        KVASIR_TRY(add_vectors(model.model->sizes().embedding, *vectors, items));
      }
    }
    if (items.tokens.empty())
      return fail(Outcome::kInvalidArgument, "there is nothing in this prompt; give it a token or a text");
    const auto wanted = options.every_logit ? engine::LogitsWanted::kEvery : engine::LogitsWanted::kLast;
    return handle_->core->executor->change([&](Engine& engine) -> Result<std::uint64_t> {
      KVASIR_ASSIGN(const engine::Conversation* const conversation, std::as_const(engine).look(handle_->id));
      if (conversation->drawer != nullptr)
        return fail(Outcome::kWrongState, "the conversation generates; read it to its end, or cancel it");
      KVASIR_TRY(engine.prompt_mixed(handle_->id, {items.tokens, items.vectors}, wanted));
      return items.tokens.size();
    });
  });
}

Status Conversation::wait() {
  if (!handle_->open()) return closed();
  return handle_->core->executor->wait(handle_->id);
}

Result<bool> Conversation::wait_for(std::chrono::nanoseconds time) {
  if (!handle_->open()) return closed();
  return handle_->core->executor->wait_for(handle_->id, time.count());
}

Status Conversation::when_ready(std::function<void(const Status&)> callback) {
  if (!handle_->open()) return closed();
  return handle_->core->executor->when_ready(handle_->id, std::move(callback));
}

Result<std::shared_ptr<const std::vector<float>>> Conversation::logits(std::uint64_t back) const {
  if (!handle_->open()) return closed();
  return handle_->core->executor->look([&](const Engine& engine) { return engine.row(handle_->id, back); });
}

Result<Token> Conversation::sample(const Sampler& sampler, std::uint64_t back) {
  return base::within_memory([&]() -> Result<Token> {
    KVASIR_TRY(sample::check(sampler));
    KVASIR_ASSIGN(const std::shared_ptr<const std::vector<float>> row, logits(back));
    KVASIR_ASSIGN(const auto key,
                  handle_->core->executor->look(
                      [&](const Engine& engine) -> Result<std::pair<std::uint64_t, std::uint64_t>> {
                        KVASIR_ASSIGN(const engine::Conversation* const mine, engine.look(handle_->id));
                        return std::pair(mine->settings.seed, mine->accepted);
                      }));
    return sample::Sampler(sampler, key.first).sample(*row, key.second);
  });
}

Result<Generation> Conversation::generate(const GenerateOptions& options) {
  return base::within_memory([&]() -> Result<Generation> {
    if (!handle_->open()) return closed();
    KVASIR_ASSIGN(auto generation, engine::TextGeneration::create(*handle_->core->model->tokenizer, options));
    auto state = std::make_unique<Generation::State>();
    *state = {handle_->core, generation, handle_->id};
    KVASIR_TRY(handle_->core->executor->change(
        [&](Engine& engine) { return engine.generate(handle_->id, std::move(generation)); }));
    return Generation(std::move(state));
  });
}

Result<Conversation> Conversation::fork(bool keep_seed) {
  return base::within_memory([&]() -> Result<Conversation> {
    if (!handle_->open()) return closed();
    auto child = std::make_unique<Handle>();
    child->core = handle_->core;
    child->node = std::make_unique<engine::PostedClose>();
    KVASIR_ASSIGN(child->id, handle_->core->executor->change(
                                 [&](Engine& engine) { return engine.fork(handle_->id, keep_seed); }));
    child->node->id = child->id;
    return Conversation(std::move(child));
  });
}

std::uint64_t Conversation::seed() const noexcept {
  return handle_->core->executor->look([&](const Engine& engine) {
    const auto conversation = engine.look(handle_->id);
    return conversation ? (*conversation)->settings.seed : 0;
  });
}

Result<std::vector<Token>> Conversation::tokens() const {
  return base::within_memory([&]() -> Result<std::vector<Token>> {
    if (!handle_->open()) return closed();
    return handle_->core->executor->look([&](const Engine& engine) -> Result<std::vector<Token>> {
      KVASIR_ASSIGN(const std::span<const Token> tokens, engine.tokens(handle_->id));
      return std::vector<Token>(tokens.begin(), tokens.end());
    });
  });
}

std::uint64_t Conversation::length() const noexcept {
  return info().length;
}

ConversationState Conversation::state() const noexcept {
  return handle_->core->executor->look([&](const Engine& engine) {
    const auto found = engine.look(handle_->id);
    if (!found) return ConversationState::kClosed;
    const engine::Conversation& conversation = **found;
    if (conversation.in_step) return ConversationState::kComputing;
    if (conversation.shortage) return ConversationState::kWaiting;
    if (!conversation.queue.empty()) return ConversationState::kQueued;
    if (conversation.tokens.empty()) return ConversationState::kEmpty;
    return conversation.last_logits != nullptr ? ConversationState::kReady : ConversationState::kNeedsPrompt;
  });
}

ConversationInfo Conversation::info() const noexcept {
  return handle_->core->executor->look([&](const Engine& engine) {
    ConversationInfo info;
    const auto conversation = engine.look(handle_->id);
    const auto holdings = engine.holdings(handle_->id);
    if (!conversation || !holdings) return info;
    info.length = (*conversation)->tokens.size();
    info.queued = (*conversation)->queue.size();
    info.promised = holdings->promised;
    info.own = holdings->own;
    info.shared = holdings->shared;
    return info;
  });
}

bool Conversation::fits(std::uint64_t tokens) const noexcept {
  return handle_->core->executor->look(
      [&](const Engine& engine) { return engine.fits(handle_->id, tokens); });
}

Status Conversation::reserve(std::uint64_t tokens) {
  if (!handle_->open()) return closed();
  return handle_->core->executor->change([&](Engine& engine) { return engine.reserve(handle_->id, tokens); });
}

Status Conversation::cancel() {
  if (!handle_->open()) return closed();
  return handle_->core->executor->cancel(handle_->id);
}

void Conversation::close() noexcept {
  if (!handle_->open()) return;
  handle_->core->executor->close_conversation(handle_->id);
  handle_->node.reset();
}

}  // namespace kvasir
