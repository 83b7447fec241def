// Inside the room: one block at a time, and the table that block_type.h's functions look into.
//
// The layouts are those of the GGUF specification's types. `block` points at info.bytes bytes of any
// alignment, `values` at info.values floats. Every bit pattern of a block is legal: scales may be infinite or
// NaN, and the numbers then are what IEEE arithmetic makes of them.
#pragma once

#include <array>
#include <cstdint>

#include "quant/half.h"

namespace kvasir::quant {

using UnpackBlock = void (*)(const std::uint8_t* block, float* values);
using PackBlock = void (*)(const float* values, std::uint8_t* block);

[[nodiscard]] inline std::uint16_t load_u16(const std::uint8_t* at) noexcept {
  return static_cast<std::uint16_t>(at[0] | (at[1] << 8));
}
[[nodiscard]] inline std::uint32_t load_u32(const std::uint8_t* at) noexcept {
  return static_cast<std::uint32_t>(load_u16(at)) | (static_cast<std::uint32_t>(load_u16(at + 2)) << 16);
}
[[nodiscard]] inline float load_half(const std::uint8_t* at) noexcept {
  return half_to_float(load_u16(at));
}

inline void store_u16(std::uint8_t* at, std::uint16_t value) noexcept {
  at[0] = static_cast<std::uint8_t>(value & 0xFF);
  at[1] = static_cast<std::uint8_t>(value >> 8);
}
inline void store_u32(std::uint8_t* at, std::uint32_t value) noexcept {
  store_u16(at, static_cast<std::uint16_t>(value & 0xFFFF));
  store_u16(at + 2, static_cast<std::uint16_t>(value >> 16));
}

// Q4_K and Q5_K keep eight 6-bit scales and eight 6-bit minima in 12 bytes: the first four of each in the low
// six bits of bytes 0-3 and 4-7; of the others the low nibbles in bytes 8-11 and the top two bits above the
// former.
struct SixBitPairs {
  std::array<int, 8> scales{};
  std::array<int, 8> mins{};
};
[[nodiscard]] inline SixBitPairs load_six_bit_pairs(const std::uint8_t* packed) noexcept {
  SixBitPairs pairs;
  for (int i = 0; i < 4; ++i) {
    pairs.scales[i] = packed[i] & 63;
    pairs.mins[i] = packed[i + 4] & 63;
    pairs.scales[i + 4] = (packed[i + 8] & 15) | ((packed[i] >> 6) << 4);
    pairs.mins[i + 4] = (packed[i + 8] >> 4) | ((packed[i + 4] >> 6) << 4);
  }
  return pairs;
}
inline void store_six_bit_pairs(const SixBitPairs& pairs, std::uint8_t* packed) noexcept {
  for (int i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(pairs.scales[i] | ((pairs.scales[i + 4] >> 4) << 6));
    packed[i + 4] = static_cast<std::uint8_t>(pairs.mins[i] | ((pairs.mins[i + 4] >> 4) << 6));
    packed[i + 8] = static_cast<std::uint8_t>((pairs.scales[i + 4] & 15) | ((pairs.mins[i + 4] & 15) << 4));
  }
}

void unpack_q4_0(const std::uint8_t* block, float* values);
void unpack_q4_1(const std::uint8_t* block, float* values);
void unpack_q5_0(const std::uint8_t* block, float* values);
void unpack_q5_1(const std::uint8_t* block, float* values);
void unpack_q8_0(const std::uint8_t* block, float* values);

void unpack_q2_k(const std::uint8_t* block, float* values);
void unpack_q3_k(const std::uint8_t* block, float* values);
void unpack_q4_k(const std::uint8_t* block, float* values);
void unpack_q5_k(const std::uint8_t* block, float* values);
void unpack_q6_k(const std::uint8_t* block, float* values);

void unpack_iq2_s(const std::uint8_t* block, float* values);
void unpack_iq3_s(const std::uint8_t* block, float* values);
void unpack_iq3_xxs(const std::uint8_t* block, float* values);
void unpack_iq4_nl(const std::uint8_t* block, float* values);
void unpack_iq4_xs(const std::uint8_t* block, float* values);
void unpack_mxfp4(const std::uint8_t* block, float* values);
void unpack_nvfp4(const std::uint8_t* block, float* values);
void unpack_tq1_0(const std::uint8_t* block, float* values);
void unpack_tq2_0(const std::uint8_t* block, float* values);

void pack_q4_0(const float* values, std::uint8_t* block);
void pack_q4_1(const float* values, std::uint8_t* block);
void pack_q5_0(const float* values, std::uint8_t* block);
void pack_q5_1(const float* values, std::uint8_t* block);
void pack_q8_0(const float* values, std::uint8_t* block);
void pack_q2_k(const float* values, std::uint8_t* block);
void pack_q3_k(const float* values, std::uint8_t* block);
void pack_q4_k(const float* values, std::uint8_t* block);
void pack_q5_k(const float* values, std::uint8_t* block);
void pack_q6_k(const float* values, std::uint8_t* block);
void pack_iq4_nl(const float* values, std::uint8_t* block);
void pack_mxfp4(const float* values, std::uint8_t* block);

}  // namespace kvasir::quant
