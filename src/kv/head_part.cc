#include "kv/head_part.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kv/transpose.h"
#include "quant/block_type.h"
#include "quant/half.h"
#include "simd/cell_moves.h"

namespace kvasir::kv {
namespace {

using simd::CacheElement;
using simd::CellLayout;

constexpr std::size_t kMaxBlockBytes = 34;
constexpr std::size_t kLineBytes = 64;  // of a cache

// Blocks that are packed or unpacked in one call.
constexpr std::size_t kBlocksAtOnce = 4;
using SomeFloats = std::array<float, kBlocksAtOnce * simd::kBlockDims>;
using SomeBlocks = std::array<std::byte, kBlocksAtOnce * kMaxBlockBytes>;

quant::BlockType block_type(CacheElement element) noexcept {
  return element == CacheElement::kQ8_0 ? quant::BlockType::kQ8_0 : quant::BlockType::kQ4_0;
}

// Copies `count` units that lie `from_step` and `to_step` bytes apart.
template <std::size_t kUnitBytes>
void copy_units_of(const std::byte* from, std::size_t from_step, std::byte* to, std::size_t to_step,
                   std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to, from, kUnitBytes);
    from += from_step;
    to += to_step;
  }
}

// Bytes side by side, mostly few: in pieces of fixed sizes, which cost no call.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  constexpr std::size_t kPiece = 64;
  constexpr std::size_t kSmallPiece = 16;
  for (; bytes >= kPiece; bytes -= kPiece, from += kPiece, to += kPiece) std::memcpy(to, from, kPiece);
  for (; bytes >= kSmallPiece; bytes -= kSmallPiece, from += kSmallPiece, to += kSmallPiece)
    std::memcpy(to, from, kSmallPiece);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void copy_units(const std::byte* from, std::size_t from_step, std::byte* to, std::size_t to_step,
                std::size_t count, std::size_t unit_bytes) noexcept {
  if (from_step == unit_bytes && to_step == unit_bytes) {
    copy_bytes(from, to, count * unit_bytes);
  } else if (unit_bytes == 1) {
    copy_units_of<1>(from, from_step, to, to_step, count);
  } else if (unit_bytes == 2) {
    copy_units_of<2>(from, from_step, to, to_step, count);
  } else {
    copy_units_of<4>(from, from_step, to, to_step, count);
  }
}

// A row of blocks of `kUnits` bytes, between where scales and numbers lie each side by side and where a scale
// stands before its block.
template <std::size_t kUnits>
void join_blocks(const std::byte* scales, const std::byte* numbers, std::byte* row,
                 std::size_t blocks) noexcept {
  constexpr std::size_t kScale = CellLayout::kScaleBytes;
  for (std::size_t block = 0; block < blocks; ++block, row += kScale + kUnits) {
    std::memcpy(row, scales + block * kScale, kScale);
    std::memcpy(row + kScale, numbers + block * kUnits, kUnits);
  }
}
template <std::size_t kUnits>
void part_blocks(const std::byte* row, std::byte* scales, std::byte* numbers, std::size_t blocks) noexcept {
  constexpr std::size_t kScale = CellLayout::kScaleBytes;
  for (std::size_t block = 0; block < blocks; ++block, row += kScale + kUnits) {
    std::memcpy(scales + block * kScale, row, kScale);
    std::memcpy(numbers + block * kUnits, row + kScale, kUnits);
  }
}

// Sixteen bytes of q4_0, as vectors.
using Codes [[gnu::vector_size(16)]] = std::uint8_t;

Codes load_codes(const std::byte* from) noexcept {
  Codes codes{};
  std::memcpy(&codes, from, sizeof(codes));
  return codes;
}

// Between the block type's order, which pairs d and d + 16 in a byte, and that of keys, which pairs
// neighbours.
void pair_neighbours(const std::byte* halves, std::byte* pairs) noexcept {
  const Codes codes = load_codes(halves);
  const Codes low = codes & 15;
  const Codes high = codes >> 4;
  const Codes even =
      __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const Codes odd =
      __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const Codes all = even | (odd << 4);
  std::memcpy(pairs, &all, sizeof(all));
}
void pair_halves(const std::byte* pairs, std::byte* halves) noexcept {
  const Codes codes = load_codes(pairs);
  const Codes even = codes & 15;
  const Codes odd = codes >> 4;
  const Codes low =
      __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Codes high =
      __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  const Codes all = low | (high << 4);
  std::memcpy(halves, &all, sizeof(all));
}

