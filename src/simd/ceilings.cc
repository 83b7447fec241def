#include "simd/ceilings.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvasir::simd {
namespace {

// Steps of a round, each of kSums instructions. Twelve sums are more than the latency of any of them.
constexpr std::size_t kSteps = 256;
constexpr std::size_t kSums = 12;

std::uint64_t read_portable(std::span<const std::byte> bytes) noexcept {
  std::array<std::uint64_t, 8> words{};
  std::size_t i = 0;
  for (; i + sizeof(words) <= bytes.size(); i += sizeof(words)) {
    for (std::size_t w = 0; w < words.size(); ++w) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i + w * sizeof(word), sizeof(word));
      words[w] ^= word;
    }
  }
  std::uint64_t all = 0;
  for (const std::uint64_t word : words) all ^= word;
  for (; i < bytes.size(); ++i) all ^= std::to_integer<std::uint64_t>(bytes[i]) << (i % 8 * 8);
  return all;
}

#if defined(__x86_64__)

// Repeats `step` for every sum of `rounds` rounds. A macro, because it must be compiled for the instructions
// of the function it stands in. Each sum is "used" after its step, so that none is left out or merged with
// another.
#define KVASIR_REPEAT(step)                           \
  for (std::size_t i = 0; i < rounds * kSteps; ++i) { \
    _Pragma("GCC unroll 12") for (auto& sum : sums) { \
      step;                                           \
      asm volatile("" : "+v"(sum));                   \
    }                                                 \
  }

[[gnu::target("avx512f,avx512vnni")]] void bytes_avx512(std::size_t rounds) noexcept {
  __m512i sums[kSums] = {};
  const __m512i codes = _mm512_set1_epi8(3);
  KVASIR_REPEAT(sum = _mm512_dpbusd_epi32(sum, codes, codes))
}

[[gnu::target("avx2")]] void bytes_avx2(std::size_t rounds) noexcept {
  __m256i sums[kSums] = {};
  __m256i codes = _mm256_set1_epi8(3);
  const __m256i ones = _mm256_set1_epi16(1);
  KVASIR_REPEAT({
    asm volatile("" : "+v"(codes));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, codes), ones));
  })
}

[[gnu::target("avx512f,avx512bf16")]] void bfloats_avx512(std::size_t rounds) noexcept {
  __m512 sums[kSums] = {};
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3F80'3F80));
  KVASIR_REPEAT(sum = _mm512_dpbf16_ps(sum, ones, ones))
}

[[gnu::target("avx512f")]] void floats_avx512(std::size_t rounds) noexcept {
  __m512 sums[kSums] = {};
  const __m512 ones = _mm512_set1_ps(1);
  KVASIR_REPEAT(sum = _mm512_fmadd_ps(ones, ones, sum))
}

[[gnu::target("avx2,fma")]] void floats_avx2(std::size_t rounds) noexcept {
  __m256 sums[kSums] = {};
  const __m256 ones = _mm256_set1_ps(1);
  KVASIR_REPEAT(sum = _mm256_fmadd_ps(ones, ones, sum))
}

#undef KVASIR_REPEAT

[[gnu::target("avx512f")]] std::uint64_t read_avx512(std::span<const std::byte> bytes) noexcept {
  __m512i sums[8] = {};
  std::size_t i = 0;
  for (; i + sizeof(sums) <= bytes.size(); i += sizeof(sums)) {
#pragma GCC unroll 8
    for (std::size_t s = 0; s < 8; ++s)
      sums[s] = _mm512_xor_si512(sums[s], _mm512_loadu_si512(bytes.data() + i + s * sizeof(__m512i)));
  }
  std::array<std::uint64_t, 64> words;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  std::memcpy(words.data(), sums, sizeof(sums));
  std::uint64_t all = read_portable(bytes.subspan(i));
  for (const std::uint64_t word : words) all ^= word;
  return all;
}

// Operations of a round whose instructions each do so many products.
constexpr double operations(double products) {
  return 2 * products * kSteps * kSums;
}

#endif

}  // namespace

CeilingLoop byte_ceiling() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) return {"AVX-512 VNNI", operations(64), bytes_avx512};
  if (__builtin_cpu_supports("avx2")) return {"AVX2", operations(32), bytes_avx2};
#endif
  return {};
}

CeilingLoop bfloat_ceiling() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return {"AVX-512 BF16", operations(32), bfloats_avx512};
#endif
  return {};
}

CeilingLoop float_ceiling() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", operations(16), floats_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {"AVX2", operations(8), floats_avx2};
#endif
  return {};
}

std::uint64_t read_through(std::span<const std::byte> bytes) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_avx512(bytes);
#endif
  return read_portable(bytes);
}

}  // namespace kvasir::simd
