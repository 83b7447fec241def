// The stages of Mamba: input and gate, the convolution, what the time step, B and C are made of, the scan,
// the output.

#include "base/checked.h"
#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/scans.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

void spread_coefficients(const Mamba& part, MambaScratch& scratch, std::size_t row) {
  const std::size_t rank = part.time.in();
  const std::span<float> all = scratch.coefficients.row(row);
  const std::span<float> time = scratch.rank.row(row).first(rank);
  std::ranges::copy(all.first(rank), time.begin());
  if (part.time_norm) apply(*part.time_norm, time, time);
  scratch.rank.pack(row, rank);
  const std::span<float> enter = all.subspan(rank, part.dims);
  const std::span<float> leave = all.subspan(rank + part.dims, part.dims);
  if (part.enter_norm) apply(*part.enter_norm, enter, enter);
  if (part.leave_norm) apply(*part.leave_norm, leave, leave);
}

void scan(const Mamba& part, MambaScratch& scratch, const PieceStep& at) {
  const std::uint32_t block = at.piece;
  const std::size_t row = at.row;
  const std::size_t first = block * simd::kChannelBlock;
  const std::size_t count = std::min(simd::kChannelBlock, part.output.in() - first);
  const std::size_t of_block = part.dims * simd::kChannelBlock;
  const std::span<const float> coefficients = scratch.coefficients.row(row).subspan(part.time.in());
  const std::span<float> input = scratch.input.row(row).subspan(first, count);
  copy_piece(at.before, at.state);
  simd::selective_step({.decay = std::span(part.decay).subspan(block * of_block, of_block),
                        .skip = std::span(part.skip).subspan(first, simd::kChannelBlock),
                        .time = scratch.time.row(row).subspan(first, count),
                        .input = input,
                        .gate = scratch.gate.row(row).subspan(first, count),
                        .enter = coefficients.first(part.dims),
                        .leave = coefficients.subspan(part.dims, part.dims)},
                       at.state, input);
}

void add_coefficients(const Mamba& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    MambaScratch& scratch = open.workspace->recurrent.mamba;
    items.add_product(part.coefficients, scratch.input.columns(0, open.rows()),
                      scratch.coefficients.output());
  });
  stages.add_rows(part.coefficients.out() * 8, [&part](OpenPass& open, std::size_t row) {
    spread_coefficients(part, open.workspace->recurrent.mamba, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    MambaScratch& scratch = open.workspace->recurrent.mamba;
    items.add_product(part.time, scratch.rank.columns(0, open.rows()), scratch.time.output());
  });
}

}  // namespace

Status reserve(const Mamba& part, Workspace& workspace) {
  MambaScratch& scratch = workspace.recurrent.mamba;
  const std::size_t rows = workspace.limits.rows;
  KVASIR_TRY(grow(scratch.input, rows, part.output.in(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.gate, rows, part.output.in()));
  KVASIR_TRY(grow(scratch.coefficients, rows, part.coefficients.out()));
  KVASIR_TRY(grow(scratch.rank, rows, part.time.in(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.time, rows, part.time.out()));
  return {};
}

void add_stages(const Mamba& part, StageList& stages) {
  const std::size_t channels = part.output.in();
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    items.add_product(part.input, normed, w.recurrent.mamba.input.output());
    items.add_product(part.gate, normed, w.recurrent.mamba.gate.output());
  });
  add_convolution(
      part.convolution, [](Workspace& w, std::size_t row) { return w.recurrent.mamba.input.row(row); },
      stages);
  stages.add_rows(channels * 8, [channels](OpenPass& open, std::size_t row) {
    InputRows& input = open.workspace->recurrent.mamba.input;
    simd::activate(simd::Activation::kSilu, input.row(row).first(channels));
    input.pack(row, channels);
  });
  add_coefficients(part, stages);
  const auto blocks = static_cast<std::uint32_t>(base::div_up(channels, simd::kChannelBlock));
  add_walk(stages, part.state, blocks, simd::kChannelBlock * part.dims * 8,
           [&part](OpenPass& open, const PieceStep& at) { scan(part, open.workspace->recurrent.mamba, at); });
  stages.add_rows(channels, [channels](OpenPass& open, std::size_t row) {
    open.workspace->recurrent.mamba.input.pack(row, channels);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.recurrent.mamba.input.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace kvasir::model
