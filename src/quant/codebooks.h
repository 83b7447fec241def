// Constants of the types whose numbers index a table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace kvasir::quant {

// IQ4_NL and IQ4_XS: what a nibble stands for.
inline constexpr std::array<std::int8_t, 16> kNonLinear4 = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                            1,    13,   25,  38,  53,  69,  89,  113};

// MXFP4 and NVFP4: twice what a 4-bit float (sign, two exponent bits, one fraction bit) stands for.
inline constexpr std::array<std::int8_t, 16> kTwiceFloat4 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                             0, -1, -2, -3, -4, -6, -8, -12};

// Half of 2^(exponent - 127), the scale of an MXFP4 block; half because kTwiceFloat4 is double. Exact.
[[nodiscard]] constexpr float half_power_of_two(std::uint8_t exponent) noexcept {
  if (exponent < 2) return std::bit_cast<float>(0x0020'0000U << exponent);  // denormal
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent - 1) << 23);
}

// Half of an unsigned 8-bit float (four exponent bits biased by 7, three fraction bits; the top bit is
// ignored), the scale of 16 values in NVFP4. The pattern that would be NaN stands for 0.
[[nodiscard]] constexpr float half_float8(std::uint8_t pattern) noexcept {
  const std::uint32_t exponent = (pattern >> 3) & 15U;
  const std::uint32_t fraction = pattern & 7U;
  if (exponent == 15 && fraction == 7) return 0.0F;
  if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10F;
  return std::bit_cast<float>(((exponent + 119U) << 23) | (fraction << 20));
}

// Grids of four or eight levels a point; how a point is packed is said in codebooks.cc.
extern const std::array<std::uint16_t, 256> kGridIq3Xxs;
extern const std::array<std::uint16_t, 512> kGridIq3S;
extern const std::array<std::uint16_t, 1024> kGridIq2S;

// The magnitudes that the levels of those grids stand for.
inline constexpr std::array<std::uint8_t, 8> kLevelsIq3Xxs = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::array<std::uint8_t, 8> kLevelsIq3S = {1, 3, 5, 7, 9, 11, 13, 15};
inline constexpr std::array<std::uint8_t, 3> kLevelsIq2S = {8, 25, 43};

}  // namespace kvasir::quant
