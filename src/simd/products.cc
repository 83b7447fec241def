#include "simd/products.h"

#include <algorithm>

#include "simd/byte_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/products.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

// Elements from one k of a panel to the next: a line of 64 bytes, of one panel or of two side by side.
template <class T>
constexpr std::size_t kStep = 64 / sizeof(T);

template <class T>
constexpr std::size_t kSideBySide = kStep<T> / 16;

// The decoders: numbers [k, k + count) of a panel into tile[i * 16 + row], exactly as quant::unpack rounds
// them.

template <class T>
void DecodeElements(const Panels& weights, std::size_t panel, std::size_t k, std::size_t count, float* tile) {
  const auto* from = reinterpret_cast<const T*>(weights.panel(panel)) + k * kStep<T>;
  for (std::size_t i = 0; i < count; ++i) StoreFloats(LoadElements(from + i * kStep<T>), tile + i * 16);
}

void DecodeTile(const Panels& weights, std::size_t panel, std::size_t k, std::size_t count, float* tile) {
  switch (weights.kind()) {
    case PanelKind::kF32:
      return DecodeElements<float>(weights, panel, k, count, tile);
    case PanelKind::kF16:
      return DecodeElements<hwy::float16_t>(weights, panel, k, count, tile);
    case PanelKind::kBF16:
      return DecodeElements<hwy::bfloat16_t>(weights, panel, k, count, tile);
    default:
      return;
  }
}

// A tile of sums that lives in registers, beside the weights of its panels and one activation: independent
// chains that hide the latency of the fused multiply-add, and few loads for each of them.
constexpr std::size_t kPanelsAtOnce = kParts == 1 ? 4 : 1;
constexpr std::size_t kColumnsAtOnce = 6;

// k that a tile goes through at once: so much of four panels stays near while all columns pass.
constexpr std::size_t kStretch = 1024;

// How far ahead of its use a panel is fetched where two columns read it once: k.
constexpr std::size_t kAhead = 64;

// The weights of some panels and the activations of some columns, from a stretch's first k on.
template <class T, std::size_t kPanels, std::size_t kColumns>
struct TileInput {
  const T* weights[kPanels];
  const float* x[kColumns];
};

// Goes on with the sums of kPanels panels and kColumns columns over `count` more k; the sums so far are in
// the output, unless this is the beginning.
template <class T, std::size_t kPanels, std::size_t kColumns>
HWY_INLINE void Accumulate(const TileInput<T, kPanels, kColumns>& input, bool begin, std::size_t count,
                           float* const* out) {
  F16x sums[kPanels][kColumns];
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      sums[p][c] = begin ? Splat(0.0f) : LoadFloats(out[c] + p * 16);
      __builtin_prefetch(out[c] + p * 16);  // far away, each in a line of its own
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    F16x weight[kPanels];
    for (std::size_t p = 0; p < kPanels; ++p) {
      // Into the second cache, as in byte_products-inl.h.
      if constexpr (kColumns == 2) {
        if (p % kSideBySide<T> == 0) __builtin_prefetch(input.weights[p] + (i + kAhead) * kStep<T>, 0, 2);
      }
      weight[p] = LoadElements(input.weights[p] + i * kStep<T>);
    }
    for (std::size_t c = 0; c < kColumns; ++c) {
      const F16x activation = Splat(input.x[c][i]);
      for (std::size_t p = 0; p < kPanels; ++p) sums[p][c] = MulAdd(weight[p], activation, sums[p][c]);
    }
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t c = 0; c < kColumns; ++c) StoreFloats(sums[p][c], out[c] + p * 16);
  }
}

// One multiplication: what all its tiles have in common.
struct FloatProduct {
  const Panels* weights;
  const Activations* x;
  const ProductOutput* out;
};

template <class T, std::size_t kPanels, std::size_t kColumns>
void MultiplyTile(const FloatProduct& product, std::size_t panel, std::size_t column, std::size_t k,
                  std::size_t count) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled below
  TileInput<T, kPanels, kColumns> input;
  float* out[kColumns];
  for (std::size_t p = 0; p < kPanels; ++p) {
    input.weights[p] = reinterpret_cast<const T*>(product.weights->panel(panel + p)) + k * kStep<T>;
  }
  for (std::size_t c = 0; c < kColumns; ++c) {
    input.x[c] = product.x->column(column + c) + k;
    out[c] = product.out->sums(column + c, panel);
  }
  Accumulate<T, kPanels, kColumns>(input, k == 0, count, out);
}

template <class T, std::size_t kPanels>
void MultiplyGroup(const FloatProduct& product, std::size_t panel) {
  const Activations& x = *product.x;
  for (std::size_t k = 0; k < x.width; k += kStretch) {
    const std::size_t count = std::min(kStretch, x.width - k);
    std::size_t c = 0;
    for (; c + kColumnsAtOnce <= x.count; c += kColumnsAtOnce)
      MultiplyTile<T, kPanels, kColumnsAtOnce>(product, panel, c, k, count);
    for (; c + 4 <= x.count; c += 4) MultiplyTile<T, kPanels, 4>(product, panel, c, k, count);
    for (; c + 2 <= x.count; c += 2) MultiplyTile<T, kPanels, 2>(product, panel, c, k, count);
    if (c < x.count) MultiplyTile<T, kPanels, 1>(product, panel, c, k, count);
  }
}

// Panels [first, last) in groups that begin at multiples of kPanels, and what is left one by one.
template <class T, std::size_t kPanels>
void MultiplyGroups(const FloatProduct& product, std::size_t first, std::size_t last) {
  for (std::size_t panel = first; panel < last;) {
    const bool whole = panel % kPanels == 0 && panel + kPanels <= last;
    whole ? MultiplyGroup<T, kPanels>(product, panel) : MultiplyGroup<T, 1>(product, panel);
    panel += whole ? kPanels : 1;
  }
}

// One column reads memory from its start to its end: a processor guesses that best, and asking for it would
// only be in its way.
template <class T>
void MultiplyElements(const FloatProduct& product, std::size_t first, std::size_t last) {
  if (product.x->count == 1) {
    MultiplyGroups<T, kSideBySide<T>>(product, first, last);
  } else {
    MultiplyGroups<T, kPanelsAtOnce>(product, first, last);
  }
}

void Multiply(const Panels& weights, std::size_t first, std::size_t last, const Activations& x,
              const ProductOutput& out) {
  const FloatProduct product = {&weights, &x, &out};
  switch (weights.kind()) {
    case PanelKind::kF32:
      return MultiplyElements<float>(product, first, last);
    case PanelKind::kF16:
      return MultiplyElements<hwy::float16_t>(product, first, last);
    case PanelKind::kBF16:
      return MultiplyElements<hwy::bfloat16_t>(product, first, last);
    default:
      return;
  }
}

std::int64_t Target() {
  return HWY_TARGET;
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(Multiply);
HWY_EXPORT(DecodeTile);
HWY_EXPORT(Target);
}  // namespace

void multiply(const Panels& weights, std::size_t first, std::size_t last, const Activations& x,
              const ProductOutput& out) noexcept {
  HWY_DYNAMIC_DISPATCH(Multiply)(weights, first, last, x, out);
}

void multiply(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
              const ProductOutput& out) noexcept {
  best_byte_path().multiply(weights, first, last, x, out);
}

void decode_tile(const Panels& weights, std::size_t panel, std::size_t k, std::size_t count,
                 float* tile) noexcept {
  HWY_DYNAMIC_DISPATCH(DecodeTile)(weights, panel, k, count, tile);
}

std::string_view instruction_set() noexcept {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(Target)());
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
