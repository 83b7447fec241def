#include "simd/panel_lane.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "quant/codebooks.h"
#include "quant/codec.h"
#include "quant/half.h"

namespace kvasir::simd {
namespace {

constexpr std::uint32_t in_each_byte(std::uint32_t bits) {
  return bits * 0x0101'0101U;
}

// Codes go four at a time, those of k, k + 1, k + 2, k + 3 in the bytes of a word, the lowest first; and
// sixteen rows at a time, so that what is written of a panel is written from its start to its end.
using Words = std::array<std::uint32_t, kPanelRows>;

template <class Change>
Words changed(const Words& words, const Change& change) {
  Words out;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t row = 0; row < kPanelRows; ++row) out[row] = change(words[row]);
  return out;
}

template <class Merge>
Words merged(const Words& a, const Words& b, const Merge& merge) {
  Words out;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t row = 0; row < kPanelRows; ++row) out[row] = merge(a[row], b[row]);
  return out;
}

// `mask` of the words' bytes, moved right by `shift` first.
Words field(const Words& words, std::size_t shift, std::uint32_t mask) {
  return changed(words, [&](std::uint32_t word) { return (word >> shift) & in_each_byte(mask); });
}

Words either(const Words& a, const Words& b) {
  return merged(a, b, [](std::uint32_t x, std::uint32_t y) { return x | y; });
}

// One block of each row, as in the file.
class RawBlocks {
 public:
  RawBlocks(const RawRows& rows, std::size_t at) : first_(rows.data + at), rows_(&rows) {}

  [[nodiscard]] std::size_t rows() const { return rows_->count; }
  [[nodiscard]] const std::uint8_t* of(std::size_t row) const { return first_ + row * rows_->stride; }

  // The words at an offset of every row's block; 0 of rows that there are not.
  [[nodiscard]] Words words(std::size_t offset) const {
    Words out{};
    for (std::size_t row = 0; row < rows(); ++row) out[row] = quant::load_u32(of(row) + offset);
    return out;
  }

 private:
  const std::uint8_t* first_;
  const RawRows* rows_;
};

// Writes into a panel of zeros.
template <PanelKind kKind>
class PanelWriter {
 public:
  static constexpr CodeRecipe kRecipe = recipe_of(kKind);
  static constexpr BlockLayout kLayout = block_layout(kRecipe);

  explicit PanelWriter(std::uint8_t* panel) : panel_(panel) {}

  // k is a multiple of 4.
  void codes(std::size_t k, const Words& four) const {
    constexpr std::size_t kBits = kRecipe.bits;
    const std::size_t in = k % 32;
    if constexpr (kBits == 8) {
      add(k, in / 4, four, 0xFF, 0);
    } else if constexpr (kBits >= 4) {
      add(k, nibble_line(kBits, in / 8), four, 15, in % 8);
      if constexpr (kBits == 5) add(k, 0, field(four, 4, 1), 1, in / 4);
      if constexpr (kBits == 6) add(k, pair_line(kBits, in / 16), field(four, 4, 3), 3, in % 16 / 4 * 2);
    } else {
      add(k, pair_line(kBits, in / 16), four, 3, in % 16 / 4 * 2);
      if constexpr (kBits == 3) add(k, 0, field(four, 2, 1), 1, in / 4);
    }
  }
  // A row's bytes of what belongs to k.
  [[nodiscard]] std::uint8_t* scale(std::size_t k, std::size_t row) const {
    return panel_ + kLayout.scale(k) + row * (kRecipe.scale == ScaleForm::kExponent ? 1 : 2);
  }
  [[nodiscard]] std::uint8_t* offset(std::size_t k, std::size_t row) const {
    return panel_ + kLayout.offset(k) + row * 2;
  }
  [[nodiscard]] std::uint8_t& sub_scale(std::size_t k, std::size_t row) const {
    return panel_[kLayout.sub_scale(k) + row];
  }
  [[nodiscard]] std::uint8_t& sub_offset(std::size_t k, std::size_t row) const {
    return panel_[kLayout.sub_offset_pair(k) + row * 2 + k / kRecipe.sub % 2];
  }

 private:
  // Adds the masked bits of the words, moved left, to a line.
  void add(std::size_t k, std::size_t line, const Words& words, std::uint32_t mask, std::size_t left) const {
    std::uint8_t* const to = panel_ + kLayout.line(k, line);
    Words sum;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
    std::memcpy(&sum, to, sizeof(sum));
    for (std::size_t row = 0; row < kPanelRows; ++row) sum[row] |= (words[row] & in_each_byte(mask)) << left;
    std::memcpy(to, &sum, sizeof(sum));
  }

