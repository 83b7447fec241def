#include "simd/panel_lane.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "quant/codebooks.h"
#include "quant/codec.h"

namespace kvasir::simd {
namespace {

using Lane = PanelLane<std::uint8_t>;

// Codes go four at a time: those of k, k + 1, k + 2, k + 3 in the bytes of a word, the lowest first.

constexpr std::uint32_t in_each_byte(std::uint32_t bits) {
  return bits * 0x0101'0101U;
}

void add_word(std::uint8_t* to, std::uint32_t bits) {
  quant::store_u32(to, quant::load_u32(to) | bits);
}

// Puts codes of the recipe's bits; k is a multiple of 4.
class CodeWriter {
 public:
  CodeWriter(const Lane& lane, std::size_t bits) : lane_(lane), bits_(bits) {}

  void put(std::size_t k, std::uint32_t codes) const {
    const PanelLayout& layout = lane_.layout();
    if (bits_ == 8) return add_word(lane_.four(layout.quants, k / 4), codes);
    if (bits_ >= 4) {
      add_word(lane_.four(layout.quants, k / 8), (codes & in_each_byte(15)) << (k % 8));
      if (bits_ == 5) put_bits(k, codes >> 4);
      if (bits_ == 6) put_pairs(layout.high_bits, k, codes >> 4);
    } else {
      put_pairs(layout.quants, k, codes);
      if (bits_ == 3) put_bits(k, codes >> 2);
    }
  }

