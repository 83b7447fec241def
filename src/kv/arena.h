// The bytes of the cache: one arena of frames of one size, taken at start. The only code that knows where a
// cell's K and V lie; rooms above name frames and cells, never addresses.
//
// A frame holds one layer's K and V of one page's cells: the keys of every KV head, one head behind the
// other, then the values of every KV head. A head's part is laid out as simd/cell_layout.h says. Or it holds
// pieces of one recurrent state, as kv/state_layout.h says.
//
// Invariants
//   A1  A cell's bytes are written only by store(), import_cells() and the copy jobs, for a cell that an open
//       ticket reserved or, exchanged by swap_cells(), for two whose holders are patched with it.
//   A2  What attend() reads of a visible cell is what store() wrote, rounded once to the cell's element, or
//       what a copy job made of that.
//   A3  A call neither writes a byte of a cell that it was not given nor lets one show in a result, not even
//       of a cell in the same group of lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "kv/copy_plan.h"
#include "kv/head_part.h"
#include "kv/state_layout.h"
#include "kvasir/result.h"
#include "pages/types.h"
#include "parallel/thread_pool.h"
#include "simd/attention.h"
#include "simd/cell_moves.h"
#include "simd/rotary.h"

namespace kvasir::kv {

using simd::CacheElement;

// The element named "f32", "f16", "bf16", "q8_0" or "q4_0". kInvalidArgument lists them.
[[nodiscard]] Result<CacheElement> parse_element(std::string_view name);
[[nodiscard]] std::string_view element_name(CacheElement element) noexcept;

// Bytes of one head of an exported cell: `dims` numbers of this element, the padding of blocks included.
[[nodiscard]] std::size_t row_bytes(CacheElement element, std::size_t dims) noexcept;

// How keys and values are stored.
struct CacheTypes {
  CacheElement keys = CacheElement::kF16;
  CacheElement values = CacheElement::kF16;
};

// What one layer keeps for each cell.
struct LayerGeometry {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dims = 0;    // of one head, at most simd::kMaxHeadDims
  std::uint32_t value_dims = 0;  // of one head, at most simd::kMaxHeadDims
};

// Cells of a conversation in one layer: a run whose page is resolved to its frame.
struct FrameRun {
  pages::FrameId frame{};
  std::uint32_t cell = 0;
  std::uint32_t count = 0;
  std::uint64_t ordinal = 0;
  std::uint32_t query = 0;  // which variant of every query scores these cells, see simd::AttentionQuery
};

// A cell of a frame.
struct FrameCell {
  pages::FrameId frame{};
  std::uint32_t cell = 0;
};

// The runs of one conversation in one layer, ready to be read by attend(). Made by Arena::resolve; keeps its
// memory when it is filled again.
class ResolvedRuns {
 public:
  // Takes memory for so many at once. Throws std::bad_alloc.
  void reserve(std::size_t runs) { runs_.reserve(runs); }

 private:
  friend class Arena;
  std::vector<simd::CellRun> runs_;
};

// Move-only. Which cells may be read or written at a time is decided by the owner of the page store;
// different cells may be used by different threads at once.
class Arena {
 public:
  // Bytes of a frame that serves every one of `layers`. kInvalidArgument for a page that is no multiple of
  // sixteen cells up to pages::kPageCellsMax or a layer without heads or dimensions, kUnsupported for heads
  // of more than simd::kMaxHeadDims dimensions.
  [[nodiscard]] static Result<std::size_t> frame_bytes(std::span<const LayerGeometry> layers,
                                                       const CacheTypes& types, std::uint32_t page_cells);

  // Whose frames have `least_bytes`, or as many as frame_bytes() says if that is more. As frame_bytes(), and
  // kOutOfMemory with the bytes wanted.
  [[nodiscard]] static Result<Arena> create(std::span<const LayerGeometry> layers, const CacheTypes& types,
                                            std::uint32_t page_cells, std::uint32_t frames,
                                            std::size_t least_bytes = 0);

  // Takes all of the memory from the system now, before anything is stored, so that no store waits for it.
  void touch(parallel::ThreadPool& pool) noexcept;

