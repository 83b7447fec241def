// A generation under way: tokens drawn and computed one after another, streamed as text.
#pragma once

#include <memory>
#include <optional>

#include "kvasir/generate.h"
#include "kvasir/result.h"

namespace kvasir {

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

  // What is there now, without waiting: nothing where nothing is.
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