// Fetches the first bytes of what is read next.
void fetch(const std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + at, 0, 2);
}

}  // namespace

HeadPart::HeadPart(Kind kind, CacheElement element, std::size_t dims, std::size_t page_cells,
                   std::size_t offset) noexcept
    : kind_(kind), element_(element), dims_(dims) {
  const CellLayout layout =
      kind == Kind::kKeys ? simd::key_layout(element, dims) : simd::value_layout(element, dims);
  const std::size_t lanes = kind == Kind::kKeys ? simd::kCellLanes : 1;
  numbers_ = {offset, layout.units, layout.unit_bytes, lanes};
  scales_ = {offset + page_cells * layout.number_bytes(), layout.blocks, CellLayout::kScaleBytes, lanes};
}

std::size_t HeadPart::block_bytes() const noexcept {
  return CellLayout::kScaleBytes +
         (element_ == CacheElement::kQ8_0 ? simd::kBlockDims : simd::kBlockDims / 2);
}

std::size_t HeadPart::row_bytes() const noexcept {
  return simd::is_blocks(element_) ? scales_.units * block_bytes() : dims_ * numbers_.unit_bytes;
}

void HeadPart::clear_padding(std::byte* frame, std::size_t cell) const noexcept {
  std::byte* to = frame + numbers_.at(cell);
  for (std::size_t unit = dims_; unit < numbers_.units; ++unit) {
    std::memset(to + unit * numbers_.unit_step(), 0, numbers_.unit_bytes);
  }
}

void HeadPart::store(std::byte* frame, std::size_t cell, std::span<const float> values,
                     std::size_t stored) const noexcept {
  if (simd::is_blocks(element_)) {
    return store_blocks(frame, cell, values, (stored + simd::kBlockDims - 1) / simd::kBlockDims);
  }
  store_floats(frame, cell, values.first(stored));
  if (stored == dims_) clear_padding(frame, cell);
}

void HeadPart::store_floats(std::byte* frame, std::size_t cell,
                            std::span<const float> values) const noexcept {
  std::byte* to = frame + numbers_.at(cell);
  const std::size_t step = numbers_.unit_step();
  for (const float value : values) {
    if (element_ == CacheElement::kF32) {
      std::memcpy(to, &value, sizeof(value));
    } else {
      const std::uint16_t bits =
          element_ == CacheElement::kF16 ? quant::float_to_half(value) : quant::float_to_bfloat(value);
      std::memcpy(to, &bits, sizeof(bits));
    }
    to += step;
  }
}

void HeadPart::store_blocks(std::byte* frame, std::size_t cell, std::span<const float> values,
                            std::size_t blocks) const noexcept {
  for (std::size_t first = 0; first < blocks; first += kBlocksAtOnce) {
    const std::size_t some = std::min(kBlocksAtOnce, blocks - first);
    const std::size_t begin = first * simd::kBlockDims;
    SomeFloats padded{};
    SomeBlocks packed{};
    std::ranges::copy(values.subspan(begin, std::min(some * simd::kBlockDims, values.size() - begin)),
                      padded.begin());
    // Both types pack, and the counts agree: this cannot be refused.
    static_cast<void>(quant::pack(block_type(element_), std::span(padded).first(some * simd::kBlockDims),
                                  std::span(packed).first(some * block_bytes())));
    for (std::size_t i = 0; i < some; ++i) {
      write_block(frame, cell, first + i, packed.data() + i * block_bytes());
    }
  }
}

