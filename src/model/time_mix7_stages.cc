// The stages of RWKV-7's mixer: inputs with a part of the token before, receptance, key, value, decay, rate
// and gate, what the scan takes of them, the scan, the norm, the bonus and the gate of the output, the
// output.

#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/elementwise.h"
#include "simd/scans.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// The order of TimeMix7's inputs. Those of low rank are the inputs of decay, rate and gate, and the value's
// of what is taken of the first layer's.
enum Input : std::uint8_t { kReceptance, kDecay, kKey, kValue, kRate, kGate };

// Added to the sum of squares of a probe, so that one of zeros stays one of zeros.
constexpr float kProbeEpsilon = 1e-24F;

FloatRows& first_of(Workspace& workspace) {
  return workspace.recurrent.time_mix.first;
}

void mix_inputs(const OpenPass& open, const TimeMix7& part, std::size_t row) {
  TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
  const std::size_t width = part.output.in();
  const std::span<const float> own = open.workspace->normed.row(row).first(width);
  const std::span<const float> before = row_before(open, scratch.first, row);
  for (std::size_t i = 0; i < TimeMix7::kInputs; ++i) {
    simd::mix(own, before, part.lerps[i], scratch.input[i].row(row).first(width));
    scratch.input[i].pack(row, width);
  }
}

// What stands between the matrices of low rank; those of rate and value stay as they are.
void pack_low(const TimeMix7& part, TimeMixScratch& scratch, std::size_t row) {
  const auto low = [&](Input of, const LowRank& rank) {
    return scratch.low[of].row(row).first(rank.down.out());
  };
  simd::apply_curve(simd::Curve::kTanh, low(kDecay, part.decay));
  simd::sigmoid(low(kGate, part.gate));
  scratch.low[kDecay].pack(row, part.decay.down.out());
  scratch.low[kRate].pack(row, part.rate.down.out());
  scratch.low[kGate].pack(row, part.gate.down.out());
  if (part.value_share) scratch.low[kValue].pack(row, part.value_share->down.out());
}

void add_inputs(const TimeMix7& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    const auto input = [&](Input of) { return scratch.input[of].columns(0, open.rows()); };
    items.add_product(part.receptance, input(kReceptance), scratch.receptance.output());
    items.add_product(part.key, input(kKey), scratch.key.output());
    items.add_product(part.value, input(kValue), scratch.value.output());
    items.add_product(part.decay.down, input(kDecay), scratch.low[kDecay].output());
    items.add_product(part.rate.down, input(kRate), scratch.low[kRate].output());
    items.add_product(part.gate.down, input(kGate), scratch.low[kGate].output());
    if (part.value_share)
      items.add_product(part.value_share->down, input(kValue), scratch.low[kValue].output());
  });
  stages.add_rows(
      (part.decay.down.out() + part.gate.down.out()) * 16,
      [&part](OpenPass& open, std::size_t row) { pack_low(part, open.workspace->recurrent.time_mix, row); });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    TimeMixScratch& scratch = open.workspace->recurrent.time_mix;
    const auto low = [&](Input of) { return scratch.low[of].columns(0, open.rows()); };
    items.add_product(part.decay.up, low(kDecay), scratch.decay.output());
    items.add_product(part.rate.up, low(kRate), scratch.correction.output());
    items.add_product(part.gate.up, low(kGate), scratch.gate.output());
    if (part.value_share) items.add_product(part.value_share->up, low(kValue), scratch.share.output());
  });
}

// The first layer's value is kept for the others.
void blend_value(const TimeMix7& part, TimeMixScratch& scratch, std::size_t row) {
  const std::size_t width = part.output.in();
  const std::span<float> value = scratch.value.row(row).first(width);
  const std::span<float> first = scratch.first_value.row(row).first(width);
  if (!part.value_share) {
    std::ranges::copy(value, first.begin());
    return;
  }
  const std::span<float> share = scratch.share.row(row).first(width);
  simd::sigmoid(share);
  simd::mix(value, first, share, value);
}

