#include "simd/elementwise.h"

#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/curves-inl.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

// Sixteen floats of a row from `i` on, or those that are left; the others are 0.
HWY_INLINE F16x LoadOf(const float* row, std::size_t i, std::size_t size) {
  return i + 16 <= size ? LoadFloats(row + i) : LoadSome(row + i, size - i, 0.0f);
}
HWY_INLINE void StoreOf(const F16x& value, float* row, std::size_t i, std::size_t size) {
  if (i + 16 <= size) return StoreFloats(value, row + i);
  StoreSome(value, size - i, row + i);
}

template <Curve kCurve>
HWY_INLINE F16x Evaluate(const F16x& x) {
  if constexpr (kCurve == Curve::kExp) {
    return Exp(x);
  } else if constexpr (kCurve == Curve::kTanh) {
    return Tanh(x);
  } else if constexpr (kCurve == Curve::kSoftplus) {
    return Softplus(x);
  } else if constexpr (kCurve == Curve::kExpOfMinusExp) {
    return Exp(Sub(Splat(0.0f), Exp(x)));
  } else {
    return Exp(Mul(Splat(-0.606531f), Sigmoid(x)));
  }
}

template <Curve kCurve>
void Apply(float* x, std::size_t size) {
  for (std::size_t i = 0; i < size; i += 16) StoreOf(Evaluate<kCurve>(LoadOf(x, i, size)), x, i, size);
}

void ApplyCurve(Curve curve, float* x, std::size_t size) {
  switch (curve) {
    case Curve::kExp:
      return Apply<Curve::kExp>(x, size);
    case Curve::kTanh:
      return Apply<Curve::kTanh>(x, size);
    case Curve::kSoftplus:
      return Apply<Curve::kSoftplus>(x, size);
    case Curve::kExpOfMinusExp:
      return Apply<Curve::kExpOfMinusExp>(x, size);
    case Curve::kSlowDecay:
      return Apply<Curve::kSlowDecay>(x, size);
  }
}

void MultiplyBy(float* x, const float* by, std::size_t size) {
  for (std::size_t i = 0; i < size; i += 16)
    StoreOf(Mul(LoadOf(x, i, size), LoadOf(by, i, size)), x, i, size);
}

void AddScaled(float factor, const float* x, float* sum, std::size_t size) {
  for (std::size_t i = 0; i < size; i += 16)
    StoreOf(MulAdd(LoadOf(x, i, size), Splat(factor), LoadOf(sum, i, size)), sum, i, size);
}

void Mix(const float* x, const float* other, const float* part, float* out, std::size_t size) {
  for (std::size_t i = 0; i < size; i += 16) {
    const F16x own = LoadOf(x, i, size);
    StoreOf(MulAdd(Sub(LoadOf(other, i, size), own), LoadOf(part, i, size), own), out, i, size);
  }
}

float Dot(const float* a, const float* b, const float* weight, std::size_t size) {
  F16x sums = Splat(0.0f);
  for (std::size_t i = 0; i < size; i += 16)
    sums = MulAdd(Mul(LoadOf(a, i, size), LoadOf(b, i, size)), LoadOf(weight, i, size), sums);
  return SumLanes(sums);
}

void L2Normalize(float* x, float epsilon, float scale, std::size_t size) {
  F16x sums = Splat(0.0f);
  for (std::size_t i = 0; i < size; i += 16) {
    const F16x some = LoadOf(x, i, size);
    sums = MulAdd(some, some, sums);
  }
  const F16x factor = Splat(scale / std::sqrt(SumLanes(sums) + epsilon));
  for (std::size_t i = 0; i < size; i += 16) StoreOf(Mul(LoadOf(x, i, size), factor), x, i, size);
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(AddScaled);
HWY_EXPORT(ApplyCurve);
HWY_EXPORT(Dot);
HWY_EXPORT(L2Normalize);
HWY_EXPORT(Mix);
HWY_EXPORT(MultiplyBy);
}  // namespace

void apply_curve(Curve curve, std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(ApplyCurve)(curve, x.data(), x.size());
}

void multiply_by(std::span<float> x, std::span<const float> by) noexcept {
  HWY_DYNAMIC_DISPATCH(MultiplyBy)(x.data(), by.data(), x.size());
}

void add_scaled(float factor, std::span<const float> x, std::span<float> sum) noexcept {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, x.data(), sum.data(), x.size());
}

void mix(std::span<const float> x, std::span<const float> other, std::span<const float> part,
         std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(Mix)(x.data(), other.data(), part.data(), out.data(), out.size());
}

float dot(std::span<const float> a, std::span<const float> b, std::span<const float> weight) noexcept {
  return HWY_DYNAMIC_DISPATCH(Dot)(a.data(), b.data(), weight.data(), a.size());
}

void l2_normalize(std::span<float> x, float epsilon, float scale) noexcept {
  HWY_DYNAMIC_DISPATCH(L2Normalize)(x.data(), epsilon, scale, x.size());
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