  std::uint8_t* panel_;
};

// The lowest four bits, one to each byte, as the fifth bits of codes.
std::uint32_t fifth_bits(std::uint32_t bits) {
  return ((bits & 1U) | (bits & 2U) << 7 | (bits & 4U) << 14 | (bits & 8U) << 21) << 4;
}

// The blocks of 32 numbers. Of nibbles, byte j holds number j low and j + 16 high; a fifth bit is bit j of a
// word. What a block holds before its nibbles: a scale, an offset, the word.
template <PanelKind kKind>
void put_simple(const RawBlocks& from, std::size_t k, const PanelWriter<kKind>& to) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  constexpr bool kExponent = kRecipe.scale == ScaleForm::kExponent;
  constexpr std::size_t kScaleBytes = kExponent ? 1 : kRecipe.offsets ? 4 : 2;
  for (std::size_t row = 0; row < from.rows(); ++row) {
    std::memcpy(to.scale(k, row), from.of(row), kExponent ? 1 : 2);
    if constexpr (kRecipe.offsets) std::memcpy(to.offset(k, row), from.of(row) + 2, 2);
  }
  if constexpr (kRecipe.bits == 8) {
    for (std::size_t i = 0; i < 32; i += 4) {
      const Words four = from.words(kScaleBytes + i);
      to.codes(k + i, changed(four, [](std::uint32_t word) { return word ^ in_each_byte(0x80); }));
    }
  } else {
    constexpr std::size_t kCodes = kScaleBytes + (kRecipe.bits == 5 ? 4 : 0);
    const Words fifth = kRecipe.bits == 5 ? from.words(kScaleBytes) : Words{};
    const auto fifths = [&](std::size_t j) {
      return changed(fifth, [&](std::uint32_t word) { return fifth_bits(word >> j); });
    };
    for (std::size_t j = 0; j < 16; j += 4) {
      const Words both = from.words(kCodes + j);
      Words low = field(both, 0, 15);
      Words high = field(both, 4, 15);
      if constexpr (kRecipe.bits == 5) {
        low = either(low, fifths(j));
        high = either(high, fifths(j + 16));
      }
      to.codes(k + j, low);
      to.codes(k + j + 16, high);
    }
  }
}

// What sub-blocks of a K type's block have of their own.
struct SubNumbers {
  std::array<std::uint8_t, 16> scales{};  // signed
  std::array<std::uint8_t, 16> offsets{};
};

// The layouts of the blocks are described where quant/unpack_k.cc and unpack_codebook.cc read them. Of each:
// its bytes, where scale and offset stand, the numbers of its sub-blocks, and the codes of k, ..., k + 3 of
// all rows.

struct Q2Blocks {
  static constexpr std::size_t kBytes = 84, kScale = 80, kOffset = 82;
  static void take(const std::uint8_t* block, SubNumbers& out) {
    for (std::size_t i = 0; i < 16; ++i) {
      out.scales[i] = block[i] & 15U;
      out.offsets[i] = block[i] >> 4;
    }
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    return field(from.words(16 + k / 128 * 32 + k % 32), k % 128 / 32 * 2, 3);
  }
};

struct Q3Blocks {
  static constexpr std::size_t kBytes = 110, kScale = 108;
  static void take(const std::uint8_t* block, SubNumbers& out) {
    const std::uint8_t* packed = block + 96;
    for (std::size_t i = 0; i < 16; ++i) {
      const unsigned low = i < 8 ? packed[i] & 15U : packed[i - 8] >> 4U;
      const unsigned top = (packed[8 + i % 4] >> (2 * (i / 4))) & 3U;
      out.scales[i] = static_cast<std::uint8_t>((low | (top << 4)) - 32U);
    }
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    const Words third = field(from.words(k % 32), k / 32, 1);
    return merged(field(from.words(32 + k / 128 * 32 + k % 32), k % 128 / 32 * 2, 3), third,
                  [](std::uint32_t low, std::uint32_t high) { return low | high << 2; });
  }
};

void take_six_bit_pairs(const std::uint8_t* block, SubNumbers& out) {
  const quant::SixBitPairs pairs = quant::load_six_bit_pairs(block + 4);
  for (std::size_t i = 0; i < 8; ++i) {
    out.scales[i] = static_cast<std::uint8_t>(pairs.scales[i]);
    out.offsets[i] = static_cast<std::uint8_t>(pairs.mins[i]);
  }
}

