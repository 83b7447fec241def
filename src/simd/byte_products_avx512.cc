// Products over codes with AVX-512 and its dot product of bytes (VNNI).
#include "simd/byte_products.h"
#include "simd/panel_layout.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "quant/codebooks.h"

// A processor without prfchw takes a request for a line to write as no instruction.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,prfchw"))), \
                             apply_to = function)
#define KVASIR_INLINE __attribute__((always_inline)) inline
#define KVASIR_INLINE_LAMBDA __attribute__((always_inline))
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vnni,prfchw")
#define KVASIR_INLINE [[gnu::always_inline]] inline
#define KVASIR_INLINE_LAMBDA __attribute__((always_inline))
#endif

namespace kvasir::simd {
namespace {

struct Isa {
  using Bytes = __m512i;
  using Ints = __m512i;
  using Pairs = __m512i;
  using Floats = __m512;

  static constexpr std::size_t kPanelsAtOnce = 2;
  static constexpr std::size_t kColumnsAtOnce = 6;
  static constexpr bool kWideCodesLoseTheirZero = false;
  static constexpr bool kSumsShareLanes = true;

  KVASIR_INLINE static void Fetch(const std::uint8_t* from) {
    _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
  }
  KVASIR_INLINE static Bytes Load(const std::uint8_t* from) { return _mm512_load_si512(from); }
  KVASIR_INLINE static Bytes And(Bytes value, int mask) {
    return _mm512_and_si512(value, _mm512_set1_epi8(static_cast<char>(mask)));
  }
  KVASIR_INLINE static Bytes Or(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  template <int kLeft>
  KVASIR_INLINE static Bytes Shift(Bytes value) {
    if constexpr (kLeft > 0) return _mm512_slli_epi32(value, kLeft);
    if constexpr (kLeft < 0) return _mm512_srli_epi32(value, -kLeft);
    return value;
  }
  KVASIR_INLINE static Bytes LookUp(const std::array<std::uint8_t, 16>& table, Bytes codes) {
    const __m128i one = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data()));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(one), codes);
  }
  KVASIR_INLINE static Ints NoInts() { return _mm512_setzero_si512(); }
  KVASIR_INLINE static Ints SplatInts(std::int32_t value) { return _mm512_set1_epi32(value); }
  template <bool kWide>
  KVASIR_INLINE static Ints Dot(Ints sums, Bytes codes, const std::int8_t* four) {
    int packed = 0;
    __builtin_memcpy(&packed, four, sizeof(packed));
    return _mm512_dpbusd_epi32(sums, codes, _mm512_set1_epi32(packed));
  }
  KVASIR_INLINE static Pairs LoadPairs(const std::uint8_t* from) {
    return _mm512_cvtepu8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  }
  KVASIR_INLINE static Ints DotPairs(Ints sums, Pairs pairs, const std::int16_t* two) {
    int packed = 0;
    __builtin_memcpy(&packed, two, sizeof(packed));
    return _mm512_dpwssd_epi32(sums, pairs, _mm512_set1_epi32(packed));
  }
  // Sixteen bytes, which go above, and the sixteen behind them, which go below.
  KVASIR_INLINE static Pairs LoadSubScales(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m128i*>(from);
    const Ints upper = _mm512_slli_epi32(_mm512_cvtepi8_epi32(_mm_load_si128(at)), 16);
    return _mm512_mask_mov_epi16(upper, 0x5555'5555, _mm512_cvtepi8_epi32(_mm_load_si128(at + 1)));
  }
  // What a lower half is more than its sum while it is added to: so it is never below 0, and borrows nothing
  // from the upper half.
  static constexpr int kAboveSum = 0x8000;
  KVASIR_INLINE static Ints ToUpperHalf(Ints sums) {
    return _mm512_add_epi32(_mm512_slli_epi32(sums, 16), _mm512_set1_epi32(kAboveSum));
  }
  KVASIR_INLINE static Ints DotUpperAndLower(Ints sums, Ints both, Pairs scales) {
    return _mm512_dpwssd_epi32(sums, _mm512_xor_si512(both, _mm512_set1_epi32(kAboveSum)), scales);
  }
  KVASIR_INLINE static Floats Zero() { return _mm512_setzero_ps(); }
  KVASIR_INLINE static Floats Splat(const float* from) { return _mm512_set1_ps(*from); }
  KVASIR_INLINE static Floats SplatInt(const std::int16_t* from) {
    return _mm512_cvtepi32_ps(_mm512_set1_epi32(*from));
  }
  KVASIR_INLINE static Floats ToFloats(Ints value) { return _mm512_cvtepi32_ps(value); }
  KVASIR_INLINE static Floats Mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  KVASIR_INLINE static Floats MulAdd(Floats a, Floats b, Floats sum) { return _mm512_fmadd_ps(a, b, sum); }
  KVASIR_INLINE static Floats NegativeMulAdd(Floats a, Floats b, Floats sum) {
    return _mm512_fnmadd_ps(a, b, sum);
  }
  KVASIR_INLINE static Floats Halves(const std::uint8_t* from) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  }
  KVASIR_INLINE static Floats SignedBytes(const std::uint8_t* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from))));
  }
  // As quant::half_power_of_two: exponents below 2 are denormal.
  KVASIR_INLINE static Floats Exponents(const std::uint8_t* from) {
    const Ints exponent = _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
    const Ints normal = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(1)), 23);
    const Ints denormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x0020'0000), exponent);
    const __mmask16 small = _mm512_cmplt_epi32_mask(exponent, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(small, normal, denormal));
  }
  KVASIR_INLINE static Floats LoadFloats(const float* from) { return _mm512_loadu_ps(from); }
  KVASIR_INLINE static void Store(Floats value, float* to) { _mm512_storeu_ps(to, value); }
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
namespace {

bool runs_here() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

}  // namespace

const BytePath kAvx512Bytes = {"AVX-512 VNNI", runs_here, Multiply};

}  // namespace kvasir::simd
#endif  // __x86_64__
