// Packing the K types: each sub-block's scale (and minimum) is fitted, then all are rounded to integers under
// common half-float factors, and the numbers are rounded under what was stored.
#include <algorithm>
#include <array>
#include <cmath>

#include "quant/codec.h"
#include "quant/fit.h"

namespace kvasir::quant {
namespace {

constexpr int kValues = 256;

int rounded(float value, float low, float high) {
  return static_cast<int>(round_small(clamp_to(value, low, high)));
}

// 16 sub-blocks of 16 values, each scale * integer.
struct SignedBlock {
  std::uint16_t factor = 0;
  std::array<int, 16> scales{};
  std::array<int, kValues> numbers{};
};

// Integers that numbers and scales may be.
struct SignedShape {
  Levels numbers;
  Levels scales;
};

// The best common factor for given scales and numbers.
float best_factor(const float* x, const SignedBlock& block) {
  Lanes products;
  Lanes squares;
  for (int i = 0; i < kValues; i += 8) {
    const auto scale = static_cast<float>(block.scales[i / 16]);
    for (int l = 0; l < 8; ++l) {
      const float level = scale * static_cast<float>(block.numbers[i + l]);
      products.sums[l] += x[i + l] * level;
      squares.sums[l] += level * level;
    }
  }
  const float total = squares.total();
  return total > 0.0F ? products.total() / total : 0.0F;
}

void round_numbers(const float* x, const SignedShape& shape, SignedBlock& block) {
  const float factor = half_to_float(block.factor);
  for (int i = 0; i < kValues; i += 16) {
    const float inverse = inverse_of(factor * static_cast<float>(block.scales[i / 16]));
    for (int l = 0; l < 16; ++l) {
      block.numbers[i + l] = rounded(x[i + l] * inverse, shape.numbers.low, shape.numbers.high);
    }
  }
}

template <std::size_t kGuesses>
SignedBlock fit_signed(const float* x, const SignedShape& shape, const std::array<float, kGuesses>& reach) {
  std::array<float, 16> scales{};
  for (int i = 0; i < 16; ++i) scales[i] = fit_scale<16>(x + 16 * i, shape.numbers, reach);
  const float extreme = extreme_of<16>(scales.data());
  SignedBlock block;
  block.factor = scale_to_half(extreme / shape.scales.low);
  const float inverse = inverse_of(half_to_float(block.factor));
  for (int i = 0; i < 16; ++i)
    block.scales[i] = rounded(scales[i] * inverse, shape.scales.low, shape.scales.high);
  round_numbers(x, shape, block);
  block.factor = scale_to_half(best_factor(x, block));
  round_numbers(x, shape, block);
  return block;
}

constexpr std::array kReach3 = {-4.0F, -3.7F, -3.4F, -3.1F, -4.3F, -4.6F, -4.9F, -5.2F, 3.0F, 3.4F};
constexpr std::array kReach6 = {-32.0F, -31.7F, -31.4F, -31.0F, -32.4F, -32.8F, 31.0F};

// Sub-blocks of scale * integer - minimum.
template <int kSubBlocks>
struct LineBlock {
  std::uint16_t factor = 0;
  std::uint16_t min_factor = 0;
  std::array<int, kSubBlocks> scales{};
  std::array<int, kSubBlocks> mins{};
  std::array<int, kValues> numbers{};
};

struct LineShape {
  float highest_number;
  float highest_scale;  // and minimum
};

template <int kSubBlocks>
void round_numbers(const float* x, const LineShape& shape, LineBlock<kSubBlocks>& block) {
  constexpr int kSub = kValues / kSubBlocks;
  const float factor = half_to_float(block.factor);
  const float min_factor = half_to_float(block.min_factor);
  for (int s = 0; s < kSubBlocks; ++s) {
    const float inverse = inverse_of(factor * static_cast<float>(block.scales[s]));
    const float min = min_factor * static_cast<float>(block.mins[s]);
    for (int i = kSub * s; i < kSub * (s + 1); ++i) {
      block.numbers[i] = rounded((x[i] + min) * inverse, 0.0F, shape.highest_number);
    }
  }
}

// The best pair of factors for given scales, minima and numbers; leaves the block alone where they do not
// decide it.
template <int kSubBlocks>
void improve_factors(const float* x, LineBlock<kSubBlocks>& block) {
  constexpr int kSub = kValues / kSubBlocks;
  Lanes aa;
  Lanes ab;
  Lanes bb;
  Lanes xa;
  Lanes xb;
  for (int i = 0; i < kValues; i += 8) {
    const auto scale = static_cast<float>(block.scales[i / kSub]);
    const auto min = static_cast<float>(block.mins[i / kSub]);
    for (int l = 0; l < 8; ++l) {
      const float level = scale * static_cast<float>(block.numbers[i + l]);
      aa.sums[l] += level * level;
      ab.sums[l] += level * min;
      bb.sums[l] += min * min;
      xa.sums[l] += x[i + l] * level;
      xb.sums[l] += x[i + l] * min;
    }
  }
  const double determinant =
      static_cast<double>(aa.total()) * bb.total() - static_cast<double>(ab.total()) * ab.total();
  if (!(determinant > 0.0)) return;
  const double factor =
      (static_cast<double>(xa.total()) * bb.total() - static_cast<double>(xb.total()) * ab.total()) /
      determinant;
  const double min_factor =
      (static_cast<double>(xa.total()) * ab.total() - static_cast<double>(xb.total()) * aa.total()) /
      determinant;
  if (!(factor > 0.0) || !(min_factor > 0.0)) return;
  block.factor = scale_to_half(static_cast<float>(factor));
  block.min_factor = scale_to_half(static_cast<float>(min_factor));
}

template <int kSubBlocks, std::size_t kGuesses>
LineBlock<kSubBlocks> fit_lines(const float* x, const LineShape& shape,
                                const std::array<LineGuess, kGuesses>& guesses) {
  constexpr int kSub = kValues / kSubBlocks;
  std::array<float, kSubBlocks> scales{};
  std::array<float, kSubBlocks> mins{};
  for (int s = 0; s < kSubBlocks; ++s) {
    const LineFit fit = fit_line<kSub>(x + kSub * s, shape.highest_number, Offset::kNotAbove0, guesses);
    scales[s] = fit.scale;
    mins[s] = -fit.offset;
  }
  LineBlock<kSubBlocks> block;
  block.factor = scale_to_half(*std::max_element(scales.begin(), scales.end()) / shape.highest_scale);
  block.min_factor = scale_to_half(*std::max_element(mins.begin(), mins.end()) / shape.highest_scale);
  const float inverse = inverse_of(half_to_float(block.factor));
  const float min_inverse = inverse_of(half_to_float(block.min_factor));
  for (int s = 0; s < kSubBlocks; ++s) {
    block.scales[s] = rounded(scales[s] * inverse, 0.0F, shape.highest_scale);
    block.mins[s] = rounded(mins[s] * min_inverse, 0.0F, shape.highest_scale);
  }
  round_numbers(x, shape, block);
  improve_factors(x, block);
  round_numbers(x, shape, block);
  return block;
}

// 64 bytes of two-bit numbers: byte l of 32 in each half holds values l, l + 32, l + 64 and l + 96.
void store_pairs_of_bits(const std::array<int, kValues>& numbers, int first_bit, std::uint8_t* bytes) {
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 32; ++l) {
      int byte = 0;
      for (int k = 0; k < 4; ++k) byte |= ((numbers[128 * half + 32 * k + l] >> first_bit) & 3) << (2 * k);
      bytes[32 * half + l] = static_cast<std::uint8_t>(byte);
    }
  }
}

}  // namespace

