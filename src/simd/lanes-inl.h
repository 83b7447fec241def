// Sixteen floats as however many vectors the target needs: the one width that every kernel counts in, so that
// no order of sums depends on the width of a vector. Included once for each target.

// clang-format off
#if defined(KVASIR_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_SIMD_LANES_INL_H_
#undef KVASIR_SIMD_LANES_INL_H_
#else
#define KVASIR_SIMD_LANES_INL_H_
#endif
// clang-format on

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

// Of the body of an unrolled loop: a call in its place would put what it captures into memory.
#ifndef KVASIR_LAMBDA
#define KVASIR_LAMBDA __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using DHalf = hn::Rebind<hwy::float16_t, DF>;
using DBf = hn::Rebind<hwy::bfloat16_t, DF>;
using DI8 = hn::Rebind<std::int8_t, DF>;
using DU8 = hn::Rebind<std::uint8_t, DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
using VU = hn::Vec<DU>;

inline constexpr std::size_t kLanes = hn::MaxLanes(DF());
inline constexpr std::size_t kParts = 16 / kLanes;

// Calls body(0), ..., body(kCount - 1) with constants, so that an array it indexes may live in registers.
template <std::size_t kCount, class Body>
HWY_INLINE void Unrolled(const Body& body) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) KVASIR_LAMBDA {
    (body(std::integral_constant<std::size_t, kIndex>()), ...);
  }(std::make_index_sequence<kCount>());
}

// Sixteen floats.
struct F16x {
  VF part[kParts];
};

HWY_INLINE F16x Splat(float value) {
  F16x out;
  for (VF& part : out.part) part = hn::Set(DF(), value);
  return out;
}
HWY_INLINE F16x LoadFloats(const float* HWY_RESTRICT from) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::LoadU(DF(), from + p * kLanes);
  return out;
}
HWY_INLINE void StoreFloats(const F16x& value, float* HWY_RESTRICT to) {
  for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(value.part[p], DF(), to + p * kLanes);
}
// Past the caches; `to` is aligned to 64 bytes. hwy::FlushStream() comes before another thread may read it.
HWY_INLINE void StreamFloats(const F16x& value, float* HWY_RESTRICT to) {
  for (std::size_t p = 0; p < kParts; ++p) hn::Stream(value.part[p], DF(), to + p * kLanes);
}
// The first `count` floats; the others are `rest`.
HWY_INLINE F16x LoadSome(const float* HWY_RESTRICT from, std::size_t count, float rest) {
  alignas(64) float padded[16];
  for (std::size_t i = 0; i < 16; ++i) padded[i] = i < count ? from[i] : rest;
  return LoadFloats(padded);
}
HWY_INLINE void StoreSome(const F16x& value, std::size_t count, float* HWY_RESTRICT to) {
  alignas(64) float padded[16];
  StoreFloats(value, padded);
  std::memcpy(to, padded, count * sizeof(float));
}

HWY_INLINE F16x Add(const F16x& a, const F16x& b) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::Add(a.part[p], b.part[p]);
  return out;
}
HWY_INLINE F16x Sub(const F16x& a, const F16x& b) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::Sub(a.part[p], b.part[p]);
  return out;
}
HWY_INLINE F16x Mul(const F16x& a, const F16x& b) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::Mul(a.part[p], b.part[p]);
  return out;
}
HWY_INLINE F16x Div(const F16x& a, const F16x& b) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::Div(a.part[p], b.part[p]);
  return out;
}
HWY_INLINE F16x MulAdd(const F16x& a, const F16x& b, const F16x& c) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::MulAdd(a.part[p], b.part[p], c.part[p]);
  return out;
}

// Sixteen elements of a stored type as floats, exactly. BF16 is the upper half of a float.
HWY_INLINE F16x LoadElements(const float* HWY_RESTRICT from) {
  return LoadFloats(from);
}
HWY_INLINE F16x LoadElements(const hwy::float16_t* HWY_RESTRICT from) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) {
    out.part[p] = hn::PromoteTo(DF(), hn::LoadU(DHalf(), from + p * kLanes));
  }
  return out;
}
HWY_INLINE F16x LoadElements(const hwy::bfloat16_t* HWY_RESTRICT from) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p)
    out.part[p] = hn::PromoteTo(DF(), hn::LoadU(DBf(), from + p * kLanes));
  return out;
}

// Sixteen signed bytes as floats.
HWY_INLINE F16x LoadQuants(const std::int8_t* HWY_RESTRICT from) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) {
    out.part[p] = hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(DI8(), from + p * kLanes)));
  }
  return out;
}

// Sixteen times four bits less 8, of the low or the high halves of sixteen bytes, as floats.
enum class Nibble : std::uint8_t { kLow, kHigh };
template <Nibble kHalf>
HWY_INLINE F16x LoadNibbles(const std::uint8_t* HWY_RESTRICT from) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) {
    const VI bytes = hn::PromoteTo(DI(), hn::LoadU(DU8(), from + p * kLanes));
    const VI number = kHalf == Nibble::kLow ? hn::And(bytes, hn::Set(DI(), 15)) : hn::ShiftRight<4>(bytes);
    out.part[p] = hn::ConvertTo(DF(), hn::Sub(number, hn::Set(DI(), 8)));
  }
  return out;
}

