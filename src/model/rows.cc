#include "model/rows.h"

#include <algorithm>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::model {

Result<FloatRows> FloatRows::allocate(std::size_t rows, std::size_t width) {
  FloatRows out;
  out.width_ = width;
  out.stride_ = (width + simd::kPanelRows - 1) / simd::kPanelRows * simd::kPanelRows;
  const auto bytes = base::checked_product<std::size_t>(rows, out.stride_, sizeof(float));
  if (!bytes)
    return fail(Outcome::kInvalidArgument, "a pass is larger than memory can be", {.setting = "--pass"});
  KVASIR_ASSIGN(out.bytes_, base::Buffer::allocate_on_touch(*bytes));
  return out;
}

void ProductInput::multiply(const simd::Panels& weight, std::span<const float> bias, std::size_t first_panel,
                            std::size_t last_panel, const simd::ProductOutput& output) const noexcept {
  const std::size_t count = floats.count;
  if (weight.takes_bytes()) {
    simd::multiply(weight, first_panel, last_panel, bytes->columns(first, count, weight.columns()), output);
  } else {
    const simd::Activations numbers = {floats.data, count, weight.columns(), floats.stride};
    simd::multiply(weight, first_panel, last_panel, numbers, output);
  }
  if (bias.empty()) return;
  const std::size_t first_row = first_panel * simd::kPanelRows;
  const std::size_t rows = std::min(last_panel * simd::kPanelRows, bias.size()) - first_row;
  for (std::size_t column = 0; column < count; ++column) {
    float* const sums = output.sums(column, first_panel);
    for (std::size_t row = 0; row < rows; ++row) sums[row] += bias[first_row + row];
  }
}

Result<InputRows> InputRows::allocate(std::size_t rows, std::size_t width, bool as_bytes) {
  InputRows out;
  KVASIR_ASSIGN(out.floats_, FloatRows::allocate(rows, width));
  if (as_bytes) {
    KVASIR_ASSIGN(out.bytes_, simd::ByteRows::allocate(rows, width));
  }
  return out;
}

void InputRows::pack(std::size_t index, std::size_t width) noexcept {
  pack_block(index, 0, floats_.row(index).first(width));
}

Status grow(FloatRows& rows, std::size_t count, std::size_t width) {
  if (count <= rows.rows() && width <= rows.width()) return {};
  KVASIR_ASSIGN(rows, FloatRows::allocate(std::max(count, rows.rows()), std::max(width, rows.width())));
  return {};
}

Status grow(InputRows& rows, std::size_t count, std::size_t width, bool as_bytes) {
  if (count <= rows.rows() && width <= rows.width()) return {};
  KVASIR_ASSIGN(rows,
                InputRows::allocate(std::max(count, rows.rows()), std::max(width, rows.width()), as_bytes));
  return {};
}

}  // namespace kvasir::model
