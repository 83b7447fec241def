#include "simd/panel_lane.h"

#include <array>

#include "quant/codec.h"
#include "quant/half.h"

namespace kvasir::simd {

unsigned PanelLane::code(std::size_t k) const {
  const std::size_t in = k % 32;
  const auto bit = [&] { return bits(k, 0, in / 4, 1); };
  const auto pair = [&] { return bits(k, pair_line(recipe_.bits, in / 16), in % 16 / 4 * 2, 3); };
  if (recipe_.bits == 8) return bits(k, in / 4, 0, 0xFF);
  if (recipe_.bits == 2) return pair();
  if (recipe_.bits == 3) return pair() | bit() << 2;
  const unsigned nibble = bits(k, nibble_line(recipe_.bits, in / 8), in % 8 / 4 * 4, 15);
  if (recipe_.bits == 5) return nibble | bit() << 4;
  if (recipe_.bits == 6) return nibble | pair() << 4;
  return nibble;
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
