// Inside the room: where the parts of one row's numbers lie inside its panel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/panels.h"

namespace kvasir::simd {

// One row of a panel. The caller keeps the panel's bytes.
template <class Byte>
class PanelLane {
 public:
  PanelLane(Byte* panel, const PanelLayout& layout, std::size_t lane)
      : panel_(panel), layout_(layout), lane_(lane) {}

  [[nodiscard]] Byte* element(std::size_t k, std::size_t width) const {
    return panel_ + layout_.quants + (k * kPanelRows + lane_) * width;
  }
  // The four bytes of a group of an array.
  [[nodiscard]] Byte* four(std::size_t array, std::size_t group) const {
    return panel_ + array + (group * kPanelRows + lane_) * 4;
  }
  [[nodiscard]] Byte* half(std::size_t array, std::size_t block) const {
    return panel_ + array + (block * kPanelRows + lane_) * 2;
  }
  [[nodiscard]] Byte& small(std::size_t array, std::size_t block) const {
    return panel_[array + block * kPanelRows + lane_];
  }
  [[nodiscard]] Byte& of_pair(std::size_t array, std::size_t block) const {
    return panel_[array + (block / 2 * kPanelRows + lane_) * 2 + block % 2];
  }
  [[nodiscard]] const PanelLayout& layout() const { return layout_; }

 private:
  Byte* panel_;
  const PanelLayout& layout_;
  std::size_t lane_;
};

// Rows as they are in the file, one every `stride` bytes, which are whole blocks.
struct RawRows {
  const std::uint8_t* data = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;
};

// Repacks at most kPanelRows rows of `columns` numbers of a kind that is_codes() into a panel of zeros.
void put_codes(PanelKind kind, const RawRows& rows, std::size_t columns, std::uint8_t* panel,
               const PanelLayout& layout);

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
void read_sub_block(PanelKind kind, const PanelLane<const std::uint8_t>& lane, std::size_t sub,
                    SubBlock& out) noexcept;

// The numbers of a lane as floats, as quant::unpack gives them.
void read_codes(PanelKind kind, const PanelLane<const std::uint8_t>& lane, std::span<float> out) noexcept;

}  // namespace kvasir::simd
