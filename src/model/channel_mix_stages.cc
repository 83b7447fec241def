// The stages of RWKV's feed-forward part: inputs with a part of the token before, key and gate, squares,
// value.

#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/elementwise.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

FloatRows& first_of(Workspace& workspace) {
  return workspace.recurrent.channel_mix.first;
}

void mix_inputs(const OpenPass& open, const ChannelMix& part, std::size_t row) {
  ChannelMixScratch& scratch = open.workspace->recurrent.channel_mix;
  const std::size_t width = part.key.in();
  const std::span<const float> own = open.workspace->normed.row(row).first(width);
  const std::span<const float> before = row_before(open, scratch.first, row);
  simd::mix(own, before, part.key_lerp, scratch.key_input.row(row).first(width));
  scratch.key_input.pack(row, width);
  if (!part.gate) return;
  simd::mix(own, before, part.gate_lerp, scratch.gate_input.row(row).first(width));
  scratch.gate_input.pack(row, width);
}

}  // namespace

Status reserve(const ChannelMix& part, Workspace& workspace) {
  ChannelMixScratch& scratch = workspace.recurrent.channel_mix;
  const std::size_t rows = workspace.limits.rows;
  KVASIR_TRY(grow(scratch.first, rows, part.key.in()));
  KVASIR_TRY(grow(scratch.key_input, rows, part.key.in(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.hidden, rows, part.key.out(), workspace.as_bytes));
  if (!part.gate) return {};
  KVASIR_TRY(grow(scratch.gate_input, rows, part.gate->in(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.gate, rows, part.gate->out()));
  return {};
}

void add_stages(const ChannelMix& part, StageList& stages) {
  add_token_shift(part.before, first_of, stages);
  stages.add_rows(part.key.in() * 4,
                  [&part](OpenPass& open, std::size_t row) { mix_inputs(open, part, row); });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    ChannelMixScratch& scratch = open.workspace->recurrent.channel_mix;
    items.add_product(part.key, scratch.key_input.columns(0, open.rows()), scratch.hidden.output());
    if (part.gate)
      items.add_product(*part.gate, scratch.gate_input.columns(0, open.rows()), scratch.gate.output());
  });
  stages.add_rows(part.key.out() * 4, [&part](OpenPass& open, std::size_t row) {
    InputRows& hidden = open.workspace->recurrent.channel_mix.hidden;
    simd::activate(simd::Activation::kSquaredRelu, hidden.row(row).first(part.key.out()));
    hidden.pack(row, part.key.out());
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.value, w.recurrent.channel_mix.hidden.columns(0, open.rows()), w.product.output());
  });
  if (!part.gate) return;
  stages.add_rows(part.value.out() * 8, [&part](OpenPass& open, std::size_t row) {
    Workspace& w = *open.workspace;
    const std::span<float> gate = w.recurrent.channel_mix.gate.row(row).first(part.value.out());
    simd::sigmoid(gate);
    simd::multiply_by(w.product.row(row).first(part.value.out()), gate);
  });
}

}  // namespace kvasir::model
