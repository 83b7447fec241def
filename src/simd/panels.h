// Weight matrices repacked so that vector lanes are output rows: panels of 16 rows.
//
// A matrix of R rows and K columns becomes ceil(R / 16) panels; rows beyond R are zero. Inside a panel the
// parts of a block are separate arrays, each starting at a multiple of 64 bytes. Four consecutive k share a
// 32-bit lane (the layout of one int8 dot-product instruction), so 16 rows x 4 k are one 64-byte load:
//
//   floats       [k][row]                 one element each
//   bytes        [k / 4][row][k % 4]      code of k; a signed byte is stored plus 128
//   nibbles      [k / 8][row][k % 4]      low nibble k % 8 < 4, high nibble the others
//   pairs        [k / 16][row][k % 4]     two bits of k at 2 x (k % 16 / 4)
//   single bits  [k / 32][row][k % 4]     one bit of k at k % 32 / 4
//   scales, offsets          [block][row] half floats, or bytes of exponents
//   sub-scales               [sub-block][row] bytes
//   sub-offsets              [sub-block / 2][row][sub-block % 2] bytes
//
// Codes of 8 bits are bytes; of 4 to 6 bits nibbles, and above them nothing, single bits, or pairs; of 2 and
// 3 bits pairs, and above them nothing or single bits. Any other block type is unpacked to F32 panels: right,
// and larger than its file.
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

// How panels keep the numbers of a block type: kF32 for types that are unpacked.
[[nodiscard]] PanelKind panel_kind(quant::BlockType type) noexcept;

// The panels of one weight matrix. Move-only; constant once filled, then any thread may read.
class Panels {
 public:
  // Room for `rows` x `columns` weights whose rows come in blocks of `source`. kInvalidArgument where a row
  // is not whole blocks or a count is 0, kUnsupported where `source` does not unpack, kOutOfMemory.
  [[nodiscard]] static Result<Panels> allocate(quant::BlockType source, std::size_t rows,
                                               std::size_t columns);

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
  [[nodiscard]] const PanelLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::byte* panel(std::size_t index) const noexcept {
    return bytes_.data() + index * layout_.bytes;
  }

  // Whether products with these weights read activations as bytes, not as floats.
  [[nodiscard]] bool takes_bytes() const noexcept { return is_codes(kind_); }

  // The weights of one row as floats, equal bit for bit to quant::unpack of that row. row < rows(),
  // out.size() == columns().
  void read_row(std::size_t row, std::span<float> out) const noexcept;

 private:
  base::Buffer bytes_;
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t raw_row_bytes_ = 0;
  PanelLayout layout_;
  quant::BlockType source_ = quant::BlockType::kF32;
  PanelKind kind_ = PanelKind::kF32;
};

}  // namespace kvasir::simd
