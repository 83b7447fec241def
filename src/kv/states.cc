// What the arena does to recurrent states: their pieces, as numbers and as bytes.
#include <algorithm>
#include <cstring>

#include "kv/arena.h"

namespace kvasir::kv {
namespace {

// Visits the parts of an entry's numbers [first, first + count) that lie in one piece each: the piece, the
// first of its numbers, and how many.
template <class Visit>
void for_pieces(const StateGeometry& entry, std::uint64_t first, std::uint64_t count, const Visit& visit) {
  while (count > 0) {
    const std::uint64_t inside = first % entry.floats;
    const std::uint64_t some = std::min(count, entry.floats - inside);
    visit(static_cast<std::uint32_t>(first / entry.floats), inside, some);
    first += some;
    count -= some;
  }
}

}  // namespace

std::span<float> Arena::piece(const StateLayout& layout, std::span<const pages::FrameId> frames,
                              std::size_t entry, std::uint32_t piece) noexcept {
  const StateLayout::Place place = layout.place(entry, piece);
  auto* const numbers = reinterpret_cast<float*>(frame_at(frames[place.frame]) + place.offset);
  return {numbers, layout.entries()[entry].floats};
}

std::span<const float> Arena::piece(const StateLayout& layout, std::span<const pages::FrameId> frames,
                                    std::size_t entry, std::uint32_t piece) const noexcept {
  const StateLayout::Place place = layout.place(entry, piece);
  const auto* const numbers = reinterpret_cast<const float*>(frame_at(frames[place.frame]) + place.offset);
  return {numbers, layout.entries()[entry].floats};
}

void Arena::export_state(const StateLayout& layout, std::span<const pages::FrameId> frames, std::size_t entry,
                         std::uint64_t first, std::span<std::byte> out) const noexcept {
  std::byte* to = out.data();
  for_pieces(layout.entries()[entry], first, out.size() / sizeof(float),
             [&](std::uint32_t index, std::uint64_t inside, std::uint64_t count) {
               const std::span<const float> numbers = piece(layout, frames, entry, index);
               std::memcpy(to, numbers.data() + inside, count * sizeof(float));
               to += count * sizeof(float);
             });
}

void Arena::import_state(const StateLayout& layout, std::span<const pages::FrameId> frames, std::size_t entry,
                         std::uint64_t first, std::span<const std::byte> in) noexcept {
  const std::byte* from = in.data();
  for_pieces(layout.entries()[entry], first, in.size() / sizeof(float),
             [&](std::uint32_t index, std::uint64_t inside, std::uint64_t count) {
               const std::span<float> numbers = piece(layout, frames, entry, index);
               std::memcpy(numbers.data() + inside, from, count * sizeof(float));
               from += count * sizeof(float);
             });
}

void Arena::fill_state(const StateLayout& layout, std::span<const pages::FrameId> frames,
                       float value) noexcept {
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    for (std::uint32_t index = 0; index < layout.entries()[entry].pieces; ++index) {
      std::ranges::fill(piece(layout, frames, entry, index), value);
    }
  }
}

}  // namespace kvasir::kv