void pack_q2_k(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 15);
  const auto fit = fit_lines<16>(x.data(), {3.0F, 15.0F}, kLine2);
  for (int i = 0; i < 16; ++i) block[i] = static_cast<std::uint8_t>(fit.scales[i] | (fit.mins[i] << 4));
  store_pairs_of_bits(fit.numbers, 0, block + 16);
  store_u16(block + 80, fit.factor);
  store_u16(block + 82, fit.min_factor);
}

void pack_q3_k(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 32);
  SignedBlock fit = fit_signed(x.data(), {{-4.0F, 3.0F}, {-32.0F, 31.0F}}, kReach3);
  for (int& number : fit.numbers) number += 4;
  for (int l = 0; l < 32; ++l) {
    int thirds = 0;
    for (int k = 0; k < 8; ++k) thirds |= (fit.numbers[32 * k + l] >> 2) << k;
    block[l] = static_cast<std::uint8_t>(thirds);
  }
  store_pairs_of_bits(fit.numbers, 0, block + 32);
  std::uint8_t* scales = block + 96;
  std::fill_n(scales, 12, std::uint8_t{0});
  for (int i = 0; i < 16; ++i) {
    const int scale = fit.scales[i] + 32;
    scales[i % 8] = static_cast<std::uint8_t>(scales[i % 8] | ((scale & 15) << (4 * (i / 8))));
    scales[8 + i % 4] = static_cast<std::uint8_t>(scales[8 + i % 4] | ((scale >> 4) << (2 * (i / 4))));
  }
  store_u16(block + 108, fit.factor);
}

