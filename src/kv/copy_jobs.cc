// The copy jobs of the arena. What is side by side moves in one piece; lanes of keys move unit by unit, and
// never more of them than the cells at hand.
#include <algorithm>
#include <array>
#include <cstring>

#include "kv/arena.h"

namespace kvasir::kv {
namespace {

// A NaN in every float type, and scales of NaN.
constexpr int kPoison = 0xFF;

// Cells from `cell` on, of at most `count`, whose units lie side by side.
std::size_t beside(const Plane& plane, std::size_t cell, std::size_t count) noexcept {
  return std::min(count, plane.lanes - cell % plane.lanes);
}

// Copies rows of kHalf to 2 kHalf bytes that lie `step` bytes apart, each as two pieces that may overlap: of
// fixed sizes, so that a row costs neither a call nor a branch.
template <std::size_t kHalf>
void copy_rows_of(const std::byte* from, std::byte* to, std::size_t step, std::size_t rows,
                  std::size_t bytes) noexcept {
  const std::size_t second = bytes - kHalf;
  for (std::size_t row = 0; row < rows; ++row) {
    std::array<std::byte, kHalf> head{};
    std::array<std::byte, kHalf> tail{};
    std::memcpy(head.data(), from, kHalf);
    std::memcpy(tail.data(), from + second, kHalf);
    std::memcpy(to, head.data(), kHalf);
    std::memcpy(to + second, tail.data(), kHalf);
    from += step;
    to += step;
  }
}

// The same for rows of 1 to 64 bytes: at most sixteen lanes of four bytes each.
void copy_rows(const std::byte* from, std::byte* to, std::size_t step, std::size_t rows,
               std::size_t bytes) noexcept {
  if (bytes <= 2) return copy_rows_of<1>(from, to, step, rows, bytes);
  if (bytes <= 4) return copy_rows_of<2>(from, to, step, rows, bytes);
  if (bytes <= 8) return copy_rows_of<4>(from, to, step, rows, bytes);
  if (bytes <= 16) return copy_rows_of<8>(from, to, step, rows, bytes);
  if (bytes <= 32) return copy_rows_of<16>(from, to, step, rows, bytes);
  copy_rows_of<32>(from, to, step, rows, bytes);
}

void copy_plane(const Plane& plane, const std::byte* from_frame, std::size_t from, std::byte* to_frame,
                std::size_t to, std::size_t count) noexcept {
  while (count > 0) {
    const std::byte* source = from_frame + plane.at(from);
    std::byte* target = to_frame + plane.at(to);
    const bool whole = from % plane.lanes == 0 && to % plane.lanes == 0 && count >= plane.lanes;
    std::size_t some = beside(plane, from, beside(plane, to, count));
    if (whole) {
      some = count / plane.lanes * plane.lanes;
      std::memcpy(target, source, some * plane.units * plane.unit_bytes);
    } else {
      copy_rows(source, target, plane.unit_step(), plane.units, some * plane.unit_bytes);
    }
    from += some;
    to += some;
    count -= some;
  }
}

void swap_plane(const Plane& plane, std::byte* a, std::byte* b) noexcept {
  std::array<std::byte, 256> kept{};
  // Units that follow one another count as one long one.
  const bool dense = plane.lanes == 1;
  const std::size_t rows = dense ? 1 : plane.units;
  const std::size_t bytes = dense ? plane.units * plane.unit_bytes : plane.unit_bytes;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t done = 0; done < bytes; done += kept.size()) {
      const std::size_t some = std::min(kept.size(), bytes - done);
      std::memcpy(kept.data(), a + done, some);
      std::memcpy(a + done, b + done, some);
      std::memcpy(b + done, kept.data(), some);
    }
    a += plane.unit_step();
    b += plane.unit_step();
  }
}

void poison_plane(const Plane& plane, std::byte* frame, std::size_t cell, std::size_t count) noexcept {
  while (count > 0) {
    const std::size_t some = beside(plane, cell, count);
    std::byte* to = frame + plane.at(cell);
    for (std::size_t unit = 0; unit < plane.units; ++unit) {
      std::memset(to + unit * plane.unit_step(), kPoison, some * plane.unit_bytes);
    }
    cell += some;
    count -= some;
  }
}

}  // namespace

void Arena::copy_part(const HeadPart& part, std::span<const CellCopy> copies) noexcept {
  for (const Plane& plane : {part.numbers(), part.scales()}) {
    for (const CellCopy& copy : copies) {
      copy_plane(plane, frame_at(copy.from.frame), copy.from.cell, frame_at(copy.to.frame), copy.to.cell,
                 copy.count);
    }
  }
}

