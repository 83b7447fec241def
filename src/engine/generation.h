// One generation: draws, turns tokens into text, finds its end, and keeps what nobody has read yet.
//
// Invariants
//   G1  What a draw brought shows only after publish(): the step that drew it is committed.
//   G2  draw() touches nothing that the other calls read, so it may run beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/conversation.h"
#include "engine/stop_strings.h"
#include "kvasir/generation.h"
#include "kvasir/result.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace kvasir::engine {

// draw() is called by whoever steps, all else under its owner's lock.
class TextGeneration final : public Drawer {
 public:
  // kInvalidArgument names an option that makes no sense. The tokenizer must outlive it. kOutOfMemory.
  [[nodiscard]] static Result<std::shared_ptr<TextGeneration>> create(const text::Tokenizer& tokenizer,
                                                                      const GenerateOptions& options);

  // As Drawer documents.
  [[nodiscard]] bool has_place() const noexcept override { return outbox_.size() < options_.outbox; }
  [[nodiscard]] std::uint64_t tokens_ahead() const noexcept override {
    return options_.reserve ? options_.max_tokens - published_ : 0;
  }
  [[nodiscard]] std::uint64_t tokens_left() const noexcept override {
    return options_.max_tokens - published_;
  }
  [[nodiscard]] Result<Draw> draw(const Row& logits, std::uint64_t seed, std::uint64_t accepted,
                                  std::uint64_t room) override;
  void publish() noexcept override;
  void end(const Error* error) noexcept override;

  // Adds the oldest piece to `into`; false where none waits. Throws std::bad_alloc, with nothing taken and
  // nothing added.
  [[nodiscard]] bool take(GeneratedPiece& into);

  // Whether no further piece will come, and why; the error that ended it, if one did.
  [[nodiscard]] bool ended() const noexcept { return finish_.has_value() || error_.has_value(); }
  [[nodiscard]] std::optional<Finish> finish() const noexcept { return finish_; }
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
  [[nodiscard]] bool has_piece() const noexcept { return !outbox_.empty(); }

 private:
  struct Drawn {
    std::string text;
    std::optional<Token> token;
  };

  TextGeneration(const text::Tokenizer& tokenizer, const GenerateOptions& options);
  [[nodiscard]] bool stops(Token token) const noexcept;
  void add_rest();

  const text::Tokenizer* tokenizer_;
  const GenerateOptions options_;

  // Of draw().
  sample::Sampler sampler_;
  text::StreamingDetokenizer stream_;
  StopStrings stop_strings_;
  std::uint64_t drawn_ = 0;
  Drawn pending_;
  std::optional<Finish> pending_finish_;

  // Of all else.
  std::vector<Drawn> outbox_;    // oldest first; has places for all that it may hold
  std::uint64_t published_ = 0;  // tokens
  std::optional<Finish> finish_;
  std::optional<Error> error_;
};

}  // namespace kvasir::engine
