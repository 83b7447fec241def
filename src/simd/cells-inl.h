// Keys and values as they are stored in the cache, read sixteen at a time as floats, exactly. Included once
// for each target.

// clang-format off
#if defined(KVASIR_SIMD_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_SIMD_CELLS_INL_H_
#undef KVASIR_SIMD_CELLS_INL_H_
#else
#define KVASIR_SIMD_CELLS_INL_H_
#endif
// clang-format on

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "simd/cell_layout.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {

// The numbers and scales of sixteen cells' keys, or of one cell's value.
struct StoredCells {
  const std::byte* numbers;
  const std::byte* scales;
};

// The keys of sixteen cells, and what is asked for while they are read: the same cells' values.
struct KeyGroup {
  StoredCells keys = {};
  StoredCells values = {};
};

// Bytes of a line of the caches: what one request brings.
inline constexpr std::size_t kAskedBytes = 64;

// Memory is far, pages lie apart, and what the processor guesses ends with each of them. What is asked for
// comes into the second cache, as in byte_products-inl.h.
HWY_INLINE void AskFor(const std::byte* line) {
  __builtin_prefetch(line, 0, 2);
}

// Before dimension `d` of keys, each of which takes kBytes bytes of sixteen cells: a line of their values for
// a line of theirs.
template <std::size_t kBytes>
HWY_INLINE void AskForValues(const KeyGroup& group, std::size_t d) {
  if (d % (kAskedBytes / kBytes) == 0) AskFor(group.values.numbers + d * kBytes);
}

// Before the block of dimensions that begins at `d`: the scales of sixteen cells are half a line of each.
HWY_INLINE void AskForScales(const KeyGroup& group, std::size_t d) {
  if (d % (2 * kBlockDims) == 0)
    AskFor(group.values.scales + d / kBlockDims * kCellLanes * CellLayout::kScaleBytes);
}

// sums[g * kCount + q] += key[g] * query[q], one dimension after the other in ascending order. What the three
// readers of keys have in common: Dot<kGroups, kCount>(groups, dims, queries, sums).
template <std::size_t kGroups, std::size_t kCount>
HWY_INLINE void AddProducts(const F16x* keys, std::size_t d, const float* const* queries, F16x* sums) {
  Unrolled<kCount>([&](auto q) KVASIR_LAMBDA {
    const F16x query = Splat(queries[q][d]);
    Unrolled<kGroups>(
        [&](auto g) KVASIR_LAMBDA { sums[g * kCount + q] = MulAdd(keys[g], query, sums[g * kCount + q]); });
  });
}

template <class T>
struct FloatKeys {
  template <std::size_t kGroups, std::size_t kCount>
  static HWY_INLINE void Dot(const KeyGroup* groups, std::size_t dims, const float* const* queries,
                             F16x* sums) {
    for (std::size_t d = 0; d < dims; ++d) {
      F16x key[kGroups];
      Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA {
        AskForValues<kCellLanes * sizeof(T)>(groups[g], d);
        key[g] = LoadElements(reinterpret_cast<const T*>(groups[g].keys.numbers) + d * kCellLanes);
      });
      AddProducts<kGroups, kCount>(key, d, queries, sums);
    }
  }
};

// The scales of a block of dimensions, of sixteen cells each.
template <std::size_t kGroups>
HWY_INLINE void LoadScales(const KeyGroup* groups, std::size_t block, F16x* scales) {
  Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA {
    const std::byte* const at = groups[g].keys.scales + block * kCellLanes * CellLayout::kScaleBytes;
    scales[g] = LoadElements(reinterpret_cast<const hwy::float16_t*>(at));
  });
}

struct Q8_0Keys {
  template <std::size_t kGroups, std::size_t kCount>
  static HWY_INLINE void Dot(const KeyGroup* groups, std::size_t dims, const float* const* queries,
                             F16x* sums) {
    for (std::size_t begin = 0; begin < dims; begin += kBlockDims) {
      F16x scale[kGroups];
      LoadScales<kGroups>(groups, begin / kBlockDims, scale);
      Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA { AskForScales(groups[g], begin); });
      const std::size_t end = std::min(dims, begin + kBlockDims);
      for (std::size_t d = begin; d < end; ++d) {
        F16x key[kGroups];
        Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA {
          AskForValues<kCellLanes>(groups[g], d);
          const auto* numbers = reinterpret_cast<const std::int8_t*>(groups[g].keys.numbers);
          key[g] = Mul(LoadQuants(numbers + d * kCellLanes), scale[g]);
        });
        AddProducts<kGroups, kCount>(key, d, queries, sums);
      }
    }
  }
};

