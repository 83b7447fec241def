// What recurrent layers do to rows of floats between their products. An element's result depends on the
// elements of its index alone, but for l2_normalize and dot, whose sums have sixteen partial sums (element i
// goes to sum i mod 16) that are added in one fixed order. The rows of a call have one size. Any thread.
#pragma once

#include <cstdint>
#include <span>

namespace kvasir::simd {

enum class Curve : std::uint8_t {
  kExp,            // e^x
  kTanh,           // (e^2x - 1) / (e^2x + 1)
  kSoftplus,       // ln(1 + e^x)
  kExpOfMinusExp,  // e^(-e^x): the decay of RWKV-6 (Peng et al., Eagle and Finch, 2024)
  kSlowDecay,      // e^(-0.606531 / (1 + e^-x)): that of RWKV-7 (Peng et al., Goose, 2025)
};

// x[i] = curve(x[i])
void apply_curve(Curve curve, std::span<float> x) noexcept;

// x[i] *= by[i]
void multiply_by(std::span<float> x, std::span<const float> by) noexcept;

// sum[i] += factor * x[i]
void add_scaled(float factor, std::span<const float> x, std::span<float> sum) noexcept;

// out[i] = x[i] + (other[i] - x[i]) * part[i]; out may be x or part.
void mix(std::span<const float> x, std::span<const float> other, std::span<const float> part,
         std::span<float> out) noexcept;

// The sum of a[i] * b[i] * weight[i].
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b,
                        std::span<const float> weight) noexcept;

// x[i] *= scale / sqrt(sum of x^2 + epsilon)
void l2_normalize(std::span<float> x, float epsilon, float scale) noexcept;

}  // namespace kvasir::simd
