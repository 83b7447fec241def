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

// The decoders: numbers [k, k + count) of a panel into tile[i * 16 + row], exactly as quant::unpack rounds
// them.

template <class T>
void DecodeElements(const Panels& weights, const std::byte* panel, std::size_t k, std::size_t count,
                    float* tile) {
  const auto* from = reinterpret_cast<const T*>(panel + weights.layout().quants) + k * 16;
  for (std::size_t i = 0; i < count; ++i) StoreFloats(LoadElements(from + i * 16), tile + i * 16);
}

void DecodeTile(const Panels& weights, std::size_t index, std::size_t k, std::size_t count, float* tile) {
  const std::byte* panel = weights.panel(index);
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

// Goes on with the sums of kPanelsAtOnce panels and kColumnsAtOnce columns over `count` more k; the sums so
// far are in the output. The accumulators are independent chains, which hides the latency of the fused
// multiply-add.
template <std::size_t kPanelsAtOnce, std::size_t kColumnsAtOnce>
HWY_INLINE void Accumulate(const float* HWY_RESTRICT tiles, const float* const* x, std::size_t k,
                           std::size_t count, float* const* out) {
  F16x sums[kPanelsAtOnce][kColumnsAtOnce];
  for (std::size_t p = 0; p < kPanelsAtOnce; ++p) {
    for (std::size_t c = 0; c < kColumnsAtOnce; ++c) {
      sums[p][c] = k == 0 ? Splat(0.0f) : LoadFloats(out[c] + p * 16);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    F16x activation[kColumnsAtOnce];
    for (std::size_t c = 0; c < kColumnsAtOnce; ++c) activation[c] = Splat(x[c][k + i]);
    for (std::size_t p = 0; p < kPanelsAtOnce; ++p) {
      const F16x weight = LoadFloats(tiles + (p * kDecodeColumns + i) * 16);
      for (std::size_t c = 0; c < kColumnsAtOnce; ++c) sums[p][c] = MulAdd(weight, activation[c], sums[p][c]);
    }
  }
  for (std::size_t p = 0; p < kPanelsAtOnce; ++p) {
    for (std::size_t c = 0; c < kColumnsAtOnce; ++c) StoreFloats(sums[p][c], out[c] + p * 16);
  }
}

template <std::size_t kPanelsAtOnce>
void AccumulateColumns(const float* tiles, const Activations& x, std::size_t k, std::size_t count,
                       const ProductOutput& out, std::size_t row) {
  constexpr std::size_t kAtOnce = 4;
  for (std::size_t c = 0; c < x.count; c += kAtOnce) {
    const float* columns[kAtOnce] = {};
    float* sums[kAtOnce] = {};
    const std::size_t some = std::min(kAtOnce, x.count - c);
    for (std::size_t i = 0; i < some; ++i) {
      columns[i] = x.column(c + i);
      sums[i] = out.column(c + i) + row;
    }
    switch (some) {
      case 1:
        Accumulate<kPanelsAtOnce, 1>(tiles, columns, k, count, sums);
        break;
      case 2:
        Accumulate<kPanelsAtOnce, 2>(tiles, columns, k, count, sums);
        break;
      case 3:
        Accumulate<kPanelsAtOnce, 3>(tiles, columns, k, count, sums);
        break;
      default:
        Accumulate<kPanelsAtOnce, 4>(tiles, columns, k, count, sums);
        break;
    }
  }
}

template <std::size_t kPanelsAtOnce>
void MultiplyGroup(const Panels& weights, std::size_t panel, const Activations& x, const ProductOutput& out) {
  alignas(64) float tiles[kPanelsAtOnce * kDecodeColumns * 16];
  for (std::size_t k = 0; k < x.width; k += kDecodeColumns) {
    const std::size_t count = std::min(kDecodeColumns, x.width - k);
    for (std::size_t p = 0; p < kPanelsAtOnce; ++p) {
      DecodeTile(weights, panel + p, k, count, tiles + p * kDecodeColumns * 16);
    }
    AccumulateColumns<kPanelsAtOnce>(tiles, x, k, count, out, panel * 16);
  }
}

void Multiply(const Panels& weights, std::size_t first, std::size_t last, const Activations& x,
              const ProductOutput& out) {
  std::size_t panel = first;
  for (; panel + kPanelGroup <= last; panel += kPanelGroup)
    MultiplyGroup<kPanelGroup>(weights, panel, x, out);
  for (; panel < last; ++panel) MultiplyGroup<1>(weights, panel, x, out);
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
