// The 16-bit floats of GGUF, to and from float: exact one way, round to nearest, ties to even the other way.
//
// A NaN stays a NaN of the same sign; it becomes quiet and keeps the payload bits that fit, as the
// processors' own conversions do, so scalar and vector code agree in every bit. Any thread; nothing fails.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir::quant {

// IEEE 754 binary16 -> float.
[[nodiscard]] constexpr float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) {
    const std::uint32_t quiet = fraction != 0 ? 0x0040'0000U : 0U;
    return std::bit_cast<float>(sign | 0x7F80'0000U | quiet | (fraction << 13));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
  // Zero and denormals: fraction * 2^-24, exact in a float.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

// float -> IEEE 754 binary16. From 65,520 on the result is infinity.
[[nodiscard]] constexpr std::uint16_t float_to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  if (magnitude > 0x7F80'0000U) {
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  if (magnitude >= 0x477F'F000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65,520
  if (magnitude >= 0x3880'0000U) {  // 2^-14: normal in a half
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    const std::uint32_t rounded = magnitude + 0x0FFFU + odd;
    return static_cast<std::uint16_t>(sign | ((rounded - 0x3800'0000U) >> 13));
  }
  if (magnitude <= 0x3300'0000U) return static_cast<std::uint16_t>(sign);  // 2^-25 ties to the even zero
  // A denormal half counts units of 2^-24.
  const std::uint32_t shift = 126U - (magnitude >> 23);
  const std::uint32_t significand = (magnitude & 0x007F'FFFFU) | 0x0080'0000U;
  const std::uint32_t units = significand >> shift;
  const std::uint32_t rest = significand & ((1U << shift) - 1U);
  const std::uint32_t tie = 1U << (shift - 1U);
  const bool up = rest > tie || (rest == tie && (units & 1U) != 0);
  return static_cast<std::uint16_t>(sign | (units + (up ? 1U : 0U)));
}

// bfloat16, the upper half of a float -> float.
[[nodiscard]] constexpr float bfloat_to_float(std::uint16_t bfloat) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

// float -> bfloat16. What rounds beyond the largest finite value becomes infinity.
[[nodiscard]] constexpr std::uint16_t float_to_bfloat(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFF'FFFFU) > 0x7F80'0000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace kvasir::quant
