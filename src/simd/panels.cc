#include "simd/panels.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/try.h"
#include "simd/panel_lane.h"
#include "simd/panel_layout.h"
#include "simd/products.h"
#include "simd/repack.h"

namespace kvasir::simd {
using quant::BlockType;

PanelKind panel_kind(BlockType type) noexcept {
  switch (type) {
    case BlockType::kF16:
      return PanelKind::kF16;
    case BlockType::kBF16:
      return PanelKind::kBF16;
    case BlockType::kQ8_0:
      return PanelKind::kQ8_0;
    case BlockType::kQ4_0:
      return PanelKind::kQ4_0;
    case BlockType::kQ4_1:
      return PanelKind::kQ4_1;
    case BlockType::kQ5_0:
      return PanelKind::kQ5_0;
    case BlockType::kQ5_1:
      return PanelKind::kQ5_1;
    case BlockType::kQ2_K:
      return PanelKind::kQ2_K;
    case BlockType::kQ3_K:
      return PanelKind::kQ3_K;
    case BlockType::kQ4_K:
      return PanelKind::kQ4_K;
    case BlockType::kQ5_K:
      return PanelKind::kQ5_K;
    case BlockType::kQ6_K:
      return PanelKind::kQ6_K;
    case BlockType::kIQ4_NL:
      return PanelKind::kIQ4_NL;
    case BlockType::kIQ4_XS:
      return PanelKind::kIQ4_XS;
    case BlockType::kMXFP4:
      return PanelKind::kMXFP4;
    case BlockType::kNVFP4:
      return PanelKind::kNVFP4;
    case BlockType::kIQ3_XXS:
      return PanelKind::kIQ3_XXS;
    case BlockType::kIQ3_S:
      return PanelKind::kIQ3_S;
    case BlockType::kIQ2_S:
      return PanelKind::kIQ2_S;
    case BlockType::kTQ1_0:
    case BlockType::kTQ2_0:
      return PanelKind::kTernary;
    default:
      return PanelKind::kF32;
  }
}

Result<Panels> Panels::without_memory(BlockType source, std::size_t rows, std::size_t columns) {
  const quant::BlockTypeInfo& info = quant::block_type_info(source);
  if (rows == 0 || columns == 0 || columns % info.values != 0) {
    return fail(Outcome::kInvalidArgument, "a weight matrix of " + std::to_string(rows) + " rows of " +
                                               std::to_string(columns) + " numbers cannot be of type " +
                                               std::string(info.name));
  }
  if (panel_kind(source) == PanelKind::kF32 && source != BlockType::kF32) {
    return fail(Outcome::kUnsupported, "weights of type " + std::string(info.name) + " cannot be read");
  }
  const auto values = base::checked_product<std::size_t>(rows, columns, std::size_t{8});
  if (!values) return fail(Outcome::kInvalidArgument, "a weight matrix is larger than memory can be");
  Panels panels;
  panels.source_ = source;
  panels.kind_ = panel_kind(source);
  panels.rows_ = rows;
  panels.columns_ = columns;
  panels.raw_row_bytes_ = columns / info.values * info.bytes;
  if (is_codes(panels.kind_)) {
    panels.panel_bytes_ = code_panel_bytes(recipe_of(panels.kind_), columns);
  } else {
    panels.side_by_side_ = panels.kind_ == PanelKind::kF32 ? 1 : 2;
    panels.panel_bytes_ = columns * kLine / panels.side_by_side_;
  }
  return panels;
}

std::size_t Panels::bytes_wanted() const noexcept {
  return base::div_up(panel_count(), side_by_side_) * side_by_side_ * panel_bytes_;
}

Result<Panels> Panels::allocate(BlockType source, std::size_t rows, std::size_t columns) {
  KVASIR_ASSIGN(Panels panels, without_memory(source, rows, columns));
  KVASIR_ASSIGN(panels.bytes_, base::Buffer::allocate_unset(panels.bytes_wanted()));
  return panels;
}

Result<Panels> Panels::allocate(BlockType source, std::size_t rows, std::size_t columns, base::Slab& slab) {
  KVASIR_ASSIGN(Panels panels, without_memory(source, rows, columns));
  KVASIR_ASSIGN(panels.bytes_, slab.take(panels.bytes_wanted()));
  return panels;
}

Status Panels::fill(std::size_t index, std::span<const std::byte> raw) {
  if (index >= panel_count()) return fail(Outcome::kInvalidArgument, "a panel beyond the matrix");
  const std::size_t count = std::min(kPanelRows, rows_ - index * kPanelRows);
  if (raw.size() != count * raw_row_bytes_) {
    return fail(Outcome::kInvalidArgument, "a panel of " + std::to_string(count) + " rows takes " +
                                               std::to_string(count * raw_row_bytes_) + " bytes, not " +
                                               std::to_string(raw.size()));
  }
  // Rows that there are not are zeros.
  std::vector<std::byte> whole;
  if (count < kPanelRows) {
    whole.resize(kPanelRows * raw_row_bytes_);
    std::ranges::copy(raw, whole.begin());
    raw = whole;
  }
  auto* panel = reinterpret_cast<std::uint8_t*>(bytes_.data()) + at(index);
  const RawRows rows{reinterpret_cast<const std::uint8_t*>(raw.data()), raw_row_bytes_};
  if (is_codes(kind_)) {
    put_codes(source_, rows, columns_, panel);
  } else if (kind_ == PanelKind::kF32) {
    put_floats(rows, columns_, panel);
  } else {
    put_halves(rows, columns_, panel);
  }
  return {};
}

void Panels::read_row(std::size_t row, std::span<float> out) const noexcept {
  if (is_codes(kind_)) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(panel(row / kPanelRows));
    return read_codes({bytes, kind_, row % kPanelRows}, out);
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): decoding fills what is read of it
  alignas(64) std::array<float, kDecodeColumns * kPanelRows> tile;
  for (std::size_t k = 0; k < columns_; k += kDecodeColumns) {
    const std::size_t count = std::min(kDecodeColumns, columns_ - k);
    decode_tile(*this, row / kPanelRows, k, count, tile.data());
    for (std::size_t i = 0; i < count; ++i) out[k + i] = tile[i * kPanelRows + row % kPanelRows];
  }
}

}  // namespace kvasir::simd
