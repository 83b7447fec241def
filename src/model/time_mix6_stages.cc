// The stages of RWKV-6's mixer: how much of the token before goes into each input, the inputs, receptance,
// key, value, decay and gate, the scan, the norm and the gate of the output, the output.

#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/elementwise.h"
#include "simd/scans.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// The order of TimeMix6's inputs.
enum Input : std::uint8_t { kDecay, kKey, kValue, kReceptance, kGate };

FloatRows& first_of(Workspace& workspace) {
  return workspace.recurrent.time_mix.first;
}

void add_lerps(const TimeMix6& part, StageList& stages) {
  const std::size_t width = part.output.in();
  stages.add_rows(width * 4, [&part, width](OpenPass& open, std::size_t row) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    simd::mix(open.workspace->normed.row(row).first(width), row_before(open, scratch.first, row),
              part.first_lerp, scratch.start.row(row).first(width));
    scratch.start.pack(row, width);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    const ProductInput start = scratch.start.columns(0, open.rows());
    for (std::size_t i = 0; i < TimeMix6::kInputs; ++i)
      items.add_product(part.lerps[i].down, start, scratch.low[i].output());
  });
  stages.add_rows(TimeMix6::kInputs * part.lerps[0].down.out() * 16,
                  [&part](OpenPass& open, std::size_t row) {
                    for (std::size_t i = 0; i < TimeMix6::kInputs; ++i) {
                      InputRows& low = open.workspace->recurrent.time_mix.low[i];
                      const std::size_t rank = part.lerps[i].down.out();
                      simd::apply_curve(simd::Curve::kTanh, low.row(row).first(rank));
                      low.pack(row, rank);
                    }
                  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    for (std::size_t i = 0; i < TimeMix6::kInputs; ++i) {
      items.add_product(part.lerps[i].up, scratch.low[i].columns(0, open.rows()), scratch.input[i].output());
    }
  });
  stages.add_rows(TimeMix6::kInputs * width * 4, [width](OpenPass& open, std::size_t row) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    const std::span<const float> own = open.workspace->normed.row(row).first(width);
    for (std::size_t i = 0; i < TimeMix6::kInputs; ++i) {
      const std::span<float> lerp = scratch.input[i].row(row).first(width);
      simd::mix(own, row_before(open, scratch.first, row), lerp, lerp);
      scratch.input[i].pack(row, width);
    }
  });
}

void add_inputs(const TimeMix6& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    const auto input = [&](Input of) { return scratch.input[of].columns(0, open.rows()); };
    items.add_product(part.receptance, input(kReceptance), scratch.receptance.output());
    items.add_product(part.key, input(kKey), scratch.key.output());
    items.add_product(part.value, input(kValue), scratch.value.output());
    items.add_product(part.gate, input(kGate), scratch.gate.output());
    items.add_product(part.decay.down, input(kDecay), scratch.low[kDecay].output());
  });
  stages.add_rows(part.decay.down.out() * 16, [&part](OpenPass& open, std::size_t row) {
    InputRows& low = open.workspace->recurrent.time_mix.low[kDecay];
    simd::apply_curve(simd::Curve::kTanh, low.row(row).first(part.decay.down.out()));
    low.pack(row, part.decay.down.out());
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    items.add_product(part.decay.up, scratch.low[kDecay].columns(0, open.rows()), scratch.decay.output());
  });
  stages.add_rows(part.output.in() * 24, [&part](OpenPass& open, std::size_t row) {
    simd::apply_curve(simd::Curve::kExpOfMinusExp,
                      open.workspace->recurrent.time_mix.decay.row(row).first(part.output.in()));
  });
}

void scan(const TimeMix6& part, TimeMixScratch& scratch, const PieceStep& at) {
  const auto [before, state, head, row, store] = at;
  const std::size_t first = std::size_t{head} * part.head_width;
  const auto of_head = [&](FloatRows& rows) { return rows.row(row).subspan(first, part.head_width); };
  const std::span<const float> receptance = of_head(scratch.receptance);
  const std::span<const float> key = of_head(scratch.key);
  simd::outer_step({.decay = of_head(scratch.decay),
                    .key = key,
                    .query = receptance,
                    .value = of_head(scratch.value),
                    .skip = simd::dot(receptance, key, std::span(part.bonus).subspan(first, part.head_width)),
                    .reads_before = true},
                   before, state, of_head(scratch.read), store);
}

void gate_output(const TimeMix6& part, TimeMixScratch& scratch, std::size_t row) {
  const std::size_t width = part.output.in();
  const std::span<float> read = scratch.read.row(row).first(width);
  const std::span<float> gate = scratch.gate.row(row).first(width);
  apply(part.norm, read, read);
  simd::activate_gate(simd::Activation::kSilu, gate, read);
  scratch.gate.pack(row, width);
}

}  // namespace

Status reserve(const TimeMix6& part, Workspace& workspace) {
  TimeMixScratch& scratch = workspace.recurrent.time_mix;
  const std::size_t rows = workspace.limits.rows;
  const std::size_t width = part.output.in();
  KVASIR_TRY(grow(scratch.first, rows, width));
  KVASIR_TRY(grow(scratch.start, rows, width, workspace.as_bytes));
  for (std::size_t i = 0; i < TimeMix6::kInputs; ++i) {
    KVASIR_TRY(grow(scratch.input[i], rows, width, workspace.as_bytes));
    KVASIR_TRY(grow(scratch.low[i], rows, part.lerps[i].down.out(), workspace.as_bytes));
  }
  KVASIR_TRY(grow(scratch.low[kDecay], rows, part.decay.down.out(), workspace.as_bytes));
  for (FloatRows* const some :
       {&scratch.receptance, &scratch.key, &scratch.value, &scratch.decay, &scratch.read})
    KVASIR_TRY(grow(*some, rows, width));
  return grow(scratch.gate, rows, width, workspace.as_bytes);
}

void add_stages(const TimeMix6& part, StageList& stages) {
  add_token_shift(part.before, first_of, stages);
  add_lerps(part, stages);
  add_inputs(part, stages);
  add_walk(
      stages, part.state, part.heads(), std::size_t{part.head_width} * part.head_width * 2,
      [&part](OpenPass& open, const PieceStep& at) { scan(part, open.workspace->recurrent.time_mix, at); });
  stages.add_rows(part.output.in() * 16, [&part](OpenPass& open, std::size_t row) {
    gate_output(part, open.workspace->recurrent.time_mix, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.recurrent.time_mix.gate.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace kvasir::model
