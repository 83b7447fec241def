// Words of sixteen rows: what repacking does to them, as however many vectors the target needs. Included once
// for each target.

// clang-format off
#if defined(KVASIR_SIMD_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_SIMD_WORDS_INL_H_
#undef KVASIR_SIMD_WORDS_INL_H_
#else
#define KVASIR_SIMD_WORDS_INL_H_
#endif
// clang-format on

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quant/codec.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {

// Four bytes of each of sixteen rows: a line of a panel. Of codes those of k, k + 1, k + 2, k + 3, the lowest
// first.
struct Words {
  VU part[kParts];
};

HWY_INLINE Words NoWords() {
  Words out;
  for (VU& part : out.part) part = hn::Zero(DU());
  return out;
}
template <class Change>
HWY_INLINE Words Changed(const Words& words, const Change& change) {
  Words out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = change(words.part[p]);
  return out;
}
HWY_INLINE Words Or(const Words& a, const Words& b) {
  Words out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::Or(a.part[p], b.part[p]);
  return out;
}
HWY_INLINE Words And(const Words& words, std::uint32_t mask) {
  return Changed(words, [&](VU part) { return hn::And(part, hn::Set(DU(), mask)); });
}
HWY_INLINE Words Left(const Words& words, std::size_t bits) {
  return Changed(words, [&](VU part) { return hn::ShiftLeftSame(part, static_cast<int>(bits)); });
}
HWY_INLINE Words Right(const Words& words, std::size_t bits) {
  return Changed(words, [&](VU part) { return hn::ShiftRightSame(part, static_cast<int>(bits)); });
}

constexpr std::uint32_t InEachByte(std::uint32_t bits) {
  return bits * 0x0101'0101U;
}

// `mask` of the bytes, moved right by `shift` first.
HWY_INLINE Words Field(const Words& bytes, std::size_t shift, std::uint32_t mask) {
  return And(Right(bytes, shift), InEachByte(mask));
}
// The bytes plus 128, modulo 256.
HWY_INLINE Words Raised(const Words& bytes) {
  return Changed(bytes, [](VU part) { return hn::Xor(part, hn::Set(DU(), InEachByte(128))); });
}
// Bytes below 128, less 32, modulo 256: nothing is borrowed from the byte above.
HWY_INLINE Words Less32(const Words& bytes) {
  const auto less = [](VU part) { return hn::Sub(part, hn::Set(DU(), InEachByte(32))); };
  return Raised(Changed(Raised(bytes), less));
}

HWY_INLINE Words Load(const std::uint32_t* HWY_RESTRICT rows) {
  Words out;
  for (std::size_t p = 0; p < kParts; ++p) out.part[p] = hn::LoadU(DU(), rows + p * kLanes);
  return out;
}
// Into a panel, where lines and numbers of two bytes are aligned to their elements.
HWY_INLINE void Store(const Words& words, std::uint8_t* to) {
  auto* const rows = reinterpret_cast<std::uint32_t*>(to);
  for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(words.part[p], DU(), rows + p * kLanes);
}
// The lowest byte of each row, and the lowest two.
HWY_INLINE void StoreBytes(const Words& words, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, DU> d;
  for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(hn::TruncateTo(d, words.part[p]), d, to + p * kLanes);
}
HWY_INLINE void StoreHalves(const Words& words, std::uint8_t* to) {
  const hn::Rebind<std::uint16_t, DU> d;
  auto* const rows = reinterpret_cast<std::uint16_t*>(to);
  for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(hn::TruncateTo(d, words.part[p]), d, rows + p * kLanes);
}

// kCount times four bytes after the other, and the codes of 32 numbers.
template <std::size_t kCount>
struct Run {
  Words words[kCount];
};
using Codes = Run<8>;

template <std::size_t kCount>
HWY_INLINE Run<kCount> Field(const Run<kCount>& run, std::size_t shift, std::uint32_t mask) {
  Run<kCount> out;
  for (std::size_t i = 0; i < kCount; ++i) out.words[i] = Field(run.words[i], shift, mask);
  return out;
}
HWY_INLINE Codes Joined(const Run<4>& first, const Run<4>& second) {
  Codes out;
  for (std::size_t i = 0; i < 4; ++i) out.words[i] = first.words[i];
  for (std::size_t i = 0; i < 4; ++i) out.words[4 + i] = second.words[i];
  return out;
}
// Codes with upper bits, above `bits` lower ones.
HWY_INLINE Codes Above(const Codes& low, const Codes& high, std::size_t bits) {
  Codes out;
  for (std::size_t i = 0; i < 8; ++i) out.words[i] = Or(low.words[i], Left(high.words[i], bits));
  return out;
}
// Of sixteen bytes of nibbles, byte j holds number j low and j + 16 high.
HWY_INLINE Codes LowThenHigh(const Run<4>& bytes) {
  return Joined(Field(bytes, 0, 15), Field(bytes, 4, 15));
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Run<4> LoadSixteen(const std::uint8_t* first, std::size_t stride) {
  Run<4> out;
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t i = 0; i < 4; ++i)
      out.words[i].part[row] = hn::Set(DU(), quant::load_u32(first + row * stride + 4 * i));
  return out;
}
#else
// Sixteen bytes of every fourth row, as many as vectors have lanes for.
template <class D>
HWY_INLINE hn::Vec<D> LoadRows(D d, const std::uint8_t* first, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    const hn::Repartition<std::uint8_t, D> bytes;
    return hn::BitCast(d, hn::LoadU(bytes, first));
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kRows = hn::MaxLanes(D()) / 2;
    return hn::Combine(d, LoadRows(half, first + kRows * stride, stride), LoadRows(half, first, stride));
  }
}

// Sixteen bytes of each of sixteen rows: four rows of four words are transposed, in all blocks of four lanes
// of a vector at once.
HWY_INLINE Run<4> LoadSixteen(const std::uint8_t* first, std::size_t stride) {
  const DU d;
  const hn::Repartition<std::uint64_t, DU> pairs;
  Run<4> out;
  for (std::size_t p = 0; p < kParts; ++p) {
    const std::uint8_t* const rows = first + p * kLanes * stride;
    const VU row0 = LoadRows(d, rows, stride);
    const VU row1 = LoadRows(d, rows + stride, stride);
    const VU row2 = LoadRows(d, rows + 2 * stride, stride);
    const VU row3 = LoadRows(d, rows + 3 * stride, stride);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
    out.words[0].part[p] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
    out.words[1].part[p] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
    out.words[2].part[p] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
    out.words[3].part[p] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
  }
  return out;
}
#endif

}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KVASIR_SIMD_WORDS_INL_H_
