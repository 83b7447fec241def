// The stages of a gated delta net: queries, keys and values, strength and time step; the convolution; the
// scan; the norm and the gate of the output; the output.

#include <cmath>

#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/elementwise.h"
#include "simd/scans.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

void prepare(const GatedDelta& part, GatedDeltaScratch& scratch, std::size_t row) {
  const std::span<float> mixed = scratch.mixed.row(row).first(part.mixed.out());
  simd::activate(simd::Activation::kSilu, mixed);
  const float scale = 1 / std::sqrt(static_cast<float>(part.key_width));
  for (std::size_t head = 0; head < std::size_t{2} * part.key_heads; ++head) {
    simd::l2_normalize(mixed.subspan(head * part.key_width, part.key_width), part.epsilon,
                       head < part.key_heads ? scale : 1);
  }
  const std::span<float> decay = scratch.decay.row(row).first(part.value_heads);
  simd::sigmoid(scratch.strength.row(row).first(part.value_heads));
  simd::apply_curve(simd::Curve::kSoftplus, decay);
  simd::multiply_by(decay, part.decay);
  simd::apply_curve(simd::Curve::kExp, decay);
}

// The state decays before it is asked, and so does its answer; what differs from the value is written back.
void scan(const GatedDelta& part, GatedDeltaScratch& scratch, const PieceStep& at) {
  const auto [before, state, head, row, store] = at;
  const std::size_t key_head = head / (part.value_heads / part.key_heads);
  const std::size_t keys = std::size_t{part.key_heads} * part.key_width;
  const std::span<float> mixed = scratch.mixed.row(row);
  const std::span<const float> key = mixed.subspan(keys + key_head * part.key_width, part.key_width);
  const std::span<float> value = mixed.subspan(2 * keys + head * part.value_width, part.value_width);
  const std::span<const float> decay = scratch.decay.row(row).subspan(head, 1);
  const float strength = scratch.strength.row(row)[head];
  simd::delta_step({.decay = decay,
                    .probe = key,
                    .correction = key,
                    .key = key,
                    .query = mixed.subspan(key_head * part.key_width, part.key_width),
                    .value = value,
                    .probe_scale = -strength * decay.front(),
                    .value_scale = strength},
                   before, state, value, store);
}

void gate_output(const GatedDelta& part, GatedDeltaScratch& scratch, std::size_t row) {
  const std::size_t width = part.output.in();
  const std::span<float> gate = scratch.gate.row(row).first(width);
  const std::span<float> read =
      scratch.mixed.row(row).subspan(std::size_t{2} * part.key_heads * part.key_width, width);
  apply(part.norm, read, read);
  simd::activate_gate(simd::Activation::kSilu, gate, read);
  scratch.gate.pack(row, width);
}

}  // namespace

Status reserve(const GatedDelta& part, Workspace& workspace) {
  GatedDeltaScratch& scratch = workspace.recurrent.gated_delta;
  const std::size_t rows = workspace.limits.rows;
  KVASIR_TRY(grow(scratch.mixed, rows, part.mixed.out()));
  KVASIR_TRY(grow(scratch.gate, rows, part.gate.out(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.strength, rows, part.value_heads));
  KVASIR_TRY(grow(scratch.decay, rows, part.value_heads));
  return {};
}

void add_stages(const GatedDelta& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    items.add_product(part.mixed, normed, w.recurrent.gated_delta.mixed.output());
    items.add_product(part.gate, normed, w.recurrent.gated_delta.gate.output());
    items.add_product(part.strength, normed, w.recurrent.gated_delta.strength.output());
    items.add_product(part.time, normed, w.recurrent.gated_delta.decay.output());
  });
  add_convolution(
      part.convolution, [](Workspace& w, std::size_t row) { return w.recurrent.gated_delta.mixed.row(row); },
      stages);
  stages.add_rows(part.mixed.out() * 8, [&part](OpenPass& open, std::size_t row) {
    prepare(part, open.workspace->recurrent.gated_delta, row);
  });
  add_walk(stages, part.state, part.value_heads, std::size_t{part.key_width} * part.value_width * 4,
           [&part](OpenPass& open, const PieceStep& at) {
             scan(part, open.workspace->recurrent.gated_delta, at);
           });
  stages.add_rows(part.output.in() * 8, [&part](OpenPass& open, std::size_t row) {
    gate_output(part, open.workspace->recurrent.gated_delta, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.recurrent.gated_delta.gate.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace kvasir::model
