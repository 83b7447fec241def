// The bytes of the cache: one arena of frames of one size, taken at start. The only code that knows where a
// cell's K and V lie; rooms above name frames and cells, never addresses.
//
// A frame holds one layer's K and V of one page's cells, all KV heads, heads one behind the other:
//   keys    [head][cell / 16][dimension][cell % 16]                     cells as lanes
//   values  [head][cell][dimension, padded with zeros to a multiple of 16]  dimensions as lanes
//
// Invariants
//   A1  A cell's bytes are written only by store(), for a cell that an open ticket reserved.
//   A2  What attend() reads of a visible cell is what store() wrote, rounded once to the cell's element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "kvasir/result.h"
#include "pages/types.h"
#include "simd/attention.h"

namespace kvasir::kv {

using simd::CacheElement;

// The element named "f32", "f16" or "bf16". kInvalidArgument lists them.
[[nodiscard]] Result<CacheElement> parse_element(std::string_view name);
[[nodiscard]] std::string_view element_name(CacheElement element) noexcept;

// How keys and values are stored.
struct CacheTypes {
  CacheElement keys = CacheElement::kF16;
  CacheElement values = CacheElement::kF16;
};

// What one layer keeps for each cell.
struct LayerGeometry {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dims = 0;    // of one head
  std::uint32_t value_dims = 0;  // of one head
};

// Cells of a conversation in one layer: a run whose page is resolved to its frame.
struct FrameRun {
  pages::FrameId frame{};
  std::uint32_t cell = 0;
  std::uint32_t count = 0;
  std::uint64_t ordinal = 0;
};

// The runs of one conversation in one layer, ready to be read by attend(). Made by Arena::resolve; keeps its
// memory when it is filled again.
class ResolvedRuns {
 private:
  friend class Arena;
  std::vector<simd::CellRun> runs_;
};

// Move-only. Which cells may be read or written at a time is decided by the owner of the page store;
// different cells may be used by different threads at once.
class Arena {
 public:
  // Bytes of a frame that serves every one of `layers`.
  [[nodiscard]] static Result<std::size_t> frame_bytes(std::span<const LayerGeometry> layers,
                                                       const CacheTypes& types, std::uint32_t page_cells);

  // kInvalidArgument, or kOutOfMemory with the bytes wanted.
  [[nodiscard]] static Result<Arena> create(std::span<const LayerGeometry> layers, const CacheTypes& types,
                                            std::uint32_t page_cells, std::uint32_t frames);

  // Writes one cell of one layer: keys[head * key_dims + d], values[head * value_dims + d]. Elements are
  // rounded to nearest, ties to even.
  void store(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
             std::span<const float> keys, std::span<const float> values) noexcept;

  // Finds where the cells of `runs`, in order of ordinals, lie. Allocates only where `out` was never this
  // long.
  void resolve(const LayerGeometry& layer, std::span<const FrameRun> runs, ResolvedRuns& out) const;

  // Attention of queries (at most simd::kQueriesAtOnce) over one KV head of the same layer, as simd::attend
  // says.
  void attend(const LayerGeometry& layer, std::uint32_t head, float scale, const ResolvedRuns& runs,
              std::span<const simd::AttentionQuery> queries) const noexcept;

  // Appends a cell's K and V of one layer, in the order of store(), as stored bytes. For digests and
  // comparisons.
  void append_cell(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                   std::vector<std::byte>& out) const;

  [[nodiscard]] const CacheTypes& types() const noexcept { return types_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_.size(); }

 private:
  [[nodiscard]] std::size_t key_head_bytes(const LayerGeometry& layer) const noexcept;
  [[nodiscard]] std::size_t value_head_bytes(const LayerGeometry& layer) const noexcept;
  [[nodiscard]] std::size_t keys_at(const LayerGeometry& layer, pages::FrameId frame,
                                    std::uint32_t head) const noexcept;
  [[nodiscard]] std::size_t values_at(const LayerGeometry& layer, pages::FrameId frame,
                                      std::uint32_t head) const noexcept;

  base::Buffer bytes_;
  CacheTypes types_;
  std::size_t frame_bytes_ = 0;
  std::uint32_t page_cells_ = 0;
};

}  // namespace kvasir::kv
