// Attention as simd/attention.h defines it, one float after the other: the same numbers in the same order, in
// plain loops over cells that lie in order. What the kernel gives must be these bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "simd/attention.h"

namespace kvasir::test {

// a * b + c, rounded once where this processor's kernels do so.
inline float multiply_add(float a, float b, float c) {
#if defined(__x86_64__)
  static const bool fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!fused) return a * b + c;
#endif
  return std::fma(a, b, c);
}

// e^x by the series that the kernels use (simd/lanes-inl.h).
inline float naive_exp(float x) {
  if (std::isnan(x)) return x;
  if (x < -87.3F) return 0;
  if (x > 88.7F) return std::numeric_limits<float>::infinity();
  const float n = std::nearbyint(x * 1.44269504088896341F);
  float r = multiply_add(-n, 0.693359375F, x);
  r = multiply_add(-n, -2.12194440e-4F, r);
  float e = 1.0F / 5040;
  for (const float term : {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}) {
    e = multiply_add(e, r, term);
  }
  const auto whole = static_cast<std::int32_t>(n);
  const std::int32_t half = whole >> 1;
  return e * std::ldexp(1.0F, half) * std::ldexp(1.0F, whole - half);
}

// One query over cells in order of ordinals. The cell at ordinal i has its key at keys[i], its value at
// values[i], and is scored by the variant of the query that variants[i] names (the first where `variants` is
// empty).
struct NaiveCells {
  std::vector<std::vector<float>> keys;
  std::vector<std::vector<float>> values;
  std::vector<std::uint32_t> variants;
};

inline std::vector<float> naive_attention(const NaiveCells& cells, const simd::AttentionQuery& query,
                                          float scale) {
  const std::size_t dims = cells.values[query.visible - 1].size();
  std::vector<float> gathered(dims);
  float gathered_max = -std::numeric_limits<float>::infinity();
  float gathered_weight = 0;
  for (std::size_t start = 0; start < query.visible; start += simd::kTile) {
    const std::size_t end = std::min(query.visible, start + simd::kTile);
    std::vector<float> weights(simd::kTile);
    float max = -std::numeric_limits<float>::infinity();
    bool defined = true;
    bool any = false;
    for (std::size_t i = std::max(start, query.first); i < end; ++i) {
      const float* raw = query.query;
      if (!cells.variants.empty()) raw += cells.variants[i] * query.variant_stride;
      float score = 0;
      for (std::size_t d = 0; d < cells.keys[i].size(); ++d) {
        score = multiply_add(cells.keys[i][d], raw[d], score);
      }
      score *= scale;
      weights[i - start] = score;
      max = score > max ? score : max;
      defined = defined && !std::isnan(score);
      any = true;
    }
    if (!any || (defined && std::isinf(max) && max < 0)) continue;
    float sums[16] = {};
    std::vector<float> tile(dims);
    for (std::size_t i = std::max(start, query.first); i < end; ++i) {
      float& weight = weights[i - start];
      weight = naive_exp(weight - max);
      sums[(i - start) % 16] += weight;
      for (std::size_t d = 0; d < dims; ++d) tile[d] = multiply_add(weight, cells.values[i][d], tile[d]);
    }
    for (std::size_t half = 8; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    const float new_max = std::max(gathered_max, max);
    const float keep = gathered_weight == 0 ? 0 : naive_exp(gathered_max - new_max);
    const float take = naive_exp(max - new_max);
    for (std::size_t d = 0; d < dims; ++d) gathered[d] = multiply_add(tile[d], take, gathered[d] * keep);
    gathered_weight = gathered_weight * keep + sums[0] * take;
    gathered_max = new_max;
  }
  for (float& sum : gathered) sum = gathered_weight == 0 ? 0.0F : sum / gathered_weight;
  return gathered;
}

}  // namespace kvasir::test
