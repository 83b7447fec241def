// Norms, activations and softmax over rows of floats. Every sum has sixteen partial sums (element i goes to
// sum i mod 16) that are added in one fixed order, so no bit depends on the width of a vector. Any thread.
#pragma once

#include <cstddef>
#include <span>

namespace kvasir::simd {

// out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i]. All of one size; out may be x.
// Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
              std::span<float> out) noexcept;

// gate[i] = silu(gate[i]) * up[i] with silu(z) = z / (1 + e^-z). Of one size.
// Source: Shazeer, GLU Variants Improve Transformer, 2020.
void silu_gate(std::span<float> gate, std::span<const float> up) noexcept;

// x[i] = e^(x[i] - max) / sum, in place. An empty x stays empty; a NaN makes all of x NaN.
void softmax(std::span<float> x) noexcept;

}  // namespace kvasir::simd