struct Q4_0Keys {
  template <std::size_t kGroups, std::size_t kCount>
  static HWY_INLINE void Dot(const KeyGroup* groups, std::size_t dims, const float* const* queries,
                             F16x* sums) {
    for (std::size_t begin = 0; begin < dims; begin += kBlockDims) {
      F16x scale[kGroups];
      LoadScales<kGroups>(groups, begin / kBlockDims, scale);
      Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA { AskForScales(groups[g], begin); });
      const std::size_t end = std::min(dims, begin + kBlockDims);
      for (std::size_t d = begin; d < end; d += 2) {
        F16x low[kGroups];
        F16x high[kGroups];
        Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA {
          AskForValues<kCellLanes>(groups[g], d / 2);
          const auto* numbers = reinterpret_cast<const std::uint8_t*>(groups[g].keys.numbers);
          const std::uint8_t* pair = numbers + d / 2 * kCellLanes;
          low[g] = Mul(LoadNibbles<Nibble::kLow>(pair), scale[g]);
          high[g] = Mul(LoadNibbles<Nibble::kHigh>(pair), scale[g]);
        });
        AddProducts<kGroups, kCount>(low, d, queries, sums);
        if (d + 1 < end) AddProducts<kGroups, kCount>(high, d + 1, queries, sums);
      }
    }
  }
};

// Readers of values: Load<kChunks>(value, chunk, out) reads the dimensions [16 chunk, 16 (chunk + kChunks)),
// where chunk is a multiple of kChunks.
template <class T>
struct FloatValues {
  template <std::size_t kChunks>
  static HWY_INLINE void Load(const StoredCells& value, std::size_t chunk, F16x* out) {
    const T* numbers = reinterpret_cast<const T*>(value.numbers) + chunk * 16;
    for (std::size_t c = 0; c < kChunks; ++c) out[c] = LoadElements(numbers + c * 16);
  }
};

inline constexpr std::size_t kBlockChunks = kBlockDims / 16;

struct Q8_0Values {
  template <std::size_t kChunks>
  static HWY_INLINE void Load(const StoredCells& value, std::size_t chunk, F16x* out) {
    const auto* numbers = reinterpret_cast<const std::int8_t*>(value.numbers) + chunk * 16;
    const std::byte* scales = value.scales + chunk / kBlockChunks * CellLayout::kScaleBytes;
    F16x scale = SplatHalf(scales);
    for (std::size_t c = 0; c < kChunks; ++c) {
      if (c > 0 && c % kBlockChunks == 0)
        scale = SplatHalf(scales + c / kBlockChunks * CellLayout::kScaleBytes);
      out[c] = Mul(LoadQuants(numbers + c * 16), scale);
    }
  }
};

struct Q4_0Values {
  template <std::size_t kChunks>
  static HWY_INLINE void Load(const StoredCells& value, std::size_t chunk, F16x* out) {
    const std::size_t block = chunk / kBlockChunks;
    const auto* numbers = reinterpret_cast<const std::uint8_t*>(value.numbers) + block * 16;
    const std::byte* scales = value.scales + block * CellLayout::kScaleBytes;
    if constexpr (kChunks == 1) {
      const F16x number = chunk % kBlockChunks == 0 ? LoadNibbles<Nibble::kLow>(numbers)
                                                    : LoadNibbles<Nibble::kHigh>(numbers);
      out[0] = Mul(number, SplatHalf(scales));
    } else {
      for (std::size_t c = 0; c < kChunks; c += kBlockChunks) {
        const F16x scale = SplatHalf(scales + c / kBlockChunks * CellLayout::kScaleBytes);
        const std::uint8_t* bytes = numbers + c / kBlockChunks * 16;
        out[c] = Mul(LoadNibbles<Nibble::kLow>(bytes), scale);
        out[c + 1] = Mul(LoadNibbles<Nibble::kHigh>(bytes), scale);
      }
    }
  }
};

}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KVASIR_SIMD_CELLS_INL_H_
