// How recurrent mixers find and leave the states that a pass names.
//
// Invariants (docs/invariants.md)
//   U1  A piece of a state is written by one item of one stage, in order of the rows of its sequence, and
//   what
//       is left for an ordinal depends on the state before and on the rows below it alone: where passes begin
//       and which states are kept never shows in a bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/recurrent_parts.h"
#include "model/stages.h"
#include "simd/scans.h"

namespace kvasir::model {

// A piece of the state on this page.
[[nodiscard]] std::span<float> piece_of(const OpenPass& open, StateEntry of, pages::PageId page,
                                        std::uint32_t piece) noexcept;

// Nothing where both are the same.
inline void copy_piece(std::span<const float> from, std::span<float> to) noexcept {
  if (from.data() != to.data()) std::ranges::copy(from, to.begin());
}

// Takes one piece past the rows of a sequence, so that the states which the pass wants are left: step(before,
// piece, row) for each row in order makes the piece behind the row of that before it, which is the piece
// itself or lies elsewhere. It begins as zeros where there was no token.
template <class Step>
void walk_state(const OpenPass& open, StateEntry of, const PassSequence& sequence, std::uint32_t piece,
                const Step& step) noexcept {
  const PassStates& states = sequence.states[of.group];
  std::span<const float> before;
  if (states.from) before = piece_of(open, of, *states.from, piece);
  std::size_t row = sequence.first_row;
  const std::size_t end = row + sequence.rows;
  for (const pages::StateWrite& write : states.writes) {
    const std::span<float> state = piece_of(open, of, write.state, piece);
    if (before.empty()) {
      std::ranges::fill(state, 0.0F);
      before = state;
    }
    for (; row < end && open.pass.rows[row].ordinal < write.ordinal; ++row) {
      step(before, state, row);
      before = state;
    }
    copy_piece(before, state);  // where no row came before it
  }
}

// A piece of the state of a row, and that before it.
struct PieceStep {
  std::span<const float> before;
  std::span<float> state;
  std::uint32_t piece = 0;
  std::size_t row = 0;
  simd::StateStore store = simd::StateStore::kNear;  // kAway where the pass does not read it again
};

// Whether what the pass leaves of a sequence's states is written once, and all that it leaves is more than
// caches hold until the next pass reads it.
[[nodiscard]] bool is_left_once(const OpenPass& open, StateEntry of, const PassSequence& sequence) noexcept;

// A stage that walks each of `pieces` pieces of every sequence: step(open, PieceStep), of about `cost`
// multiply-adds.
template <class Step>
void add_walk(StageList& stages, StateEntry of, std::uint32_t pieces, std::size_t cost, const Step& step) {
  stages.add({.plan =
                  [pieces, cost](OpenPass& open, StageItems& items) {
                    const std::size_t sequences = open.pass.sequences.size();
                    items.plan(sequences * pieces, cost * (open.rows() / sequences + 1));
                  },
              .run = [of, pieces, step](OpenPass& open, std::size_t item) {  // one piece, all its rows (U1)
                const auto piece = static_cast<std::uint32_t>(item % pieces);
                const PassSequence& sequence = open.pass.sequences[item / pieces];
                const bool once = is_left_once(open, of, sequence);
                walk_state(open, of, sequence, piece,
                           [&](std::span<const float> before, std::span<float> state, std::size_t row) {
                             const bool away = once && before.data() != state.data();
                             step(open, PieceStep{before, state, piece, row,
                                                  away ? simd::StateStore::kAway : simd::StateStore::kNear});
                           });
              }});
}

// A row of the workspace, or rows of it.
using RowOf = std::span<float> (*)(Workspace& workspace, std::size_t row);
using RowsOf = FloatRows& (*)(Workspace& workspace);

// A stage that takes the first channels of rows through a convolution, in place.
void add_convolution(const ShortConvolution& part, RowOf row_of, StageList& stages);

// The state of a part that looks at the token before is what that token read: one piece, workspace.normed of
// its row. This stage leaves it, and copies what came before each sequence to first_of(workspace),
// [sequence].
void add_token_shift(StateEntry of, RowsOf first_of, StageList& stages);

// What the token before a row read.
[[nodiscard]] std::span<const float> row_before(const OpenPass& open, const FloatRows& first,
                                                std::size_t row) noexcept;

}  // namespace kvasir::model
