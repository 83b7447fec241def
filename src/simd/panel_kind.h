// How the numbers of a panel are stored: one kind for each block type, but for ternary ones, which share one.
//
// Floats are multiplied as floats. The other kinds are codes of a few bits: number = scale x (code - zero) +
// offset, where `code - zero` may be looked up in a table instead, and scale and offset belong to a sub-block
// of 16 or 32 numbers. Products multiply their codes with activations that are blocks of signed bytes
// (byte_columns.h).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/codebooks.h"

namespace kvasir::simd {

enum class PanelKind : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kNVFP4,
  kIQ3_XXS,
  kIQ3_S,
  kIQ2_S,
  kTernary,
};

// How the scale of a sub-block comes about.
enum class ScaleForm : std::uint8_t {
  kHalf,      // a half float
  kExponent,  // a byte that stands for a power of two
  kSuper,     // a half float for 256 numbers, times a signed byte for each sub-block
};

// Tables of up to sixteen numbers that codes of four bits, or of three, may index; each is less than 128 in
// magnitude.
enum class CodeTable : std::uint8_t { kNone, kNonLinear4, kTwiceFloat4, kLevels3Xxs, kLevels3S, kLevels2S };

// The numbers of grids, of a level and a sign each: the bit above those of the levels is set of what is below
// 0.
template <std::size_t kLevels>
[[nodiscard]] constexpr std::array<std::int8_t, 16> levels_and_signs(
    const std::array<std::uint8_t, kLevels>& levels) noexcept {
  std::array<std::int8_t, 16> numbers{};
  for (std::size_t i = 0; i < kLevels; ++i) {
    numbers[i] = static_cast<std::int8_t>(levels[i]);
    numbers[i + std::bit_ceil(kLevels)] = static_cast<std::int8_t>(-numbers[i]);
  }
  return numbers;
}

// The numbers of a table; zeros of kNone.
[[nodiscard]] constexpr std::array<std::int8_t, 16> numbers_of(CodeTable table) noexcept {
  switch (table) {
    case CodeTable::kNonLinear4:
      return quant::kNonLinear4;
    case CodeTable::kTwiceFloat4:
      return quant::kTwiceFloat4;
    case CodeTable::kLevels3Xxs:
      return levels_and_signs(quant::kLevelsIq3Xxs);
    case CodeTable::kLevels3S:
      return levels_and_signs(quant::kLevelsIq3S);
    case CodeTable::kLevels2S:
      return levels_and_signs(quant::kLevelsIq2S);
    case CodeTable::kNone:
      break;
  }
  return {};
}

// What products must know of a kind of codes.
struct CodeRecipe {
  std::size_t bits = 8;  // of a code
  int zero_bits = 0;     // zero = 2^zero_bits; below 0: zero is 0
  std::size_t sub = 32;  // numbers in a sub-block
  ScaleForm scale = ScaleForm::kHalf;
  bool offsets = false;  // of the form of the scale
  CodeTable table = CodeTable::kNone;
  float factor = 1;  // a power of two that the scale of 256 numbers is multiplied by
  // The greatest sub-scale, of kinds whose sub-blocks are worth summing in pairs (byte_products-inl.h).
  std::size_t paired_scale = 0;

  [[nodiscard]] constexpr int zero() const noexcept { return zero_bits < 0 ? 0 : 1 << zero_bits; }
};

// Whether codes fill bytes, which stand for signed ones plus 128.
[[nodiscard]] constexpr bool is_wide(const CodeRecipe& recipe) noexcept {
  return recipe.bits == 8 || recipe.table != CodeTable::kNone;
}

[[nodiscard]] constexpr bool is_codes(PanelKind kind) noexcept {
  return kind != PanelKind::kF32 && kind != PanelKind::kF16 && kind != PanelKind::kBF16;
}

// Numbers in a block of a K type, and in a block of any panel of codes.
inline constexpr std::size_t kSuperBlock = 256;

// The recipe of a kind that is_codes().
[[nodiscard]] constexpr CodeRecipe recipe_of(PanelKind kind) noexcept {
  switch (kind) {
    case PanelKind::kQ4_0:
      return {.bits = 4, .zero_bits = 3};
    case PanelKind::kQ4_1:
      return {.bits = 4, .zero_bits = -1, .offsets = true};
    case PanelKind::kQ5_0:
      return {.bits = 5, .zero_bits = 4};
    case PanelKind::kQ5_1:
      return {.bits = 5, .zero_bits = -1, .offsets = true};
    case PanelKind::kQ2_K:
      return {.bits = 2,
              .zero_bits = -1,
              .sub = 16,
              .scale = ScaleForm::kSuper,
              .offsets = true,
              .paired_scale = 15};
    case PanelKind::kQ3_K:
      return {.bits = 3, .zero_bits = 2, .sub = 16, .scale = ScaleForm::kSuper};
    case PanelKind::kQ4_K:
      return {.bits = 4, .zero_bits = -1, .scale = ScaleForm::kSuper, .offsets = true, .paired_scale = 63};
    case PanelKind::kQ5_K:
      return {.bits = 5, .zero_bits = -1, .scale = ScaleForm::kSuper, .offsets = true};
    case PanelKind::kQ6_K:
      return {.bits = 6, .zero_bits = 5, .sub = 16, .scale = ScaleForm::kSuper};
    case PanelKind::kIQ4_NL:
      return {.bits = 4, .zero_bits = 7, .table = CodeTable::kNonLinear4};
    case PanelKind::kIQ4_XS:
      return {.bits = 4, .zero_bits = 7, .scale = ScaleForm::kSuper, .table = CodeTable::kNonLinear4};
    case PanelKind::kMXFP4:
      return {.bits = 4, .zero_bits = 7, .scale = ScaleForm::kExponent, .table = CodeTable::kTwiceFloat4};
    case PanelKind::kNVFP4:
      return {.bits = 4, .zero_bits = 7, .sub = 16, .table = CodeTable::kTwiceFloat4};
    case PanelKind::kIQ3_XXS:
      return {.bits = 4,
              .zero_bits = 7,
              .scale = ScaleForm::kSuper,
              .table = CodeTable::kLevels3Xxs,
              .factor = 0.25F};
    case PanelKind::kIQ3_S:
      return {.bits = 4, .zero_bits = 7, .scale = ScaleForm::kSuper, .table = CodeTable::kLevels3S};
    case PanelKind::kIQ2_S:
      return {.bits = 3,
              .zero_bits = 7,
              .sub = 16,
              .scale = ScaleForm::kSuper,
              .table = CodeTable::kLevels2S,
              .factor = 0.125F};
    case PanelKind::kTernary:
      return {.bits = 2, .zero_bits = 0};
    default:
      return {.bits = 8, .zero_bits = 7};
  }
}

}  // namespace kvasir::simd
