// Products over codes with NEON and its dot product of bytes: sixteen rows are four vectors.
#include "simd/byte_products.h"
#include "simd/panel_layout.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "base/cpu.h"
#include "quant/codebooks.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#define KVASIR_INLINE __attribute__((always_inline)) inline
#define KVASIR_INLINE_LAMBDA __attribute__((always_inline))
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod+crypto")
#define KVASIR_INLINE [[gnu::always_inline]] inline
#define KVASIR_INLINE_LAMBDA __attribute__((always_inline))
#endif

namespace kvasir::simd {
namespace {

struct Isa {
  struct Bytes {
    uint8x16_t part[4];
  };
  struct Ints {
    int32x4_t part[4];
  };
  struct Pairs {
    int16x8_t part[4];
  };
  struct Floats {
    float32x4_t part[4];
  };

  static constexpr std::size_t kPanelsAtOnce = 1;
  static constexpr std::size_t kColumnsAtOnce = 4;
  // Both factors of its dot product are signed.
  static constexpr bool kWideCodesLoseTheirZero = true;
  static constexpr bool kSumsShareLanes = false;

  KVASIR_INLINE static void Fetch(const std::uint8_t* from) { __builtin_prefetch(from, 0, 2); }
  KVASIR_INLINE static Bytes Load(const std::uint8_t* from) {
    return {{vld1q_u8(from), vld1q_u8(from + 16), vld1q_u8(from + 32), vld1q_u8(from + 48)}};
  }
  KVASIR_INLINE static Bytes And(Bytes value, int mask) {
    const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(mask));
    for (uint8x16_t& part : value.part) part = vandq_u8(part, all);
    return value;
  }
  KVASIR_INLINE static Bytes Or(Bytes a, Bytes b) {
    for (int i = 0; i < 4; ++i) a.part[i] = vorrq_u8(a.part[i], b.part[i]);
    return a;
  }
  template <int kLeft>
  KVASIR_INLINE static Bytes Shift(Bytes value) {
    for (uint8x16_t& part : value.part) {
      const uint32x4_t words = vreinterpretq_u32_u8(part);
      if constexpr (kLeft > 0) part = vreinterpretq_u8_u32(vshlq_n_u32(words, kLeft));
      if constexpr (kLeft < 0) part = vreinterpretq_u8_u32(vshrq_n_u32(words, -kLeft));
    }
    return value;
  }
  KVASIR_INLINE static Bytes LookUp(const std::array<std::uint8_t, 16>& table, Bytes codes) {
    const uint8x16_t all = vld1q_u8(table.data());
    for (uint8x16_t& part : codes.part) part = vqtbl1q_u8(all, part);
    return codes;
  }
  KVASIR_INLINE static Ints NoInts() { return SplatInts(0); }
  KVASIR_INLINE static Ints SplatInts(std::int32_t value) {
    const int32x4_t all = vdupq_n_s32(value);
    return {{all, all, all, all}};
  }
  // Of codes that need all eight bits 128, which is their zero, is taken off.
  template <bool kWide>
  KVASIR_INLINE static Ints Dot(Ints sums, Bytes codes, const std::int8_t* four) {
    std::int32_t packed = 0;
    __builtin_memcpy(&packed, four, sizeof(packed));
    const int8x16_t bytes = vreinterpretq_s8_s32(vdupq_n_s32(packed));
    for (int i = 0; i < 4; ++i) {
      uint8x16_t code = codes.part[i];
      if constexpr (kWide) code = veorq_u8(code, vdupq_n_u8(0x80));
      sums.part[i] = vdotq_s32(sums.part[i], vreinterpretq_s8_u8(code), bytes);
    }
    return sums;
  }
  KVASIR_INLINE static Pairs LoadPairs(const std::uint8_t* from) {
    Pairs out;
    for (int i = 0; i < 4; ++i)
      out.part[i] = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from + static_cast<std::ptrdiff_t>(8 * i))));
    return out;
  }
  KVASIR_INLINE static Ints DotPairs(Ints sums, Pairs pairs, const std::int16_t* two) {
    std::int32_t packed = 0;
    __builtin_memcpy(&packed, two, sizeof(packed));
    const int16x8_t both = vreinterpretq_s16_s32(vdupq_n_s32(packed));
    for (int i = 0; i < 4; ++i) {
      const int32x4_t low = vmull_s16(vget_low_s16(pairs.part[i]), vget_low_s16(both));
      const int32x4_t high = vmull_s16(vget_high_s16(pairs.part[i]), vget_high_s16(both));
      sums.part[i] = vaddq_s32(sums.part[i], vpaddq_s32(low, high));
    }
    return sums;
  }
  KVASIR_INLINE static Floats Zero() { return Same(0.0F); }
  KVASIR_INLINE static Floats Splat(const float* from) { return Same(*from); }
  KVASIR_INLINE static Floats SplatInt(const std::int16_t* from) { return Same(static_cast<float>(*from)); }
  KVASIR_INLINE static Floats ToFloats(Ints value) {
    Floats out;
    for (int i = 0; i < 4; ++i) out.part[i] = vcvtq_f32_s32(value.part[i]);
    return out;
  }
  KVASIR_INLINE static Floats Mul(Floats a, Floats b) {
    for (int i = 0; i < 4; ++i) a.part[i] = vmulq_f32(a.part[i], b.part[i]);
    return a;
  }
  KVASIR_INLINE static Floats MulAdd(Floats a, Floats b, Floats sum) {
    for (int i = 0; i < 4; ++i) sum.part[i] = vfmaq_f32(sum.part[i], a.part[i], b.part[i]);
    return sum;
  }
  KVASIR_INLINE static Floats NegativeMulAdd(Floats a, Floats b, Floats sum) {
    for (int i = 0; i < 4; ++i) sum.part[i] = vfmsq_f32(sum.part[i], a.part[i], b.part[i]);
    return sum;
  }
  KVASIR_INLINE static Floats Halves(const std::uint8_t* from) {
    Floats out;
    for (int i = 0; i < 4; ++i)
      out.part[i] = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from + static_cast<std::ptrdiff_t>(8 * i))));
    return out;
  }
  KVASIR_INLINE static Floats SignedBytes(const std::uint8_t* from) {
    const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(from));
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t high = vmovl_s8(vget_high_s8(bytes));
    return ToFloats({{vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)),
                      vmovl_s16(vget_low_s16(high)), vmovl_s16(vget_high_s16(high))}});
  }
  // As quant::half_power_of_two: exponents below 2 are denormal.
  KVASIR_INLINE static Floats Exponents(const std::uint8_t* from) {
    const uint8x16_t bytes = vld1q_u8(from);
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t high = vmovl_u8(vget_high_u8(bytes));
    const uint32x4_t exponents[4] = {vmovl_u16(vget_low_u16(low)), vmovl_u16(vget_high_u16(low)),
                                     vmovl_u16(vget_low_u16(high)), vmovl_u16(vget_high_u16(high))};
    Floats out;
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t normal = vshlq_n_u32(vsubq_u32(exponents[i], vdupq_n_u32(1)), 23);
      const uint32x4_t denormal = vshlq_u32(vdupq_n_u32(0x0020'0000), vreinterpretq_s32_u32(exponents[i]));
      const uint32x4_t small = vcltq_u32(exponents[i], vdupq_n_u32(2));
      out.part[i] = vreinterpretq_f32_u32(vbslq_u32(small, denormal, normal));
    }
    return out;
  }
  KVASIR_INLINE static Floats LoadFloats(const float* from) {
    return {{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
  }
  KVASIR_INLINE static void Store(Floats value, float* to) {
    for (int i = 0; i < 4; ++i) vst1q_f32(to + static_cast<std::ptrdiff_t>(4 * i), value.part[i]);
  }

 private:
  KVASIR_INLINE static Floats Same(float value) {
    const float32x4_t all = vdupq_n_f32(value);
    return {{all, all, all, all}};
  }
};

#include "simd/byte_products-inl.h"

}  // namespace
}  // namespace kvasir::simd

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace kvasir::simd {

const BytePath kNeonBytes = {"NEON with dot products", base::has_arm_dot_products, Multiply};

}  // namespace kvasir::simd
#endif  // __aarch64__
