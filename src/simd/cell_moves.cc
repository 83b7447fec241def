#include "simd/cell_moves.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/cell_moves.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Sixteen bytes, whatever a vector of the target holds.
#if HWY_TARGET == HWY_SCALAR
using Sixteen = std::array<std::uint8_t, 16>;

HWY_INLINE Sixteen Load(const void* from) {
  Sixteen value;
  std::memcpy(value.data(), from, value.size());
  return value;
}
template <bool kPast>
HWY_INLINE void Put(const Sixteen& value, std::byte* to) {
  std::memcpy(to, value.data(), value.size());
}
HWY_INLINE Sixteen LookUp(const Sixteen& value, const Sixteen& lookup) {
  Sixteen found;
  for (std::size_t i = 0; i < 16; ++i) found[i] = lookup[i] == kNotHere ? std::uint8_t{0} : value[lookup[i]];
  return found;
}
HWY_INLINE Sixteen Or(const Sixteen& a, const Sixteen& b) {
  Sixteen both;
  for (std::size_t i = 0; i < 16; ++i) both[i] = a[i] | b[i];
  return both;
}
#else
using Tag = hn::FixedTag<std::uint8_t, 16>;
using Sixteen = hn::Vec<Tag>;

HWY_INLINE Sixteen Load(const void* from) {
  return hn::LoadU(Tag(), static_cast<const std::uint8_t*>(from));
}
template <bool kPast>
HWY_INLINE void Put(Sixteen value, std::byte* to) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(to);
  if constexpr (kPast) {
    hn::Stream(value, Tag(), bytes);
  } else {
    hn::StoreU(value, Tag(), bytes);
  }
}
HWY_INLINE Sixteen LookUp(Sixteen value, Sixteen lookup) {
  return hn::TableLookupBytesOr0(value, lookup);
}
HWY_INLINE Sixteen Or(Sixteen a, Sixteen b) {
  return hn::Or(a, b);
}
#endif

// Of fixed size, as two pieces that may overlap: neither a call nor a loop.
template <std::size_t kHalf>
HWY_INLINE void MoveHalves(const std::byte* from, std::byte* to, std::size_t bytes) {
  std::array<std::byte, kHalf> head;
  std::array<std::byte, kHalf> tail;
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

template <bool kPast>
HWY_INLINE void MoveOne(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes < 16) return MoveFew(from, to, bytes);
  std::size_t done = 0;
  for (; done + 64 <= bytes; done += 64) {
    const Sixteen a = Load(from + done);
    const Sixteen b = Load(from + done + 16);
    const Sixteen c = Load(from + done + 32);
    const Sixteen d = Load(from + done + 48);
    Put<kPast>(a, to + done);
    Put<kPast>(b, to + done + 16);
    Put<kPast>(c, to + done + 32);
    Put<kPast>(d, to + done + 48);
  }
  for (; done + 16 <= bytes; done += 16) Put<kPast>(Load(from + done), to + done);
  if (done < bytes) Put<false>(Load(from + bytes - 16), to + bytes - 16);
}

void MoveBytes(const BytesMove* moves, std::size_t count, std::size_t offset, std::size_t ahead, bool past) {
  for (std::size_t i = 0; i < count; ++i) {
    const BytesMove& move = moves[i];
    const std::byte* const from = move.from + offset;
    std::byte* const to = move.to + offset;
    for (std::size_t line = 0; ahead > 0 && line < move.bytes; line += 64) {
      hwy::Prefetch(from + ahead + line);
    }
    if (past && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      MoveOne<true>(from, to, move.bytes);
    } else {
      MoveOne<false>(from, to, move.bytes);
    }
  }
}