void HeadPart::load_blocks(const std::byte* frame, std::size_t cell, std::span<float> values) const noexcept {
  for (std::size_t first = 0; first < scales_.units; first += kBlocksAtOnce) {
    const std::size_t some = std::min(kBlocksAtOnce, scales_.units - first);
    SomeFloats padded{};
    SomeBlocks packed{};
    for (std::size_t i = 0; i < some; ++i) {
      read_block(frame, cell, first + i, packed.data() + i * block_bytes());
    }
    // Both types unpack, and the counts agree: this cannot be refused.
    static_cast<void>(quant::unpack(block_type(element_), std::span(packed).first(some * block_bytes()),
                                    std::span(padded).first(some * simd::kBlockDims)));
    const std::size_t begin = first * simd::kBlockDims;
    const std::size_t wanted = std::min(some * simd::kBlockDims, values.size() - begin);
    std::ranges::copy(std::span(padded).first(wanted), values.subspan(begin).begin());
  }
}

void HeadPart::load(const std::byte* frame, std::size_t cell, std::span<float> values) const noexcept {
  if (simd::is_blocks(element_)) return load_blocks(frame, cell, values);
  const std::byte* from = frame + numbers_.at(cell);
  for (float& value : values) {
    if (element_ == CacheElement::kF32) {
      std::memcpy(&value, from, sizeof(value));
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof(bits));
      value = element_ == CacheElement::kF16 ? quant::half_to_float(bits) : quant::bfloat_to_float(bits);
    }
    from += numbers_.unit_step();
  }
}

void HeadPart::read_row(const std::byte* frame, std::size_t cell, std::byte* row) const noexcept {
  if (!simd::is_blocks(element_)) {
    const std::size_t bytes = numbers_.unit_bytes;
    return copy_units(frame + numbers_.at(cell), numbers_.unit_step(), row, bytes, dims_, bytes);
  }
  if (numbers_.lanes == 1) return join_rows(frame, cell, 1, row, 0);
  for (std::size_t block = 0; block < scales_.units; ++block) {
    read_block(frame, cell, block, row + block * block_bytes());
  }
}

void HeadPart::write_row(std::byte* frame, std::size_t cell, const std::byte* row) const noexcept {
  if (!simd::is_blocks(element_)) {
    const std::size_t bytes = numbers_.unit_bytes;
    copy_units(row, bytes, frame + numbers_.at(cell), numbers_.unit_step(), dims_, bytes);
    return clear_padding(frame, cell);
  }
  if (numbers_.lanes == 1) return part_rows(row, 0, 1, frame + scales_.at(cell), frame + numbers_.at(cell));
  for (std::size_t block = 0; block < scales_.units; ++block) {
    write_block(frame, cell, block, row + block * block_bytes());
  }
}

void HeadPart::join_rows(const std::byte* frame, std::size_t cell, std::size_t count, std::byte* rows,
                         std::size_t row_step) const noexcept {
  const std::size_t blocks = scales_.units;
  const std::size_t scale_bytes = blocks * CellLayout::kScaleBytes;
  const std::byte* scales = frame + scales_.at(cell);
  const std::byte* numbers = frame + numbers_.at(cell);
  for (std::size_t i = 0; i < count;
       ++i, rows += row_step, scales += scale_bytes, numbers += numbers_.units) {
    if (element_ == CacheElement::kQ8_0) {
      join_blocks<simd::kBlockDims>(scales, numbers, rows, blocks);
    } else {
      join_blocks<simd::kBlockDims / 2>(scales, numbers, rows, blocks);
    }
  }
}

void HeadPart::part_rows(const std::byte* rows, std::size_t row_step, std::size_t count, std::byte* scales,
                         std::byte* numbers) const noexcept {
  const std::size_t blocks = scales_.units;
  const std::size_t scale_bytes = blocks * CellLayout::kScaleBytes;
  for (std::size_t i = 0; i < count;
       ++i, rows += row_step, scales += scale_bytes, numbers += numbers_.units) {
    if (element_ == CacheElement::kQ8_0) {
      part_blocks<simd::kBlockDims>(rows, scales, numbers, blocks);
    } else {
      part_blocks<simd::kBlockDims / 2>(rows, scales, numbers, blocks);
    }
  }
}

// Cells whose lanes are copied together; 1 where they are not.
std::size_t HeadPart::square_side() const noexcept {
  return numbers_.lanes > 1 ? 16 / numbers_.unit_bytes : 1;
}