struct Q4Blocks {
  static constexpr std::size_t kBytes = 144, kScale = 0, kOffset = 2;
  static void take(const std::uint8_t* block, SubNumbers& out) { take_six_bit_pairs(block, out); }
  static Words codes(const RawBlocks& from, std::size_t k) {
    return field(from.words(16 + k / 64 * 32 + k % 32), k % 64 / 32 * 4, 15);
  }
};

struct Q5Blocks {
  static constexpr std::size_t kBytes = 176, kScale = 0, kOffset = 2;
  static void take(const std::uint8_t* block, SubNumbers& out) { take_six_bit_pairs(block, out); }
  static Words codes(const RawBlocks& from, std::size_t k) {
    const Words fifth = field(from.words(16 + k % 32), k / 32, 1);
    return merged(field(from.words(48 + k / 64 * 32 + k % 32), k % 64 / 32 * 4, 15), fifth,
                  [](std::uint32_t low, std::uint32_t high) { return low | high << 4; });
  }
};

struct Q6Blocks {
  static constexpr std::size_t kBytes = 210, kScale = 208;
  static void take(const std::uint8_t* block, SubNumbers& out) {
    std::copy_n(block + 192, 16, out.scales.begin());
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    const Words top = field(from.words(128 + k / 128 * 32 + k % 32), k % 128 / 32 * 2, 3);
    return merged(field(from.words(k / 128 * 64 + k % 64), k % 128 / 64 * 4, 15), top,
                  [](std::uint32_t low, std::uint32_t high) { return low | high << 4; });
  }
};

struct NonLinear4Blocks {
  static constexpr std::size_t kBytes = 136, kScale = 0;
  static void take(const std::uint8_t* block, SubNumbers& out) {
    const std::uint16_t top = quant::load_u16(block + 2);
    for (std::size_t i = 0; i < 8; ++i) {
      const unsigned low = (block[4 + i / 2] >> (4 * (i % 2))) & 15U;
      out.scales[i] = static_cast<std::uint8_t>((low | (((top >> (2 * i)) & 3U) << 4)) - 32U);
    }
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    return field(from.words(8 + k / 32 * 16 + k % 16), k % 32 / 16 * 4, 15);
  }
};

// The codes of four numbers of a grid: the levels of a point, `bits` each, and their signs.
std::uint32_t levels_with_signs(unsigned point, std::size_t bits, unsigned signs) {
  std::uint32_t four = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    const std::uint32_t level = (point >> (j * bits)) & ((1U << bits) - 1U) & 7U;
    four |= (level | ((signs >> j) & 1U) << 3) << (8 * j);
  }
  return four;
}

// A sub-block's scale, 1 and twice its nibble.
std::uint8_t odd_scale(const std::uint8_t* nibbles, std::size_t sub) {
  return static_cast<std::uint8_t>(2 * ((nibbles[sub / 2] >> (4 * (sub % 2))) & 15) + 1);
}

// Calls four(block) for the block of every row.
template <class Four>
Words of_rows(const RawBlocks& from, const Four& four) {
  Words out{};
  for (std::size_t row = 0; row < from.rows(); ++row) out[row] = four(from.of(row));
  return out;
}

struct Grid3XxsBlocks {
  static constexpr std::size_t kBytes = 98, kScale = 0;
  static std::uint32_t word(const std::uint8_t* block, std::size_t i) {
    return quant::load_u32(block + 66 + 4 * i);
  }
  static void take(const std::uint8_t* block, SubNumbers& out) {
    for (std::size_t i = 0; i < 8; ++i)
      out.scales[i] = static_cast<std::uint8_t>(2 * (word(block, i) >> 28) + 1);
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    return of_rows(from, [k](const std::uint8_t* block) {
      const unsigned seven = (word(block, k / 32) >> (k % 32 / 8 * 7)) & 127U;
      const unsigned signs = seven | (static_cast<unsigned>(std::popcount(seven)) & 1U) << 7;
      return levels_with_signs(quant::kGridIq3Xxs[block[2 + k / 4]], 4, signs >> (k % 8));
    });
  }
};

