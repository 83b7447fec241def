// What every part of a model is made of: matrices and norms. Data only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simd/panels.h"

namespace kvasir::model {

// y = W x + b; an empty bias is none.
struct Linear {
  simd::Panels weight;
  std::vector<float> bias;

  [[nodiscard]] std::size_t in() const noexcept { return weight.columns(); }
  [[nodiscard]] std::size_t out() const noexcept { return weight.rows(); }
};

// Numbers brought to one scale, `width` of them together: a row of several widths (heads) is normed piece by
// piece. Weight and bias go along the row and begin anew where they end.
struct Norm {
  enum class Kind : std::uint8_t {
    kRootMeanSquare,   // x / sqrt(mean(x^2) + epsilon)
    kMeanAndVariance,  // (x - mean) / sqrt(variance + epsilon)
  };
  std::vector<float> weight;  // whole widths
  std::vector<float> bias;    // empty, or as many
  float epsilon = 0;
  Kind kind = Kind::kRootMeanSquare;
  std::size_t width = 0;
};

// Norms a row of whole widths; `out` has its size and may be it. Any thread.
void apply(const Norm& norm, std::span<const float> x, std::span<float> out) noexcept;

}  // namespace kvasir::model
