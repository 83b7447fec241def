#include "simd/panels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/try.h"
#include "simd/products.h"

namespace kvasir::simd {
namespace {

using quant::BlockType;

constexpr std::size_t kSuper = 256;  // values in a block of a K-quant
constexpr std::size_t kAlign = 64;

PanelKind kind_of(BlockType type) {
  switch (type) {
    case BlockType::kF16:
      return PanelKind::kF16;
    case BlockType::kBF16:
      return PanelKind::kBF16;
    case BlockType::kQ8_0:
      return PanelKind::kQ8_0;
    case BlockType::kQ4_0:
      return PanelKind::kQ4_0;
    case BlockType::kQ4_K:
      return PanelKind::kQ4_K;
    case BlockType::kQ6_K:
      return PanelKind::kQ6_K;
    default:
      return PanelKind::kF32;
  }
}

// Lays arrays one behind the other, each aligned.
class LayoutBuilder {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t at = end_;
    end_ += base::div_up(bytes, kAlign) * kAlign;
    return at;
  }
  [[nodiscard]] std::size_t end() const { return end_; }

 private:
  std::size_t end_ = 0;
};

PanelLayout layout_of(PanelKind kind, std::size_t columns) {
  LayoutBuilder builder;
  PanelLayout layout;
  const std::size_t values = columns * kPanelRows;
  const auto half_per = [&](std::size_t k) { return builder.add(values / k * 2); };
  const auto byte_per = [&](std::size_t k) { return builder.add(values / k); };
  switch (kind) {
    case PanelKind::kF32:
      layout.quants = builder.add(values * 4);
      break;
    case PanelKind::kF16:
    case PanelKind::kBF16:
      layout.quants = builder.add(values * 2);
      break;
    case PanelKind::kQ8_0:
      layout.quants = builder.add(values);
      layout.scales = half_per(32);
      break;
    case PanelKind::kQ4_0:
      layout.quants = builder.add(values / 2);
      layout.scales = half_per(32);
      break;
    case PanelKind::kQ4_K:
      layout.quants = builder.add(values / 2);
      layout.scales = half_per(kSuper);
      layout.mins = half_per(kSuper);
      layout.sub_scales = byte_per(32);
      layout.sub_mins = byte_per(32);
      break;
    case PanelKind::kQ6_K:
      layout.quants = builder.add(values / 2);
      layout.high_bits = builder.add(values / 4);
      layout.scales = half_per(kSuper);
      layout.sub_scales = byte_per(16);
      break;
  }
  layout.bytes = builder.end();
  return layout;
}

// Where the parts of one row's numbers go inside its panel.
class LaneWriter {
 public:
  LaneWriter(std::byte* panel, const PanelLayout& layout, std::size_t lane)
      : panel_(reinterpret_cast<std::uint8_t*>(panel)), layout_(layout), lane_(lane) {}

  void element(std::size_t k, const std::uint8_t* bytes, std::size_t width) {
    std::memcpy(panel_ + layout_.quants + (k * kPanelRows + lane_) * width, bytes, width);
  }
  void byte(std::size_t k, std::uint8_t q) {
    panel_[layout_.quants + (k / 4 * kPanelRows + lane_) * 4 + k % 4] = q;
  }
  void nibble(std::size_t k, unsigned q) {
    panel_[layout_.quants + (k / 8 * kPanelRows + lane_) * 4 + k % 4] |=
        static_cast<std::uint8_t>(q << (k % 8 < 4 ? 0 : 4));
  }
  void high_pair(std::size_t k, unsigned q) {
    panel_[layout_.high_bits + (k / 16 * kPanelRows + lane_) * 4 + k % 4] |=
        static_cast<std::uint8_t>(q << (k % 16 / 4 * 2));
  }
  void scale(std::size_t block, const std::uint8_t* half) { put_half(layout_.scales, block, half); }
  void min(std::size_t block, const std::uint8_t* half) { put_half(layout_.mins, block, half); }
  void sub_scale(std::size_t block, std::uint8_t v) {
    panel_[layout_.sub_scales + block * kPanelRows + lane_] = v;
  }
  void sub_min(std::size_t block, std::uint8_t v) {
    panel_[layout_.sub_mins + block * kPanelRows + lane_] = v;
  }

