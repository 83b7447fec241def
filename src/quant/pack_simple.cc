// Packing the types of 32 values under one or two half-float scales.
#include <array>
#include <cmath>

#include "quant/codec.h"
#include "quant/fit.h"

namespace kvasir::quant {
namespace {

constexpr int kValues = 32;

// x * inverse as an integer from `low` to `high`.
int level_of(float x, float inverse, float low, float high) {
  return static_cast<int>(round_small(clamp_to(x * inverse, low, high)));
}

// What the extreme value may become in the signed types of 4 and 5 bits: the level beyond 0 that only one
// sign has, a little less, a little more, and the last level of the other sign.
constexpr std::array kReach4 = {-8.0F, -7.7F, -7.4F, -7.1F, -6.8F, -8.3F, -8.6F, -8.9F, 7.0F, 7.4F};
constexpr std::array kReach5 = {-16.0F, -15.7F, -15.4F, -15.1F, -16.3F, -16.6F, -16.9F, 15.0F};

struct Line {
  float inverse;
  float least;
};

// Stores scale and offset of the 4- and 5-bit types that have both, and answers what rounding must use: the
// stored numbers, not those before rounding to halves.
Line store_line(const LineFit& fit, std::uint8_t* block) {
  store_u16(block, scale_to_half(fit.scale));
  store_u16(block + 2, scale_to_half(fit.offset));
  return {inverse_of(load_half(block)), load_half(block + 2)};
}

}  // namespace

void pack_q8_0(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 127);
  const float greatest = std::fabs(extreme_of<kValues>(x.data()));
  store_u16(block, scale_to_half(greatest / 127.0F));
  const float inverse = inverse_of(load_half(block));
  for (int j = 0; j < kValues; ++j) {
    block[2 + j] = static_cast<std::uint8_t>(level_of(x[j], inverse, -127.0F, 127.0F));
  }
}

void pack_q4_0(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 8);
  store_u16(block, scale_to_half(fit_scale<kValues>(x.data(), {-8.0F, 7.0F}, kReach4)));
  const float inverse = inverse_of(load_half(block));
  for (int j = 0; j < 16; ++j) {
    const int low = level_of(x[j], inverse, -8.0F, 7.0F) + 8;
    const int high = level_of(x[j + 16], inverse, -8.0F, 7.0F) + 8;
    block[2 + j] = static_cast<std::uint8_t>(low | (high << 4));
  }
}

void pack_q4_1(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf);
  const Line line = store_line(fit_line<kValues>(x.data(), 15.0F, Offset::kFree, kLine4), block);
  for (int j = 0; j < 16; ++j) {
    const int low = level_of(x[j] - line.least, line.inverse, 0.0F, 15.0F);
    const int high = level_of(x[j + 16] - line.least, line.inverse, 0.0F, 15.0F);
    block[4 + j] = static_cast<std::uint8_t>(low | (high << 4));
  }
}

void pack_q5_0(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 16);
  store_u16(block, scale_to_half(fit_scale<kValues>(x.data(), {-16.0F, 15.0F}, kReach5)));
  const float inverse = inverse_of(load_half(block));
  std::uint32_t fifth = 0;
  for (int j = 0; j < 16; ++j) {
    const int low = level_of(x[j], inverse, -16.0F, 15.0F) + 16;
    const int high = level_of(x[j + 16], inverse, -16.0F, 15.0F) + 16;
    block[6 + j] = static_cast<std::uint8_t>((low & 15) | ((high & 15) << 4));
    fifth |=
        (static_cast<std::uint32_t>(low >> 4) << j) | (static_cast<std::uint32_t>(high >> 4) << (j + 16));
  }
  store_u32(block + 2, fifth);
}

void pack_q5_1(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf);
  const Line line = store_line(fit_line<kValues>(x.data(), 31.0F, Offset::kFree, kLine5), block);
  std::uint32_t fifth = 0;
  for (int j = 0; j < 16; ++j) {
    const int low = level_of(x[j] - line.least, line.inverse, 0.0F, 31.0F);
    const int high = level_of(x[j + 16] - line.least, line.inverse, 0.0F, 31.0F);
    block[8 + j] = static_cast<std::uint8_t>((low & 15) | ((high & 15) << 4));
    fifth |=
        (static_cast<std::uint32_t>(low >> 4) << j) | (static_cast<std::uint32_t>(high >> 4) << (j + 16));
  }
  store_u32(block + 4, fifth);
}

}  // namespace kvasir::quant
