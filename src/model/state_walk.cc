#include "model/state_walk.h"

#include "base/checked.h"
#include "pages/group_cells.h"
#include "simd/scans.h"

namespace kvasir::model {
namespace {

// About a third-level cache: states of less come back from it faster than from memory.
constexpr std::uint64_t kNearStates = std::uint64_t{16} << 20;

}  // namespace

std::span<float> piece_of(const OpenPass& open, StateEntry of, pages::PageId page,
                          std::uint32_t piece) noexcept {
  return open.arena->piece(open.states[of.group], open.store->group(of.group).frames(page), of.entry, piece);
}

bool is_left_once(const OpenPass& open, StateEntry of, const PassSequence& sequence) noexcept {
  return sequence.rows == 1 && sequence.states[of.group].writes.size() == 1 &&
         open.pass.sequences.size() * open.states[of.group].bytes() > kNearStates;
}

void add_convolution(const ShortConvolution& part, RowOf row_of, StageList& stages) {
  const std::uint32_t blocks = base::div_up(part.channels, static_cast<std::uint32_t>(simd::kChannelBlock));
  add_walk(stages, part.state, blocks, simd::kChannelBlock * part.taps,
           [&part, row_of](OpenPass& open, const PieceStep& at) {
             const std::uint32_t block = at.piece;
             const std::size_t first = block * simd::kChannelBlock;
             const std::size_t of_block = part.taps * simd::kChannelBlock;
             const std::span<float> channels = row_of(*open.workspace, at.row).first(part.channels);
             const std::span<const float> bias = part.bias;
             copy_piece(at.before, at.state);
             simd::convolve_step(
                 at.state, std::span(part.weight).subspan(block * of_block, of_block),
                 bias.empty() ? bias : bias.subspan(first, simd::kChannelBlock),
                 channels.subspan(first, std::min(simd::kChannelBlock, part.channels - first)));
           });
}

void add_token_shift(StateEntry of, RowsOf first_of, StageList& stages) {
  stages.add({.plan =
                  [](OpenPass& open, StageItems& items) {
                    items.plan(open.pass.sequences.size(), open.workspace->normed.width());
                  },
              .run =
                  [of, first_of](OpenPass& open, std::size_t item) {
                    const PassSequence& sequence = open.pass.sequences[item];
                    const PassStates& states = sequence.states[of.group];
                    // Read before any is written: the last state may be the one that the pass began with.
                    const std::span<float> first = first_of(*open.workspace).row(item);
                    if (states.from) {
                      std::ranges::copy(piece_of(open, of, *states.from, 0), first.begin());
                    } else {
                      std::ranges::fill(first, 0.0F);
                    }
                    walk_state(open, of, sequence, 0,
                               [&](std::span<const float>, std::span<float> state, std::size_t row) {
                                 const auto& normed = static_cast<const InputRows&>(open.workspace->normed);
                                 std::ranges::copy(normed.row(row).first(state.size()), state.begin());
                               });
                  }});
}

std::span<const float> row_before(const OpenPass& open, const FloatRows& first, std::size_t row) noexcept {
  const std::uint32_t sequence = open.pass.rows[row].sequence;
  if (row == open.pass.sequences[sequence].first_row) return first.row(sequence);
  const auto& normed = static_cast<const InputRows&>(open.workspace->normed);
  return normed.row(row - 1).first(first.width());
}

}  // namespace kvasir::model
