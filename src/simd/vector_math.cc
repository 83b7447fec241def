#include "simd/vector_math.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_math.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

// Calls whole(i) for every full sixteen and then some(i, count) for the rest, if any.
template <class Whole, class Some>
HWY_INLINE void BySixteen(std::size_t size, const Whole& whole, const Some& some) {
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16) whole(i);
  if (i < size) some(i, size - i);
}

void RmsNorm(const float* x, const float* weight, float epsilon, float* out, std::size_t size) {
  F16x squares = Splat(0.0f);
  BySixteen(
      size,
      [&](std::size_t i) {
        const F16x v = LoadFloats(x + i);
        squares = MulAdd(v, v, squares);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x v = LoadSome(x + i, count, 0.0f);
        squares = MulAdd(v, v, squares);
      });
  const float mean = SumLanes(squares) / static_cast<float>(size);
  const F16x factor = Splat(1.0f / std::sqrt(mean + epsilon));
  BySixteen(
      size,
      [&](std::size_t i) {
        StoreFloats(Mul(Mul(LoadFloats(x + i), factor), LoadFloats(weight + i)), out + i);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x v = Mul(Mul(LoadSome(x + i, count, 0.0f), factor), LoadSome(weight + i, count, 0.0f));
        StoreSome(v, count, out + i);
      });
}

HWY_INLINE F16x SiluGate(const F16x& gate, const F16x& up) {
  const F16x denominator = Add(Splat(1.0f), Exp(Sub(Splat(0.0f), gate)));
  return Mul(Div(gate, denominator), up);
}

void SiluGateAll(float* gate, const float* up, std::size_t size) {
  BySixteen(
      size, [&](std::size_t i) { StoreFloats(SiluGate(LoadFloats(gate + i), LoadFloats(up + i)), gate + i); },
      [&](std::size_t i, std::size_t count) {
        StoreSome(SiluGate(LoadSome(gate + i, count, 0.0f), LoadSome(up + i, count, 0.0f)), count, gate + i);
      });
}

void Softmax(float* x, std::size_t size) {
  float max = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < size; ++i) max = x[i] > max ? x[i] : max;
  const F16x shift = Splat(max);
  F16x sums = Splat(0.0f);
  BySixteen(
      size,
      [&](std::size_t i) {
        const F16x e = Exp(Sub(LoadFloats(x + i), shift));
        StoreFloats(e, x + i);
        sums = Add(sums, e);
      },
      [&](std::size_t i, std::size_t count) {
        StoreSome(Exp(Sub(LoadSome(x + i, count, 0.0f), shift)), count, x + i);
        sums = Add(sums, LoadSome(x + i, count, 0.0f));
      });
  const float sum = SumLanes(sums);
  for (std::size_t i = 0; i < size; ++i) x[i] /= sum;
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(RmsNorm);
HWY_EXPORT(SiluGateAll);
HWY_EXPORT(Softmax);
}  // namespace

void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
              std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x.data(), weight.data(), epsilon, out.data(), x.size());
}

void silu_gate(std::span<float> gate, std::span<const float> up) noexcept {
  HWY_DYNAMIC_DISPATCH(SiluGateAll)(gate.data(), up.data(), gate.size());
}

void softmax(std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(Softmax)(x.data(), x.size());
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
