// Inside the room: plain floats as blocks of one value, inline so that a run of them is one loop.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "quant/codec.h"
#include "quant/fit.h"

namespace kvasir::quant {

inline void unpack_f32(const std::uint8_t* block, float* values) {
  *values = std::bit_cast<float>(load_u32(block));
}
inline void unpack_f16(const std::uint8_t* block, float* values) {
  *values = load_half(block);
}
inline void unpack_bf16(const std::uint8_t* block, float* values) {
  *values = bfloat_to_float(load_u16(block));
}

inline void pack_f32(const float* values, std::uint8_t* block) {
  store_u32(block, std::bit_cast<std::uint32_t>(tame(*values, std::numeric_limits<float>::max())));
}
inline void pack_f16(const float* values, std::uint8_t* block) {
  store_u16(block, float_to_half(tame(*values, kLargestHalf)));
}
inline void pack_bf16(const float* values, std::uint8_t* block) {
  constexpr float kLargestBfloat = 0x1.FEp127F;
  store_u16(block, float_to_bfloat(tame(*values, kLargestBfloat)));
}

}  // namespace kvasir::quant
