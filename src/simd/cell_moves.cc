#include "simd/cell_moves.h"

#include <hwy/cache_control.h>

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/cell_moves.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of sixteen bytes and of as many times sixteen as the target has. Without vectors both are an array.
#if HWY_TARGET == HWY_SCALAR
struct Sixteen {
  std::array<std::uint8_t, 16> bytes;
};
using Wide = Sixteen;
inline constexpr std::size_t kWide = 16;

template <class V = Sixteen>
HWY_INLINE V Load(const std::byte* from) {
  V value;
  std::memcpy(value.bytes.data(), from, 16);
  return value;
}
HWY_INLINE void Store(const Sixteen& value, std::byte* to) {
  std::memcpy(to, value.bytes.data(), 16);
}
HWY_INLINE void StorePast(const Sixteen& value, std::byte* to) {
  Store(value, to);
}
HWY_INLINE Sixteen Lookup(const LaneLookup& lookup) {
  return {lookup};
}
HWY_INLINE Wide WideLookup(const LaneLookup& lookup) {
  return {lookup};
}
HWY_INLINE Sixteen LookUp(const Sixteen& value, const Sixteen& lookup) {
  Sixteen found;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t at = lookup.bytes[i];
    found.bytes[i] = at == kNotHere ? std::uint8_t{0} : value.bytes[at];
  }
  return found;
}
HWY_INLINE Sixteen Or(const Sixteen& a, const Sixteen& b) {
  Sixteen both;
  for (std::size_t i = 0; i < 16; ++i) both.bytes[i] = a.bytes[i] | b.bytes[i];
  return both;
}
#else
using SixteenTag = hn::FixedTag<std::uint8_t, 16>;
using WideTag = hn::CappedTag<std::uint8_t, 64>;
using Sixteen = hn::Vec<SixteenTag>;
using Wide = hn::Vec<WideTag>;
inline constexpr std::size_t kWide = hn::MaxLanes(WideTag());

template <class V = Sixteen>
HWY_INLINE V Load(const std::byte* from) {
  return hn::LoadU(hn::DFromV<V>(), reinterpret_cast<const std::uint8_t*>(from));
}
template <class V>
HWY_INLINE void Store(V value, std::byte* to) {
  hn::StoreU(value, hn::DFromV<V>(), reinterpret_cast<std::uint8_t*>(to));
}
// Past the caches: what is there is neither read for it nor pushed out by it. Aligned to the vector.
template <class V>
HWY_INLINE void StorePast(V value, std::byte* to) {
  hn::Stream(value, hn::DFromV<V>(), reinterpret_cast<std::uint8_t*>(to));
}
HWY_INLINE Sixteen Lookup(const LaneLookup& lookup) {
  return hn::LoadU(SixteenTag(), lookup.data());
}
// The same for every sixteen.
HWY_INLINE Wide WideLookup(const LaneLookup& lookup) {
  alignas(16) LaneLookup aligned = lookup;
  return hn::LoadDup128(WideTag(), aligned.data());
}
template <class V>
HWY_INLINE V LookUp(V value, V lookup) {
  return hn::TableLookupBytesOr0(value, lookup);
}
template <class V>
HWY_INLINE V Or(V a, V b) {
  return hn::Or(a, b);
}
#endif

constexpr std::size_t kLine = 64;

// Into the second level: the first has no room for what is read that much later.
HWY_INLINE void FetchLine(const std::byte* from) {
  __builtin_prefetch(from, 0, 2);
}

// Of fixed size, as two pieces that may overlap: neither a call nor a loop.
template <std::size_t kHalf>
HWY_INLINE void MoveHalves(const std::byte* from, std::byte* to, std::size_t bytes) {
  std::array<std::byte, kHalf> head;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  std::array<std::byte, kHalf> tail;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  std::memcpy(head.data(), from, kHalf);
  std::memcpy(tail.data(), from + bytes - kHalf, kHalf);
  std::memcpy(to, head.data(), kHalf);
  std::memcpy(to + bytes - kHalf, tail.data(), kHalf);
}

HWY_INLINE void MoveFew(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes >= 8) return MoveHalves<8>(from, to, bytes);
  if (bytes >= 4) return MoveHalves<4>(from, to, bytes);
  if (bytes >= 2) return MoveHalves<2>(from, to, bytes);
  if (bytes == 1) *to = *from;
}

HWY_INLINE bool Aligned(const std::byte* to, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(to) % bytes == 0;
}

