// Attention of a few queries over the cells of one conversation, read where they lie.
//
// A score belongs to one cell: the fused multiply-adds run over the key's dimensions in ascending order, the
// scale is applied after. Only the sum of exponentials and the sum over values are reductions; they run in
// tiles of kTile ordinals counted from the conversation's start, each tile with its own maximum and sixteen
// partial sums, merged left to right. Where cells inside a tile are hidden from a query, what it sees before
// and behind them counts as a tile each. So neither the layout of cells nor the batch changes a bit.
// Quantized keys and values count as the floats that they unpack to: attention gives the bits that it gives
// over those floats. Scores of cells that a query may not see are dropped, never multiplied, and their values
// are never read: whatever bytes lie there cannot show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "simd/cell_layout.h"

namespace kvasir::simd {

// Ordinals in a tile; part of the numerics id.
inline constexpr std::size_t kTile = 128;

// Queries that one call takes at most.
inline constexpr std::size_t kQueriesAtOnce = 8;

// Cells that follow one another in a page and in the conversation. The pointers are the start of the first KV
// head's part of the page, laid out as cell_layout.h says.
struct CellRun {
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  std::size_t cell = 0;     // first cell in the page
  std::size_t count = 0;    // cells
  std::size_t ordinal = 0;  // of the first cell
  std::uint32_t query = 0;  // which variant of every query scores these cells
};

struct AttentionShape {
  std::size_t key_dims = 0;
  std::size_t value_dims = 0;
  CacheElement key_element = CacheElement::kF32;
  CacheElement value_element = CacheElement::kF32;
  std::size_t keys_offset = 0;          // bytes from a run's keys to the numbers of this KV head
  std::size_t values_offset = 0;        // bytes from a run's values to the numbers of this KV head
  std::size_t key_scales_offset = 0;    // the same to the scales, of block types
  std::size_t value_scales_offset = 0;  // the same to the scales, of block types
  float scale = 1;
  float soft_cap = 0;  // scaled scores become cap * tanh(score / cap); 0: they stay
  // Where scores are biased by distance: the positions of all cells of the runs, by ordinal, and from which
  // distance on, to either side, the bias stays the same.
  const std::int32_t* positions = nullptr;
  std::int32_t reach = 0;
};

// Ordinals [begin, end).
struct OrdinalRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// A query may come in variants, one for each shift of a conversation's spans: variant v begins at
// query + v * variant_stride.
struct AttentionQuery {
  const float* query = nullptr;    // key_dims floats, rotated
  float* out = nullptr;            // value_dims floats
  std::size_t visible = 0;         // sees the ordinals below this
  std::size_t first = 0;           // and from this one on
  std::size_t variant_stride = 0;  // floats from a variant of the query to the next
  // NOLINTNEXTLINE(readability-redundant-member-init): GCC warns whoever names other members alone
  std::span<const OrdinalRange> hidden = {};  // but for these of them, which ascend and do not meet
  // The score of what has no value: it takes its part of the weight (a sink). -infinity: there is none.
  // Source: Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023; learned ones:
  // gpt-oss.
  float sink = -std::numeric_limits<float>::infinity();
  // bias[d] for d in [-reach, reach] is added to the score of a cell whose position is that of the query + d;
  // of cells farther away that of the nearest such d. nullptr: none.
  // Source: Raffel et al., Exploring the Limits of Transfer Learning, 2019.
  const float* bias = nullptr;
  std::int32_t position = 0;
};

// The attention of every query (at most kQueriesAtOnce) over `runs`, which are in order of ordinals and cover
// [smallest first, largest visible) without a gap. A query that sees nothing, or only scores of -infinity,
// gets zeros. value_dims <= kMaxValueDims. Any thread.
inline constexpr std::size_t kMaxValueDims = kMaxHeadDims;
void attend(const AttentionShape& shape, std::span<const CellRun> runs,
            std::span<const AttentionQuery> queries) noexcept;

// The same for long caches in two steps, of which several threads may do the first, each for some of the
// tiles: merging what each tile gave, in order, leaves the bits that attend() leaves. For queries without
// hidden cells.

// Floats that are kept of one query and tile.
[[nodiscard]] constexpr std::size_t tile_floats(std::size_t value_dims) noexcept {
  return 16 + (value_dims + 15) / 16 * 16;
}

// The tiles [begin, end), counted from the conversation's start, and what is kept of them: of query q and
// tile t at kept + ((t - begin) * queries + q) * tile_floats(value_dims), a multiple of 64 bytes.
struct KeptTiles {
  std::size_t begin = 0;
  std::size_t end = 0;
  float* kept = nullptr;
};

// Keeps what the queries make of each of the tiles. Runs as attend() takes them.
void attend_tiles(const AttentionShape& shape, std::span<const CellRun> runs,
                  std::span<const AttentionQuery> queries, const KeptTiles& tiles) noexcept;

// Merges what is kept of all tiles that the queries see.
void merge_tiles(const AttentionShape& shape, std::span<const AttentionQuery> queries,
                 const KeptTiles& tiles) noexcept;

}  // namespace kvasir::simd
