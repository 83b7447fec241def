// Weight matrices repacked so that vector lanes are output rows: panels of 16 rows.
//
// A matrix of R rows and K columns becomes ceil(R / 16) panels; rows beyond R are zero. Inside a panel the
// quants and the scales are separate arrays, each starting at a multiple of 64 bytes. Four consecutive k
// share a 32-bit lane (the layout of one int8 dot-product instruction), so 16 rows x 4 k are one 64-byte
// load:
//
//   F32, F16, BF16   [k][row]                    one element each
//   Q8_0             quants [k / 4][row][k % 4]  signed bytes;      scales [k / 32][row] F16
//   Q4_0             quants [k / 8][row][k % 4]  low nibble k % 8 < 4, high nibble the others;  scales [k /
//   32][row] F16 Q4_K             quants as Q4_0;  d, dmin [k / 256][row] F16;  sub-scales and sub-mins [k /
//   32][row] bytes Q6_K             low four bits as Q4_0;  high two bits [k / 16][row][k % 4], bits 2 x (k %
//   16 / 4);
//                    d [k / 256][row] F16;  sub-scales [k / 16][row] signed bytes
//
// Any other block type is unpacked to F32 panels: right, and larger than its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "kvasir/result.h"
#include "quant/block_type.h"

namespace kvasir::simd {

// Rows in a panel.
inline constexpr std::size_t kPanelRows = 16;

// How the numbers of a panel are stored.
enum class PanelKind : std::uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_K, kQ6_K };

// Byte offsets of the arrays inside one panel. Unused ones are 0.
struct PanelLayout {
  std::size_t quants = 0;
  std::size_t high_bits = 0;
  std::size_t scales = 0;      // F16 scale of each block, or of each 256 for K-quants
  std::size_t mins = 0;        // F16 dmin
  std::size_t sub_scales = 0;  // one byte each
  std::size_t sub_mins = 0;    // one byte each
  std::size_t bytes = 0;       // of the whole panel, a multiple of 64
};

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