// Bytes before a line of the target are moved by themselves where many lines follow.
HWY_INLINE void MoveOne(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes < 16) return MoveFew(from, to, bytes);
  std::size_t done = 0;
  if (bytes >= 4 * kLine && !Aligned(to, kLine)) {
    const std::size_t lead = kLine - reinterpret_cast<std::uintptr_t>(to) % kLine;
    for (; done + 16 <= lead; done += 16) Store(Load(from + done), to + done);
    MoveFew(from + done, to + done, lead - done);
    from += lead;
    to += lead;
    bytes -= lead;
    done = 0;
  }
  const std::size_t lines = Aligned(to, kLine) ? bytes / kLine * kLine : 0;
  for (; done < lines; done += kWide) StorePast(Load<Wide>(from + done), to + done);
  for (; done + kWide <= bytes; done += kWide) Store(Load<Wide>(from + done), to + done);
  for (; done + 16 <= bytes; done += 16) Store(Load(from + done), to + done);
  if (done < bytes) Store(Load(from + bytes - 16), to + bytes - 16);
}

void MoveBytes(const BytesMove* moves, std::size_t count, std::size_t offset) {
  std::uintptr_t fetched = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const BytesMove& move = moves[i];
    const std::byte* const from = move.from + offset;
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    // Short moves share lines, mostly with the one before.
    if (move.ahead != 0 && (move.bytes >= kLine || address - fetched >= kLine)) {
      for (std::size_t at = 0; at < move.bytes; at += kLine) FetchLine(from + move.ahead + at);
      fetched = address;
    }
    MoveOne(from, move.to + offset, move.bytes);
  }
}

// All lookups of a row stay in registers.
template <std::size_t kParts, std::size_t kSources, bool kPast>
HWY_INLINE void MoveRows(const LanesMove& move, std::size_t offset) {
  constexpr std::size_t kAll = kParts * kSources;
  const std::byte* from[kAll];
  Sixteen lookups[kAll];
  for (std::size_t i = 0; i < kAll; ++i) {
    from[i] = move.from[i] + offset;
    lookups[i] = Lookup(move.lookups[i]);
  }
  std::byte* to = move.to + offset;
  std::size_t at = 0;
  for (std::size_t row = 0; row < move.rows; ++row, at += kParts * 16) {
    if (move.ahead != nullptr && at % kLine == 0) {
      for (std::size_t i = 0; i < kAll; ++i) FetchLine(from[i] + move.ahead[i] + at);
    }
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t first = part * kSources;
      Sixteen sum = LookUp(Load(from[first] + at), lookups[first]);
      for (std::size_t i = first + 1; i < first + kSources; ++i)
        sum = Or(sum, LookUp(Load(from[i] + at), lookups[i]));
      if constexpr (kPast) {
        StorePast(sum, to + at + part * 16);
      } else {
        Store(sum, to + at + part * 16);
      }
    }
  }
}

// Rows of one part: several of them in a vector.
template <std::size_t kSources, bool kPast>
HWY_INLINE void MoveNarrowRows(const LanesMove& move, std::size_t offset) {
  constexpr std::size_t kRowsAtOnce = kWide / 16;
  const std::byte* from[kSources];
  Wide lookups[kSources];
  for (std::size_t i = 0; i < kSources; ++i) {
    from[i] = move.from[i] + offset;
    lookups[i] = WideLookup(move.lookups[i]);
  }
  std::byte* to = move.to + offset;
  const std::size_t wide_rows = move.rows / kRowsAtOnce * kRowsAtOnce;
  std::size_t at = 0;
  for (; at < wide_rows * 16; at += kWide) {
    for (std::size_t i = 0; move.ahead != nullptr && i < kSources; ++i)
      FetchLine(from[i] + move.ahead[i] + at);
    Wide sum = LookUp(Load<Wide>(from[0] + at), lookups[0]);
    for (std::size_t i = 1; i < kSources; ++i) sum = Or(sum, LookUp(Load<Wide>(from[i] + at), lookups[i]));
    if constexpr (kPast) {
      StorePast(sum, to + at);
    } else {
      Store(sum, to + at);
    }
  }
  if (wide_rows == move.rows) return;
  LanesMove rest = move;
  rest.rows -= wide_rows;
  rest.ahead = nullptr;
  MoveRows<1, kSources, false>(rest, offset + at);
}

// Any number of sources.
void MoveManyRows(const LanesMove& move, std::size_t offset) {
  for (std::size_t row = 0; row < move.rows; ++row) {
    const std::size_t at = offset + row * move.parts * 16;
    for (std::size_t part = 0; part < move.parts; ++part) {
      const std::size_t first = part * move.sources;
      Sixteen sum = LookUp(Load(move.from[first] + at), Lookup(move.lookups[first]));
      for (std::size_t i = first + 1; i < first + move.sources; ++i)
        sum = Or(sum, LookUp(Load(move.from[i] + at), Lookup(move.lookups[i])));
      Store(sum, move.to + at + part * 16);
    }
  }
}

