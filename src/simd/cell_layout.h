// How the numbers of one KV head of one cell are stored: what the arena lays down and attention reads.
//
// Floats are one array of elements. The block types of the cache, q8_0 and q4_0, are those of GGUF weights:
// 32 dimensions share a half-float scale, the last block of a head is padded with zeros, and no block crosses
// heads. Their numbers and scales are two arrays, `numbers` before `scales` inside the head's part of a
// frame. A cell's share of an array is counted in units:
//   numbers of a key    floats: one dimension; q8_0: one dimension, a signed byte; q4_0: two neighbouring
//                       dimensions in a byte, the lower one in the low four bits
//   numbers of a value  the same, but q4_0: byte j of a block has dimension j low and j + 16 high
//   scales              one block
// Units of keys have the cells of a group of sixteen side by side, those of values follow one another:
//   keys    [cell / 16][unit][cell % 16]
//   values  [cell][unit]
// Source of the block types: the GGUF specification (Q8_0, Q4_0).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::simd {

// Cells that lie side by side as lanes of K. A page is whole groups of them.
inline constexpr std::size_t kCellLanes = 16;

// Dimensions in a block of q8_0 and q4_0.
inline constexpr std::size_t kBlockDims = 32;

// The most dimensions that a head's key or value may have.
inline constexpr std::size_t kMaxHeadDims = 1024;

// How the elements of keys or values are stored.
enum class CacheElement : std::uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0 };

[[nodiscard]] constexpr bool is_blocks(CacheElement element) noexcept {
  return element == CacheElement::kQ8_0 || element == CacheElement::kQ4_0;
}

// A cell's share of the arrays of one head.
struct CellLayout {
  std::size_t units = 0;       // of numbers
  std::size_t unit_bytes = 0;  // of a unit of numbers
  std::size_t blocks = 0;      // scales, of kScaleBytes each; 0 for floats

  static constexpr std::size_t kScaleBytes = 2;

  [[nodiscard]] constexpr std::size_t number_bytes() const noexcept { return units * unit_bytes; }
  [[nodiscard]] constexpr std::size_t scale_bytes() const noexcept { return blocks * kScaleBytes; }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return number_bytes() + scale_bytes(); }
};

// `dims` numbers, of floats padded to a multiple of `float_step`.
[[nodiscard]] constexpr CellLayout cell_layout(CacheElement element, std::size_t dims,
                                               std::size_t float_step) noexcept {
  const std::size_t blocks = (dims + kBlockDims - 1) / kBlockDims;
  const std::size_t floats = (dims + float_step - 1) / float_step * float_step;
  switch (element) {
    case CacheElement::kF32:
      return {.units = floats, .unit_bytes = 4};
    case CacheElement::kF16:
    case CacheElement::kBF16:
      return {.units = floats, .unit_bytes = 2};
    case CacheElement::kQ8_0:
      return {.units = blocks * kBlockDims, .unit_bytes = 1, .blocks = blocks};
    case CacheElement::kQ4_0:
      return {.units = blocks * kBlockDims / 2, .unit_bytes = 1, .blocks = blocks};
  }
  return {};
}

[[nodiscard]] constexpr CellLayout key_layout(CacheElement element, std::size_t dims) noexcept {
  return cell_layout(element, dims, 1);
}

// Values are read sixteen dimensions at a time: floats are padded with zeros to that.
[[nodiscard]] constexpr CellLayout value_layout(CacheElement element, std::size_t dims) noexcept {
  return cell_layout(element, dims, 16);
}

}  // namespace kvasir::simd
