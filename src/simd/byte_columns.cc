#include "simd/byte_columns.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/try.h"

#ifndef KVASIR_SIMD_PACKED_COLUMN
#define KVASIR_SIMD_PACKED_COLUMN
namespace kvasir::simd {
namespace {

// Where the parts of one column go.
struct PackedColumn {
  std::int8_t* bytes;
  float* scales;
  std::int16_t* sums16;
  std::int16_t* sums32;
  std::int16_t* reaches;

  // The same from number k on, which begins a block.
  [[nodiscard]] PackedColumn from(std::size_t k) const noexcept {
    return {bytes + k, scales + k / kByteBlock, sums16 + k / 16, sums32 + k / 32, reaches + k / kByteBlock};
  }
};

}  // namespace
}  // namespace kvasir::simd
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/byte_columns.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

constexpr std::int32_t kInfinityBits = 0x7F80'0000;

// The bits of the greatest magnitude of `count` numbers, a multiple of 16: as integers they are in the order
// of the numbers, with infinity and then NaN at the end.
std::int32_t GreatestBits(const float* numbers, std::size_t count) {
  const DI di;
  VI greatest[kParts];
  for (VI& part : greatest) part = hn::Zero(di);
  const VI magnitude = hn::Set(di, 0x7FFF'FFFF);
  for (std::size_t i = 0; i < count; i += 16) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const VI bits = hn::BitCast(di, hn::LoadU(DF(), numbers + i + p * kLanes));
      greatest[p] = hn::Max(greatest[p], hn::And(bits, magnitude));
    }
  }
  for (std::size_t p = 1; p < kParts; ++p) greatest[0] = hn::Max(greatest[0], greatest[p]);
  return hn::GetLane(hn::MaxOfLanes(di, greatest[0]));
}

// Sixteen numbers to bytes.
HWY_INLINE void PackSixteen(const float* numbers, VF inverse, std::int8_t* bytes) {
  const DI8 d8;
  for (std::size_t p = 0; p < kParts; ++p) {
    const VF scaled = hn::Mul(hn::LoadU(DF(), numbers + p * kLanes), inverse);
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(scaled)), d8, bytes + p * kLanes);
  }
}

// The sums of each eight bytes of a block, and of the positive ones among them. There is an instruction for
// bytes without a sign: their zero is 128 to it.
void SumEights(const std::int8_t* bytes, std::int32_t* eights, std::int32_t* positive) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < kByteBlock / 8; ++i) {
    eights[i] = positive[i] = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      eights[i] += bytes[i * 8 + j];
      positive[i] += std::max<std::int32_t>(bytes[i * 8 + j], 0);
    }
  }
#else
  const hn::CappedTag<std::uint8_t, 64> du8;
  const hn::RebindToSigned<decltype(du8)> di8;
  const hn::Repartition<std::uint64_t, decltype(du8)> du64;
  alignas(64) std::uint64_t sums[8];
  for (std::size_t i = 0; i < kByteBlock; i += hn::Lanes(du8)) {
    const auto some = hn::LoadU(di8, bytes + i);
    hn::Store(hn::SumsOf8(hn::Xor(hn::BitCast(du8, some), hn::Set(du8, 0x80))), du64, sums);
    for (std::size_t j = 0; j < hn::Lanes(du64); ++j)
      eights[i / 8 + j] = static_cast<std::int32_t>(sums[j]) - 8 * 128;
    hn::Store(hn::SumsOf8(hn::BitCast(du8, hn::Max(some, hn::Zero(di8)))), du64, sums);
    for (std::size_t j = 0; j < hn::Lanes(du64); ++j)
      positive[i / 8 + j] = static_cast<std::int32_t>(sums[j]);
  }
#endif
}