 private:
  void put_half(std::size_t array, std::size_t block, const std::uint8_t* half) {
    std::memcpy(panel_ + array + (block * kPanelRows + lane_) * 2, half, 2);
  }
  std::uint8_t* panel_;
  const PanelLayout& layout_;
  std::size_t lane_;
};

void put_elements(LaneWriter& lane, const std::uint8_t* row, std::size_t columns, std::size_t width) {
  for (std::size_t k = 0; k < columns; ++k) lane.element(k, row + k * width, width);
}

void put_q8_0(LaneWriter& lane, const std::uint8_t* row, std::size_t columns) {
  for (std::size_t block = 0; block < columns / 32; ++block, row += 34) {
    lane.scale(block, row);
    for (std::size_t i = 0; i < 32; ++i) lane.byte(block * 32 + i, row[2 + i]);
  }
}

void put_q4_0(LaneWriter& lane, const std::uint8_t* row, std::size_t columns) {
  for (std::size_t block = 0; block < columns / 32; ++block, row += 18) {
    lane.scale(block, row);
    for (std::size_t i = 0; i < 16; ++i) {
      lane.nibble(block * 32 + i, row[2 + i] & 0xFu);
      lane.nibble(block * 32 + 16 + i, row[2 + i] >> 4u);
    }
  }
}

// Block of Q4_K: d, dmin, eight 6-bit scales and eight 6-bit mins in 12 bytes, 256 nibbles.
void put_q4_k(LaneWriter& lane, const std::uint8_t* row, std::size_t columns) {
  for (std::size_t super = 0; super < columns / kSuper; ++super, row += 144) {
    lane.scale(super, row);
    lane.min(super, row + 2);
    const std::uint8_t* packed = row + 4;
    for (std::size_t j = 0; j < 8; ++j) {
      const std::size_t sub = super * 8 + j;
      if (j < 4) {
        lane.sub_scale(sub, packed[j] & 63u);
        lane.sub_min(sub, packed[j + 4] & 63u);
      } else {
        lane.sub_scale(sub, static_cast<std::uint8_t>((packed[j + 4] & 0xFu) | (packed[j - 4] >> 6u << 4u)));
        lane.sub_min(sub, static_cast<std::uint8_t>((packed[j + 4] >> 4u) | (packed[j] >> 6u << 4u)));
      }
    }
    const std::uint8_t* quants = row + 16;
    for (std::size_t i = 0; i < 128; ++i) {
      const std::size_t k = super * kSuper + i / 32 * 64 + i % 32;
      lane.nibble(k, quants[i] & 0xFu);
      lane.nibble(k + 32, quants[i] >> 4u);
    }
  }
}

// Block of Q6_K: 128 bytes of low nibbles, 64 bytes of high pairs, sixteen signed scales, d.
void put_q6_k(LaneWriter& lane, const std::uint8_t* row, std::size_t columns) {
  for (std::size_t super = 0; super < columns / kSuper; ++super, row += 210) {
    for (std::size_t i = 0; i < 128; ++i) {
      const std::size_t half = i / 64;
      const std::size_t k = super * kSuper + half * 128 + i % 64;
      lane.nibble(k, row[i] & 0xFu);
      lane.nibble(k + 64, row[i] >> 4u);
    }
    const std::uint8_t* high = row + 128;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t k = super * kSuper + i / 32 * 128 + i % 32;
      for (std::size_t part = 0; part < 4; ++part)
        lane.high_pair(k + part * 32, (high[i] >> (2 * part)) & 3u);
    }
    for (std::size_t j = 0; j < 16; ++j) lane.sub_scale(super * 16 + j, row[192 + j]);
    lane.scale(super, row + 208);
  }
}

}  // namespace

Result<Panels> Panels::allocate(BlockType source, std::size_t rows, std::size_t columns) {
  const quant::BlockTypeInfo& info = quant::block_type_info(source);
  if (rows == 0 || columns == 0 || columns % info.values != 0) {
    return fail(Outcome::kInvalidArgument, "a weight matrix of " + std::to_string(rows) + " rows of " +
                                               std::to_string(columns) + " numbers cannot be of type " +
                                               std::string(info.name));
  }
  if (!info.unpacks) {
    return fail(Outcome::kUnsupported, "weights of type " + std::string(info.name) + " cannot be read");
  }
  const auto values = base::checked_product<std::size_t>(rows, columns, std::size_t{8});
  if (!values) return fail(Outcome::kInvalidArgument, "a weight matrix is larger than memory can be");
  Panels panels;
  panels.source_ = source;
  panels.kind_ = kind_of(source);
  panels.rows_ = rows;
  panels.columns_ = columns;
  panels.raw_row_bytes_ = columns / info.values * info.bytes;
  panels.layout_ = layout_of(panels.kind_, columns);
  KVASIR_ASSIGN(panels.bytes_, base::Buffer::allocate(panels.panel_count() * panels.layout_.bytes));
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
  std::byte* panel = bytes_.data() + index * layout_.bytes;
  std::memset(panel, 0, layout_.bytes);
  std::vector<float> unpacked;
  for (std::size_t lane = 0; lane < count; ++lane) {
    LaneWriter writer(panel, layout_, lane);
    const std::span<const std::byte> row = raw.subspan(lane * raw_row_bytes_, raw_row_bytes_);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(row.data());
    switch (kind_) {
      case PanelKind::kF16:
      case PanelKind::kBF16:
        put_elements(writer, bytes, columns_, 2);
        break;
      case PanelKind::kQ8_0:
        put_q8_0(writer, bytes, columns_);
        break;
      case PanelKind::kQ4_0:
        put_q4_0(writer, bytes, columns_);
        break;
      case PanelKind::kQ4_K:
        put_q4_k(writer, bytes, columns_);
        break;
      case PanelKind::kQ6_K:
        put_q6_k(writer, bytes, columns_);
        break;
      case PanelKind::kF32:
        unpacked.resize(columns_);
        KVASIR_TRY(quant::unpack(source_, row, unpacked));
        put_elements(writer, reinterpret_cast<const std::uint8_t*>(unpacked.data()), columns_, 4);
        break;
    }
  }
  return {};
}

void Panels::read_row(std::size_t row, std::span<float> out) const noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): decoding fills what is read of it
  alignas(64) std::array<float, kDecodeColumns * kPanelRows> tile;
  for (std::size_t k = 0; k < columns_; k += kDecodeColumns) {
    const std::size_t count = std::min(kDecodeColumns, columns_ - k);
    decode_tile(*this, row / kPanelRows, k, count, tile.data());
    for (std::size_t i = 0; i < count; ++i) out[k + i] = tile[i * kPanelRows + row % kPanelRows];
  }
}

}  // namespace kvasir::simd
