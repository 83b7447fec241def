// The stages of a feed-forward part: gate and up, the activation, down.

#include <algorithm>

#include "base/checked.h"
#include "base/try.h"
#include "model/part_kinds.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// The gate, or without one what becomes the input of `down`, is computed in place of it.
const Linear& first_of(const FeedForward& part) {
  return part.gate ? *part.gate : part.up;
}

void activate(const FeedForward& part, FeedForwardScratch& scratch, std::size_t row) {
  const std::size_t width = part.down.in();
  const std::span<float> gate = scratch.gate.row(row).first(width);
  if (part.gate) {
    simd::activate_gate(part.activation, gate, scratch.up.row(row).first(width));
  } else {
    simd::activate(part.activation, gate);
  }
  scratch.gate.pack(row, width);
}

// Of many rows gate, up and the activation are one: what lies between them would not stay near. So many rows
// at a time, of as many outputs as share a scale where `down` reads them.
constexpr std::size_t kRowsAtOnce = 32;
constexpr std::size_t kOutputsAtOnce = simd::kByteBlock;

bool is_one(const FeedForward& part, const OpenPass& open) {
  return open.rows() >= kRowsAtOnce && part.gate && part.gate->weight.takes_bytes() &&
         part.up.weight.takes_bytes() && part.down.weight.takes_bytes();
}

// Some rows of some outputs, one row every kOutputsAtOnce floats.
struct Sums {
  alignas(64) float of[kRowsAtOnce * kOutputsAtOnce];

  [[nodiscard]] std::span<float> row(std::size_t index, std::size_t width) {
    return std::span(of).subspan(index * kOutputsAtOnce, width);
  }
};

void multiply(const Linear& linear, const ProductInput& input, std::size_t first, std::size_t width,
              std::size_t from, std::size_t rows, Sums& out) {
  input.multiply(linear.weight, first / simd::kPanelRows, base::div_up(first + width, simd::kPanelRows), from,
                 rows, {out.of, kOutputsAtOnce, first});
  if (linear.bias.empty()) return;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<float> sums = out.row(row, width);
    for (std::size_t i = 0; i < width; ++i) sums[i] += linear.bias[first + i];
  }
}

std::size_t row_blocks(const OpenPass& open) {
  return base::div_up(open.rows(), kRowsAtOnce);
}

// Rows of the same outputs follow one another, so that their weights are still near.
void activate_products(const FeedForward& part, OpenPass& open, std::size_t item) {
  Workspace& w = *open.workspace;
  const std::size_t first = item / row_blocks(open) * kOutputsAtOnce;
  const std::size_t width = std::min(kOutputsAtOnce, part.down.in() - first);
  const std::size_t from = item % row_blocks(open) * kRowsAtOnce;
  const std::size_t rows = std::min(kRowsAtOnce, open.rows() - from);
  const ProductInput normed = w.normed.columns(0, open.rows());
  Sums gate;  // NOLINT(cppcoreguidelines-pro-type-member-init): 32 KB, written before they are read
  Sums up;    // NOLINT(cppcoreguidelines-pro-type-member-init): as well
  multiply(*part.gate, normed, first, width, from, rows, gate);
  multiply(part.up, normed, first, width, from, rows, up);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<float> gated = gate.row(row, width);
    simd::activate_gate(part.activation, gated, up.row(row, width));
    w.feed_forward.gate.pack_block(from + row, first, gated);
  }
}

void take_share(Workspace& w, std::size_t row) {
  const std::span<float> share = w.feed_forward.share.row(row).first(1);
  simd::sigmoid(share);
  for (float& value : w.product.row(row)) value *= share.front();
}

}  // namespace

Status reserve(const FeedForward& part, Workspace& workspace) {
  FeedForwardScratch& scratch = workspace.feed_forward;
  const std::size_t rows = workspace.limits.rows;
  KVASIR_TRY(grow(scratch.gate, rows, part.down.in(), workspace.as_bytes));
  if (part.gate) KVASIR_TRY(grow(scratch.up, rows, part.down.in()));
  if (part.share) KVASIR_TRY(grow(scratch.share, rows, 1));
  return {};
}

void add_stages(const FeedForward& part, StageList& stages) {
  stages.add({.plan =
                  [&part](OpenPass& open, StageItems& items) {
                    if (!is_one(part, open)) return;
                    items.plan(base::div_up(part.down.in(), kOutputsAtOnce) * row_blocks(open),
                               2 * kOutputsAtOnce * kRowsAtOnce * part.up.in() / kByteGain);
                  },
              .run = [&part](OpenPass& open, std::size_t item) { activate_products(part, open, item); }});
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    if (!is_one(part, open)) {
      items.add_product(first_of(part), normed, w.feed_forward.gate.output());
      if (part.gate) items.add_product(part.up, normed, w.feed_forward.up.output());
    }
    if (part.share) items.add_product(*part.share, normed, w.feed_forward.share.output());
  });
  stages.add({.plan =
                  [&part](OpenPass& open, StageItems& items) {
                    if (!is_one(part, open)) items.plan(open.rows(), part.down.in() * 8);
                  },
              .run = [&part](OpenPass& open,
                             std::size_t row) { activate(part, open.workspace->feed_forward, row); }});
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.down, w.feed_forward.gate.columns(0, open.rows()), w.product.output());
  });
  if (!part.share) return;
  stages.add_rows(part.down.out(), [](OpenPass& open, std::size_t row) { take_share(*open.workspace, row); });
}

}  // namespace kvasir::model
