// Weight matrices repacked so that vector lanes are output rows: panels of 16 rows.
//
// A matrix of R rows and K columns becomes ceil(R / 16) panels; rows beyond R are zero. Panels of codes are
// described in panel_layout.h. Floats are [k][row], those of 16 bits of two panels side by side, so that each
// k is a line of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "kvasir/result.h"
#include "quant/block_type.h"
#include "simd/panel_kind.h"

namespace kvasir::simd {

// Rows in a panel.
inline constexpr std::size_t kPanelRows = 16;

// How panels keep the numbers of a block type: kF32 also for types that cannot be read.
[[nodiscard]] PanelKind panel_kind(quant::BlockType type) noexcept;

// The panels of one weight matrix. Move-only; constant once filled, then any thread may read.
class Panels {
 public:
  // Room for `rows` x `columns` weights whose rows come in blocks of `source`. kInvalidArgument where a row
  // is not whole blocks or a count is 0, kUnsupported where `source` cannot be read, kOutOfMemory.
  [[nodiscard]] static Result<Panels> allocate(quant::BlockType source, std::size_t rows,
                                               std::size_t columns);
  // The same in memory from `slab`.
  [[nodiscard]] static Result<Panels> allocate(quant::BlockType source, std::size_t rows, std::size_t columns,
                                               base::Slab& slab);

  Panels() = default;

  // Repacks the rows of panel `index`: `raw` holds min(16, rows - 16 x index) rows as in the file. Different
  // panels may be filled by different threads at once. kInvalidArgument for a wrong size.
  [[nodiscard]] Status fill(std::size_t index, std::span<const std::byte> raw);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::size_t panel_count() const noexcept { return (rows_ + kPanelRows - 1) / kPanelRows; }
  [[nodiscard]] std::size_t raw_row_bytes() const noexcept { return raw_row_bytes_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] quant::BlockType source() const noexcept { return source_; }
  [[nodiscard]] PanelKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::byte* panel(std::size_t index) const noexcept { return bytes_.data() + at(index); }

  // Whether products with these weights read activations as bytes, not as floats.
  [[nodiscard]] bool takes_bytes() const noexcept { return is_codes(kind_); }

  // The weights of one row as floats, equal bit for bit to quant::unpack of that row. row < rows(),
  // out.size() == columns().
  void read_row(std::size_t row, std::span<float> out) const noexcept;

 private:
  [[nodiscard]] static Result<Panels> without_memory(quant::BlockType source, std::size_t rows,
                                                     std::size_t columns);
  [[nodiscard]] std::size_t bytes_wanted() const noexcept;

  // Where a panel begins. Those side by side are lines of 64 bytes together.
  [[nodiscard]] std::size_t at(std::size_t index) const noexcept {
    const std::size_t aside = index % side_by_side_;
    return (index - aside) * panel_bytes_ + aside * (64 / side_by_side_);
  }

  base::Buffer bytes_;
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t raw_row_bytes_ = 0;
  std::size_t panel_bytes_ = 0;
  std::size_t side_by_side_ = 1;
  quant::BlockType source_ = quant::BlockType::kF32;
  PanelKind kind_ = PanelKind::kF32;
};

}  // namespace kvasir::simd
