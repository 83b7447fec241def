// The copy jobs of the arena. What is side by side moves in one piece; lanes of keys move unit by unit, and
// never more of them than the cells at hand.
#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "kv/arena.h"
#include "kv/copy_plan.h"
#include "simd/cell_moves.h"

namespace kvasir::kv {
namespace {

// Runs of values that are handed on together.
constexpr std::size_t kMovesAtOnce = 32;

// Keys or values of a head that are fetched before they are read: as many as memory needs to bring them.
constexpr std::uint32_t kPartsAhead = 2;

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

void Arena::copy_run(const LayerGeometry& layer, FrameCell from, FrameCell to, std::size_t count) noexcept {
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    for (const HeadPart& part : {keys_of(layer, head), values_of(layer, head)}) {
      for (const Plane& plane : {part.numbers(), part.scales()}) {
        copy_plane(plane, frame_at(from.frame), from.cell, frame_at(to.frame), to.cell, count);
      }
    }
  }
}

std::ptrdiff_t Arena::ahead(const PlannedCopy& copy, std::uint32_t page) const noexcept {
  return copy.next.empty() ? 0 : frame_at(copy.next[page]) - frame_at(copy.frames[page]);
}

void Arena::copy_values(const Plane& plane, const PlannedCopy& copy) noexcept {
  std::array<simd::BytesMove, kMovesAtOnce> moves;
  std::size_t count = 0;
  for (const CopyPlan::Run& run : copy.plan->runs_) {
    moves[count++] = {.from = frame_at(copy.frames[run.from_page]) + plane.at(run.from),
                      .to = frame_at(copy.frames[run.to_page]) + plane.at(run.to),
                      .bytes = run.count * plane.units * plane.unit_bytes,
                      .ahead = ahead(copy, run.from_page)};
    if (count < moves.size()) continue;
    simd::move_bytes(moves, copy.heads);
    count = 0;
  }
  simd::move_bytes(std::span(moves).first(count), copy.heads);
}

void Arena::copy_lanes(const Plane& plane, const PlannedCopy& copy,
                       std::span<const CopyPlan::Lanes> lanes) noexcept {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const CopyPlan::Segment& segment = copy.plan->segments_[i];
    std::byte* to = frame_at(copy.frames[segment.to.page]) + plane.at(segment.to.cell);
    if (!segment.whole() && segment.straight()) {
      const std::byte* from = frame_at(copy.frames[segment.from[0].page]) + plane.at(segment.from[0].cell);
      for (std::size_t head = 0; head < copy.heads.count; ++head) {
        copy_rows(from + head * copy.heads.step, to + head * copy.heads.step, plane.unit_step(), plane.units,
                  segment.count * plane.unit_bytes);
      }
      continue;
    }
    std::array<const std::byte*, simd::kLaneSourcesMax> from{};
    std::array<std::ptrdiff_t, simd::kLaneSourcesMax> ahead_of{};
    for (std::size_t j = 0; j < lanes[i].from.size(); ++j) {
      const CopyPlan::Part& part = lanes[i].from[j];
      from[j] = frame_at(copy.frames[part.group.page]) + plane.at(part.group.cell) +
                part.part * std::tuple_size_v<simd::LaneLookup>;
      ahead_of[j] = ahead(copy, part.group.page);
    }
    const simd::LanesMove move{.to = to,
                               .rows = plane.units,
                               .parts = lanes[i].parts,
                               .sources = lanes[i].sources,
                               .from = from.data(),
                               .lookups = lanes[i].lookups.data(),
                               .ahead = copy.next.empty() ? nullptr : ahead_of.data()};
    if (segment.whole()) {
      simd::move_lanes(move, copy.heads);
    } else {
      copy_some_lanes(plane, copy.heads, move, segment);
    }
  }
}

// Lanes beside those of the segment are others' (A3): whole rows are put together elsewhere first.
void Arena::copy_some_lanes(const Plane& plane, const simd::Repeat& heads, const simd::LanesMove& all,
                            const CopyPlan::Segment& segment) noexcept {
  constexpr std::size_t kRowsAtOnce = 32;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before they are read
  std::array<std::byte, kRowsAtOnce * simd::kCellLanes * sizeof(float)> rows;
  std::array<const std::byte*, simd::kLaneSourcesMax> from{};
  const std::size_t in_row = segment.to.cell % simd::kCellLanes * plane.unit_bytes;
  for (std::size_t head = 0; head < heads.count; ++head) {
    for (std::size_t row = 0; row < plane.units; row += kRowsAtOnce) {
      const std::size_t offset = head * heads.step + row * plane.unit_step();
      for (std::size_t i = 0; i < all.parts * all.sources; ++i) from[i] = all.from[i] + offset;
      simd::LanesMove some = all;
      some.to = rows.data();
      some.rows = std::min(kRowsAtOnce, plane.units - row);
      some.from = from.data();
      some.read_soon = true;
      simd::move_lanes(some, {});
      copy_rows(rows.data() + in_row, all.to + offset, plane.unit_step(), some.rows,
                segment.count * plane.unit_bytes);
    }
  }
}

void Arena::copy_cells(const LayerGeometry& layer, const CopyPlan& plan,
                       std::span<const pages::FrameId> frames,
                       std::span<const pages::FrameId> next) noexcept {
  const HeadPart keys = keys_of(layer, 0);
  const HeadPart values = values_of(layer, 0);
  PlannedCopy copy{&plan, frames, next, {layer.kv_heads, keys.bytes(page_cells_)}};
  copy_lanes(keys.numbers(), copy, plan.numbers_);
  copy_lanes(keys.scales(), copy, plan.scales_);
  copy.heads.step = values.bytes(page_cells_);
  copy_values(values.numbers(), copy);
  if (values.scales().units > 0) copy_values(values.scales(), copy);
  simd::end_moves();
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
  if (from.frame != to.frame || from.cell != to.cell) copy_run(layer, from, to, turns.size());
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

// What a cell must not be read before it is written, nor beside another, is found by it (A1, A2).
void Arena::poison_cells(const LayerGeometry& layer, FrameCell at, std::uint32_t count) noexcept {
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    for (const HeadPart& part : {keys_of(layer, head), values_of(layer, head)}) {
      poison_plane(part.numbers(), frame_at(at.frame), at.cell, count);
      poison_plane(part.scales(), frame_at(at.frame), at.cell, count);
    }
  }
}