  // Writes one cell of one layer: keys[head * key_dims + d], values[head * value_dims + d]. Elements are
  // rounded to nearest, ties to even; blocks are packed as quant::pack does, each head by itself.
  void store(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
             std::span<const float> keys, std::span<const float> values) noexcept;

  // Finds where the cells of `runs`, in order of ordinals, lie. Allocates only where `out` was never this
  // long.
  void resolve(const LayerGeometry& layer, std::span<const FrameRun> runs, ResolvedRuns& out) const;

  // Attention of queries (at most simd::kQueriesAtOnce) over one KV head of the same layer, as simd::attend
  // says.
  struct Scoring {
    float scale = 1;
    float soft_cap = 0;                       // 0: none
    const std::int32_t* positions = nullptr;  // as in simd::AttentionShape
    std::int32_t reach = 0;
  };
  void attend(const LayerGeometry& layer, std::uint32_t head, const Scoring& scoring,
              const ResolvedRuns& runs, std::span<const simd::AttentionQuery> queries) const noexcept;

  // The same in two steps, as simd::attend_tiles and simd::merge_tiles say.
  void attend_tiles(const LayerGeometry& layer, std::uint32_t head, const Scoring& scoring,
                    const ResolvedRuns& runs, std::span<const simd::AttentionQuery> queries,
                    const simd::KeptTiles& tiles) const noexcept;
  void merge_tiles(const LayerGeometry& layer, std::span<const simd::AttentionQuery> queries,
                   const simd::KeptTiles& tiles) const noexcept;

  // The copy jobs: at most a page of cells of one layer. Each of them allocates nothing and cannot fail; the
  // cells lie within their page.

  // Copies the bytes of cells as planned for this arena's types. frames[i] is the frame of plan.pages()[i];
  // next[i] is the one of the next layer that will be copied, if any: it is fetched meanwhile.
  void copy_cells(const LayerGeometry& layer, const CopyPlan& plan, std::span<const pages::FrameId> frames,
                  std::span<const pages::FrameId> next = {}) noexcept;

  // Exchanges the bytes of two cells, which may be the same.
  void swap_cells(const LayerGeometry& layer, FrameCell a, FrameCell b) noexcept;

  // Copies cells to new positions: V exactly, K turned by `turns[i]` (new position - old position) for the
  // i-th cell, a pure rotation without attention factors, and rounded to its element again. Where a cell's
  // turn is 0 it is copied exactly; so are floats of dimensions that do not turn, and blocks without a
  // dimension that turns. The ranges are the same or do not overlap; rotary.dims() <= key_dims; turns as
  // RotaryTable::pure_turn_at takes them.
  void rotate_cells(const LayerGeometry& layer, const simd::RotaryTable& rotary, FrameCell from, FrameCell to,
                    std::span<const std::int64_t> turns) noexcept;

  // Fills cells with NaN, of block types with scales of NaN: whatever reads them shows it. For tests.
  void poison_cells(const LayerGeometry& layer, FrameCell at, std::uint32_t count) noexcept;

  // Bytes of one exported cell of a layer. For each cell: the keys head by head, then the values head by
  // head; floats are their elements in order, little-endian; blocks are those of quant::BlockType::kQ8_0 and
  // kQ4_0, the padding of a head's last block included. The order knows neither page nor lanes.
  [[nodiscard]] std::size_t cell_bytes(const LayerGeometry& layer) const noexcept;

  // Cells to bytes and back, exactly; the span has count * cell_bytes() bytes. Any bytes may be imported.
  // `next`, if any, is where as many cells lie that will be exported next; they are fetched meanwhile.
  void export_cells(const LayerGeometry& layer, FrameCell from, std::uint32_t count, std::span<std::byte> out,
                    const FrameCell* next = nullptr) const noexcept;
  void import_cells(const LayerGeometry& layer, FrameCell to, std::uint32_t count,
                    std::span<const std::byte> in) noexcept;
  // The same for cells that go to several places, run by run.
  void import_runs(const LayerGeometry& layer, std::span<const FrameRun> runs,
                   std::span<const std::byte> in) noexcept;

  // Appends what export_cells() gives for one cell.
  void append_cell(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                   std::vector<std::byte>& out) const;

