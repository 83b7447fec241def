#include "kvasir/generation.h"

#include <utility>

#include "api/parts.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir {

Generation::Generation(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Generation::Generation(Generation&&) noexcept = default;

Generation& Generation::operator=(Generation&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  return *this;
}

Generation::~Generation() {
  cancel();
}

// Kept through a call: a callback may destroy this handle meanwhile.
Result<Generation::State> Generation::use() const {
  if (state_ != nullptr) return *state_;
  return fail(Outcome::kWrongState, "this generation was moved away; read what it was moved to");
}

Result<std::optional<GeneratedPiece>> Generation::next() {
  return base::within_memory([&]() -> Result<std::optional<GeneratedPiece>> {
    KVASIR_ASSIGN(const State mine, use());
    GeneratedPiece piece;
    KVASIR_ASSIGN(const bool any,
                  api::in_public_words(mine.core->executor->next_piece(mine.id, *mine.generation, piece)));
    if (!any) return std::nullopt;
    return piece;
  });
}

Result<std::optional<GeneratedPiece>> Generation::poll() {
  return base::within_memory([&]() -> Result<std::optional<GeneratedPiece>> {
    KVASIR_ASSIGN(const State mine, use());
    GeneratedPiece piece;
    KVASIR_ASSIGN(const bool any,
                  api::in_public_words(mine.core->executor->poll_piece(*mine.generation, piece)));
    if (!any) return std::nullopt;
    return piece;
  });
}

Result<GeneratedPiece> Generation::rest() {
  return base::within_memory([&]() -> Result<GeneratedPiece> {
    KVASIR_ASSIGN(const State mine, use());
    GeneratedPiece all;
    while (true) {
      Result<bool> more = mine.core->executor->next_piece(mine.id, *mine.generation, all);
      if (more && *more) continue;
      // What came before an error is given first; the next call meets the error again.
      if (more || !all.text.empty() || !all.tokens.empty()) return all;
      return fail(api::in_public_words(std::move(more).error()));
    }
  });
}

std::optional<Finish> Generation::finish() const noexcept {
  if (state_ == nullptr) return std::nullopt;
  return state_->core->executor->look([&](const engine::Engine&) {
    return state_->generation->has_piece() ? std::nullopt : state_->generation->finish();
  });
}

void Generation::cancel() noexcept {
  if (state_ == nullptr) return;
  state_->core->executor->end_generation(state_->id, *state_->generation);
}

}  // namespace kvasir