// The half float at `from`, of any alignment, in every lane.
HWY_INLINE F16x SplatHalf(const std::byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  const hn::Rebind<std::uint16_t, DF> d16;
  const VF value = hn::PromoteTo(DF(), hn::BitCast(DHalf(), hn::Set(d16, bits)));
  F16x out;
  for (VF& part : out.part) part = value;
  return out;
}

// e^x to within two units in the last place; below -87.3 it is 0, above 88.7 infinity, NaN stays NaN. Method:
// x = n ln 2 + r with |r| <= ln 2 / 2, Taylor's series to degree 7 for e^r (its remainder is below 2^-27 of
// the result), times 2^n.
struct ExpParts {
  VF n;
  VF of_rest;  // e^r
};
HWY_INLINE ExpParts SplitExp(VF x) {
  const DF d;
  const VF n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  VF e = hn::Set(d, 1.0f / 5040);
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 720));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 120));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 24));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 6));
  e = hn::MulAdd(e, r, hn::Set(d, 0.5f));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f));
  return {n, e};
}
// 2^exponent, from -126 to 127.
HWY_INLINE VF PowerOfTwo(VI exponent) {
  return hn::BitCast(DF(), hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(DI(), 127))));
}
HWY_INLINE VF Exp(VF x) {
  const DF d;
  const auto [n, of_rest] = SplitExp(x);
  // 2^n in two factors, so that n = 128 does not overflow before its time. Lanes out of range are replaced
  // below.
  const VF bounded = hn::Min(hn::Max(n, hn::Set(d, -126.0f)), hn::Set(d, 128.0f));
  const VI whole = hn::ConvertTo(DI(), bounded);
  const VI first = hn::ShiftRight<1>(whole);
  const VI second = hn::Sub(whole, first);
  VF e = hn::Mul(hn::Mul(of_rest, PowerOfTwo(first)), PowerOfTwo(second));
  e = hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.3f)), hn::Zero(d), e);
  e = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7f)), hn::Inf(d), e);
  return hn::IfThenElse(hn::IsNaN(x), x, e);
}
// The same for x of at most 0, to the bit, with half the steps: n is never above 0, so one factor is enough.
HWY_INLINE VF ExpOfNegative(VF x) {
  const DF d;
  const auto [n, of_rest] = SplitExp(x);
  const VF e = hn::Mul(of_rest, PowerOfTwo(hn::ConvertTo(DI(), hn::Max(n, hn::Set(d, -126.0f)))));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.3f)), hn::Zero(d), e);
}
HWY_INLINE F16x ExpOfNegative(const F16x& x) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = ExpOfNegative(x.part[p]);
  return out;
}
HWY_INLINE F16x Exp(const F16x& x) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = Exp(x.part[p]);
  return out;
}

// tanh x to within three units in the last place; NaN stays NaN. Method: tanh x = u / (u + 2) with
// u = e^2x - 1, and u = 2^n (e^r - 1) + (2^n - 1) where 2x = n ln 2 + r, |r| <= ln 2 / 2, with Taylor's
// series to degree 8 for e^r - 1; so nothing cancels near 0. Beyond 10 the result is 1.
HWY_INLINE VF Tanh(VF x) {
  const DF d;
  const DI di;
  const VF limit = hn::Set(d, 10.0f);
  const VF bounded = hn::Min(hn::Max(x, hn::Neg(limit)), limit);
  const VF twice = hn::Add(bounded, bounded);
  const VF n = hn::Round(hn::Mul(twice, hn::Set(d, 1.44269504088896341f)));
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), twice);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  VF e = hn::Set(d, 1.0f / 40320);
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 5040));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 720));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 120));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 24));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f / 6));
  e = hn::MulAdd(e, r, hn::Set(d, 0.5f));
  e = hn::MulAdd(e, r, hn::Set(d, 1.0f));
  e = hn::Mul(e, r);
  const VI exponent = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
  const VF power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  const VF u = hn::MulAdd(power, e, hn::Sub(power, hn::Set(d, 1.0f)));
  const VF result = hn::Div(u, hn::Add(u, hn::Set(d, 2.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}
HWY_INLINE F16x Tanh(const F16x& x) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = Tanh(x.part[p]);
  return out;
}

// cap * tanh(x / cap)
HWY_INLINE F16x SoftCapped(const F16x& x, float cap) {
  return Mul(Tanh(Div(x, Splat(cap))), Splat(cap));
}

// The sum of sixteen partial sums: halves are added until one is left, whatever the width of a vector.
HWY_INLINE float SumLanes(const F16x& value) {
  alignas(64) float lanes[16];
  StoreFloats(value, lanes);
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KVASIR_SIMD_LANES_INL_H_
