// Products over codes in plain C++: for processors without a path of their own.
#include <array>
#include <cmath>

#include "simd/byte_products.h"
#include "simd/panel_lane.h"

namespace kvasir::simd {
namespace {

// A sub-block of all rows of a panel.
struct PanelSubBlock {
  std::array<std::array<std::int32_t, kPanelRows>, 32> codes;  // [k][row]
  std::array<float, kPanelRows> scale;
  std::array<float, kPanelRows> offset;
};

using Sums = std::array<float, kPanelRows>;

void read_panel(const Panels& weights, std::size_t panel, std::size_t sub, PanelSubBlock& out) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.panel(panel));
  SubBlock of_row;
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    read_sub_block(weights.kind(), {bytes, weights.layout(), row}, sub, of_row);
    for (std::size_t k = 0; k < of_row.codes.size(); ++k) out.codes[k][row] = of_row.codes[k];
    out.scale[row] = of_row.scale;
    out.offset[row] = of_row.offset;
  }
}

// What a sub-block adds to a column's part of a block; `sum` is that of its bytes.
void add_sub_block(const PanelSubBlock& block, const CodeRecipe& recipe, const std::int8_t* bytes,
                   std::int32_t sum, bool first, Sums& part) {
  std::array<std::int32_t, kPanelRows> whole{};
  for (std::size_t k = 0; k < recipe.sub; ++k) {
    for (std::size_t row = 0; row < kPanelRows; ++row) whole[row] += block.codes[k][row] * bytes[k];
  }
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    const auto number = static_cast<float>(whole[row]);
    part[row] = first ? number * block.scale[row] : std::fma(number, block.scale[row], part[row]);
    if (recipe.offsets) part[row] = std::fma(block.offset[row], static_cast<float>(sum), part[row]);
  }
}

constexpr std::size_t kColumnsAtOnce = 32;

void multiply_panel(const Panels& weights, std::size_t panel, const ByteColumns& x,
                    const ProductOutput& out) {
  const CodeRecipe recipe = recipe_of(weights.kind());
  const std::size_t subs = recipe.block / recipe.sub;
  const std::int32_t* const sums = recipe.sub == 16 ? x.sums16 : x.sums32;
  std::array<Sums, kColumnsAtOnce> totals{};
  std::array<Sums, kColumnsAtOnce> parts{};
  PanelSubBlock block{};
  for (std::size_t sub = 0; sub < x.width / recipe.sub; ++sub) {
    read_panel(weights, panel, sub, block);
    for (std::size_t c = 0; c < x.count; ++c) {
      const std::size_t at = c * x.stride + sub * recipe.sub;
      add_sub_block(block, recipe, x.bytes + at, sums[at / recipe.sub], sub % subs == 0, parts[c]);
      if (sub % subs + 1 < subs) continue;
      const float scale = x.scales[at / recipe.block];
      for (std::size_t row = 0; row < kPanelRows; ++row) {
        totals[c][row] = std::fma(parts[c][row], scale, totals[c][row]);
      }
    }
  }
  for (std::size_t c = 0; c < x.count; ++c) {
    for (std::size_t row = 0; row < kPanelRows; ++row)
      out.column(c)[panel * kPanelRows + row] = totals[c][row];
  }
}

void multiply_portably(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
                       const ProductOutput& out) {
  for (std::size_t panel = first; panel < last; ++panel) {
    for (std::size_t c = 0; c < x.count; c += kColumnsAtOnce) {
      multiply_panel(weights, panel, x.from(c, std::min(kColumnsAtOnce, x.count - c)),
                     {out.column(c), out.stride});
    }
  }
}

bool runs_here() noexcept {
  return true;
}

}  // namespace

const BytePath kPortableBytes = {"portable", runs_here, multiply_portably};

}  // namespace kvasir::simd
