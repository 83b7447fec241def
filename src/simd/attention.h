// Attention of a few queries over the cells of one conversation, read where they lie.
//
// A score belongs to one cell: the fused multiply-adds run over the key's dimensions in ascending order, the
// scale is applied after. Only the sum of exponentials and the sum over values are reductions; they run in
// tiles of kTile ordinals counted from the conversation's start, each tile with its own maximum and sixteen
// partial sums, merged left to right. So neither the layout of cells nor the batch changes a bit. Scores of
// cells that a query may not see are dropped, never multiplied, and their values are never read: whatever
// bytes lie there cannot show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::simd {

// Ordinals in a tile; part of the numerics id.
inline constexpr std::size_t kTile = 128;

// Cells that lie side by side as lanes of K. A page is whole groups of them.
inline constexpr std::size_t kCellLanes = 16;

// Queries that one call takes at most.
inline constexpr std::size_t kQueriesAtOnce = 8;

// How the elements of keys or values are stored.
enum class CacheElement : std::uint8_t { kF32, kF16, kBF16 };

[[nodiscard]] constexpr std::size_t element_bytes(CacheElement element) noexcept {
  return element == CacheElement::kF32 ? 4 : 2;
}

// Cells that follow one another in a page and in the conversation. The pointers are the start of one KV
// head's part of the page: keys [cell / 16][dimension][cell % 16], values [cell][dimension padded to 16].
struct CellRun {
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  std::size_t cell = 0;     // first cell in the page
  std::size_t count = 0;    // cells
  std::size_t ordinal = 0;  // of the first cell
};

struct AttentionShape {
  std::size_t key_dims = 0;
  std::size_t value_dims = 0;
  CacheElement key_element = CacheElement::kF32;
  CacheElement value_element = CacheElement::kF32;
  std::size_t keys_offset = 0;    // bytes from a run's keys to those of this KV head
  std::size_t values_offset = 0;  // bytes from a run's values to those of this KV head
  float scale = 1;
};

struct AttentionQuery {
  const float* query = nullptr;  // key_dims floats, rotated
  float* out = nullptr;          // value_dims floats
  std::size_t visible = 0;       // sees the ordinals below this; at least 1
};

// The attention of every query (at most kQueriesAtOnce) over `runs`, which are in order of ordinals and cover
// [0, largest visible) without a gap. value_dims <= kMaxValueDims. Any thread.
inline constexpr std::size_t kMaxValueDims = 1024;
void attend(const AttentionShape& shape, std::span<const CellRun> runs,
            std::span<const AttentionQuery> queries) noexcept;

}  // namespace kvasir::simd
