// The types whose numbers index a table: 4-bit floats, non-linear nibbles, grids of points, and ternary
// digits.
#include <algorithm>
#include <array>
#include <bit>

#include "quant/codebooks.h"
#include "quant/codec.h"

namespace kvasir::quant {
namespace {

// `pairs` bytes of nibbles under one scale: the low ones are the first `pairs` values, the high ones the
// next.
void look_up_nibbles(const std::array<std::int8_t, 16>& table, float scale, const std::uint8_t* nibbles,
                     int pairs, float* values) {
  for (int j = 0; j < pairs; ++j) {
    values[j] = scale * static_cast<float>(table[nibbles[j] & 15]);
    values[j + pairs] = scale * static_cast<float>(table[nibbles[j] >> 4]);
  }
}

// `count` magnitudes with a bit of `signs` each; a set bit is a minus.
void apply_signs(float scale, const std::uint8_t* magnitudes, std::uint32_t signs, int count, float* values) {
  for (int j = 0; j < count; ++j) {
    const float magnitude = scale * static_cast<float>(magnitudes[j]);
    values[j] = ((signs >> j) & 1U) != 0 ? -magnitude : magnitude;
  }
}

// The eight magnitudes of two points of four levels.
std::array<std::uint8_t, 8> two_points(std::uint16_t first, std::uint16_t second,
                                       const std::array<std::uint8_t, 8>& levels) {
  std::array<std::uint8_t, 8> magnitudes{};
  for (int j = 0; j < 4; ++j) {
    magnitudes[j] = levels[(first >> (4 * j)) & 7];
    magnitudes[j + 4] = levels[(second >> (4 * j)) & 7];
  }
  return magnitudes;
}

std::array<std::uint8_t, 8> point_of_eight(std::uint16_t point) {
  std::array<std::uint8_t, 8> magnitudes{};
  for (int j = 0; j < 8; ++j) magnitudes[j] = kLevelsIq2S[(point >> (2 * j)) & 3];
  return magnitudes;
}

}  // namespace

void unpack_iq4_nl(const std::uint8_t* block, float* values) {
  look_up_nibbles(kNonLinear4, load_half(block), block + 2, 16, values);
}

// The factor, a word of top scale bits (two a sub-block), 4 bytes of low scale nibbles, then nibbles; scales
// of 32 values are biased by 32.
void unpack_iq4_xs(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  const std::uint16_t top = load_u16(block + 2);
  for (int i = 0; i < 8; ++i) {
    const int low = (block[4 + i / 2] >> (4 * (i % 2))) & 15;
    const int sub = (low | (((top >> (2 * i)) & 3) << 4)) - 32;
    look_up_nibbles(kNonLinear4, scale * static_cast<float>(sub), block + 8 + 16 * i, 16, values + 32 * i);
  }
}

void unpack_mxfp4(const std::uint8_t* block, float* values) {
  look_up_nibbles(kTwiceFloat4, half_power_of_two(block[0]), block + 1, 16, values);
}

// Four scales, then 8 bytes of nibbles for each 16 values.
void unpack_nvfp4(const std::uint8_t* block, float* values) {
  for (int i = 0; i < 4; ++i) {
    look_up_nibbles(kTwiceFloat4, half_float8(block[i]), block + 4 + 8 * i, 8, values + 16 * i);
  }
}

// The factor, 64 point indices (four values each), then for each 32 values a word: four groups of seven sign
// bits, the eighth sign making their number even, and the scale above them.
void unpack_iq3_xxs(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t word = load_u32(block + 66 + 4 * i);
    const float sub_scale = scale * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
    for (int l = 0; l < 4; ++l) {
      const std::uint32_t seven = (word >> (7 * l)) & 127U;
      const std::uint32_t signs = seven | (static_cast<std::uint32_t>(std::popcount(seven) & 1) << 7);
      const std::uint8_t* index = block + 2 + 8 * i + 2 * l;
      const auto magnitudes = two_points(kGridIq3Xxs[index[0]], kGridIq3Xxs[index[1]], kLevelsIq3Xxs);
      apply_signs(sub_scale, magnitudes.data(), signs, 8, values + 32 * i + 8 * l);
    }
  }
}