struct Grid3SBlocks {
  static constexpr std::size_t kBytes = 110, kScale = 0;
  static void take(const std::uint8_t* block, SubNumbers& out) {
    for (std::size_t i = 0; i < 8; ++i) out.scales[i] = odd_scale(block + 106, i);
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    return of_rows(from, [k](const std::uint8_t* block) {
      const unsigned ninth = (unsigned{block[66 + k / 32]} >> (k % 32 / 4)) & 1U;
      return levels_with_signs(quant::kGridIq3S[block[2 + k / 4] | ninth << 8], 4,
                               unsigned{block[74 + k / 8]} >> (k % 8));
    });
  }
};

struct Grid2SBlocks {
  static constexpr std::size_t kBytes = 82, kScale = 0;
  static void take(const std::uint8_t* block, SubNumbers& out) {
    for (std::size_t i = 0; i < 16; ++i) out.scales[i] = odd_scale(block + 74, i);
  }
  static Words codes(const RawBlocks& from, std::size_t k) {
    return of_rows(from, [k](const std::uint8_t* block) {
      const unsigned top = (unsigned{block[66 + k / 32]} >> (k % 32 / 8 * 2)) & 3U;
      const unsigned point = quant::kGridIq2S[block[2 + k / 8] | top << 8];
      return levels_with_signs(point >> (k % 8 * 2), 2, unsigned{block[34 + k / 8]} >> (k % 8));
    });
  }
};

// Four scales of 16 numbers each, floats of eight bits that halves hold exactly, then their nibbles.
void put_small_floats(const RawBlocks& from, std::size_t k, const PanelWriter<PanelKind::kNVFP4>& to) {
  for (std::size_t row = 0; row < from.rows(); ++row) {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint16_t scale = quant::float_to_half(quant::half_float8(from.of(row)[i]));
      std::memcpy(to.scale(k + 16 * i, row), &scale, sizeof(scale));
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 8; j += 4) {
      const Words both = from.words(4 + 8 * i + j);
      to.codes(k + 16 * i + j, field(both, 0, 15));
      to.codes(k + 16 * i + j + 8, field(both, 4, 15));
    }
  }
}

template <class Blocks, PanelKind kKind>
void put_super(const RawBlocks& from, std::size_t k, const PanelWriter<kKind>& to) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  for (std::size_t row = 0; row < from.rows(); ++row) {
    const std::uint8_t* const block = from.of(row);
    SubNumbers subs;
    Blocks::take(block, subs);
    std::memcpy(to.scale(k, row), block + Blocks::kScale, 2);
    if constexpr (kRecipe.offsets) std::memcpy(to.offset(k, row), block + Blocks::kOffset, 2);
    for (std::size_t i = 0; i < kSuperBlock / kRecipe.sub; ++i) {
      to.sub_scale(k + i * kRecipe.sub, row) = subs.scales[i];
      if constexpr (kRecipe.offsets) to.sub_offset(k + i * kRecipe.sub, row) = subs.offsets[i];
    }
  }
  for (std::size_t i = 0; i < kSuperBlock; i += 4) to.codes(k + i, Blocks::codes(from, i));
}

template <PanelKind kKind>
void put_simple_rows(const RawRows& rows, std::size_t columns, const PanelWriter<kKind>& to) {
  const std::size_t bytes = rows.stride / (columns / 32);
  for (std::size_t k = 0; k < columns; k += 32) put_simple(RawBlocks(rows, k / 32 * bytes), k, to);
}

template <class Blocks, PanelKind kKind>
void put_super_rows(const RawRows& rows, std::size_t columns, const PanelWriter<kKind>& to) {
  for (std::size_t k = 0; k < columns; k += kSuperBlock)
    put_super<Blocks>(RawBlocks(rows, k / kSuperBlock * Blocks::kBytes), k, to);
}

}  // namespace

unsigned PanelLane::code(std::size_t k) const {
  const std::size_t in = k % 32;
  const auto bit = [&] { return bits(k, 0, in / 4, 1); };
  const auto pair = [&] { return bits(k, pair_line(recipe_.bits, in / 16), in % 16 / 4 * 2, 3); };
  if (recipe_.bits == 8) return bits(k, in / 4, 0, 0xFF);
  if (recipe_.bits == 2) return pair();
  if (recipe_.bits == 3) return pair() | bit() << 2;
  const unsigned nibble = bits(k, nibble_line(recipe_.bits, in / 8), in % 8 / 4 * 4, 15);
  if (recipe_.bits == 5) return nibble | bit() << 4;
  if (recipe_.bits == 6) return nibble | pair() << 4;
  return nibble;
}

