// Products over codes with AVX2: sixteen rows are two vectors.
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
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,prfchw"))), apply_to = function)
#define KVASIR_INLINE __attribute__((always_inline)) inline
#define KVASIR_INLINE_LAMBDA __attribute__((always_inline))
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,prfchw")
#define KVASIR_INLINE [[gnu::always_inline]] inline
#define KVASIR_INLINE_LAMBDA __attribute__((always_inline))
#endif

namespace kvasir::simd {
namespace {

struct Isa {
  struct Bytes {
    __m256i part[2];
  };
  using Ints = Bytes;
  using Pairs = Bytes;
  struct Floats {
    __m256 part[2];
  };

  static constexpr std::size_t kPanelsAtOnce = 1;
  static constexpr std::size_t kColumnsAtOnce = 4;
  static constexpr bool kWideCodesLoseTheirZero = false;
  static constexpr bool kSumsShareLanes = false;

  KVASIR_INLINE static void Fetch(const std::uint8_t* from) {
    _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
  }
  KVASIR_INLINE static Bytes Load(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m256i*>(from);
    return {{_mm256_load_si256(at), _mm256_load_si256(at + 1)}};
  }
  KVASIR_INLINE static Bytes And(Bytes value, int mask) {
    const __m256i all = _mm256_set1_epi8(static_cast<char>(mask));
    return {{_mm256_and_si256(value.part[0], all), _mm256_and_si256(value.part[1], all)}};
  }
  KVASIR_INLINE static Bytes Or(Bytes a, Bytes b) {
    return {{_mm256_or_si256(a.part[0], b.part[0]), _mm256_or_si256(a.part[1], b.part[1])}};
  }
  template <int kLeft>
  KVASIR_INLINE static Bytes Shift(Bytes value) {
    if constexpr (kLeft > 0)
      return {{_mm256_slli_epi32(value.part[0], kLeft), _mm256_slli_epi32(value.part[1], kLeft)}};
    if constexpr (kLeft < 0)
      return {{_mm256_srli_epi32(value.part[0], -kLeft), _mm256_srli_epi32(value.part[1], -kLeft)}};
    return value;
  }
  KVASIR_INLINE static Bytes LookUp(const std::array<std::uint8_t, 16>& table, Bytes codes) {
    const __m256i all =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data())));
    return {{_mm256_shuffle_epi8(all, codes.part[0]), _mm256_shuffle_epi8(all, codes.part[1])}};
  }
  KVASIR_INLINE static Ints NoInts() { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
  KVASIR_INLINE static Ints SplatInts(std::int32_t value) {
    return {{_mm256_set1_epi32(value), _mm256_set1_epi32(value)}};
  }
  // The sum of two products of an unsigned and a signed byte saturates at 16 bits. Codes below 128 cannot
  // reach that, bytes being at most 127; of wider codes the top bit is multiplied by itself.
  template <bool kWide>
  KVASIR_INLINE static Ints Dot(Ints sums, Bytes codes, const std::int8_t* four) {
    int packed = 0;
    __builtin_memcpy(&packed, four, sizeof(packed));
    const __m256i bytes = _mm256_set1_epi32(packed);
    const __m256i ones = _mm256_set1_epi16(1);
    for (int i = 0; i < 2; ++i) {
      __m256i low = codes.part[i];
      if constexpr (kWide) {
        const __m256i top = _mm256_and_si256(low, _mm256_set1_epi8(static_cast<char>(0x80)));
        low = _mm256_and_si256(low, _mm256_set1_epi8(0x7F));
        sums.part[i] =
            _mm256_add_epi32(sums.part[i], _mm256_madd_epi16(_mm256_maddubs_epi16(top, bytes), ones));
      }
      sums.part[i] =
          _mm256_add_epi32(sums.part[i], _mm256_madd_epi16(_mm256_maddubs_epi16(low, bytes), ones));
    }
    return sums;
  }
  KVASIR_INLINE static Pairs LoadPairs(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m128i*>(from);
    return {{_mm256_cvtepu8_epi16(_mm_load_si128(at)), _mm256_cvtepu8_epi16(_mm_load_si128(at + 1))}};
  }
  KVASIR_INLINE static Ints DotPairs(Ints sums, Pairs pairs, const std::int16_t* two) {
    int packed = 0;
    __builtin_memcpy(&packed, two, sizeof(packed));
    for (int i = 0; i < 2; ++i) {
      const __m256i products = _mm256_madd_epi16(pairs.part[i], _mm256_set1_epi32(packed));
      sums.part[i] = _mm256_add_epi32(sums.part[i], products);
    }
    return sums;
  }
  KVASIR_INLINE static Floats Zero() { return {{_mm256_setzero_ps(), _mm256_setzero_ps()}}; }
  KVASIR_INLINE static Floats Splat(const float* from) {
    return {{_mm256_broadcast_ss(from), _mm256_broadcast_ss(from)}};
  }
  KVASIR_INLINE static Floats SplatInt(const std::int16_t* from) { return ToFloats(SplatInts(*from)); }
  KVASIR_INLINE static Floats ToFloats(Ints value) {
    return {{_mm256_cvtepi32_ps(value.part[0]), _mm256_cvtepi32_ps(value.part[1])}};
  }
  KVASIR_INLINE static Floats Mul(Floats a, Floats b) {
    return {{_mm256_mul_ps(a.part[0], b.part[0]), _mm256_mul_ps(a.part[1], b.part[1])}};
  }
  KVASIR_INLINE static Floats MulAdd(Floats a, Floats b, Floats sum) {
    return {{_mm256_fmadd_ps(a.part[0], b.part[0], sum.part[0]),
             _mm256_fmadd_ps(a.part[1], b.part[1], sum.part[1])}};
  }
  KVASIR_INLINE static Floats NegativeMulAdd(Floats a, Floats b, Floats sum) {
    return {{_mm256_fnmadd_ps(a.part[0], b.part[0], sum.part[0]),
             _mm256_fnmadd_ps(a.part[1], b.part[1], sum.part[1])}};
  }
  KVASIR_INLINE static Floats Halves(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m128i*>(from);
    return {{_mm256_cvtph_ps(_mm_load_si128(at)), _mm256_cvtph_ps(_mm_load_si128(at + 1))}};
  }
  KVASIR_INLINE static Floats SignedBytes(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m128i*>(from);
    return ToFloats({{_mm256_cvtepi8_epi32(_mm_loadl_epi64(at)),
                      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8)))}});
  }
  // As quant::half_power_of_two: exponents below 2 are denormal.
  KVASIR_INLINE static Floats Exponents(const std::uint8_t* from) {
    Floats out{};
    for (int i = 0; i < 2; ++i) {
      const __m256i exponent =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * i)));
      const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(1)), 23);
      const __m256i denormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x0020'0000), exponent);
      const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), exponent);
      out.part[i] = _mm256_castsi256_ps(_mm256_blendv_epi8(normal, denormal, small));
    }
    return out;
  }
  KVASIR_INLINE static Floats LoadFloats(const float* from) {
    return {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}};
  }
  KVASIR_INLINE static void Store(Floats value, float* to) {
    _mm256_storeu_ps(to, value.part[0]);
    _mm256_storeu_ps(to + 8, value.part[1]);
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
namespace {

bool runs_here() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

}  // namespace

const BytePath kAvx2Bytes = {"AVX2", runs_here, Multiply};

}  // namespace kvasir::simd
#endif  // __x86_64__