template <class Element>
void HeadPart::read_square_lanes(const std::byte* frame, std::size_t cell, std::byte* rows,
                                 std::size_t row_step) const noexcept {
  constexpr std::size_t kRows = kSide<Element>;
  const std::byte* const from = frame + numbers_.at(cell);
  const std::size_t step = numbers_.unit_step();
  const std::size_t squares = dims_ / kRows * kRows;
  for (std::size_t unit = 0; unit < squares; unit += kRows)
    transpose_square<Element>(from + unit * step, step, rows + unit * sizeof(Element), row_step);
  for (std::size_t unit = squares; unit < dims_; ++unit) {
    for (std::size_t i = 0; i < kRows; ++i) {
      std::memcpy(rows + i * row_step + unit * sizeof(Element), from + unit * step + i * sizeof(Element),
                  sizeof(Element));
    }
  }
}

// Units of sixteen cells that were put together beside the frame: whole groups go past the caches.
void HeadPart::write_units(std::byte* to, const std::byte* units, std::size_t count, std::size_t unit_bytes,
                           std::uint16_t lanes) noexcept {
  if (lanes != LaneRows::kAll) return simd::merge_lanes(units, to, count, unit_bytes, lanes);
  const simd::BytesMove move{.from = units, .to = to, .bytes = count * simd::kCellLanes * unit_bytes};
  simd::move_bytes({&move, 1}, {});
}

template <class Element>
void HeadPart::write_lanes_of(std::byte* frame, std::size_t cell, const LaneRows& cells) const noexcept {
  constexpr std::size_t kRows = kSide<Element>;
  constexpr std::size_t kStep = simd::kCellLanes * sizeof(Element);
  constexpr std::size_t kUnitsAtOnce = 64;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before they are read
  alignas(64) std::array<std::byte, kUnitsAtOnce * kStep> units;
  for (std::size_t first = 0; first < numbers_.units; first += kUnitsAtOnce) {
    const std::size_t some = std::min(kUnitsAtOnce, numbers_.units - first);
    for (std::size_t lane = 0; lane < simd::kCellLanes; lane += kRows) {
      std::byte* const to = units.data() + lane * sizeof(Element);
      std::size_t unit = 0;
      for (; unit + kRows <= some; unit += kRows) {
        const std::size_t at = (first + unit) * sizeof(Element);
        transpose_rows<Element>([&](std::size_t i) { return cells.rows[lane + i] + at; }, to + unit * kStep,
                                kStep);
      }
      for (; unit < some; ++unit) {
        for (std::size_t i = 0; i < kRows; ++i) {
          std::memcpy(to + unit * kStep + i * sizeof(Element),
                      cells.rows[lane + i] + (first + unit) * sizeof(Element), sizeof(Element));
        }
      }
    }
    write_units(frame + numbers_.at(cell) + first * kStep, units.data(), some, sizeof(Element), cells.lanes);
  }
}

// Some blocks at a time: scales, and units that are bytes.
void HeadPart::write_lanes_of_blocks(std::byte* frame, std::size_t cell,
                                     const LaneRows& cells) const noexcept {
  const std::size_t units = numbers_.units / scales_.units;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before they are read
  alignas(64) std::array<std::byte, kBlocksAtOnce * simd::kCellLanes * simd::kBlockDims> numbers;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before they are read
  alignas(64) std::array<std::byte, kBlocksAtOnce * simd::kCellLanes * CellLayout::kScaleBytes> scales;
  for (std::size_t first = 0; first < scales_.units; first += kBlocksAtOnce) {
    const std::size_t some = std::min(kBlocksAtOnce, scales_.units - first);
    for (std::size_t i = 0; i < some; ++i) {
      const std::size_t at = (first + i) * block_bytes();
      std::byte* const to = scales.data() + i * scales_.unit_step();
      for (std::size_t lane = 0; lane < simd::kCellLanes; ++lane)
        std::memcpy(to + lane * CellLayout::kScaleBytes, cells.rows[lane] + at, CellLayout::kScaleBytes);
      lay_lanes(cells, at + CellLayout::kScaleBytes, units, numbers.data() + i * units * simd::kCellLanes);
    }
    write_units(frame + scales_.at(cell) + first * scales_.unit_step(), scales.data(), some,
                CellLayout::kScaleBytes, cells.lanes);
    write_units(frame + numbers_.at(cell) + first * units * numbers_.unit_step(), numbers.data(),
                some * units, 1, cells.lanes);
  }
}

