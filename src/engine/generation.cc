#include "engine/generation.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

constexpr std::uint32_t kOutboxMax = 1U << 16;

Status check(const GenerateOptions& options) {
  KVASIR_TRY(sample::check(options.sampler));
  if (options.max_tokens == 0)
    return fail(Outcome::kInvalidArgument, "a generation must be allowed at least one token", {.limit = 1});
  if (options.outbox == 0 || options.outbox > kOutboxMax) {
    return fail(Outcome::kInvalidArgument, "an outbox holds 1 to " + std::to_string(kOutboxMax) + " pieces",
                {.wanted = options.outbox, .limit = kOutboxMax});
  }
  if (std::ranges::find(options.stop, std::string()) != options.stop.end())
    return fail(Outcome::kInvalidArgument, "a stop string without a byte would end before the first",
                {.setting = "stop"});
  return {};
}

}  // namespace

TextGeneration::TextGeneration(const text::Tokenizer& tokenizer, const GenerateOptions& options)
    : tokenizer_(&tokenizer),
      options_(options),
      sampler_(options.sampler, 0),
      stream_(tokenizer),
      stop_strings_(options.stop) {
  outbox_.reserve(options_.outbox);
}

Result<std::shared_ptr<TextGeneration>> TextGeneration::create(const text::Tokenizer& tokenizer,
                                                               const GenerateOptions& options) {
  return base::within_memory([&]() -> Result<std::shared_ptr<TextGeneration>> {
    KVASIR_TRY(check(options));
    return std::shared_ptr<TextGeneration>(new TextGeneration(tokenizer, options));
  });
}

bool TextGeneration::stops(Token token) const noexcept {
  if (std::ranges::find(options_.stop_tokens, token) != options_.stop_tokens.end()) return true;
  return !options_.ignore_end && tokenizer_->ends_generation(token);
}

// What detokenizer and stop strings have held back until now.
void TextGeneration::add_rest() {
  pending_.text += stop_strings_.feed(stream_.finish());
  pending_.text += stop_strings_.finish();
}

// Writes nothing but what is pending (G2).
Result<Draw> TextGeneration::draw(const Row& logits, std::uint64_t seed, std::uint64_t accepted,
                                  std::uint64_t room) {
  pending_ = {};
  pending_finish_.reset();
  if (room == 0) {  // there is no place for another token
    pending_finish_ = Finish::kLength;
    add_rest();
    return Draw{};
  }
  sampler_.reseed(seed);
  KVASIR_ASSIGN(const Token token, sampler_.sample(logits, accepted));
  if (stops(token)) {
    pending_finish_ = Finish::kEndToken;
    add_rest();
    return Draw{};
  }
  ++drawn_;
  pending_.token = token;
  KVASIR_ASSIGN(const std::string text, stream_.feed(token));
  pending_.text = stop_strings_.feed(text);
  if (stop_strings_.stopped()) {
    pending_finish_ = Finish::kStopString;
  } else if (drawn_ == options_.max_tokens) {
    pending_finish_ = Finish::kLength;
    add_rest();
    if (stop_strings_.stopped()) pending_finish_ = Finish::kStopString;
  }
  return Draw{.token = token, .goes_on = !pending_finish_};
}

// Called for a step that is committed, with the lock held (G1).
void TextGeneration::publish() noexcept {
  published_ += pending_.token ? 1 : 0;
  if (pending_.token || !pending_.text.empty()) outbox_.push_back(std::move(pending_));
  finish_ = pending_finish_;
}

void TextGeneration::end(const Error* error) noexcept {
  if (ended()) return;
  if (error == nullptr) {
    finish_ = Finish::kCancelled;
    return;
  }
  try {
    error_ = *error;
  } catch (const std::bad_alloc&) {
    error_.emplace(error->code(), std::string(), error->numbers());
  }
}

bool TextGeneration::take(GeneratedPiece& into) {
  if (outbox_.empty()) return false;
  const Drawn& oldest = outbox_.front();
  into.text.reserve(into.text.size() + oldest.text.size());
  if (oldest.token) into.tokens.push_back(*oldest.token);
  into.text += oldest.text;
  outbox_.erase(outbox_.begin());
  return true;
}

}  // namespace kvasir::engine