// Head by head, so that what lies side by side in either page is still near when the next copy comes.
void Arena::copy_cells(const LayerGeometry& layer, std::span<const CellCopy> copies) noexcept {
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) copy_part(keys_of(layer, head), copies);
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) copy_part(values_of(layer, head), copies);
}

void Arena::swap_cells(const LayerGeometry& layer, FrameCell a, FrameCell b) noexcept {
  if (a.frame == b.frame && a.cell == b.cell) return;
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    for (const HeadPart& part : {keys_of(layer, head), values_of(layer, head)}) {
      for (const Plane& plane : {part.numbers(), part.scales()}) {
        swap_plane(plane, frame_at(a.frame) + plane.at(a.cell), frame_at(b.frame) + plane.at(b.cell));
      }
    }
  }
}

void Arena::rotate_cells(const LayerGeometry& layer, const simd::RotaryTable& rotary, FrameCell from,
                         FrameCell to, std::span<const std::int64_t> turns) noexcept {
  if (from.frame != to.frame || from.cell != to.cell) {
    const CellCopy copy{from, to, static_cast<std::uint32_t>(turns.size())};
    copy_cells(layer, {&copy, 1});
  }
  std::array<float, simd::kMaxHeadDims / 2> cosines{};
  std::array<float, simd::kMaxHeadDims / 2> sines{};
  std::array<float, simd::kMaxHeadDims> key{};
  const std::size_t pairs = rotary.dims() / 2;
  const std::span<float> head_key = std::span(key).first(layer.key_dims);
  std::int64_t angles_of = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i] == 0 || pairs == 0) continue;
    if (turns[i] != angles_of) {
      rotary.pure_turn_at(turns[i], std::span(cosines).first(pairs), std::span(sines).first(pairs));
    }
    angles_of = turns[i];
    for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
      const HeadPart part = keys_of(layer, head);
      part.load(frame_at(to.frame), to.cell + i, head_key);
      rotary.rotate(head_key, std::span(cosines).first(pairs), std::span(sines).first(pairs));
      part.store(frame_at(to.frame), to.cell + i, head_key, rotary.dims());
    }
  }
}

void Arena::poison_cells(const LayerGeometry& layer, FrameCell at, std::uint32_t count) noexcept {
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    for (const HeadPart& part : {keys_of(layer, head), values_of(layer, head)}) {
      poison_plane(part.numbers(), frame_at(at.frame), at.cell, count);
      poison_plane(part.scales(), frame_at(at.frame), at.cell, count);
    }
  }
}

std::size_t Arena::cell_bytes(const LayerGeometry& layer) const noexcept {
  return layer.kv_heads * (keys_of(layer, 0).row_bytes() + values_of(layer, 0).row_bytes());
}

void Arena::export_cells(const LayerGeometry& layer, FrameCell from, std::uint32_t count,
                         std::span<std::byte> out) const noexcept {
  const std::size_t cell_size = cell_bytes(layer);
  std::byte* to = out.data();
  for (const HeadPart::Kind kind : {HeadPart::Kind::kKeys, HeadPart::Kind::kValues}) {
    for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
      const HeadPart part = kind == HeadPart::Kind::kKeys ? keys_of(layer, head) : values_of(layer, head);
      for (std::size_t i = 0; i < count; ++i) {
        part.read_row(frame_at(from.frame), from.cell + i, to + i * cell_size);
      }
      to += part.row_bytes();
    }
  }
}

void Arena::import_cells(const LayerGeometry& layer, FrameCell to, std::uint32_t count,
                         std::span<const std::byte> in) noexcept {
  const std::size_t cell_size = cell_bytes(layer);
  const std::byte* from = in.data();
  for (const HeadPart::Kind kind : {HeadPart::Kind::kKeys, HeadPart::Kind::kValues}) {
    for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
      const HeadPart part = kind == HeadPart::Kind::kKeys ? keys_of(layer, head) : values_of(layer, head);
      for (std::size_t i = 0; i < count; ++i) {
        part.write_row(frame_at(to.frame), to.cell + i, from + i * cell_size);
      }
      from += part.row_bytes();
    }
  }
}

void Arena::append_cell(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                        std::vector<std::byte>& out) const {
  const std::size_t before = out.size();
  out.resize(before + cell_bytes(layer));
  export_cells(layer, {frame, cell}, 1, std::span(out).subspan(before));
}

}  // namespace kvasir::kv
