// The stages of a gated convolution: the gate before it, the convolution, the gate behind it, the output.

#include "base/try.h"
#include "model/part_kinds.h"
#include "model/state_walk.h"
#include "simd/elementwise.h"

namespace kvasir::model {

Status reserve(const GatedConvolution& part, Workspace& workspace) {
  GatedConvolutionScratch& scratch = workspace.recurrent.gated_convolution;
  const std::size_t rows = workspace.limits.rows;
  KVASIR_TRY(grow(scratch.before, rows, part.before.out()));
  KVASIR_TRY(grow(scratch.after, rows, part.after.out()));
  KVASIR_TRY(grow(scratch.input, rows, part.input.out(), workspace.as_bytes));
  return {};
}

void add_stages(const GatedConvolution& part, StageList& stages) {
  const std::size_t channels = part.input.out();
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    items.add_product(part.before, normed, w.recurrent.gated_convolution.before.output());
    items.add_product(part.after, normed, w.recurrent.gated_convolution.after.output());
    items.add_product(part.input, normed, w.recurrent.gated_convolution.input.output());
  });
  stages.add_rows(channels, [channels](OpenPass& open, std::size_t row) {
    GatedConvolutionScratch& scratch = open.workspace->recurrent.gated_convolution;
    simd::multiply_by(scratch.input.row(row).first(channels), scratch.before.row(row).first(channels));
  });
  add_convolution(
      part.convolution,
      [](Workspace& w, std::size_t row) { return w.recurrent.gated_convolution.input.row(row); }, stages);
  stages.add_rows(channels, [channels](OpenPass& open, std::size_t row) {
    GatedConvolutionScratch& scratch = open.workspace->recurrent.gated_convolution;
    simd::multiply_by(scratch.input.row(row).first(channels), scratch.after.row(row).first(channels));
    scratch.input.pack(row, channels);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.recurrent.gated_convolution.input.columns(0, open.rows()),
                      w.product.output());
  });
}

}  // namespace kvasir::model