// All lookups of a row stay in registers.
template <std::size_t kParts, std::size_t kSources, bool kPast>
HWY_INLINE void MoveRows(const LanesMove& move, std::size_t offset, std::size_t ahead) {
  constexpr std::size_t kAll = kParts * kSources;
  const std::byte* from[kAll];
  Sixteen lookups[kAll];
  for (std::size_t i = 0; i < kAll; ++i) {
    from[i] = move.from[i] + offset;
    lookups[i] = Load(move.lookups[i].data());
  }
  std::byte* to = move.to + offset;
  std::size_t at = 0;
  for (std::size_t row = 0; row < move.rows; ++row, at += kParts * 16) {
    if (ahead > 0 && at % 64 == 0) {
      for (std::size_t i = 0; i < kSources; ++i) {
        for (std::size_t part = 0; part < kParts; ++part)
          hwy::Prefetch(from[part * kSources + i] + ahead + at);
      }
    }
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t first = part * kSources;
      Sixteen sum = LookUp(Load(from[first] + at), lookups[first]);
      for (std::size_t i = first + 1; i < first + kSources; ++i) {
        sum = Or(sum, LookUp(Load(from[i] + at), lookups[i]));
      }
      Put<kPast>(sum, to + at + part * 16);
    }
  }
}

// Any number of sources.
template <std::size_t kParts, bool kPast>
HWY_INLINE void MoveManyRows(const LanesMove& move, std::size_t offset) {
  for (std::size_t row = 0; row < move.rows; ++row) {
    const std::size_t at = offset + row * kParts * 16;
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t first = part * move.sources;
      Sixteen sum = LookUp(Load(move.from[first] + at), Load(move.lookups[first].data()));
      for (std::size_t i = first + 1; i < first + move.sources; ++i)
        sum = Or(sum, LookUp(Load(move.from[i] + at), Load(move.lookups[i].data())));
      Put<kPast>(sum, move.to + at + part * 16);
    }
  }
}

template <std::size_t kParts, bool kPast>
void MoveParts(const LanesMove& move, std::size_t offset, std::size_t ahead) {
  switch (move.sources) {
    case 1:
      return MoveRows<kParts, 1, kPast>(move, offset, ahead);
    case 2:
      return MoveRows<kParts, 2, kPast>(move, offset, ahead);
    case 3:
      return MoveRows<kParts, 3, kPast>(move, offset, ahead);
    default:
      return MoveManyRows<kParts, kPast>(move, offset);
  }
}

template <bool kPast>
HWY_INLINE void MoveLanesTo(const LanesMove& move, std::size_t offset, std::size_t ahead) {
  if (move.parts == 1) return MoveParts<1, kPast>(move, offset, ahead);
  if (move.parts == 2) return MoveParts<2, kPast>(move, offset, ahead);
  MoveParts<4, kPast>(move, offset, ahead);
}

void MoveLanes(const LanesMove& move, std::size_t offset, std::size_t ahead, bool past) {
  if (past) return MoveLanesTo<true>(move, offset, ahead);
  MoveLanesTo<false>(move, offset, ahead);
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(MoveBytes);
HWY_EXPORT(MoveLanes);

// Calls `once` with where each repeat begins and how far ahead of it the next one does: 0 for the last.
template <class Once>
void repeated(const Repeat& repeat, Store store, const Once& once) noexcept {
  for (std::size_t i = 0; i < repeat.count; ++i)
    once(i * repeat.step, i + 1 < repeat.count ? repeat.step : 0);
  // What went past the caches is in order with whatever this thread writes next.
  if (store == Store::kPast) hwy::FlushStream();
}

}  // namespace

void move_bytes(std::span<const BytesMove> moves, const Repeat& repeat, Store store) noexcept {
  repeated(repeat, store, [&](std::size_t offset, std::size_t ahead) {
    HWY_DYNAMIC_DISPATCH(MoveBytes)(moves.data(), moves.size(), offset, ahead, store == Store::kPast);
  });
}

void move_lanes(const LanesMove& move, const Repeat& repeat, Store store) noexcept {
  repeated(repeat, store, [&](std::size_t offset, std::size_t ahead) {
    HWY_DYNAMIC_DISPATCH(MoveLanes)(move, offset, ahead, store == Store::kPast);
  });
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