void put_codes(PanelKind kind, const RawRows& rows, std::size_t columns, std::uint8_t* panel) {
  switch (kind) {
    case PanelKind::kQ8_0:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kQ8_0>(panel));
    case PanelKind::kQ4_0:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kQ4_0>(panel));
    case PanelKind::kQ4_1:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kQ4_1>(panel));
    case PanelKind::kQ5_0:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kQ5_0>(panel));
    case PanelKind::kQ5_1:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kQ5_1>(panel));
    case PanelKind::kQ2_K:
      return put_super_rows<Q2Blocks>(rows, columns, PanelWriter<PanelKind::kQ2_K>(panel));
    case PanelKind::kQ3_K:
      return put_super_rows<Q3Blocks>(rows, columns, PanelWriter<PanelKind::kQ3_K>(panel));
    case PanelKind::kQ4_K:
      return put_super_rows<Q4Blocks>(rows, columns, PanelWriter<PanelKind::kQ4_K>(panel));
    case PanelKind::kQ5_K:
      return put_super_rows<Q5Blocks>(rows, columns, PanelWriter<PanelKind::kQ5_K>(panel));
    case PanelKind::kQ6_K:
      return put_super_rows<Q6Blocks>(rows, columns, PanelWriter<PanelKind::kQ6_K>(panel));
    case PanelKind::kIQ4_NL:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kIQ4_NL>(panel));
    case PanelKind::kIQ4_XS:
      return put_super_rows<NonLinear4Blocks>(rows, columns, PanelWriter<PanelKind::kIQ4_XS>(panel));
    case PanelKind::kMXFP4:
      return put_simple_rows(rows, columns, PanelWriter<PanelKind::kMXFP4>(panel));
    case PanelKind::kNVFP4:
      for (std::size_t k = 0; k < columns; k += 64)
        put_small_floats(RawBlocks(rows, k / 64 * 36), k, PanelWriter<PanelKind::kNVFP4>(panel));
      return;
    case PanelKind::kIQ3_XXS:
      return put_super_rows<Grid3XxsBlocks>(rows, columns, PanelWriter<PanelKind::kIQ3_XXS>(panel));
    case PanelKind::kIQ3_S:
      return put_super_rows<Grid3SBlocks>(rows, columns, PanelWriter<PanelKind::kIQ3_S>(panel));
    case PanelKind::kIQ2_S:
      return put_super_rows<Grid2SBlocks>(rows, columns, PanelWriter<PanelKind::kIQ2_S>(panel));
    case PanelKind::kF32:
    case PanelKind::kF16:
    case PanelKind::kBF16:
      return;
  }
}

void read_sub_block(const PanelLane& lane, std::size_t sub, SubBlock& out) noexcept {
  const CodeRecipe& recipe = lane.recipe();
  const std::size_t k = sub * recipe.sub;
  out.offset = 0;
  if (recipe.scale == ScaleForm::kSuper) {
    out.super_scale = quant::load_half(lane.scale(k)) * recipe.factor;
    out.sub_scale = static_cast<std::int8_t>(lane.sub_scale(k));
    out.scale = out.super_scale * static_cast<float>(out.sub_scale);
    if (recipe.offsets) {
      out.super_offset = quant::load_half(lane.offset(k));
      out.sub_offset = lane.sub_offset(k);
      out.offset = -(out.super_offset * static_cast<float>(out.sub_offset));
    }
  } else if (recipe.scale == ScaleForm::kExponent) {
    out.scale = quant::half_power_of_two(lane.exponent(k));
  } else {
    out.scale = quant::load_half(lane.scale(k));
    if (recipe.offsets) out.offset = quant::load_half(lane.offset(k));
  }
  const std::array<std::int8_t, 16> numbers = numbers_of(recipe.table);
  for (std::size_t i = 0; i < recipe.sub; ++i) {
    const unsigned code = lane.code(k + i);
    const int number =
        recipe.table != CodeTable::kNone ? numbers[code] : static_cast<int>(code) - recipe.zero();
    out.codes[i] = static_cast<std::int16_t>(number);
  }
}

void read_codes(const PanelLane& lane, std::span<float> out) noexcept {
  const CodeRecipe& recipe = lane.recipe();
  SubBlock block;
  for (std::size_t sub = 0; sub < out.size() / recipe.sub; ++sub) {
    read_sub_block(lane, sub, block);
    for (std::size_t i = 0; i < recipe.sub; ++i) {
      const float number = block.scale * static_cast<float>(block.codes[i]);
      out[sub * recipe.sub + i] = recipe.offsets ? number + block.offset : number;
    }
  }
}

}  // namespace kvasir::simd