// The factor, 64 low bytes of point indices, 8 bytes of their ninth bits, 32 bytes of signs, 4 of scale
// nibbles.
void unpack_iq3_s(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  for (int i = 0; i < 8; ++i) {
    const int sub = (block[106 + i / 2] >> (4 * (i % 2))) & 15;
    const float sub_scale = scale * static_cast<float>(1 + 2 * sub);
    const unsigned ninth = block[66 + i];
    for (int l = 0; l < 4; ++l) {
      const std::uint8_t* index = block + 2 + 8 * i + 2 * l;
      const unsigned first = index[0] | (((ninth >> (2 * l)) & 1U) << 8);
      const unsigned second = index[1] | (((ninth >> (2 * l + 1)) & 1U) << 8);
      const auto magnitudes = two_points(kGridIq3S[first], kGridIq3S[second], kLevelsIq3S);
      apply_signs(sub_scale, magnitudes.data(), block[74 + 4 * i + l], 8, values + 32 * i + 8 * l);
    }
  }
}

// The factor, 32 low bytes of point indices (eight values each), 32 bytes of signs, 8 bytes of the indices'
// top bits (two each), 8 of scale nibbles, one for 16 values.
void unpack_iq2_s(const std::uint8_t* block, float* values) {
  const float scale = load_half(block);
  for (int i = 0; i < 8; ++i) {
    const unsigned top = block[66 + i];
    for (int l = 0; l < 4; ++l) {
      const int sub = (block[74 + i] >> (4 * (l / 2))) & 15;
      const float sub_scale = scale * (0.5F + static_cast<float>(sub)) * 0.25F;
      const unsigned index = block[2 + 4 * i + l] | (((top >> (2 * l)) & 3U) << 8);
      const auto magnitudes = point_of_eight(kGridIq2S[index]);
      apply_signs(sub_scale, magnitudes.data(), block[34 + 4 * i + l], 8, values + 32 * i + 8 * l);
    }
  }
}

namespace {

// The n-th ternary digit, most significant first, of a byte that stands for the fraction byte / 256.
int ternary_digit(std::uint8_t byte, int n) {
  constexpr std::array<std::uint8_t, 5> kPowers = {1, 3, 9, 27, 81};
  const auto fraction = static_cast<std::uint8_t>(byte * kPowers[n]);
  return (fraction * 3) >> 8;
}

// `digits` rounds over `count` bytes: the first digit of each, then the second of each, ...
float* unpack_ternary(const std::uint8_t* bytes, int count, int digits, float scale, float* values) {
  for (int n = 0; n < digits; ++n) {
    for (int m = 0; m < count; ++m) *values++ = static_cast<float>(ternary_digit(bytes[m], n) - 1) * scale;
  }
  return values;
}

}  // namespace

// Five digits to a byte for 32 and 16 bytes, four for the last 4; then the factor.
void unpack_tq1_0(const std::uint8_t* block, float* values) {
  const float scale = load_half(block + 52);
  values = unpack_ternary(block, 32, 5, scale, values);
  values = unpack_ternary(block + 32, 16, 5, scale, values);
  unpack_ternary(block + 48, 4, 4, scale, values);
}

// 64 bytes of two-bit numbers, then the factor; byte m of each 32 holds values m, m + 32, m + 64, m + 96.
void unpack_tq2_0(const std::uint8_t* block, float* values) {
  const float scale = load_half(block + 64);
  for (int i = 0; i < 256; ++i) {
    const int number = (block[32 * (i / 128) + i % 32] >> (2 * ((i % 128) / 32))) & 3;
    values[i] = static_cast<float>(number - 1) * scale;
  }
}

}  // namespace kvasir::quant
