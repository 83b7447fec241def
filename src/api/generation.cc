#include "kvasir/generation.h"

#include <utility>

#include "api/parts.h"
#include "base/try.h"

namespace kvasir {

Generation::Generation(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Generation::Generation(Generation&&) noexcept = default;

Generation& Generation::operator=(Generation&& other) noexcept {
  cancel();
  state_ = std::move(other.state_);
  return *this;
}

Generation::~Generation() {
  cancel();
}

Result<std::optional<GeneratedPiece>> Generation::next() {
  return state_->core->executor->next_piece(state_->id, *state_->generation);
}

Result<std::optional<GeneratedPiece>> Generation::poll() {
  return state_->core->executor->poll_piece(*state_->generation);
}

Result<GeneratedPiece> Generation::rest() {
  GeneratedPiece all;
  while (true) {
    KVASIR_ASSIGN(std::optional<GeneratedPiece> piece, next());
    if (!piece) return all;
    all.text += piece->text;
    all.tokens.insert(all.tokens.end(), piece->tokens.begin(), piece->tokens.end());
  }
}

std::optional<Finish> Generation::finish() const noexcept {
  const auto finish = state_->core->executor->look([&](const engine::Engine&) {
    return state_->generation->has_piece() ? std::nullopt : state_->generation->finish();
  });
  return finish;
}

void Generation::cancel() noexcept {
  if (state_ == nullptr) return;
  state_->core->executor->end_generation(state_->id, *state_->generation);
}

}  // namespace kvasir