// The numbers of a block, which begin `at` bytes into each row, side by side: `units` units of sixteen cells.
void HeadPart::lay_lanes(const LaneRows& cells, std::size_t at, std::size_t units,
                         std::byte* to) const noexcept {
  constexpr std::size_t kLanes = simd::kCellLanes;
  if (element_ != CacheElement::kQ4_0) {
    for (std::size_t unit = 0; unit < units; unit += kLanes) {
      transpose_rows<std::uint8_t>([&](std::size_t i) { return cells.rows[i] + at + unit; },
                                   to + unit * kLanes, kLanes);
    }
    return;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before they are read
  alignas(64) std::array<std::byte, kLanes*(simd::kBlockDims / 2)> pairs;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    pair_neighbours(cells.rows[lane] + at, pairs.data() + lane * units);
  transpose_square<std::uint8_t>(pairs.data(), units, to, kLanes);
}

void HeadPart::write_lanes(std::byte* frame, std::size_t cell, const LaneRows& cells) const noexcept {
  if (simd::is_blocks(element_)) return write_lanes_of_blocks(frame, cell, cells);
  if (numbers_.unit_bytes == 2) return write_lanes_of<std::uint16_t>(frame, cell, cells);
  write_lanes_of<std::uint32_t>(frame, cell, cells);
}

// A whole group of lanes, block by block: 16 cells, whose units are bytes.
void HeadPart::read_square_blocks(const std::byte* frame, std::size_t cell, std::byte* rows,
                                  std::size_t row_step) const noexcept {
  const std::size_t units = numbers_.units / scales_.units;
  for (std::size_t block = 0; block < scales_.units; ++block) {
    std::byte* const to = rows + block * block_bytes();
    copy_units_of<CellLayout::kScaleBytes>(frame + scales_.at(cell) + block * scales_.unit_step(),
                                           CellLayout::kScaleBytes, to, row_step, simd::kCellLanes);
    const std::byte* const from = frame + numbers_.at(cell) + block * units * numbers_.unit_step();
    for (std::size_t unit = 0; unit < units; unit += simd::kCellLanes) {
      transpose_square<std::uint8_t>(from + unit * numbers_.unit_step(), numbers_.unit_step(),
                                     to + CellLayout::kScaleBytes + unit, row_step);
    }
    if (element_ != CacheElement::kQ4_0) continue;
    for (std::size_t i = 0; i < simd::kCellLanes; ++i) {
      std::byte* const codes = to + i * row_step + CellLayout::kScaleBytes;
      pair_halves(codes, codes);
    }
  }
}

template <class Row, class Square>
void HeadPart::by_squares(std::size_t cell, std::size_t count, const Row& row, const Square& square) const {
  const std::size_t side = square_side();
  for (std::size_t at = 0; at < count;) {
    const bool fits = side > 1 && (cell + at) % side == 0 && count - at >= side;
    if (!fits) {
      row(at);
    } else if (numbers_.unit_bytes == 1) {
      square(at, std::uint8_t{});
    } else if (numbers_.unit_bytes == 2) {
      square(at, std::uint16_t{});
    } else {
      square(at, std::uint32_t{});
    }
    at += fits ? side : 1;
  }
}

void HeadPart::read_rows(const std::byte* frame, std::size_t cell, std::size_t count, std::byte* rows,
                         std::size_t row_step) const noexcept {
  if (simd::is_blocks(element_) && numbers_.lanes == 1) return join_rows(frame, cell, count, rows, row_step);
  if (numbers_.lanes == 1) {
    const std::byte* from = frame + numbers_.at(cell);
    const std::size_t bytes = dims_ * numbers_.unit_bytes;
    for (std::size_t i = 0; i < count; ++i, from += numbers_.units * numbers_.unit_bytes)
      copy_bytes(from, rows + i * row_step, bytes);
    return;
  }
  by_squares(
      cell, count, [&](std::size_t at) { read_row(frame, cell + at, rows + at * row_step); },
      [&](std::size_t at, auto element) {
        if constexpr (sizeof(element) == 1) {
          read_square_blocks(frame, cell + at, rows + at * row_step, row_step);
        } else {
          read_square_lanes<decltype(element)>(frame, cell + at, rows + at * row_step, row_step);
        }
      });
}

void HeadPart::fetch_rows(const std::byte* frame, std::size_t cell, std::size_t count) const noexcept {
  for (const Plane& plane : {numbers_, scales_}) {
    const std::size_t first = cell / plane.lanes * plane.lanes;
    const std::size_t end = (cell + count + plane.lanes - 1) / plane.lanes * plane.lanes;
    fetch(frame + plane.at(first), (end - first) * plane.units * plane.unit_bytes);
  }
}

void HeadPart::read_block(const std::byte* frame, std::size_t cell, std::size_t block,
                          std::byte* to) const noexcept {
  const std::byte* scale = frame + scales_.at(cell) + block * scales_.unit_step();
  std::memcpy(to, scale, CellLayout::kScaleBytes);
  to += CellLayout::kScaleBytes;
  const std::size_t units = numbers_.units / scales_.units;
  const std::byte* from = frame + numbers_.at(cell) + block * units * numbers_.unit_step();
  if (kind_ == Kind::kKeys && element_ == CacheElement::kQ4_0) {
    std::array<std::byte, simd::kBlockDims / 2> pairs{};
    copy_units(from, numbers_.unit_step(), pairs.data(), 1, units, 1);
    return pair_halves(pairs.data(), to);
  }
  copy_units(from, numbers_.unit_step(), to, 1, units, 1);
}

void HeadPart::write_block(std::byte* frame, std::size_t cell, std::size_t block,
                           const std::byte* from) const noexcept {
  std::byte* scale = frame + scales_.at(cell) + block * scales_.unit_step();
  std::memcpy(scale, from, CellLayout::kScaleBytes);
  from += CellLayout::kScaleBytes;
  const std::size_t units = numbers_.units / scales_.units;
  std::byte* to = frame + numbers_.at(cell) + block * units * numbers_.unit_step();
  if (kind_ == Kind::kKeys && element_ == CacheElement::kQ4_0) {
    std::array<std::byte, simd::kBlockDims / 2> pairs{};
    pair_neighbours(from, pairs.data());
    return copy_units(pairs.data(), 1, to, numbers_.unit_step(), units, 1);
  }
  copy_units(from, 1, to, numbers_.unit_step(), units, 1);
}

void BlockRows::add(std::byte* frame, std::size_t cell, std::size_t count, const std::byte* rows,
                    std::size_t row_step) noexcept {
  while (count > 0) {
    const std::size_t some = std::min(count, kRows - rows_);
    std::byte* const numbers = numbers_.data() + rows_ * number_bytes_;
    std::byte* const scales = scales_.data() + rows_ * scale_bytes_;
    part_->part_rows(rows, row_step, some, scales, numbers);
    std::byte* const scales_to = frame + part_->scales().offset + cell * scale_bytes_;
    // Less than a line comes from memory until it is written.
    if (some * scale_bytes_ < kLineBytes) __builtin_prefetch(scales_to, 1);
    moves_[count_++] = {.from = numbers,
                        .to = frame + part_->numbers().offset + cell * number_bytes_,
                        .bytes = some * number_bytes_};
    moves_[count_++] = {.from = scales, .to = scales_to, .bytes = some * scale_bytes_};
    rows_ += some;
    if (rows_ == kRows) write();
    cell += some;
    rows += some * row_step;
    count -= some;
  }
}

void BlockRows::write() noexcept {
  simd::move_bytes(std::span(moves_).first(count_), {});
  rows_ = 0;
  count_ = 0;
}

}  // namespace kvasir::kv