// Keys head by head, then values head by head: the order of a frame, and of a cell that is exported.
HeadPart Arena::part_of(const LayerGeometry& layer, std::uint32_t index) const noexcept {
  return index < layer.kv_heads ? keys_of(layer, index) : values_of(layer, index - layer.kv_heads);
}

std::size_t Arena::cell_bytes(const LayerGeometry& layer) const noexcept {
  return layer.kv_heads * (keys_of(layer, 0).row_bytes() + values_of(layer, 0).row_bytes());
}

void Arena::export_cells(const LayerGeometry& layer, FrameCell from, std::uint32_t count,
                         std::span<std::byte> out, const FrameCell* next) const noexcept {
  const std::size_t cell_size = cell_bytes(layer);
  const std::byte* const frame = frame_at(from.frame);
  std::byte* to = out.data();
  const std::uint32_t parts = 2 * layer.kv_heads;  // at least kPartsAhead
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t coming = i + kPartsAhead;
    if (coming < parts) {
      part_of(layer, coming).fetch_rows(frame, from.cell, count);
    } else if (next != nullptr) {
      part_of(layer, coming - parts).fetch_rows(frame_at(next->frame), next->cell, count);
    }
    const HeadPart part = part_of(layer, i);
    part.read_rows(frame, from.cell, count, to, cell_size);
    to += part.row_bytes();
  }
}

void Arena::import_cells(const LayerGeometry& layer, FrameCell to, std::uint32_t count,
                         std::span<const std::byte> in) noexcept {
  const FrameRun run{.frame = to.frame, .cell = to.cell, .count = count};
  import_runs(layer, {&run, 1}, in);
}

void Arena::import_runs(const LayerGeometry& layer, std::span<const FrameRun> runs,
                        std::span<const std::byte> in) noexcept {
  const std::size_t cell_size = cell_bytes(layer);
  const std::byte* from = in.data();
  for (std::uint32_t i = 0; i < 2 * layer.kv_heads; ++i) {
    const HeadPart part = part_of(layer, i);
    if (i < layer.kv_heads) {
      const HeadPart coming = keys_of(layer, std::min(i + kPartsAhead, layer.kv_heads - 1));
      import_keys(part, coming, runs, {from, cell_size});
    } else {
      import_values(part, runs, {from, cell_size});
    }
    from += part.row_bytes();
  }
  simd::end_moves();
}

// What goes to one group of lanes goes there together. A group that is not filled wholly is fetched before.
void Arena::import_keys(const HeadPart& part, const HeadPart& coming, std::span<const FrameRun> runs,
                        Rows rows) noexcept {
  LaneRows group;
  FrameCell first;
  const auto write = [&] {
    if (group.lanes == 0) return;
    std::byte* const frame = frame_at(first.frame);
    if (group.lanes != LaneRows::kAll) coming.fetch_rows(frame, first.cell, simd::kCellLanes);
    part.write_lanes(frame, first.cell, group);
    group.lanes = 0;
  };
  for (const FrameRun& run : runs) {
    for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell, rows.first += rows.step) {
      const std::uint32_t lane = cell % simd::kCellLanes;
      if (run.frame != first.frame || cell - lane != first.cell) write();
      if (group.lanes == 0) {
        first = {run.frame, cell - lane};
        group.rows.fill(rows.first);
      }
      group.rows[lane] = rows.first;
      group.lanes |= static_cast<std::uint16_t>(1U << lane);
    }
  }
  write();
}

template <class Visit>
void Arena::for_each_cell(std::span<const FrameRun> runs, Rows rows, const Visit& visit) noexcept {
  for (const FrameRun& run : runs) {
    std::byte* const frame = frame_at(run.frame);
    for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell, rows.first += rows.step)
      visit(frame, cell, rows.first);
  }
}

void Arena::import_values(const HeadPart& part, std::span<const FrameRun> runs, Rows rows) noexcept {
  if (simd::is_blocks(types_.values)) {
    BlockRows blocks(part);
    for (const FrameRun& run : runs) {
      blocks.add(frame_at(run.frame), run.cell, run.count, rows.first, rows.step);
      rows.first += run.count * rows.step;
    }
    return blocks.write();
  }
  if (!part.rows_lie_as_they_are()) {
    return for_each_cell(runs, rows, [&](std::byte* frame, std::uint32_t cell, const std::byte* row) {
      part.write_row(frame, cell, row);
    });
  }
  std::array<simd::BytesMove, kMovesAtOnce> moves;
  std::size_t count = 0;
  for_each_cell(runs, rows, [&](std::byte* frame, std::uint32_t cell, const std::byte* row) {
    moves[count++] = part.move_of_row(frame, cell, row);
    if (count < moves.size()) return;
    simd::move_bytes(moves, {});
    count = 0;
  });
  simd::move_bytes(std::span(moves).first(count), {});
}

void Arena::append_cell(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                        std::vector<std::byte>& out) const {
  const std::size_t before = out.size();
  out.resize(before + cell_bytes(layer));
  export_cells(layer, {frame, cell}, 1, std::span(out).subspan(before));
}

}  // namespace kvasir::kv
