// Inside the room: where the parts of one row's numbers lie inside its panel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/panel_layout.h"
#include "simd/panels.h"

namespace kvasir::simd {

// One row of a panel of codes. The caller keeps the panel's bytes.
class PanelLane {
 public:
  PanelLane(const std::uint8_t* panel, PanelKind kind, std::size_t lane)
      : panel_(panel), recipe_(recipe_of(kind)), layout_(block_layout(recipe_)), lane_(lane) {
    for (std::size_t step = 0; step < steps_.size(); ++step) steps_[step] = code_pieces(recipe_.bits, step);
  }

  [[nodiscard]] const CodeRecipe& recipe() const { return recipe_; }
  // The code of number k, as stored.
  [[nodiscard]] unsigned code(std::size_t k) const;
  // What belongs to number k, as stored.
  [[nodiscard]] const std::uint8_t* scale(std::size_t k) const { return half(layout_.scale(k)); }
  [[nodiscard]] const std::uint8_t* offset(std::size_t k) const { return half(layout_.offset(k)); }
  [[nodiscard]] std::uint8_t exponent(std::size_t k) const { return panel_[layout_.scale(k) + lane_]; }
  [[nodiscard]] std::uint8_t sub_scale(std::size_t k) const { return panel_[layout_.sub_scale(k) + lane_]; }
  [[nodiscard]] std::uint8_t sub_offset(std::size_t k) const {
    return half(layout_.sub_offset_pair(k))[k / layout_.sub % 2];
  }

 private:
  [[nodiscard]] const std::uint8_t* half(std::size_t at) const { return panel_ + at + lane_ * 2; }

  const std::uint8_t* panel_;
  CodeRecipe recipe_;
  BlockLayout layout_;
  std::size_t lane_;
  std::array<CodePieces, 8> steps_;
};

// A sub-block of a lane: number k is scale x codes[k] + offset, with the zero taken off.
struct SubBlock {
  std::array<std::int16_t, 32> codes{};
  float scale = 0;
  float offset = 0;
  // How they are stored where 256 numbers share factors: super_scale x sub_scale, -(super_offset x
  // sub_offset).
  float super_scale = 0;
  float super_offset = 0;
  std::int8_t sub_scale = 0;
  std::uint8_t sub_offset = 0;
};
void read_sub_block(const PanelLane& lane, std::size_t sub, SubBlock& out) noexcept;

// The numbers of a lane as floats, as quant::unpack gives them.
void read_codes(const PanelLane& lane, std::span<float> out) noexcept;

}  // namespace kvasir::simd
