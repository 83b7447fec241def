#include "simd/products.h"

#include <algorithm>
#include <bit>

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

HWY_INLINE F16x LoadHalves(const std::byte* array, std::size_t block) {
  return LoadElements(reinterpret_cast<const hwy::float16_t*>(array) + block * 16);
}
HWY_INLINE F16x LoadSignedBytes(const std::byte* array, std::size_t block) {
  const auto* from = reinterpret_cast<const std::int8_t*>(array) + block * 16;
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) {
    out.part[p] = hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(DI8(), from + p * kLanes)));
  }
  return out;
}

// Byte `index` of each lane's 32 bits, signed.
HWY_INLINE VF SignedByte(VU lanes, int index) {
  const DI di;
  const VI shifted = hn::BitCast(di, hn::ShiftLeftSame(lanes, 24 - 8 * index));
  return hn::ConvertTo(DF(), hn::ShiftRight<24>(shifted));
}
// `bits` bits from `shift` on, less `offset`.
HWY_INLINE VI Field(VU lanes, int shift, std::uint32_t mask) {
  return hn::BitCast(DI(), hn::And(hn::ShiftRightSame(lanes, shift), hn::Set(DU(), mask)));
}

void DecodeQ8_0(const Panels& weights, const std::byte* panel, std::size_t k, std::size_t count,
                float* tile) {
  const auto* quants = reinterpret_cast<const std::uint32_t*>(panel + weights.layout().quants);
  for (std::size_t block = k / 32; block < (k + count) / 32; ++block) {
    const F16x scale = LoadHalves(panel + weights.layout().scales, block);
    for (std::size_t i = 0; i < 32; i += 4) {
      for (std::size_t p = 0; p < kParts; ++p) {
        const VU lanes = hn::LoadU(DU(), quants + (block * 8 + i / 4) * 16 + p * kLanes);
        for (int byte = 0; byte < 4; ++byte) {
          float* to = tile + (block * 32 + i + static_cast<std::size_t>(byte) - k) * 16 + p * kLanes;
          hn::StoreU(hn::Mul(SignedByte(lanes, byte), scale.part[p]), DF(), to);
        }
      }
    }
  }
}

// Calls emit(i, p, low four bits of number i as integers) for the numbers [0, 32) of the 32-block `block`.
template <class Emit>
HWY_INLINE void ForNibbles(const std::byte* array, std::size_t block, const Emit& emit) {
  const auto* quants = reinterpret_cast<const std::uint32_t*>(array);
  for (std::size_t i = 0; i < 32; i += 8) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const VU lanes = hn::LoadU(DU(), quants + (block * 4 + i / 8) * 16 + p * kLanes);
      for (int byte = 0; byte < 4; ++byte) {
        emit(i + static_cast<std::size_t>(byte), p, Field(lanes, 8 * byte, 15));
        emit(i + 4 + static_cast<std::size_t>(byte), p, Field(lanes, 8 * byte + 4, 15));
      }
    }
  }
}

void DecodeQ4_0(const Panels& weights, const std::byte* panel, std::size_t k, std::size_t count,
                float* tile) {
  for (std::size_t block = k / 32; block < (k + count) / 32; ++block) {
    const F16x scale = LoadHalves(panel + weights.layout().scales, block);
    float* to = tile + (block * 32 - k) * 16;
    ForNibbles(panel + weights.layout().quants, block, [&](std::size_t i, std::size_t p, VI q) {
      const VF value = hn::ConvertTo(DF(), hn::Sub(q, hn::Set(DI(), 8)));
      hn::StoreU(hn::Mul(value, scale.part[p]), DF(), to + i * 16 + p * kLanes);
    });
  }
}

void DecodeQ4_K(const Panels& weights, const std::byte* panel, std::size_t k, std::size_t count,
                float* tile) {
  const PanelLayout& layout = weights.layout();
  for (std::size_t block = k / 32; block < (k + count) / 32; ++block) {
    const F16x scale =
        Mul(LoadHalves(panel + layout.scales, block / 8), LoadSignedBytes(panel + layout.sub_scales, block));
    const F16x min =
        Mul(LoadHalves(panel + layout.mins, block / 8), LoadSignedBytes(panel + layout.sub_mins, block));
    float* to = tile + (block * 32 - k) * 16;
    ForNibbles(panel + layout.quants, block, [&](std::size_t i, std::size_t p, VI q) {
      const VF product = hn::Mul(hn::ConvertTo(DF(), q), scale.part[p]);
      hn::StoreU(hn::Sub(product, min.part[p]), DF(), to + i * 16 + p * kLanes);
    });
  }
}

void DecodeQ6_K(const Panels& weights, const std::byte* panel, std::size_t k, std::size_t count,
                float* tile) {
  const PanelLayout& layout = weights.layout();
  const auto* high = reinterpret_cast<const std::uint32_t*>(panel + layout.high_bits);
  for (std::size_t block = k / 32; block < (k + count) / 32; ++block) {
    const F16x d = LoadHalves(panel + layout.scales, block / 8);
    const F16x scale[2] = {Mul(d, LoadSignedBytes(panel + layout.sub_scales, block * 2)),
                           Mul(d, LoadSignedBytes(panel + layout.sub_scales, block * 2 + 1))};
    float* to = tile + (block * 32 - k) * 16;
    ForNibbles(panel + layout.quants, block, [&](std::size_t i, std::size_t p, VI low) {
      const VU lanes = hn::LoadU(DU(), high + (block * 2 + i / 16) * 16 + p * kLanes);
      const int shift = static_cast<int>(8 * (i % 4) + 2 * (i % 16 / 4));
      const VI q = hn::Sub(hn::Or(low, hn::ShiftLeft<4>(Field(lanes, shift, 3))), hn::Set(DI(), 32));
      hn::StoreU(hn::Mul(hn::ConvertTo(DF(), q), scale[i / 16].part[p]), DF(), to + i * 16 + p * kLanes);
    });
  }
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
    case PanelKind::kQ8_0:
      return DecodeQ8_0(weights, panel, k, count, tile);
    case PanelKind::kQ4_0:
      return DecodeQ4_0(weights, panel, k, count, tile);
    case PanelKind::kQ4_K:
      return DecodeQ4_K(weights, panel, k, count, tile);
    case PanelKind::kQ6_K:
      return DecodeQ6_K(weights, panel, k, count, tile);
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

void decode_tile(const Panels& weights, std::size_t panel, std::size_t k, std::size_t count,
                 float* tile) noexcept {
  HWY_DYNAMIC_DISPATCH(DecodeTile)(weights, panel, k, count, tile);
}

std::string_view instruction_set() noexcept {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(Target)());
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
