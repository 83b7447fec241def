#include "kv/head_part.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kv/transpose.h"
#include "quant/block_type.h"
#include "quant/half.h"

namespace kvasir::kv {
namespace {

using simd::CacheElement;
using simd::CellLayout;

constexpr std::size_t kMaxBlockBytes = 34;

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

void copy_units(const std::byte* from, std::size_t from_step, std::byte* to, std::size_t to_step,
                std::size_t count, std::size_t unit_bytes) noexcept {
  if (from_step == unit_bytes && to_step == unit_bytes) {
    std::memcpy(to, from, count * unit_bytes);
  } else if (unit_bytes == 1) {
    copy_units_of<1>(from, from_step, to, to_step, count);
  } else if (unit_bytes == 2) {
    copy_units_of<2>(from, from_step, to, to_step, count);
  } else {
    copy_units_of<4>(from, from_step, to, to_step, count);
  }
}

// The four bits of dimension `d` of a block, in the order of the block type's bytes.
unsigned nibble(const std::byte* bytes, std::size_t d) noexcept {
  const auto byte = std::to_integer<unsigned>(bytes[d % 16]);
  return d < 16 ? byte & 15U : byte >> 4;
}

// Between the block type's order, which pairs d and d + 16, and that of keys, which pairs neighbours.
void pair_neighbours(const std::byte* halves, std::byte* pairs) noexcept {
  for (std::size_t i = 0; i < 16; ++i) {
    pairs[i] = static_cast<std::byte>(nibble(halves, 2 * i) | (nibble(halves, 2 * i + 1) << 4));
  }
}
void pair_halves(const std::byte* pairs, std::byte* halves) noexcept {
  const auto of = [pairs](std::size_t d) {
    return (std::to_integer<unsigned>(pairs[d / 2]) >> (d % 2 * 4)) & 15U;
  };
  for (std::size_t i = 0; i < 16; ++i) halves[i] = static_cast<std::byte>(of(i) | (of(i + 16) << 4));
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
  for (std::size_t block = 0; block < scales_.units; ++block) {
    write_block(frame, cell, block, row + block * block_bytes());
  }
}

// Cells whose lanes are copied together; 1 where they are not.
std::size_t HeadPart::square_side() const noexcept {
  const bool lanes = numbers_.lanes > 1 && !simd::is_blocks(element_);
  return lanes ? 16 / numbers_.unit_bytes : 1;
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

template <class Element>
void HeadPart::write_square_lanes(std::byte* frame, std::size_t cell, const std::byte* rows,
                                  std::size_t row_step) const noexcept {
  constexpr std::size_t kRows = kSide<Element>;
  std::byte* const to = frame + numbers_.at(cell);
  const std::size_t step = numbers_.unit_step();
  const std::size_t squares = dims_ / kRows * kRows;
  for (std::size_t unit = 0; unit < squares; unit += kRows)
    transpose_square<Element>(rows + unit * sizeof(Element), row_step, to + unit * step, step);
  for (std::size_t unit = squares; unit < dims_; ++unit) {
    for (std::size_t i = 0; i < kRows; ++i) {
      std::memcpy(to + unit * step + i * sizeof(Element), rows + i * row_step + unit * sizeof(Element),
                  sizeof(Element));
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) clear_padding(frame, cell + i);
}

template <class Row, class Square>
void HeadPart::by_squares(std::size_t cell, std::size_t count, const Row& row, const Square& square) const {
  const std::size_t side = square_side();
  for (std::size_t at = 0; at < count;) {
    const bool fits = side > 1 && (cell + at) % side == 0 && count - at >= side;
    if (!fits) {
      row(at);
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
  by_squares(
      cell, count, [&](std::size_t at) { read_row(frame, cell + at, rows + at * row_step); },
      [&](std::size_t at, auto element) {
        read_square_lanes<decltype(element)>(frame, cell + at, rows + at * row_step, row_step);
      });
}

void HeadPart::write_rows(std::byte* frame, std::size_t cell, std::size_t count, const std::byte* rows,
                          std::size_t row_step) const noexcept {
  by_squares(
      cell, count, [&](std::size_t at) { write_row(frame, cell + at, rows + at * row_step); },
      [&](std::size_t at, auto element) {
        write_square_lanes<decltype(element)>(frame, cell + at, rows + at * row_step, row_step);
      });
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

}  // namespace kvasir::kv
