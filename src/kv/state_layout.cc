#include "kv/state_layout.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::kv {
namespace {

constexpr std::size_t kPieceAlign = 64;
constexpr std::uint64_t kFramesOfStateMax = 1024;  // about: a page store manages a few thousand

std::size_t piece_bytes(const StateGeometry& entry) noexcept {
  return base::div_up(std::size_t{entry.floats} * sizeof(float), kPieceAlign) * kPieceAlign;
}

Status check_entry(const StateGeometry& entry) {
  if (entry.pieces == 0 || entry.floats == 0)
    return fail(Outcome::kInvalidArgument, "a state without pieces or numbers cannot be kept");
  const std::uint64_t most = kStateEntryBytesMax / sizeof(float);
  if (entry.all_floats() <= most) return {};
  return fail(Outcome::kUnsupported,
              "a layer's state of " + std::to_string(entry.all_floats()) +
                  " numbers cannot be kept, at most " + std::to_string(most) + " can",
              {.wanted = entry.all_floats(), .limit = most});
}

}  // namespace

Result<std::size_t> state_frame_bytes(std::span<const StateGeometry> entries, bool alone) {
  std::size_t least = 0;
  std::uint64_t all = 0;
  for (const StateGeometry& entry : entries) {
    KVASIR_TRY(check_entry(entry));
    const std::size_t piece = piece_bytes(entry);
    least = std::max(least, alone ? piece * entry.pieces : piece);
    all += piece * entry.pieces;
  }
  const auto fewer = static_cast<std::size_t>(base::div_up(all, kFramesOfStateMax));
  return base::div_up(std::max(least, fewer), kPieceAlign) * kPieceAlign;
}

StateLayout::StateLayout(std::span<const StateGeometry> entries, std::size_t frame_bytes)
    : geometry_(entries.begin(), entries.end()) {
  entries_.reserve(entries.size());
  std::uint32_t frame = 0;
  std::size_t offset = 0;
  for (const StateGeometry& geometry : geometry_) {
    Entry entry{.piece_bytes = piece_bytes(geometry)};
    entry.each = static_cast<std::uint32_t>(frame_bytes / entry.piece_bytes);
    if (offset + entry.piece_bytes > frame_bytes) {
      ++frame;
      offset = 0;
    }
    entry.frame = frame;
    entry.offset = offset;
    entry.first =
        std::min(static_cast<std::uint32_t>((frame_bytes - offset) / entry.piece_bytes), geometry.pieces);
    const std::uint32_t rest = geometry.pieces - entry.first;
    if (rest == 0) {
      offset += entry.first * entry.piece_bytes;
    } else {
      frame += base::div_up(rest, entry.each);
      offset = (rest - 1) % entry.each * entry.piece_bytes + entry.piece_bytes;
    }
    entries_.push_back(entry);
    bytes_ += geometry.bytes();
  }
  frames_ = geometry_.empty() ? 0 : frame + 1;
}

StateLayout::Place StateLayout::place(std::size_t entry, std::uint32_t piece) const noexcept {
  const Entry& at = entries_[entry];
  if (piece < at.first) return {at.frame, at.offset + piece * at.piece_bytes};
  const std::uint32_t behind = piece - at.first;
  return {at.frame + 1 + behind / at.each, behind % at.each * at.piece_bytes};
}

}  // namespace kvasir::kv