void pack_q4_k(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 63);
  const auto fit = fit_lines<8>(x.data(), {15.0F, 63.0F}, kLine4);
  store_u16(block, fit.factor);
  store_u16(block + 2, fit.min_factor);
  store_six_bit_pairs({fit.scales, fit.mins}, block + 4);
  for (int pair = 0; pair < 4; ++pair) {
    const int* numbers = fit.numbers.data() + 64 * pair;
    for (int l = 0; l < 32; ++l) {
      block[16 + 32 * pair + l] = static_cast<std::uint8_t>(numbers[l] | (numbers[l + 32] << 4));
    }
  }
}

void pack_q5_k(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 63);
  const auto fit = fit_lines<8>(x.data(), {31.0F, 63.0F}, kLine5);
  store_u16(block, fit.factor);
  store_u16(block + 2, fit.min_factor);
  store_six_bit_pairs({fit.scales, fit.mins}, block + 4);
  for (int l = 0; l < 32; ++l) {
    int fifths = 0;
    for (int k = 0; k < 8; ++k) fifths |= (fit.numbers[32 * k + l] >> 4) << k;
    block[16 + l] = static_cast<std::uint8_t>(fifths);
  }
  for (int pair = 0; pair < 4; ++pair) {
    const int* numbers = fit.numbers.data() + 64 * pair;
    for (int l = 0; l < 32; ++l) {
      block[48 + 32 * pair + l] =
          static_cast<std::uint8_t>((numbers[l] & 15) | ((numbers[l + 32] & 15) << 4));
    }
  }
}

void pack_q6_k(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 128);
  SignedBlock fit = fit_signed(x.data(), {{-32.0F, 31.0F}, {-128.0F, 127.0F}}, kReach6);
  for (int& number : fit.numbers) number += 32;
  for (int half = 0; half < 2; ++half) {
    const int* numbers = fit.numbers.data() + 128 * half;
    for (int l = 0; l < 64; ++l) {
      block[64 * half + l] = static_cast<std::uint8_t>((numbers[l] & 15) | ((numbers[l + 64] & 15) << 4));
    }
  }
  store_pairs_of_bits(fit.numbers, 4, block + 128);
  for (int i = 0; i < 16; ++i)
    block[192 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(fit.scales[i]));
  store_u16(block + 208, fit.factor);
}

}  // namespace kvasir::quant
