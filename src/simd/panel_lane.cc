#include "simd/panel_lane.h"

#include <array>
#include <span>

#include "quant/codec.h"
#include "quant/half.h"

namespace kvasir::simd {

unsigned PanelLane::code(std::size_t k) const {
  const CodePieces& pieces = steps_[k % 32 / 4];
  unsigned code = 0;
  for (const CodePiece& piece : std::span(pieces.of).first(pieces.count)) {
    const unsigned byte = panel_[layout_.line(k, piece.line) + lane_ * 4 + k % 4];
    code |= ((byte >> piece.from) & ((1U << piece.bits) - 1U)) << piece.to;
  }
  return code;
}

void read_sub_block(const PanelLane& lane, std::size_t sub, SubBlock& out) noexcept {
  const CodeRecipe& recipe = lane.recipe();
  const std::size_t k = sub * recipe.sub;
  out.offset = 0;
  if (recipe.scale == ScaleForm::kSuper) {
    out.super_scale = quant::load_half(lane.scale(k)) * recipe.factor;
    out.sub_scale = static_cast<std::int8_t>(lane.sub_scale(k));
    out.scale = out.super_scale * static_cast<float>(out.sub_scale);
    if (recipe.offsets) {
      out.super_offset = quant::load_half(lane.offset(k));
      out.sub_offset = lane.sub_offset(k);
      out.offset = -(out.super_offset * static_cast<float>(out.sub_offset));
    }
  } else if (recipe.scale == ScaleForm::kExponent) {
    out.scale = quant::half_power_of_two(lane.exponent(k));
  } else {
    out.scale = quant::load_half(lane.scale(k));
    if (recipe.offsets) out.offset = quant::load_half(lane.offset(k));
  }
  const std::array<std::int8_t, 16> numbers = numbers_of(recipe.table);
  for (std::size_t i = 0; i < recipe.sub; ++i) {
    const unsigned code = lane.code(k + i);
    const int number =
        recipe.table != CodeTable::kNone ? numbers[code] : static_cast<int>(code) - recipe.zero();
    out.codes[i] = static_cast<std::int16_t>(number);
  }
}

void read_codes(const PanelLane& lane, std::span<float> out) noexcept {
  const CodeRecipe& recipe = lane.recipe();
  SubBlock block;
  for (std::size_t sub = 0; sub < out.size() / recipe.sub; ++sub) {
    read_sub_block(lane, sub, block);
    for (std::size_t i = 0; i < recipe.sub; ++i) {
      const float number = block.scale * static_cast<float>(block.codes[i]);
      out[sub * recipe.sub + i] = recipe.offsets ? number + block.offset : number;
    }
  }
}

}  // namespace kvasir::simd
