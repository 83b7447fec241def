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

// tanh x as the kernels have it (simd/lanes-inl.h).
inline float naive_tanh(float x) {
  if (std::isnan(x)) return x;
  const float bounded = std::clamp(x, -10.0F, 10.0F);
  const float twice = bounded + bounded;
  const float n = std::nearbyint(twice * 1.44269504088896341F);
  float r = multiply_add(-n, 0.693359375F, twice);
  r = multiply_add(-n, -2.12194440e-4F, r);
  float e = 1.0F / 40320;
  for (const float term : {1.0F / 5040, 1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F})
    e = multiply_add(e, r, term);
  e *= r;
  const float power = std::ldexp(1.0F, static_cast<int>(n));
  const float u = multiply_add(power, e, power - 1.0F);
  return u / (u + 2.0F);
}

// How scores are made of products.
struct NaiveScoring {
  float scale = 1;
  float soft_cap = 0;
};

// What a query has gathered so far.
struct NaiveGathered {
  std::vector<float> sums;
  float max = -std::numeric_limits<float>::infinity();
  float weight = 0;
};

inline float naive_score(const NaiveCells& cells, const simd::AttentionQuery& query,
                         const NaiveScoring& scoring, std::size_t i) {
  const float* raw = query.query;
  if (!cells.variants.empty()) raw += cells.variants[i] * query.variant_stride;
  float score = 0;
  for (std::size_t d = 0; d < cells.keys[i].size(); ++d)
    score = multiply_add(cells.keys[i][d], raw[d], score);
  score *= scoring.scale;
  if (scoring.soft_cap != 0) score = naive_tanh(score / scoring.soft_cap) * scoring.soft_cap;
  return score;
}

// Takes the cells [begin, end) of one tile together.
inline void naive_gather(const NaiveCells& cells, const simd::AttentionQuery& query,
                         const NaiveScoring& scoring, const simd::OrdinalRange& part,
                         NaiveGathered& gathered) {
  std::vector<float> weights;
  float max = -std::numeric_limits<float>::infinity();
  bool defined = true;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const float score = naive_score(cells, query, scoring, i);
    weights.push_back(score);
    max = score > max ? score : max;
    defined = defined && !std::isnan(score);
  }
  if (weights.empty() || (defined && std::isinf(max) && max < 0)) return;
  float sums[16] = {};
  std::vector<float> tile(gathered.sums.size());
  for (std::size_t i = part.begin; i < part.end; ++i) {
    float& weight = weights[i - part.begin];
    weight = naive_exp(weight - max);
    sums[i % 16] += weight;
    for (std::size_t d = 0; d < tile.size(); ++d) tile[d] = multiply_add(weight, cells.values[i][d], tile[d]);
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  const float new_max = std::max(gathered.max, max);
  const float keep = gathered.weight == 0 ? 0 : naive_exp(gathered.max - new_max);
  const float take = naive_exp(max - new_max);
  for (std::size_t d = 0; d < tile.size(); ++d)
    gathered.sums[d] = multiply_add(tile[d], take, gathered.sums[d] * keep);
  gathered.weight = gathered.weight * keep + sums[0] * take;
  gathered.max = new_max;
}

inline std::vector<float> naive_attention(const NaiveCells& cells, const simd::AttentionQuery& query,
                                          const NaiveScoring& scoring) {
  const auto hidden = [&](std::size_t ordinal) {
    return std::ranges::any_of(query.hidden, [&](const simd::OrdinalRange& range) {
      return ordinal >= range.begin && ordinal < range.end;
    });
  };
  NaiveGathered gathered{.sums = std::vector<float>(cells.values[query.visible - 1].size())};
  for (std::size_t i = query.first; i < query.visible;) {
    // As far as this tile goes and nothing is hidden.
    std::size_t end = i;
    while (end < query.visible && end / simd::kTile == i / simd::kTile && !hidden(end)) ++end;
    naive_gather(cells, query, scoring, {i, end}, gathered);
    i = std::max(end, i + 1);
  }
  if (gathered.weight != 0 && query.sink != -std::numeric_limits<float>::infinity())
    gathered.weight += naive_exp(query.sink - gathered.max);
  for (float& sum : gathered.sums) sum = gathered.weight == 0 ? 0.0F : sum / gathered.weight;
  return gathered.sums;
}

}  // namespace kvasir::test