template <std::size_t kSources, bool kPast>
HWY_INLINE void MovePartsOf(const LanesMove& move, std::size_t offset) {
  if (move.parts == 1) return MoveNarrowRows<kSources, kPast>(move, offset);
  if (move.parts == 2) return MoveRows<2, kSources, kPast>(move, offset);
  MoveRows<4, kSources, kPast>(move, offset);
}

template <std::size_t kSources>
HWY_INLINE void MoveLanesOf(const LanesMove& move, std::size_t offset) {
  if (move.read_soon || !Aligned(move.to + offset, kLine)) return MovePartsOf<kSources, false>(move, offset);
  MovePartsOf<kSources, true>(move, offset);
}

void MoveLanes(const LanesMove& move, std::size_t offset) {
  switch (move.sources) {
    case 1:
      return MoveLanesOf<1>(move, offset);
    case 2:
      return MoveLanesOf<2>(move, offset);
    case 3:
      return MoveLanesOf<3>(move, offset);
    case 4:
      return MoveLanesOf<4>(move, offset);
    default:
      return MoveManyRows(move, offset);
  }
}

// A lane of every row.
HWY_INLINE void MergeLane(const std::byte* from, std::byte* to, std::size_t rows, std::size_t unit_bytes) {
  const std::size_t step = 16 * unit_bytes;
  for (std::size_t row = 0; row < rows; ++row) MoveFew(from + row * step, to + row * step, unit_bytes);
}

HWY_INLINE void MergeEachLane(const std::byte* from, std::byte* to, std::size_t rows, std::size_t unit_bytes,
                              std::uint16_t lanes) {
  for (std::size_t lane = 0; lane < 16; ++lane) {
    if ((lanes >> lane & 1) != 0)
      MergeLane(from + lane * unit_bytes, to + lane * unit_bytes, rows, unit_bytes);
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Stores of the lanes that are meant: others beside them are not even written as they were.
template <class T>
HWY_INLINE void MergeRows(const std::byte* from, std::byte* to, std::size_t rows, std::uint16_t lanes) {
  const hn::FixedTag<T, kLine / sizeof(T)> tag;
  constexpr std::size_t kRowsAtOnce = kLine / (16 * sizeof(T));
  const std::array<std::uint16_t, 4> bits = {lanes, lanes, lanes, lanes};
  const auto mask = hn::LoadMaskBits(tag, reinterpret_cast<const std::uint8_t*>(bits.data()));
  std::size_t row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce, from += kLine, to += kLine)
    hn::BlendedStore(hn::LoadU(tag, reinterpret_cast<const T*>(from)), mask, tag, reinterpret_cast<T*>(to));
  MergeEachLane(from, to, rows - row, sizeof(T), lanes);
}

void MergeLanes(const std::byte* from, std::byte* to, std::size_t rows, std::size_t unit_bytes,
                std::uint16_t lanes) {
  if (unit_bytes == 1) return MergeRows<std::uint8_t>(from, to, rows, lanes);
  if (unit_bytes == 2) return MergeRows<std::uint16_t>(from, to, rows, lanes);
  MergeRows<std::uint32_t>(from, to, rows, lanes);
}
#else
void MergeLanes(const std::byte* from, std::byte* to, std::size_t rows, std::size_t unit_bytes,
                std::uint16_t lanes) {
  MergeEachLane(from, to, rows, unit_bytes, lanes);
}
#endif

void EndMoves() {
  hwy::FlushStream();
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(MoveBytes);
HWY_EXPORT(MoveLanes);
HWY_EXPORT(MergeLanes);
HWY_EXPORT(EndMoves);
}  // namespace

void move_bytes(std::span<const BytesMove> moves, const Repeat& repeat) noexcept {
  for (std::size_t i = 0; i < repeat.count; ++i)
    HWY_DYNAMIC_DISPATCH(MoveBytes)(moves.data(), moves.size(), i * repeat.step);
}

void move_lanes(const LanesMove& move, const Repeat& repeat) noexcept {
  for (std::size_t i = 0; i < repeat.count; ++i) HWY_DYNAMIC_DISPATCH(MoveLanes)(move, i * repeat.step);
}

void merge_lanes(const std::byte* from, std::byte* to, std::size_t rows, std::size_t unit_bytes,
                 std::uint16_t lanes) noexcept {
  if (rows == 0) return;
  HWY_DYNAMIC_DISPATCH(MergeLanes)(from, to, rows, unit_bytes, lanes);
}

void end_moves() noexcept {
  HWY_DYNAMIC_DISPATCH(EndMoves)();
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
