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

// A row is activated in pieces, so that threads share one row too: whole blocks of bytes.
constexpr std::size_t kPiece = 4 * simd::kByteBlock;

std::size_t pieces_of(const FeedForward& part) {
  return base::div_up(part.down.in(), kPiece);
}

void activate(const FeedForward& part, FeedForwardScratch& scratch, std::size_t row, std::size_t piece) {
  const std::size_t first = piece * kPiece;
  const std::size_t count = std::min(kPiece, part.down.in() - first);
  const std::span<float> gate = scratch.gate.row(row).subspan(first, count);
  if (part.gate) {
    simd::activate_gate(part.activation, gate, scratch.up.row(row).subspan(first, count));
  } else {
    simd::activate(part.activation, gate);
  }
  scratch.gate.pack_block(row, first, gate);
}

// Of many rows gate, up and the activation are fused: what lies between them would not stay near. At most so
// many rows at a time, of as many outputs as share a scale where `down` reads them.
constexpr std::size_t kRowsAtOnce = 32;
constexpr std::size_t kOutputsAtOnce = simd::kByteBlock;

std::size_t row_blocks(const OpenPass& open) {
  return base::div_up(open.rows(), kRowsAtOnce);
}
std::size_t fused_items(const FeedForward& part, const OpenPass& open) {
  return base::div_up(part.down.in(), kOutputsAtOnce) * row_blocks(open);
}

// Not of so few items that threads would wait for one another. No bit depends on it (F1).
bool is_fused(const FeedForward& part, const OpenPass& open, const StageItems& items) {
  return open.rows() >= kRowsAtOnce && part.gate && part.gate->weight.takes_bytes() &&
         part.up.weight.takes_bytes() && part.down.weight.takes_bytes() &&
         fused_items(part, open) >= 4 * items.threads();
}

// Some outputs of some rows of the pass.
struct Block {
  std::size_t first_output = 0;
  std::size_t outputs = 0;
  std::size_t first_row = 0;
  std::size_t rows = 0;
};

// The blocks of the same outputs follow one another, so that their weights are still near.
Block block_of(const FeedForward& part, const OpenPass& open, std::size_t item) {
  const std::size_t blocks = row_blocks(open);
  const std::size_t first_output = item / blocks * kOutputsAtOnce;
  const std::size_t first_row = open.rows() * (item % blocks) / blocks;
  return {first_output, std::min(kOutputsAtOnce, part.down.in() - first_output), first_row,
          open.rows() * (item % blocks + 1) / blocks - first_row};
}

// The sums of a block, one row every kOutputsAtOnce floats.
struct Sums {
  alignas(64) float of[kRowsAtOnce * kOutputsAtOnce];

  [[nodiscard]] std::span<float> row(std::size_t index, std::size_t outputs) {
    return std::span(of).subspan(index * kOutputsAtOnce, outputs);
  }
};

void multiply(const Linear& linear, const ProductInput& input, const Block& block, Sums& out) {
  const std::size_t last = base::div_up(block.first_output + block.outputs, simd::kPanelRows);
  input.some(block.first_row, block.rows)
      .multiply(linear.weight, linear.bias, block.first_output / simd::kPanelRows, last,
                {out.of, kOutputsAtOnce, block.first_output});
}

void run_fused(const FeedForward& part, OpenPass& open, std::size_t item) {
  Workspace& w = *open.workspace;
  const Block block = block_of(part, open, item);
  const ProductInput normed = w.normed.columns(0, open.rows());
  Sums gate;  // NOLINT(cppcoreguidelines-pro-type-member-init): 32 KB, written before they are read
  Sums up;    // NOLINT(cppcoreguidelines-pro-type-member-init): as well
  multiply(first_of(part), normed, block, gate);
  multiply(part.up, normed, block, up);
  for (std::size_t row = 0; row < block.rows; ++row) {
    const std::span<float> gated = gate.row(row, block.outputs);
    simd::activate_gate(part.activation, gated, up.row(row, block.outputs));
    w.feed_forward.gate.pack_block(block.first_row + row, block.first_output, gated);
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

// A pass goes through the first stage, or through the next two.
void add_stages(const FeedForward& part, StageList& stages) {
  stages.add({.plan =
                  [&part](OpenPass& open, StageItems& items) {
                    const std::size_t cost = 2 * kOutputsAtOnce * kRowsAtOnce * part.up.in() / kByteGain;
                    if (is_fused(part, open, items)) items.plan(fused_items(part, open), cost);
                  },
              .run = [&part](OpenPass& open, std::size_t item) { run_fused(part, open, item); }});
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    if (!is_fused(part, open, items)) {
      items.add_product(first_of(part), normed, w.feed_forward.gate.output());
      if (part.gate) items.add_product(part.up, normed, w.feed_forward.up.output());
    }
    if (part.share) items.add_product(*part.share, normed, w.feed_forward.share.output());
  });
  stages.add({.plan =
                  [&part](OpenPass& open, StageItems& items) {
                    if (!is_fused(part, open, items)) items.plan(open.rows() * pieces_of(part), kPiece * 8);
                  },
              .run =
                  [&part](OpenPass& open, std::size_t item) {
                    const std::size_t pieces = pieces_of(part);
                    activate(part, open.workspace->feed_forward, item / pieces, item % pieces);
                  }});
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.down, w.feed_forward.gate.columns(0, open.rows()), w.product.output());
  });
  if (!part.share) return;
  stages.add_rows(part.down.out(), [](OpenPass& open, std::size_t row) { take_share(*open.workspace, row); });
}

}  // namespace kvasir::model