 private:
  void put_bits(std::size_t k, std::uint32_t codes) const {
    add_word(lane_.four(lane_.layout().high_bits, k / 32), (codes & in_each_byte(1)) << (k % 32 / 4));
  }
  void put_pairs(std::size_t array, std::size_t k, std::uint32_t codes) const {
    add_word(lane_.four(array, k / 16), (codes & in_each_byte(3)) << (k % 16 / 4 * 2));
  }
  const Lane& lane_;
  std::size_t bits_;
};

void put_half(const Lane& lane, std::size_t array, std::size_t block, const std::uint8_t* half) {
  std::memcpy(lane.half(array, block), half, 2);
}

// The lowest four bits, one to each byte, as the fifth bits of codes.
std::uint32_t fifth_bits(std::uint32_t bits) {
  return ((bits & 1U) | (bits & 2U) << 7 | (bits & 4U) << 14 | (bits & 8U) << 21) << 4;
}

// The blocks of 32 numbers. Of nibbles, byte j holds number j low and j + 16 high; a fifth bit is bit j of a
// word. What a block holds before its nibbles: a scale, an offset, the word.
void put_simple(PanelKind kind, const std::uint8_t* row, std::size_t columns, const Lane& lane) {
  const CodeRecipe recipe = recipe_of(kind);
  const CodeWriter codes(lane, recipe.bits);
  for (std::size_t block = 0; block < columns / 32; ++block) {
    if (recipe.scale == ScaleForm::kExponent) {
      lane.small(lane.layout().scales, block) = *row++;
    } else {
      put_half(lane, lane.layout().scales, block, row);
      row += 2;
    }
    if (recipe.offsets) {
      put_half(lane, lane.layout().offsets, block, row);
      row += 2;
    }
    const std::size_t k = block * 32;
    if (recipe.bits == 8) {
      for (std::size_t i = 0; i < 32; i += 4) codes.put(k + i, quant::load_u32(row + i) ^ in_each_byte(0x80));
      row += 32;
      continue;
    }
    const std::uint32_t fifth = recipe.bits == 5 ? quant::load_u32(row) : 0;
    if (recipe.bits == 5) row += 4;
    for (std::size_t j = 0; j < 16; j += 4) {
      const std::uint32_t both = quant::load_u32(row + j);
      codes.put(k + j, (both & in_each_byte(15)) | fifth_bits(fifth >> j));
      codes.put(k + j + 16, ((both >> 4) & in_each_byte(15)) | fifth_bits(fifth >> (j + 16)));
    }
    row += 16;
  }
}

// A block of a K type taken apart.
struct SuperBlock {
  std::array<std::uint32_t, kSuperBlock / 4> codes{};  // four in each
  std::array<std::uint8_t, 16> sub_scales{};           // signed
  std::array<std::uint8_t, 16> sub_offsets{};
  const std::uint8_t* scale = nullptr;
  const std::uint8_t* offset = nullptr;
};

// The layouts of the blocks are described where quant/unpack_k.cc and unpack_codebook.cc read them.

void take_q2_k(const std::uint8_t* block, SuperBlock& out) {
  for (std::size_t i = 0; i < 16; ++i) {
    out.sub_scales[i] = block[i] & 15U;
    out.sub_offsets[i] = block[i] >> 4;
  }
  for (std::size_t k = 0; k < kSuperBlock; k += 4) {
    out.codes[k / 4] =
        (quant::load_u32(block + 16 + k / 128 * 32 + k % 32) >> (k % 128 / 32 * 2)) & in_each_byte(3);
  }
  out.scale = block + 80;
  out.offset = block + 82;
}

void take_q3_k(const std::uint8_t* block, SuperBlock& out) {
  const std::uint8_t* packed = block + 96;
  for (std::size_t i = 0; i < 16; ++i) {
    const unsigned low = i < 8 ? packed[i] & 15U : packed[i - 8] >> 4U;
    const unsigned top = (packed[8 + i % 4] >> (2 * (i / 4))) & 3U;
    out.sub_scales[i] = static_cast<std::uint8_t>((low | (top << 4)) - 32U);
  }
  for (std::size_t k = 0; k < kSuperBlock; k += 4) {
    const std::uint32_t low = quant::load_u32(block + 32 + k / 128 * 32 + k % 32) >> (k % 128 / 32 * 2);
    const std::uint32_t third = quant::load_u32(block + k % 32) >> (k / 32);
    out.codes[k / 4] = (low & in_each_byte(3)) | (third & in_each_byte(1)) << 2;
  }
  out.scale = block + 108;
}

void take_six_bit_pairs(const std::uint8_t* block, SuperBlock& out) {
  const quant::SixBitPairs pairs = quant::load_six_bit_pairs(block + 4);
  for (std::size_t i = 0; i < 8; ++i) {
    out.sub_scales[i] = static_cast<std::uint8_t>(pairs.scales[i]);
    out.sub_offsets[i] = static_cast<std::uint8_t>(pairs.mins[i]);
  }
  out.scale = block;
  out.offset = block + 2;
}

void take_q4_k(const std::uint8_t* block, SuperBlock& out) {
  take_six_bit_pairs(block, out);
  for (std::size_t k = 0; k < kSuperBlock; k += 4) {
    out.codes[k / 4] =
        (quant::load_u32(block + 16 + k / 64 * 32 + k % 32) >> (k % 64 / 32 * 4)) & in_each_byte(15);
  }
}

void take_q5_k(const std::uint8_t* block, SuperBlock& out) {
  take_six_bit_pairs(block, out);
  for (std::size_t k = 0; k < kSuperBlock; k += 4) {
    const std::uint32_t low = quant::load_u32(block + 48 + k / 64 * 32 + k % 32) >> (k % 64 / 32 * 4);
    const std::uint32_t fifth = quant::load_u32(block + 16 + k % 32) >> (k / 32);
    out.codes[k / 4] = (low & in_each_byte(15)) | (fifth & in_each_byte(1)) << 4;
  }
}

void take_q6_k(const std::uint8_t* block, SuperBlock& out) {
  for (std::size_t k = 0; k < kSuperBlock; k += 4) {
    const std::uint32_t low = quant::load_u32(block + k / 128 * 64 + k % 64) >> (k % 128 / 64 * 4);
    const std::uint32_t top = quant::load_u32(block + 128 + k / 128 * 32 + k % 32) >> (k % 128 / 32 * 2);
    out.codes[k / 4] = (low & in_each_byte(15)) | (top & in_each_byte(3)) << 4;
  }
  std::copy_n(block + 192, 16, out.sub_scales.begin());
  out.scale = block + 208;
}

void take_iq4_xs(const std::uint8_t* block, SuperBlock& out) {
  const std::uint16_t top = quant::load_u16(block + 2);
  for (std::size_t i = 0; i < 8; ++i) {
    const unsigned low = (block[4 + i / 2] >> (4 * (i % 2))) & 15U;
    out.sub_scales[i] = static_cast<std::uint8_t>((low | (((top >> (2 * i)) & 3U) << 4)) - 32U);
  }
  for (std::size_t k = 0; k < kSuperBlock; k += 4) {
    out.codes[k / 4] =
        (quant::load_u32(block + 8 + k / 32 * 16 + k % 16) >> (k % 32 / 16 * 4)) & in_each_byte(15);
  }
  out.scale = block;
}

struct SuperForm {
  std::size_t bytes;
  void (*take)(const std::uint8_t* block, SuperBlock& out);
};

SuperForm super_form_of(PanelKind kind) {
  switch (kind) {
    case PanelKind::kQ2_K:
      return {84, take_q2_k};
    case PanelKind::kQ3_K:
      return {110, take_q3_k};
    case PanelKind::kQ4_K:
      return {144, take_q4_k};
    case PanelKind::kQ5_K:
      return {176, take_q5_k};
    case PanelKind::kQ6_K:
      return {210, take_q6_k};
    default:
      return {136, take_iq4_xs};
  }
}

void put_super(PanelKind kind, const std::uint8_t* row, std::size_t columns, const Lane& lane) {
  const CodeRecipe recipe = recipe_of(kind);
  const CodeWriter codes(lane, recipe.bits);
  const SuperForm form = super_form_of(kind);
  const std::size_t subs = kSuperBlock / recipe.sub;
  SuperBlock parts;
  for (std::size_t super = 0; super < columns / kSuperBlock; ++super, row += form.bytes) {
    form.take(row, parts);
    put_half(lane, lane.layout().scales, super, parts.scale);
    if (recipe.offsets) put_half(lane, lane.layout().offsets, super, parts.offset);
    for (std::size_t i = 0; i < subs; ++i) {
      lane.small(lane.layout().sub_scales, super * subs + i) = parts.sub_scales[i];
      if (recipe.offsets) lane.small(lane.layout().sub_offsets, super * subs + i) = parts.sub_offsets[i];
    }
    for (std::size_t k = 0; k < kSuperBlock; k += 4) codes.put(super * kSuperBlock + k, parts.codes[k / 4]);
  }
}

unsigned code_at(const PanelLane<const std::uint8_t>& lane, std::size_t bits, std::size_t k) {
  const PanelLayout& layout = lane.layout();
  const auto bit = [&] { return (lane.four(layout.high_bits, k / 32)[k % 4] >> (k % 32 / 4)) & 1U; };
  const auto pair = [&](std::size_t array) {
    return (lane.four(array, k / 16)[k % 4] >> (k % 16 / 4 * 2)) & 3U;
  };
  if (bits == 8) return lane.four(layout.quants, k / 4)[k % 4];
  if (bits == 2) return pair(layout.quants);
  if (bits == 3) return pair(layout.quants) | bit() << 2;
  const unsigned low = (lane.four(layout.quants, k / 8)[k % 4] >> (k % 8 / 4 * 4)) & 15U;
  if (bits == 5) return low | bit() << 4;
  if (bits == 6) return low | pair(layout.high_bits) << 4;
  return low;
}

int number_of(const CodeRecipe& recipe, unsigned code) {
  if (recipe.table == CodeTable::kNonLinear4) return quant::kNonLinear4[code];
  if (recipe.table == CodeTable::kTwiceFloat4) return quant::kTwiceFloat4[code];
  return static_cast<int>(code) - recipe.zero();
}

}  // namespace

void put_codes(PanelKind kind, const std::uint8_t* row, std::size_t columns,
               const PanelLane<std::uint8_t>& lane) {
  if (recipe_of(kind).scale == ScaleForm::kSuper) {
    put_super(kind, row, columns, lane);
  } else {
    put_simple(kind, row, columns, lane);
  }
}

void read_sub_block(PanelKind kind, const PanelLane<const std::uint8_t>& lane, std::size_t sub,
                    SubBlock& out) noexcept {
  const CodeRecipe recipe = recipe_of(kind);
  const PanelLayout& layout = lane.layout();
  out.offset = 0;
  if (recipe.scale == ScaleForm::kSuper) {
    const std::size_t super = sub * recipe.sub / kSuperBlock;
    const auto sub_scale = static_cast<std::int8_t>(lane.small(layout.sub_scales, sub));
    out.scale = quant::load_half(lane.half(layout.scales, super)) * static_cast<float>(sub_scale);
    if (recipe.offsets) {
      out.offset = -(quant::load_half(lane.half(layout.offsets, super)) *
                     static_cast<float>(lane.small(layout.sub_offsets, sub)));
    }
  } else if (recipe.scale == ScaleForm::kExponent) {
    out.scale = quant::half_power_of_two(lane.small(layout.scales, sub));
  } else {
    out.scale = quant::load_half(lane.half(layout.scales, sub));
    if (recipe.offsets) out.offset = quant::load_half(lane.half(layout.offsets, sub));
  }
  for (std::size_t i = 0; i < recipe.sub; ++i) {
    out.codes[i] =
        static_cast<std::int16_t>(number_of(recipe, code_at(lane, recipe.bits, sub * recipe.sub + i)));
  }
}

void read_codes(PanelKind kind, const PanelLane<const std::uint8_t>& lane, std::span<float> out) noexcept {
  const CodeRecipe recipe = recipe_of(kind);
  SubBlock block;
  for (std::size_t sub = 0; sub < out.size() / recipe.sub; ++sub) {
    read_sub_block(kind, lane, sub, block);
    for (std::size_t i = 0; i < recipe.sub; ++i) {
      const float number = block.scale * static_cast<float>(block.codes[i]);
      out[sub * recipe.sub + i] = recipe.offsets ? number + block.offset : number;
    }
  }
}

}  // namespace kvasir::simd
