// Inside the room: where the numbers of a cell lie in one head's keys or values of a frame, and how they get
// there and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/cell_layout.h"
#include "simd/cell_moves.h"

namespace kvasir::kv {

// One array of a head, as simd/cell_layout.h says: `units` units of `unit_bytes` for each cell; `lanes` cells
// lie side by side.
struct Plane {
  std::size_t offset = 0;  // from the frame's start
  std::size_t units = 0;
  std::size_t unit_bytes = 0;
  std::size_t lanes = 1;

  // Where a cell's first unit lies, from the frame's start. The others follow unit_step() bytes apart.
  [[nodiscard]] std::size_t at(std::size_t cell) const noexcept {
    const std::size_t lane = cell % lanes;
    return offset + ((cell - lane) * units + lane) * unit_bytes;
  }
  [[nodiscard]] std::size_t unit_step() const noexcept { return lanes * unit_bytes; }
};

// Rows for the cells of a group of lanes: those that have a bit, and for the others any row at all.
struct LaneRows {
  static constexpr std::uint16_t kAll = 0xFFFF;

  std::array<const std::byte*, simd::kCellLanes> rows{};  // [lane]
  std::uint16_t lanes = 0;
};

// The keys or the values of one head of the cells of one page: a layout, no bytes. `frame` is always the
// start of the frame. A cell's *row* is its numbers in a form that knows neither lanes nor neighbours: floats
// are their `dims` elements in order; blocks are those of quant::BlockType::kQ8_0 or kQ4_0, one behind the
// other, the padding of the last one included. Different cells may be used by different threads at once.
class HeadPart {
 public:
  enum class Kind : std::uint8_t { kKeys, kValues };

  // dims <= simd::kMaxHeadDims. `offset` is the part's place in the frame.
  HeadPart(Kind kind, simd::CacheElement element, std::size_t dims, std::size_t page_cells,
           std::size_t offset) noexcept;

  // Bytes of a cell's row.
  [[nodiscard]] std::size_t row_bytes() const noexcept;

  // Bytes of the part in a page of so many cells.
  [[nodiscard]] std::size_t bytes(std::size_t page_cells) const noexcept {
    return page_cells * (numbers_.units * numbers_.unit_bytes + scales_.units * scales_.unit_bytes);
  }

  // The numbers, and the scales of block types (an array of no units otherwise).
  [[nodiscard]] const Plane& numbers() const noexcept { return numbers_; }
  [[nodiscard]] const Plane& scales() const noexcept { return scales_; }

  // Stores the dimensions [0, stored) of `values`, which are all `dims`: elements are rounded to nearest,
  // ties to even; of blocks, every one that has such a dimension is packed whole, as quant::pack does.
  // Storing all dimensions also sets the padding to 0.
  void store(std::byte* frame, std::size_t cell, std::span<const float> values,
             std::size_t stored) const noexcept;

  // All `dims` numbers of a cell, exactly.
  void load(const std::byte* frame, std::size_t cell, std::span<float> values) const noexcept;

  // A cell's row out of the frame, and into it.
  void read_row(const std::byte* frame, std::size_t cell, std::byte* row) const noexcept;
  void write_row(std::byte* frame, std::size_t cell, const std::byte* row) const noexcept;

  // The same for `count` cells, whose rows begin `row_step` bytes apart.
  void read_rows(const std::byte* frame, std::size_t cell, std::size_t count, std::byte* rows,
                 std::size_t row_step) const noexcept;

  // Whether a row lies in the frame byte by byte as it is, and the move that writes one then.
  [[nodiscard]] bool rows_lie_as_they_are() const noexcept {
    return !simd::is_blocks(element_) && numbers_.lanes == 1 && numbers_.units == dims_;
  }
  [[nodiscard]] simd::BytesMove move_of_row(std::byte* frame, std::size_t cell,
                                            const std::byte* row) const noexcept {
    return {.from = row, .to = frame + numbers_.at(cell), .bytes = row_bytes()};
  }

  // Keys of a whole group of lanes, or of some of it: `cell` is the group's first. Whoever
  // writes calls simd::end_moves() afterwards.
  void write_lanes(std::byte* frame, std::size_t cell, const LaneRows& cells) const noexcept;

