// The types of 32 values under one or two half-float scales.
#include "quant/codec.h"

namespace kvasir::quant {

// Of the 32 values of a block, byte j of the nibbles holds value j low and value j + 16 high; where there is
// a fifth bit, it is bit j of a 32-bit word.

void unpack_q4_0(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const std::uint8_t* nibbles = block + 2;
  for (int j = 0; j < 16; ++j) {
    values[j] = static_cast<float>((nibbles[j] & 15) - 8) * scale;
    values[j + 16] = static_cast<float>((nibbles[j] >> 4) - 8) * scale;
  }
}

void unpack_q4_1(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const float least = load_half(block + 2);
  const std::uint8_t* nibbles = block + 4;
  for (int j = 0; j < 16; ++j) {
    values[j] = static_cast<float>(nibbles[j] & 15) * scale + least;
    values[j + 16] = static_cast<float>(nibbles[j] >> 4) * scale + least;
  }
}

void unpack_q5_0(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const std::uint32_t fifth = load_u32(block + 2);
  const std::uint8_t* nibbles = block + 6;
  for (int j = 0; j < 16; ++j) {
    const int low = (nibbles[j] & 15) | static_cast<int>(((fifth >> j) & 1U) << 4);
    const int high = (nibbles[j] >> 4) | static_cast<int>(((fifth >> (j + 16)) & 1U) << 4);
    values[j] = static_cast<float>(low - 16) * scale;
    values[j + 16] = static_cast<float>(high - 16) * scale;
  }
}

void unpack_q5_1(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const float least = load_half(block + 2);
  const std::uint32_t fifth = load_u32(block + 4);
  const std::uint8_t* nibbles = block + 8;
  for (int j = 0; j < 16; ++j) {
    const int low = (nibbles[j] & 15) | static_cast<int>(((fifth >> j) & 1U) << 4);
    const int high = (nibbles[j] >> 4) | static_cast<int>(((fifth >> (j + 16)) & 1U) << 4);
    values[j] = static_cast<float>(low) * scale + least;
    values[j + 16] = static_cast<float>(high) * scale + least;
  }
}

void unpack_q8_0(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  for (int j = 0; j < 32; ++j) values[j] = static_cast<float>(static_cast<std::int8_t>(block[2 + j])) * scale;
}

}  // namespace kvasir::quant
