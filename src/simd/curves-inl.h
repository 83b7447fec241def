// Sigmoid and softplus of sixteen floats, built of exact steps and lanes-inl.h's Exp: the
// same bits on every machine. Included once for each target.

// clang-format off
#if defined(KVASIR_SIMD_CURVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_SIMD_CURVES_INL_H_
#undef KVASIR_SIMD_CURVES_INL_H_
#else
#define KVASIR_SIMD_CURVES_INL_H_
#endif
// clang-format on

#include "hwy/highway.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {

// Calls curve(v) for each of the vectors.
template <class Curve>
HWY_INLINE F16x EachPart(const F16x& x, const Curve& curve) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = curve(x.part[p]);
  return out;
}

// 1 / (1 + e^-x) to within four units in the last place; below -88.7 it is 0.
HWY_INLINE F16x Sigmoid(const F16x& x) {
  return Div(Splat(1.0f), Add(Splat(1.0f), Exp(Sub(Splat(0.0f), x))));
}

HWY_INLINE F16x Silu(const F16x& x) {
  return Div(x, Add(Splat(1.0f), Exp(Sub(Splat(0.0f), x))));
}

// ln(1 + e^x) to within six units in the last place. Method: max(x, 0) + ln(1 + t) with t = e^-|x|, and
// ln(1 + t) = 2 artanh(s) with s = t / (2 + t) <= 1/3: the series s + s^3/3 + ... to s^17, whose remainder is
// below 2^-32 of the result. NaN stays NaN.
HWY_INLINE VF Softplus(VF x) {
  const DF d;
  const VF t = Exp(hn::Neg(hn::Abs(x)));
  const VF s = hn::Div(t, hn::Add(t, hn::Set(d, 2.0f)));
  const VF square = hn::Mul(s, s);
  VF series = hn::Set(d, 1.0f / 17);
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 15));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 13));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 11));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 9));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 7));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 5));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f / 3));
  series = hn::MulAdd(series, square, hn::Set(d, 1.0f));
  const VF above = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Zero(d));
  return hn::MulAdd(hn::Add(s, s), series, above);
}
HWY_INLINE F16x Softplus(const F16x& x) {
  return EachPart(x, [](VF part) HWY_ATTR { return Softplus(part); });
}

}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KVASIR_SIMD_CURVES_INL_H_