  // Asks for what read_rows() of these cells will read.
  void fetch_rows(const std::byte* frame, std::size_t cell, std::size_t count) const noexcept;

  // Rows of blocks that begin `row_step` bytes apart, to scales and numbers, those of all rows side by side.
  void part_rows(const std::byte* rows, std::size_t row_step, std::size_t count, std::byte* scales,
                 std::byte* numbers) const noexcept;

 private:
  // Out of a frame's values of blocks, each block with its scale before it.
  void join_rows(const std::byte* frame, std::size_t cell, std::size_t count, std::byte* rows,
                 std::size_t row_step) const noexcept;
  template <class Element>
  void read_square_lanes(const std::byte* frame, std::size_t cell, std::byte* rows,
                         std::size_t row_step) const noexcept;
  static void write_units(std::byte* to, const std::byte* units, std::size_t count, std::size_t unit_bytes,
                          std::uint16_t lanes) noexcept;
  template <class Element>
  void write_lanes_of(std::byte* frame, std::size_t cell, const LaneRows& cells) const noexcept;
  void write_lanes_of_blocks(std::byte* frame, std::size_t cell, const LaneRows& cells) const noexcept;
  void lay_lanes(const LaneRows& cells, std::size_t at, std::size_t units, std::byte* to) const noexcept;
  void read_square_blocks(const std::byte* frame, std::size_t cell, std::byte* rows,
                          std::size_t row_step) const noexcept;
  [[nodiscard]] std::size_t square_side() const noexcept;
  // Calls square(at, Element()) for the whole squares of lanes among the cells [cell, cell + count), and
  // row(at) for the cells beside them; `at` is counted from `cell`.
  template <class Row, class Square>
  void by_squares(std::size_t cell, std::size_t count, const Row& row, const Square& square) const;
  void store_floats(std::byte* frame, std::size_t cell, std::span<const float> values) const noexcept;
  void store_blocks(std::byte* frame, std::size_t cell, std::span<const float> values,
                    std::size_t blocks) const noexcept;
  void load_blocks(const std::byte* frame, std::size_t cell, std::span<float> values) const noexcept;
  [[nodiscard]] std::size_t block_bytes() const noexcept;
  void read_block(const std::byte* frame, std::size_t cell, std::size_t block, std::byte* to) const noexcept;
  void write_block(std::byte* frame, std::size_t cell, std::size_t block,
                   const std::byte* from) const noexcept;
  void clear_padding(std::byte* frame, std::size_t cell) const noexcept;

  Kind kind_;
  simd::CacheElement element_;
  std::size_t dims_;
  Plane numbers_;
  Plane scales_;
};

// Rows of values of a block type on their way into frames. Those of several cells are put together first,
// where numbers and scales each lie side by side, so that whole lines go past the caches.
class BlockRows {
 public:
  // `part` must outlive it.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the arrays are written before they are read
  explicit BlockRows(const HeadPart& part) noexcept
      : part_(&part),
        number_bytes_(part.numbers().units * part.numbers().unit_bytes),
        scale_bytes_(part.scales().units * part.scales().unit_bytes) {}

  // The rows of `count` cells, which begin `row_step` bytes apart.
  void add(std::byte* frame, std::size_t cell, std::size_t count, const std::byte* rows,
           std::size_t row_step) noexcept;

  // Writes what was added. Whoever adds calls it at the end, and simd::end_moves() afterwards.
  void write() noexcept;

 private:
  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kBlocks = simd::kMaxHeadDims / simd::kBlockDims;

  const HeadPart* part_;
  std::size_t number_bytes_;  // of a cell
  std::size_t scale_bytes_;
  std::size_t rows_ = 0;
  std::size_t count_ = 0;  // of moves
  std::array<simd::BytesMove, 2 * kRows> moves_;
  alignas(64) std::array<std::byte, kRows * simd::kMaxHeadDims> numbers_;
  alignas(64) std::array<std::byte, kRows * kBlocks * simd::CellLayout::kScaleBytes> scales_;
};

}  // namespace kvasir::kv
