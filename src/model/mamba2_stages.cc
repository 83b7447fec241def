// The stages of Mamba-2: gate, input and time step of every head, the convolution, the scan, the norm of the
// gated output, the output.

#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/elementwise.h"
#include "simd/scans.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

void prepare(const Mamba2& part, Mamba2Scratch& scratch, std::size_t row) {
  simd::activate(simd::Activation::kSilu, scratch.input.row(row).first(part.input.out()));
  const std::span<float> time = scratch.time.row(row).first(part.heads);
  const std::span<float> decay = scratch.decay.row(row).first(part.heads);
  simd::apply_curve(simd::Curve::kSoftplus, time);
  std::ranges::copy(time, decay.begin());
  simd::multiply_by(decay, part.decay);
  simd::apply_curve(simd::Curve::kExp, decay);
}

void scan(const Mamba2& part, Mamba2Scratch& scratch, const PieceStep& at) {
  const auto [before, state, head, row, store] = at;
  const std::size_t width = part.head_width();
  const std::size_t group = head / (part.heads / part.groups);
  const std::span<float> input = scratch.input.row(row);
  const std::span<const float> shared = input.subspan(part.channels());
  const std::span<float> value = input.subspan(head * width, width);
  simd::outer_step({.decay = scratch.decay.row(row).subspan(head, 1),
                    .key = shared.subspan(group * part.dims, part.dims),
                    .query = shared.subspan((part.groups + group) * part.dims, part.dims),
                    .value = value,
                    .value_scale = scratch.time.row(row)[head],
                    .skip = part.skip[head]},
                   before, state, value, store);
}

void gate_output(const Mamba2& part, Mamba2Scratch& scratch, std::size_t row) {
  const std::size_t channels = part.channels();
  const std::span<float> gate = scratch.gate.row(row).first(channels);
  simd::activate_gate(simd::Activation::kSilu, gate, scratch.input.row(row).first(channels));
  if (part.norm) apply(*part.norm, gate, gate);
  scratch.gate.pack(row, channels);
}

}  // namespace

Status reserve(const Mamba2& part, Workspace& workspace) {
  Mamba2Scratch& scratch = workspace.recurrent.mamba2;
  const std::size_t rows = workspace.limits.rows;
  KVASIR_TRY(grow(scratch.input, rows, part.input.out()));
  KVASIR_TRY(grow(scratch.gate, rows, part.gate.out(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.time, rows, part.heads));
  KVASIR_TRY(grow(scratch.decay, rows, part.heads));
  return {};
}

void add_stages(const Mamba2& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    items.add_product(part.gate, normed, w.recurrent.mamba2.gate.output());
    items.add_product(part.input, normed, w.recurrent.mamba2.input.output());
    items.add_product(part.time, normed, w.recurrent.mamba2.time.output());
  });
  add_convolution(
      part.convolution, [](Workspace& w, std::size_t row) { return w.recurrent.mamba2.input.row(row); },
      stages);
  stages.add_rows(part.input.out() * 8, [&part](OpenPass& open, std::size_t row) {
    prepare(part, open.workspace->recurrent.mamba2, row);
  });
  add_walk(
      stages, part.state, part.heads, std::size_t{part.head_width()} * part.dims * 2,
      [&part](OpenPass& open, const PieceStep& at) { scan(part, open.workspace->recurrent.mamba2, at); });
  stages.add_rows(part.channels() * std::size_t{8}, [&part](OpenPass& open, std::size_t row) {
    gate_output(part, open.workspace->recurrent.mamba2, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.recurrent.mamba2.gate.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace kvasir::model
