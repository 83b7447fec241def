// The stages of a feed-forward part: gate and up, the activation, down.

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
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    items.add_product(first_of(part), normed, w.feed_forward.gate.output());
    if (part.gate) items.add_product(part.up, normed, w.feed_forward.up.output());
    if (part.share) items.add_product(*part.share, normed, w.feed_forward.share.output());
  });
  stages.add_rows(part.down.in() * 8, [&part](OpenPass& open, std::size_t row) {
    activate(part, open.workspace->feed_forward, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.down, w.feed_forward.gate.columns(0, open.rows()), w.product.output());
  });
  if (!part.share) return;
  stages.add_rows(part.down.out(), [](OpenPass& open, std::size_t row) { take_share(*open.workspace, row); });
}

}  // namespace kvasir::model