  // States. `frames` are those of one, in order.

  // The numbers of a piece. They are written by the scan whose ticket reserved the state, and by
  // import_state().
  [[nodiscard]] std::span<float> piece(const StateLayout& layout, std::span<const pages::FrameId> frames,
                                       std::size_t entry, std::uint32_t piece) noexcept;
  [[nodiscard]] std::span<const float> piece(const StateLayout& layout,
                                             std::span<const pages::FrameId> frames, std::size_t entry,
                                             std::uint32_t piece) const noexcept;

  // An entry's numbers [first, first + floats), counted over its pieces, to bytes and back: 32 bits each,
  // little-endian. The span has as many bytes.
  void export_state(const StateLayout& layout, std::span<const pages::FrameId> frames, std::size_t entry,
                    std::uint64_t first, std::span<std::byte> out) const noexcept;
  void import_state(const StateLayout& layout, std::span<const pages::FrameId> frames, std::size_t entry,
                    std::uint64_t first, std::span<const std::byte> in) noexcept;

  // Fills all of a state with one number.
  void fill_state(const StateLayout& layout, std::span<const pages::FrameId> frames, float value) noexcept;

  [[nodiscard]] const CacheTypes& types() const noexcept { return types_; }
  [[nodiscard]] std::size_t frame_size() const noexcept { return frame_bytes_; }  // bytes
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_.size(); }

 private:
  // The parts of one layer: the same for every frame.
  [[nodiscard]] HeadPart keys_of(const LayerGeometry& layer, std::uint32_t head) const noexcept;
  [[nodiscard]] HeadPart values_of(const LayerGeometry& layer, std::uint32_t head) const noexcept;
  [[nodiscard]] simd::AttentionShape shape_of(const LayerGeometry& layer, std::uint32_t head,
                                              const Scoring& scoring) const noexcept;

  // Rows of one head, `step` bytes apart.
  struct Rows {
    const std::byte* first = nullptr;
    std::size_t step = 0;
  };
  void import_keys(const HeadPart& part, const HeadPart& coming, std::span<const FrameRun> runs,
                   Rows rows) noexcept;
  void import_values(const HeadPart& part, std::span<const FrameRun> runs, Rows rows) noexcept;
  // Calls visit(frame, cell, row) for each cell of the runs, in order.
  template <class Visit>
  void for_each_cell(std::span<const FrameRun> runs, Rows rows, const Visit& visit) noexcept;
  [[nodiscard]] HeadPart part_of(const LayerGeometry& layer, std::uint32_t index) const noexcept;

  [[nodiscard]] std::byte* frame_at(pages::FrameId frame) noexcept {
    return bytes_.data() + static_cast<std::size_t>(frame) * frame_bytes_;
  }
  [[nodiscard]] const std::byte* frame_at(pages::FrameId frame) const noexcept {
    return bytes_.data() + static_cast<std::size_t>(frame) * frame_bytes_;
  }
  void copy_run(const LayerGeometry& layer, FrameCell from, FrameCell to, std::size_t count) noexcept;
  // A plan in one layer; `plane` is the first head's.
  struct PlannedCopy {
    const CopyPlan* plan = nullptr;
    std::span<const pages::FrameId> frames;
    std::span<const pages::FrameId> next;
    simd::Repeat heads;
  };
  void copy_values(const Plane& plane, const PlannedCopy& copy) noexcept;
  void copy_lanes(const Plane& plane, const PlannedCopy& copy,
                  std::span<const CopyPlan::Lanes> lanes) noexcept;
  // How far from a page's frame the one of the next layer lies; 0 where there is none.
  [[nodiscard]] std::ptrdiff_t ahead(const PlannedCopy& copy, std::uint32_t page) const noexcept;
  static void copy_some_lanes(const Plane& plane, const simd::Repeat& heads, const simd::LanesMove& all,
                              const CopyPlan::Segment& segment) noexcept;

  base::Buffer bytes_;
  CacheTypes types_;
  std::size_t frame_bytes_ = 0;
  std::uint32_t page_cells_ = 0;
};

}  // namespace kvasir::kv
