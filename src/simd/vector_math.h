// Norms, activations and softmax over rows of floats. Every sum has sixteen partial sums (element i goes to
// sum i mod 16) that are added in one fixed order, so no bit depends on the width of a vector. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::simd {

// out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i]. All of one size; out may be x.
// Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
              std::span<float> out) noexcept;

// out[i] = (x[i] - mean(x)) / sqrt(variance(x) + epsilon) * weight[i] + bias[i], where an empty bias is none.
// The variance is the mean square of what is left of x without its mean. out may be x.
// Source: Ba et al., Layer Normalization, 2016.
void layer_norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias,
                float epsilon, std::span<float> out) noexcept;

// Functions of one number.
enum class Activation : std::uint8_t {
  kSilu,          // z / (1 + e^-z)
  kGelu,          // z / 2 (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))), computed as z / (1 + e^(-2 ...))
  kRelu,          // max(z, 0)
  kSquaredRelu,   // max(z, 0)^2
  kSwishOfSeven,  // m / (1 + e^(-1.702 m)) with m = min(z, 7)
};

// x[i] = activation(x[i])
// Sources: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016; So et al., Primer, 2021 (squares).
void activate(Activation activation, std::span<float> x) noexcept;

// gate[i] = activation(gate[i]) * up[i]; of kSwishOfSeven up[i] is brought into [-7, 7], and 1 more, first.
// Sources: Shazeer, GLU Variants Improve Transformer, 2020; OpenAI, gpt-oss model card, 2025 (the sevens).
void activate_gate(Activation activation, std::span<float> gate, std::span<const float> up) noexcept;

// x[i] = cap * tanh(x[i] / cap). Source: Gemma Team, Gemma 2, 2024.
void soft_cap(std::span<float> x, float cap) noexcept;

// 1 / (1 + e^-x[i]), in place.
void sigmoid(std::span<float> x) noexcept;

// x[i] = e^(x[i] - max) / sum, in place. An empty x stays empty; a NaN makes all of x NaN.
void softmax(std::span<float> x) noexcept;

}  // namespace kvasir::simd
