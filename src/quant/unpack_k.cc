// The K types: 256 values in sub-blocks of 16 or 32 whose integer scales (and minima) share half-float
// factors.
#include "quant/codec.h"

namespace kvasir::quant {
namespace {

constexpr int kValues = 256;

// Q3_K keeps sixteen 6-bit scales, biased by 32, in 12 bytes: low nibbles in bytes 0-7 (scale i low and scale
// i + 8 high), the top two bits in bytes 8-11, four scales to a byte at a distance of four.
int q3_scale(const std::uint8_t* packed, int index) {
  const int low = index < 8 ? packed[index] & 15 : packed[index - 8] >> 4;
  const int top = (packed[8 + index % 4] >> (2 * (index / 4))) & 3;
  return (low | (top << 4)) - 32;
}

}  // namespace

// Bytes 0-15: scale (low) and minimum (high) of 16 sub-blocks; then 64 bytes of 2-bit numbers, the two
// factors. In each half of 128 values, byte l of 32 holds values l, l + 32, l + 64 and l + 96.
void unpack_q2_k(const std::uint8_t* block, float* values) {
  const std::uint8_t* numbers = block + 16;
  const float scale = load_half(block + 80);
  const float min = load_half(block + 82);
  for (int i = 0; i < kValues / 16; ++i) {
    const float sub_scale = scale * static_cast<float>(block[i] & 15);
    const float sub_min = min * static_cast<float>(block[i] >> 4);
    const std::uint8_t* bytes = numbers + 32 * (i / 8) + 16 * (i % 2);
    const int shift = 2 * ((i % 8) / 2);
    for (int l = 0; l < 16; ++l) {
      values[16 * i + l] = sub_scale * static_cast<float>((bytes[l] >> shift) & 3) - sub_min;
    }
  }
}

// Bytes 0-31: the third bits (bit k of byte l: values l of the k-th 32); then the 2-bit numbers as in Q2_K,
// 12 bytes of scales, the factor. Where the third bit is clear the number is 4 less.
void unpack_q3_k(const std::uint8_t* block, float* values) {
  const std::uint8_t* scales = block + 96;
  const float scale = load_half(block + 108);
  for (int i = 0; i < kValues / 16; ++i) {
    const float sub_scale = scale * static_cast<float>(q3_scale(scales, i));
    const std::uint8_t* third = block + 16 * (i % 2);
    const std::uint8_t* bytes = block + 32 + 32 * (i / 8) + 16 * (i % 2);
    const int shift = 2 * ((i % 8) / 2);
    const int bit = i / 2;
    for (int l = 0; l < 16; ++l) {
      const int number = ((bytes[l] >> shift) & 3) - (((third[l] >> bit) & 1) != 0 ? 0 : 4);
      values[16 * i + l] = sub_scale * static_cast<float>(number);
    }
  }
}

// The two factors, 12 bytes of scales and minima, then nibbles: byte l of each 32 holds value l of one
// sub-block low and of the next high.
void unpack_q4_k(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const float min = load_half(block + 2);
  const std::uint8_t* nibbles = block + 16;
  const SixBitPairs pairs = load_six_bit_pairs(block + 4);
  for (int i = 0; i < kValues / 32; ++i) {
    const float sub_scale = scale * static_cast<float>(pairs.scales[i]);
    const float sub_min = min * static_cast<float>(pairs.mins[i]);
    const std::uint8_t* bytes = nibbles + 32 * (i / 2);
    const int shift = 4 * (i % 2);
    for (int l = 0; l < 32; ++l) {
      values[32 * i + l] = sub_scale * static_cast<float>((bytes[l] >> shift) & 15) - sub_min;
    }
  }
}

// As Q4_K, with 32 bytes of fifth bits (bit i of byte l: value l of sub-block i) before the nibbles.
void unpack_q5_k(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const float min = load_half(block + 2);
  const std::uint8_t* fifth = block + 16;
  const std::uint8_t* nibbles = block + 48;
  const SixBitPairs pairs = load_six_bit_pairs(block + 4);
  for (int i = 0; i < kValues / 32; ++i) {
    const float sub_scale = scale * static_cast<float>(pairs.scales[i]);
    const float sub_min = min * static_cast<float>(pairs.mins[i]);
    const std::uint8_t* bytes = nibbles + 32 * (i / 2);
    const int shift = 4 * (i % 2);
    for (int l = 0; l < 32; ++l) {
      const int number = ((bytes[l] >> shift) & 15) | (((fifth[l] >> i) & 1) << 4);
      values[32 * i + l] = sub_scale * static_cast<float>(number) - sub_min;
    }
  }
}

// 128 bytes of low nibbles, 64 of top bit pairs, 16 signed scales, the factor. In each half of 128 values the
// nibbles of byte l of 64 are values l and l + 64, the pairs of byte l of 32 values l, l + 32, l + 64, l
// + 96.
void unpack_q6_k(const std::uint8_t* block, float* values) {
  const float scale = load_half(block + 208);
  for (int i = 0; i < kValues / 16; ++i) {
    const float sub_scale = scale * static_cast<float>(static_cast<std::int8_t>(block[192 + i]));
    const int half = i / 8;
    const int within = i % 8;  // which 16 of the half's 128
    const std::uint8_t* low = block + 64 * half + 16 * (within % 4);
    const std::uint8_t* top = block + 128 + 32 * half + 16 * (within % 2);
    const int low_shift = 4 * (within / 4);
    const int top_shift = 2 * (within / 2);
    for (int l = 0; l < 16; ++l) {
      const int number = ((low[l] >> low_shift) & 15) | (((top[l] >> top_shift) & 3) << 4);
      values[16 * i + l] = sub_scale * static_cast<float>(number - 32);
    }
  }
}

}  // namespace kvasir::quant
