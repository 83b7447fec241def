// A small model as a program of the public API meets it, and what tests of that API say over and over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvasir/executor.h"
#include "support/tiny_model.h"

namespace kvasir::test {

// The value of a call that must succeed; ends the test with the error's sentence otherwise.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// How a call answered: kDone where it took effect.
template <class T>
[[nodiscard]] Outcome outcome_of(const Result<T>& result) {
  return result ? Outcome::kDone : result.error().code();
}

// Two layers and a byte-level vocabulary of 512 tokens with a begin token, written to a file once.
[[nodiscard]] GgufDraft speaking_draft(const TinyShape& shape);
[[nodiscard]] TinyShape speaking_shape();
[[nodiscard]] const std::string& model_file();
// That model, loaded once, on two threads.
[[nodiscard]] const Model& model();

// An executor of that model; f32 cells and pages of 16 unless told otherwise.
[[nodiscard]] ExecutorOptions options_of(std::uint64_t pool, std::uint32_t pass_tokens = 512);
[[nodiscard]] Executor make_executor(const ExecutorOptions& options);
[[nodiscard]] inline Executor make_executor(std::uint64_t pool, std::uint32_t pass_tokens = 512) {
  return make_executor(options_of(pool, pass_tokens));
}

// Seeded ids of its vocabulary, none of them special.
[[nodiscard]] std::vector<Token> some_tokens(std::size_t count, std::uint64_t seed);
[[nodiscard]] std::vector<Token> joined(std::vector<Token> a, std::span<const Token> b);

// The rows that tokens enter the model as, one behind the other.
[[nodiscard]] std::vector<float> embeddings_of(std::span<const Token> tokens);

// A copy of the last row of logits.
[[nodiscard]] std::vector<float> logits_of(const Conversation& conversation, std::uint64_t back = 0);
// The row after `parts` in an executor that never held anything else.
[[nodiscard]] std::vector<float> cold_logits(std::span<const PromptPart> parts);
[[nodiscard]] std::vector<float> cold_logits(std::span<const Token> tokens);

// What a conversation of `seed` generates after `prompt` in an executor of its own.
[[nodiscard]] GeneratedPiece alone(std::span<const Token> prompt, std::uint64_t seed,
                                   const GenerateOptions& options);

// A hash of all that a step that has not happened must have left alone.
[[nodiscard]] std::uint64_t digest_of(const Executor& executor);

// What a report says of a conversation, or nothing.
[[nodiscard]] std::optional<ConversationReport> about(const StepReport& report, ConversationId id);

}  // namespace kvasir::test
