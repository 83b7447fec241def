// Matrix products: panels of weights times columns of activations.
//
// The order of every sum is fixed. Where weights are codes it is that of byte_products.h, and activations are
// bytes; of float weights output (row, column) is 0, then for k = 0, 1, 2, ... one fused
// multiply-add of weight (row, k), as quant::unpack gives it, and activation (column, k). Rows are lanes,
// columns and threads only repeat; so an output has the same bits in any batch, on any number of threads, on
// every instruction set with a fused multiply-add, and in a scalar loop with std::fma.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "simd/byte_columns.h"
#include "simd/panels.h"

namespace kvasir::simd {

// Most columns of weights that decode_tile takes at once; its first column is a multiple of this.
inline constexpr std::size_t kDecodeColumns = 64;

// Panels that one call of multiply should at least take to keep the fused multiply-adds busy.
inline constexpr std::size_t kPanelGroup = 4;

// What products read: `count` columns of `width` floats, one every `stride` floats. A view; the caller keeps
// the floats alive. The other form is ByteColumns.
struct Activations {
  const float* data = nullptr;
  std::size_t count = 0;
  std::size_t width = 0;
  std::size_t stride = 0;

  [[nodiscard]] const float* column(std::size_t index) const noexcept { return data + index * stride; }
};

// Where products go: column c, row r at data[c * stride + r - first_row]. stride and first_row are multiples
// of 16, and stride at least the rows that are computed, in whole panels: the lanes of a last, partly filled
// panel are written too (with zeros).
struct ProductOutput {
  float* data = nullptr;
  std::size_t stride = 0;
  std::size_t first_row = 0;

  [[nodiscard]] float* column(std::size_t index) const noexcept { return data + index * stride; }
  // Where the sixteen rows of a panel go.
  [[nodiscard]] float* sums(std::size_t index, std::size_t panel) const noexcept {
    return data + (index * stride + panel * kPanelRows - first_row);
  }
};

// Computes the rows of panels [first, last) for every column. x.width == weights.columns(); the second form
// is for weights that takes_bytes(), the first for all others. Any thread; different panel ranges may run at
// once into one output.
void multiply(const Panels& weights, std::size_t first, std::size_t last, const Activations& x,
              const ProductOutput& out) noexcept;
void multiply(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
              const ProductOutput& out) noexcept;

// Float weights of columns [k, k + count) of one panel: tile[i * 16 + row]. k is a multiple of
// kDecodeColumns, count <= kDecodeColumns, tile is aligned to 64 bytes.
void decode_tile(const Panels& weights, std::size_t panel, std::size_t k, std::size_t count,
                 float* tile) noexcept;

// The name of the instruction set in use, part of the numerics id: "AVX3", "AVX2", "NEON", ...
[[nodiscard]] std::string_view instruction_set() noexcept;

}  // namespace kvasir::simd
