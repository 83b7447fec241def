#include "model/stages.h"

#include <algorithm>

#include "base/checked.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// Multiply-adds of a job for each thread: under a millisecond, and long beside what starting one costs.
constexpr std::size_t kJobWork = 32'000'000;

// Columns that one product item takes: enough to pay for decoding its weights, few enough for small jobs.
constexpr std::size_t kColumnBlock = 64;

}  // namespace

void StageItems::clear() noexcept {
  products_.clear();
  items_ = 0;
}

// Only how much a job does follows from it, and no bit from that (F1).
void StageItems::plan(std::size_t items, std::size_t cost_of_item) noexcept {
  items_ = items;
  // The same number for every thread: a job ends with its last.
  job_items_ = threads_ * std::max<std::size_t>(1, kJobWork / (cost_of_item + 1));
}

std::size_t StageItems::Product::items() const noexcept {
  return base::div_up(weight->panel_count(), simd::kPanelGroup) *
         base::div_up(input.floats.count, kColumnBlock);
}

void StageItems::add_product(const simd::Panels& weight, std::span<const float> bias,
                             const ProductInput& input, simd::ProductOutput output) {
  products_.push_back({&weight, bias, input, output});
  const std::size_t cost =
      simd::kPanelGroup * simd::kPanelRows * weight.columns() * std::min(input.floats.count, kColumnBlock);
  plan(items_ + products_.back().items(), weight.takes_bytes() ? cost / kByteGain : cost);
}

void StageItems::multiply(std::size_t item) const noexcept {
  const Product* product = products_.data();
  while (item >= product->items()) item -= (product++)->items();
  // Columns of the same panels follow one another, so that decoded weights are still near.
  const std::size_t column_blocks = base::div_up(product->input.floats.count, kColumnBlock);
  const std::size_t first_panel = item / column_blocks * simd::kPanelGroup;
  const std::size_t last_panel = std::min(first_panel + simd::kPanelGroup, product->weight->panel_count());
  const std::size_t first_column = item % column_blocks * kColumnBlock;
  const std::size_t columns = std::min(kColumnBlock, product->input.floats.count - first_column);
  const simd::ProductOutput output{product->output.column(first_column), product->output.stride,
                                   product->output.first_row};
  product->input.some(first_column, columns)
      .multiply(*product->weight, product->bias, first_panel, last_panel, output);
}

void StageList::add_rows(std::size_t cost, std::function<void(OpenPass&, std::size_t)> run) {
  add({.plan = [cost](OpenPass& open, StageItems& items) { items.plan(open.rows(), cost); },
       .run = std::move(run)});
}

}  // namespace kvasir::model
