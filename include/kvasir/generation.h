// Generations: how tokens are drawn, what is asked for, and the stream that brings them. A value header. The
// stream in it is the API's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir {

// How a token is drawn. The cuts apply in this order: top-k, top-p, min-p; then the temperature.
// Sources: top-k: Fan et al., 2018; top-p: Holtzman et al., The Curious Case of Neural Text Degeneration,
// 2019; min-p: Nguyen et al., Turning Up the Heat, 2024.
//
// A draw depends on the row, these settings, the conversation's seed and the number of tokens that it ever
// accepted, and on nothing else: not on batches, threads or other conversations.
struct Sampler {
  float temperature = 0.8F;  // 0: the most likely token, ties to the lower id
  std::uint32_t top_k = 40;  // keep the k most likely; 0 keeps all
  float top_p = 0.95F;       // keep the most likely tokens whose probabilities reach p; 1 keeps all
  float min_p = 0.05F;       // keep tokens at least min_p times as likely as the most likely; 0 keeps all

  // Always the most likely token.
  [[nodiscard]] static constexpr Sampler greedy() noexcept { return {.temperature = 0}; }
};

// Why a generation ended.
enum class Finish : std::uint8_t {
  kEndToken,    // the model said that it is done, or one of the stop tokens
  kStopString,  // one of the stop strings came
  kLength,      // max_tokens are drawn, or the conversation or the cache is full
  kCancelled,   // by cancel(), close(), or the end of the executor
};

struct GenerateOptions {
  std::uint64_t max_tokens = 256;  // at least 1
  // NOLINTBEGIN(readability-redundant-member-init): GCC warns whoever names other members alone
  Sampler sampler = {};
  // Ends before the first of these, which is not part of the text. None is empty.
  std::vector<std::string> stop = {};
  // End like the model's own; they are not part of the text. One that the vocabulary has not never comes.
  std::vector<Token> stop_tokens = {};
  // NOLINTEND(readability-redundant-member-init)
  bool ignore_end = false;  // go on where the model says that it is done

  // Pieces that wait to be read, at most: the conversation pauses when nobody reads. 1 to 65,536.
  std::uint32_t outbox = 64;

  // Whether room for max_tokens is promised before the first is drawn: then it never waits for room in the
  // middle. Where that does not fit now, it waits before it begins.
  bool reserve = true;
};

// What one or more draws brought. Text never ends inside a character.
struct GeneratedPiece {
  std::string text;
  std::vector<Token> tokens;
};

// A stream, to be read from one thread at a time. Move-only; what it was moved away from answers kWrongState;
// the destructor cancels. The tokens delivered are part of the conversation's history, the last one and those
// of a stop string included, the end token not; the last is queued when it is delivered, and stays so when
// the generation is cancelled or fails.
class Generation {
 public:
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // The next piece, nothing at the end. Waits for it; where no worker runs, by taking steps itself. Errors
  // end the generation: kNoSpace where it lacks room that nobody will give back, kComputeFailed,
  // kOutOfMemory; kWrongState from a callback of the executor.
  [[nodiscard]] Result<std::optional<GeneratedPiece>> next();

  // What is there now, without waiting: nothing where nothing is yet, and at the end, of which finish()
  // tells. Takes no steps. An error that ended the generation, as of next(); kWrongState after a move.
  [[nodiscard]] Result<std::optional<GeneratedPiece>> poll();

  // All that is still to come, in one piece. Errors as next(). Where one comes after something, that is
  // given: finish() then says nothing, and the next call answers the error.
  [[nodiscard]] Result<GeneratedPiece> rest();

  // Why it ended, once it has and everything is read. Nothing where an error ended it.
  [[nodiscard]] std::optional<Finish> finish() const noexcept;

  // Stops drawing; Conversation::cancel() also takes back what is queued. What is in the outbox can still be
  // read.
  void cancel() noexcept;

 private:
  friend class Conversation;
  struct State;
  explicit Generation(std::unique_ptr<State> state) noexcept;
  [[nodiscard]] Result<State> use() const;
  std::unique_ptr<State> state_;
};

}  // namespace kvasir
