// Products over codes in plain C++: for processors without a path of their own.
#include <algorithm>
#include <array>
#include <cmath>

#include "simd/byte_products.h"
#include "simd/panel_lane.h"

namespace kvasir::simd {
namespace {

template <class Number>
using OfRows = std::array<Number, kPanelRows>;

// A sub-block of all rows of a panel.
struct PanelSubBlock {
  std::array<OfRows<std::int32_t>, 32> codes;  // [k][row]
  OfRows<float> scale;                         // where 256 numbers share factors, the sub-block's own
  OfRows<float> offset;                        // as well
  OfRows<float> super_scale;
  OfRows<float> super_offset;
};

// What there is so far of the products of one column: of a block, and of the whole.
struct ColumnSums {
  OfRows<float> part{};
  OfRows<std::int32_t> taken{};
  OfRows<float> total{};
};

void read_panel(const Panels& weights, std::size_t panel, std::size_t sub, PanelSubBlock& out) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.panel(panel));
  const bool shared = recipe_of(weights.kind()).scale == ScaleForm::kSuper;
  SubBlock of_row;
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    read_sub_block({bytes, weights.kind(), row}, sub, of_row);
    for (std::size_t k = 0; k < of_row.codes.size(); ++k) out.codes[k][row] = of_row.codes[k];
    out.scale[row] = shared ? static_cast<float>(of_row.sub_scale) : of_row.scale;
    out.offset[row] = shared ? static_cast<float>(of_row.sub_offset) : of_row.offset;
    out.super_scale[row] = of_row.super_scale;
    out.super_offset[row] = of_row.super_offset;
  }
}

// What a sub-block adds to a column's part of a block; `sum` is that of its bytes.
void add_sub_block(const PanelSubBlock& block, const CodeRecipe& recipe, const std::int8_t* bytes,
                   std::int32_t sum, bool first, ColumnSums& column) {
  OfRows<std::int32_t> whole{};
  for (std::size_t k = 0; k < recipe.sub; ++k) {
    for (std::size_t row = 0; row < kPanelRows; ++row) whole[row] += block.codes[k][row] * bytes[k];
  }
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    const auto number = static_cast<float>(whole[row]);
    float& part = column.part[row];
    // -0 changes no sum, not even its sign.
    const float before = !first ? part : recipe.paired_scale > 0 ? 0.0F : -0.0F;
    part = std::fma(number, block.scale[row], before);
    if (!recipe.offsets) continue;
    if (recipe.scale == ScaleForm::kHalf) {
      part = std::fma(block.offset[row], static_cast<float>(sum), part);
    } else {
      column.taken[row] =
          (first ? 0 : column.taken[row]) + static_cast<std::int32_t>(block.offset[row]) * sum;
    }
  }
}

// What a block adds to a column; `last` is its last sub-block.
void add_block(const PanelSubBlock& last, const CodeRecipe& recipe, float scale, ColumnSums& column) {
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    float& part = column.part[row];
    if (recipe.scale == ScaleForm::kSuper) {
      part *= last.super_scale[row];
      if (recipe.offsets)
        part = std::fma(-static_cast<float>(column.taken[row]), last.super_offset[row], part);
    }
    column.total[row] = std::fma(part, scale, column.total[row]);
  }
}

constexpr std::size_t kColumnsAtOnce = 32;

void multiply_panel(const Panels& weights, std::size_t panel, const ByteColumns& x,
                    const ProductOutput& out) {
  const CodeRecipe recipe = recipe_of(weights.kind());
  const std::int16_t* const sums = recipe.sub == 16 ? x.sums16 : x.sums32;
  std::array<ColumnSums, kColumnsAtOnce> columns{};
  PanelSubBlock block{};
  for (std::size_t k = 0; k < x.width; k += recipe.sub) {
    read_panel(weights, panel, k / recipe.sub, block);
    const bool ends = (k + recipe.sub) % kByteBlock == 0 || k + recipe.sub == x.width;
    for (std::size_t c = 0; c < x.count; ++c) {
      const std::size_t at = c * x.stride + k;
      add_sub_block(block, recipe, x.bytes + at, sums[at / recipe.sub], k % kByteBlock == 0, columns[c]);
      if (ends) add_block(block, recipe, x.scales[at / kByteBlock], columns[c]);
    }
  }
  for (std::size_t c = 0; c < x.count; ++c) std::ranges::copy(columns[c].total, out.sums(c, panel));
}

void multiply_portably(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
                       const ProductOutput& out) {
  for (std::size_t panel = first; panel < last; ++panel) {
    for (std::size_t c = 0; c < x.count; c += kColumnsAtOnce) {
      multiply_panel(weights, panel, x.from(c, std::min(kColumnsAtOnce, x.count - c)),
                     {out.column(c), out.stride, out.first_row});
    }
  }
}

bool runs_here() noexcept {
  return true;
}

}  // namespace

const BytePath kPortableBytes = {"portable", runs_here, multiply_portably};

}  // namespace kvasir::simd