// The probe is the key, weighed and brought to length 1 head by head; the correction is it times the rate;
// the key becomes key + turn x (rate x key - key).
void prepare(const TimeMix7& part, TimeMixScratch& scratch, std::size_t row) {
  const std::size_t width = part.output.in();
  const std::span<float> key = scratch.key.row(row).first(width);
  const std::span<float> probe = scratch.probe.row(row).first(width);
  const std::span<float> rate = scratch.correction.row(row).first(width);
  simd::apply_curve(simd::Curve::kSlowDecay, scratch.decay.row(row).first(width));
  blend_value(part, scratch, row);
  simd::sigmoid(rate);
  std::ranges::copy(key, probe.begin());
  simd::multiply_by(probe, part.probe);
  for (std::size_t at = 0; at < width; at += part.head_width)
    simd::l2_normalize(probe.subspan(at, part.head_width), kProbeEpsilon, 1);
  const std::span<float> turned = scratch.read.row(row).first(width);
  std::ranges::copy(key, turned.begin());
  simd::multiply_by(turned, rate);
  simd::mix(key, turned, part.turn, key);
  simd::multiply_by(rate, probe);
}

void scan(const TimeMix7& part, TimeMixScratch& scratch, const PieceStep& at) {
  const auto [before, state, head, row, store] = at;
  const std::size_t first = std::size_t{head} * part.head_width;
  const auto of_head = [&](FloatRows& rows) { return rows.row(row).subspan(first, part.head_width); };
  simd::delta_step({.decay = of_head(scratch.decay),
                    .probe = of_head(scratch.probe),
                    .correction = of_head(scratch.correction),
                    .key = of_head(scratch.key),
                    .query = of_head(scratch.receptance),
                    .value = of_head(scratch.value),
                    .probe_scale = -1},
                   before, state, of_head(scratch.read), store);
}

void gate_output(const TimeMix7& part, TimeMixScratch& scratch, std::size_t row) {
  const std::size_t width = part.output.in();
  const std::span<float> read = scratch.read.row(row).first(width);
  apply(part.norm, read, read);
  for (std::size_t at = 0; at < width; at += part.head_width) {
    const auto of_head = [&](FloatRows& rows) { return rows.row(row).subspan(at, part.head_width); };
    const float bonus = simd::dot(of_head(scratch.key), of_head(scratch.receptance),
                                  std::span(part.bonus).subspan(at, part.head_width));
    simd::add_scaled(bonus, of_head(scratch.value), read.subspan(at, part.head_width));
  }
  simd::multiply_by(scratch.gate.row(row).first(width), read);
  scratch.gate.pack(row, width);
}

Status reserve_low(const LowRank& rank, InputRows& low, Workspace& workspace) {
  return grow(low, workspace.limits.rows, rank.down.out(), workspace.as_bytes);
}

}  // namespace

Status reserve(const TimeMix7& part, Workspace& workspace) {
  TimeMixScratch& scratch = workspace.recurrent.time_mix;
  const std::size_t rows = workspace.limits.rows;
  const std::size_t width = part.output.in();
  KVASIR_TRY(grow(scratch.first, rows, width));
  for (InputRows& input : scratch.input) KVASIR_TRY(grow(input, rows, width, workspace.as_bytes));
  KVASIR_TRY(reserve_low(part.decay, scratch.low[kDecay], workspace));
  KVASIR_TRY(reserve_low(part.rate, scratch.low[kRate], workspace));
  KVASIR_TRY(reserve_low(part.gate, scratch.low[kGate], workspace));
  if (part.value_share) KVASIR_TRY(reserve_low(*part.value_share, scratch.low[kValue], workspace));
  for (FloatRows* const some :
       {&scratch.receptance, &scratch.key, &scratch.value, &scratch.decay, &scratch.probe,
        &scratch.correction, &scratch.share, &scratch.first_value, &scratch.read})
    KVASIR_TRY(grow(*some, rows, width));
  return grow(scratch.gate, rows, width, workspace.as_bytes);
}

void add_stages(const TimeMix7& part, StageList& stages) {
  const std::size_t width = part.output.in();
  add_token_shift(part.before, first_of, stages);
  stages.add_rows(width * 4 * TimeMix7::kInputs,
                  [&part](OpenPass& open, std::size_t row) { mix_inputs(open, part, row); });
  add_inputs(part, stages);
  stages.add_rows(width * 48, [&part](OpenPass& open, std::size_t row) {
    prepare(part, open.workspace->recurrent.time_mix, row);
  });
  add_walk(
      stages, part.state, part.heads(), std::size_t{part.head_width} * part.head_width * 4,
      [&part](OpenPass& open, const PieceStep& at) { scan(part, open.workspace->recurrent.time_mix, at); });
  stages.add_rows(width * 8, [&part](OpenPass& open, std::size_t row) {
    gate_output(part, open.workspace->recurrent.time_mix, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.recurrent.time_mix.gate.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace kvasir::model