// The sums of a block's bytes, and how far they reach.
void SumBytes(const PackedColumn& to) {
  std::int32_t eights[kByteBlock / 8];
  std::int32_t positive[kByteBlock / 8];
  SumEights(to.bytes, eights, positive);
  for (std::size_t i = 0; i < kByteBlock / 16; ++i)
    to.sums16[i] = static_cast<std::int16_t>(eights[2 * i] + eights[2 * i + 1]);
  std::int32_t reach = 0;
  for (std::size_t i = 0; i < kByteBlock / 32; ++i) {
    const std::int32_t sum = to.sums16[2 * i] + to.sums16[2 * i + 1];
    const std::int32_t* const of = positive + 4 * i;
    const std::int32_t above = of[0] + of[1] + of[2] + of[3];
    to.sums32[i] = static_cast<std::int16_t>(sum);
    reach = std::max({reach, above, above - sum});
  }
  *to.reaches = static_cast<std::int16_t>(reach);
}

// One block.
void PackBlock(const float* numbers, const PackedColumn& to) {
  const std::int32_t bits = GreatestBits(numbers, kByteBlock);
  float greatest = 0;
  std::memcpy(&greatest, &bits, sizeof(greatest));
  // Below this the inverse is infinite; such a block is as good as zeros.
  constexpr float kLeast = 127 / std::numeric_limits<float>::max();
  if (bits >= kInfinityBits || greatest <= kLeast) {
    std::memset(to.bytes, 0, kByteBlock);
    std::fill_n(to.sums16, kByteBlock / 16, std::int16_t{0});
    std::fill_n(to.sums32, kByteBlock / 32, std::int16_t{0});
    *to.reaches = 0;
    *to.scales = bits >= kInfinityBits ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    return;
  }
  const VF inverse = hn::Set(DF(), 127.0f / greatest);
  for (std::size_t i = 0; i < kByteBlock; i += 16) PackSixteen(numbers + i, inverse, to.bytes + i);
  SumBytes(to);
  *to.scales = greatest / 127.0f;
}

void PackColumn(const float* numbers, std::size_t count, const PackedColumn& to) {
  alignas(64) float last[kByteBlock];
  for (std::size_t k = 0; k < count; k += kByteBlock) {
    const float* from = numbers + k;
    if (count - k < kByteBlock) {
      std::fill_n(last, kByteBlock, 0.0f);
      std::copy_n(from, count - k, last);
      from = last;
    }
    PackBlock(from, to.from(k));
  }
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(PackColumn);
}  // namespace

Result<ByteRows> ByteRows::allocate(std::size_t rows, std::size_t width) {
  ByteRows out;
  out.stride_ = base::div_up(width, kByteBlock) * kByteBlock;
  const auto bytes = base::checked_product<std::size_t>(rows, out.stride_);
  if (!bytes)
    return fail(Outcome::kInvalidArgument, "a pass is larger than memory can be", {.setting = "--pass"});
  KVASIR_ASSIGN(out.bytes_, base::Buffer::allocate_on_touch(*bytes));
  KVASIR_ASSIGN(out.scales_, base::Buffer::allocate_on_touch(*bytes / kByteBlock * sizeof(float)));
  KVASIR_ASSIGN(out.sums16_, base::Buffer::allocate_on_touch(*bytes / 16 * sizeof(std::int16_t)));
  KVASIR_ASSIGN(out.sums32_, base::Buffer::allocate_on_touch(*bytes / 32 * sizeof(std::int16_t)));
  KVASIR_ASSIGN(out.reaches_, base::Buffer::allocate_on_touch(*bytes / kByteBlock * sizeof(std::int16_t)));
  return out;
}

void ByteRows::pack(std::size_t row, std::span<const float> numbers, std::size_t first) noexcept {
  const PackedColumn all = {bytes_.as<std::int8_t>().data(), scales_.as<float>().data(),
                            sums16_.as<std::int16_t>().data(), sums32_.as<std::int16_t>().data(),
                            reaches_.as<std::int16_t>().data()};
  HWY_DYNAMIC_DISPATCH(PackColumn)(numbers.data(), numbers.size(), all.from(row * stride_ + first));
}

ByteColumns ByteRows::columns(std::size_t first, std::size_t count, std::size_t width) const noexcept {
  return ByteColumns{bytes_.as<std::int8_t>().data(),
                     scales_.as<float>().data(),
                     sums16_.as<std::int16_t>().data(),
                     sums32_.as<std::int16_t>().data(),
                     reaches_.as<std::int16_t>().data(),
                     0,
                     width,
                     stride_}
      .from(first, count);
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
