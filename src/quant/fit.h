// Inside the room: the least-squares search for the scales of a block.
//
// Numbers x are to become scale * q (+ offset) with integers q of a few bits. For given q the best scale
// follows from sums over the block; for a given scale the best q is rounding. Neither can be had without the
// other, so a handful of first guesses is tried, and the best of them is improved by taking turns. What is
// minimised is the plain sum of squared differences. All sums run in eight lanes in a fixed order, so a
// compiler may vectorise them, and every machine gets the same bits.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "quant/half.h"

namespace kvasir::quant {

// The largest finite half, and half of the smallest step that a half can express: below it everything rounds
// to 0.
inline constexpr float kLargestHalf = 65504.0F;
inline constexpr float kNothing = 0x1p-25F;

// Rounds to the nearest integer, ties to even. |value| < 2^22.
[[nodiscard]] inline float round_small(float value) noexcept {
  return (value + 0x1.8p23F) - 0x1.8p23F;
}

[[nodiscard]] inline float clamp_to(float value, float low, float high) noexcept {
  value = value < low ? low : value;
  return value > high ? high : value;
}

// A NaN as 0, anything beyond `limit` as `limit`: what a packer is given may be any float.
[[nodiscard]] inline float tame(float value, float limit) noexcept {
  return value == value ? clamp_to(value, -limit, limit) : 0.0F;
}

template <int kCount>
[[nodiscard]] std::array<float, kCount> tamed(const float* values, float limit) noexcept {
  std::array<float, kCount> result{};
  for (int i = 0; i < kCount; ++i) result[i] = tame(values[i], limit);
  return result;
}

// A scale as a half can hold it, never infinite. Where halves are so coarse that the nearest would fall short
// by much (denormals), the next greater one: too large a scale costs precision, too small a one clips.
[[nodiscard]] inline std::uint16_t scale_to_half(float scale) noexcept {
  const float held = clamp_to(scale, -kLargestHalf, kLargestHalf);
  const std::uint16_t half = float_to_half(held);
  const bool short_by_much = std::fabs(half_to_float(half)) < 0.999F * std::fabs(held);
  return static_cast<std::uint16_t>(short_by_much ? half + 1 : half);
}

// 1 / scale, or 0 where scale is 0: then every number becomes 0.
[[nodiscard]] inline float inverse_of(float scale) noexcept {
  return scale != 0.0F ? 1.0F / scale : 0.0F;
}

// Eight partial sums and their total, always added in the same order.
struct Lanes {
  std::array<float, 8> sums{};
  [[nodiscard]] float total() const noexcept {
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  }
};

// The value of largest magnitude, with its sign.
template <int kCount>
[[nodiscard]] float extreme_of(const float* x) noexcept {
  float extreme = 0.0F;
  for (int i = 0; i < kCount; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
  return extreme;
}

// The integers that a number may become.
struct Levels {
  float low;
  float high;
};

// How well x is met by scale * q with q = x * inverse rounded: the best scale, and how much of the sum of
// squares it explains (the more the better).
struct ScaleFit {
  float scale = 0.0F;
  float explained = 0.0F;
};

template <int kCount>
[[nodiscard]] ScaleFit fit_scale_once(const float* x, float inverse, Levels levels) noexcept {
  Lanes xq;
  Lanes qq;
  for (int i = 0; i < kCount; i += 8) {
    for (int l = 0; l < 8; ++l) {
      const float q = round_small(clamp_to(x[i + l] * inverse, levels.low, levels.high));
      xq.sums[l] += x[i + l] * q;
      qq.sums[l] += q * q;
    }
  }
  const float products = xq.total();
  const float squares = qq.total();
  if (!(squares > 0.0F)) return {};
  return {products / squares, products * (products / squares)};
}

// The scale for x = scale * q. `reach` lists what the extreme value may become; a level beyond levels.low or
// levels.high clips it in favour of the others. |x| is at least kNothing somewhere, else the scale is 0.
template <int kCount, std::size_t kGuesses>
[[nodiscard]] float fit_scale(const float* x, Levels levels,
                              const std::array<float, kGuesses>& reach) noexcept {
  const float extreme = extreme_of<kCount>(x);
  if (std::fabs(extreme) < kNothing) return 0.0F;
  ScaleFit best;
  for (const float level : reach) {
    const ScaleFit fit = fit_scale_once<kCount>(x, level / extreme, levels);
    if (fit.explained > best.explained) best = fit;
  }
  const ScaleFit improved = fit_scale_once<kCount>(x, inverse_of(best.scale), levels);
  return improved.explained > best.explained ? improved.scale : best.scale;
}

// x = scale * q + offset with q from 0 to `highest`, scale >= 0; the sum of squared differences.
struct LineFit {
  float scale = 0.0F;
  float offset = 0.0F;
  float error = 0.0F;
};

// How the offset is bound: anything, or at most 0 (types that subtract a minimum stored without a sign).
enum class Offset : std::uint8_t { kFree, kNotAbove0 };

struct LineSums {
  float x = 0.0F;
  float xx = 0.0F;
};

// The best line for the q that rounding gives under a guessed one.
template <int kCount>
[[nodiscard]] LineFit fit_line_once(const float* x, LineSums known, float inverse, float start, float highest,
                                    Offset bound) noexcept {
  Lanes q1;
  Lanes qq;
  Lanes xq;
  for (int i = 0; i < kCount; i += 8) {
    for (int l = 0; l < 8; ++l) {
      const float q = round_small(clamp_to((x[i + l] - start) * inverse, 0.0F, highest));
      q1.sums[l] += q;
      qq.sums[l] += q * q;
      xq.sums[l] += x[i + l] * q;
    }
  }
  const float n = static_cast<float>(kCount);
  const float sum_q = q1.total();
  const float sum_qq = qq.total();
  const float sum_xq = xq.total();
  const float determinant = n * sum_qq - sum_q * sum_q;  // integers below 2^24: exact
  LineFit fit;
  if (determinant > 0.0F) {
    fit.scale = (n * sum_xq - known.x * sum_q) / determinant;
    fit.offset = (sum_qq * known.x - sum_q * sum_xq) / determinant;
  } else {
    fit.offset = known.x / n;
  }
  if (bound == Offset::kNotAbove0 && fit.offset > 0.0F) {
    fit.offset = 0.0F;
    fit.scale = sum_qq > 0.0F ? sum_xq / sum_qq : 0.0F;
  }
  const float a = fit.scale;
  const float b = fit.offset;
  fit.error = known.xx + a * a * sum_qq + n * b * b + 2.0F * (a * b * sum_q - a * sum_xq - b * known.x);
  return fit;
}

// Taking turns converges within a few; the rest would be lost time.
inline constexpr int kTurns = 4;

// A first guess at a line: the distance from the least to the greatest value is `steps` steps; `anchor` 0
// keeps the least value at 0, 1 the greatest at `highest`. More steps than `highest` clip the other end,
// fewer waste levels.
struct LineGuess {
  float steps;
  float anchor;
};

// Guesses for numbers of 2, 4 and 5 bits. Both ends and these few steps come within 2 % of a search ten times
// as dense.
inline constexpr auto kLine2 = std::to_array<LineGuess>({{3.0F, 0.0F},
                                                         {3.0F, 1.0F},
                                                         {2.7F, 0.0F},
                                                         {2.7F, 1.0F},
                                                         {2.4F, 0.0F},
                                                         {2.4F, 1.0F},
                                                         {3.3F, 0.0F},
                                                         {3.3F, 1.0F},
                                                         {3.6F, 0.0F},
                                                         {3.6F, 1.0F},
                                                         {4.0F, 0.0F},
                                                         {4.0F, 1.0F}});
inline constexpr auto kLine4 = std::to_array<LineGuess>({{15.0F, 0.0F},
                                                         {15.0F, 1.0F},
                                                         {14.5F, 0.0F},
                                                         {14.5F, 1.0F},
                                                         {14.0F, 0.0F},
                                                         {14.0F, 1.0F},
                                                         {13.4F, 0.0F},
                                                         {13.4F, 1.0F},
                                                         {15.5F, 0.0F},
                                                         {15.5F, 1.0F},
                                                         {16.0F, 0.0F},
                                                         {16.0F, 1.0F},
                                                         {16.5F, 0.0F},
                                                         {16.5F, 1.0F}});
inline constexpr auto kLine5 = std::to_array<LineGuess>({{31.0F, 0.0F},
                                                         {31.0F, 1.0F},
                                                         {30.4F, 0.0F},
                                                         {30.4F, 1.0F},
                                                         {29.8F, 0.0F},
                                                         {29.8F, 1.0F},
                                                         {31.5F, 0.0F},
                                                         {31.5F, 1.0F},
                                                         {32.0F, 0.0F},
                                                         {32.0F, 1.0F},
                                                         {32.5F, 0.0F},
                                                         {32.5F, 1.0F}});

// The line for x: the best guess, improved until it stays.
template <int kCount, std::size_t kGuesses>
[[nodiscard]] LineFit fit_line(const float* x, float highest, Offset bound,
                               const std::array<LineGuess, kGuesses>& guesses) noexcept {
  float least = x[0];
  float greatest = x[0];
  for (int i = 1; i < kCount; ++i) {
    least = x[i] < least ? x[i] : least;
    greatest = x[i] > greatest ? x[i] : greatest;
  }
  if (bound == Offset::kNotAbove0 && least > 0.0F) least = 0.0F;
  const float range = greatest - least;
  if (range < kNothing) return {0.0F, least, 0.0F};
  // A free offset may be far greater than the range; sums of squares would drown in it.
  const float middle = bound == Offset::kFree ? 0.5F * (least + greatest) : 0.0F;
  std::array<float, kCount> moved{};
  Lanes sum;
  Lanes squares;
  for (int i = 0; i < kCount; i += 8) {
    for (int l = 0; l < 8; ++l) {
      moved[i + l] = x[i + l] - middle;
      sum.sums[l] += moved[i + l];
      squares.sums[l] += moved[i + l] * moved[i + l];
    }
  }
  const LineSums known{sum.total(), squares.total()};
  const bool from_0 = bound == Offset::kNotAbove0 && least == 0.0F;
  LineFit best = {range / highest, least - middle, std::numeric_limits<float>::infinity()};
  for (const LineGuess guess : guesses) {
    const float scale = range / guess.steps;
    const float start = from_0 ? 0.0F : least - middle + guess.anchor * (range - highest * scale);
    const LineFit fit = fit_line_once<kCount>(moved.data(), known, 1.0F / scale, start, highest, bound);
    if (fit.scale > 0.0F && fit.error < best.error) best = fit;
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    const LineFit improved =
        fit_line_once<kCount>(moved.data(), known, inverse_of(best.scale), best.offset, highest, bound);
    if (!(improved.scale > 0.0F && improved.error < best.error)) break;
    best = improved;
  }
  best.offset += middle;
  return best;
}

}  // namespace kvasir::quant
