#include "simd/repack.h"

#include <bit>
#include <cstring>
#include <utility>

#include "quant/codebooks.h"
#include "quant/codec.h"
#include "quant/half.h"
#include "simd/panel_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/repack.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

using quant::BlockType;

// One block of each row, as in the file.
class RawBlocks {
 public:
  RawBlocks(const RawRows& rows, std::size_t at) : first_(rows.data + at), stride_(rows.stride) {}

  [[nodiscard]] HWY_INLINE const std::uint8_t* Of(std::size_t row) const { return first_ + row * stride_; }
  [[nodiscard]] HWY_INLINE Run<4> Sixteen(std::size_t at) const { return LoadSixteen(first_ + at, stride_); }
  [[nodiscard]] HWY_INLINE Codes ThirtyTwo(std::size_t at) const {
    return Joined(Sixteen(at), Sixteen(at + 16));
  }
  // word(block) of every row.
  template <class Word>
  [[nodiscard]] HWY_INLINE Words OfRows(const Word& word) const {
    alignas(64) std::uint32_t rows[16];
    for (std::size_t row = 0; row < 16; ++row) rows[row] = word(Of(row));
    return Load(rows);
  }

 private:
  const std::uint8_t* first_;
  std::size_t stride_;
};

template <PanelKind kKind>
class PanelWriter {
 public:
  static constexpr CodeRecipe kRecipe = recipe_of(kKind);
  static constexpr BlockLayout kLayout = block_layout(kRecipe);

  explicit PanelWriter(std::uint8_t* panel) : panel_(panel) {}

  // Of 32 numbers from k, a multiple of 32.
  HWY_INLINE void Put(std::size_t k, const Codes& codes) const {
    PutLines(k, codes, std::make_index_sequence<kRecipe.bits>());
  }

  // A shorter last block has scales that there are no codes for: zeros.
  void ClearEnd(std::size_t columns) const {
    if (columns % kSuperBlock != 0) std::memset(panel_ + kLayout.block(columns), 0, kLayout.codes);
  }

  // A row's scale and offset, of what k is among.
  [[nodiscard]] HWY_INLINE std::uint8_t* Scale(std::size_t k, std::size_t row) const {
    return panel_ + kLayout.scale(k) + row * (kRecipe.scale == ScaleForm::kExponent ? 1 : 2);
  }
  [[nodiscard]] HWY_INLINE std::uint8_t* Offset(std::size_t k, std::size_t row) const {
    return panel_ + kLayout.offset(k) + row * 2;
  }

  // Sub-scales and sub-offsets of the block of k, from sub-block `sub` on: one of each row, or four as the
  // bytes of words.
  HWY_INLINE void PutSubScale(std::size_t k, std::size_t sub, const Words& lowest) const {
    StoreBytes(lowest, panel_ + kLayout.sub_scale(k + sub * kRecipe.sub));
  }
  HWY_INLINE void PutFourSubScales(std::size_t k, std::size_t sub, const Words& bytes) const {
    for (std::size_t i = 0; i < 4; ++i) PutSubScale(k, sub + i, Right(bytes, 8 * i));
  }
  HWY_INLINE void PutFourSubOffsets(std::size_t k, std::size_t sub, const Words& bytes) const {
    for (std::size_t i = 0; i < 4; i += 2)
      StoreHalves(Right(bytes, 8 * i), panel_ + kLayout.sub_offset_pair(k + (sub + i) * kRecipe.sub));
  }

 private:
  template <std::size_t... kLines>
  HWY_INLINE void PutLines(std::size_t k, const Codes& codes,
                           std::index_sequence<kLines...> /*lines*/) const {
    (Store(LineOf<kLines>(codes, std::make_index_sequence<8>()), panel_ + kLayout.line(k, kLines)), ...);
  }
  template <std::size_t kIndex, std::size_t... kSteps>
  HWY_INLINE static Words LineOf(const Codes& codes, std::index_sequence<kSteps...> /*steps*/) {
    Words line = NoWords();
    ((AddPiece<kIndex, kSteps, 0>(codes, line), AddPiece<kIndex, kSteps, 1>(codes, line),
      AddPiece<kIndex, kSteps, 2>(codes, line)),
     ...);
    return line;
  }
  // A piece of a step's codes, where it belongs to the line.
  template <std::size_t kIndex, std::size_t kStep, std::size_t kPiece>
  HWY_INLINE static void AddPiece(const Codes& codes, Words& line) {
    constexpr CodePieces kPieces = code_pieces(kRecipe.bits, kStep);
    constexpr CodePiece kOne = kPieces.of[kPiece];
    if constexpr (kPiece < kPieces.count && kOne.line == kIndex)
      line = Or(line, Left(Field(codes.words[kStep], kOne.to, (1U << kOne.bits) - 1U), kOne.from));
  }

  std::uint8_t* panel_;
};

// The lowest four bits of words, one to each byte.
HWY_INLINE Words InBytes(const Words& bits) {
  return Or(Or(And(bits, 1), Left(And(bits, 2), 7)), Or(Left(And(bits, 4), 14), Left(And(bits, 8), 21)));
}

// The bits of a word, one to each of 32 numbers.
HWY_INLINE Codes InNumbers(const Words& bits) {
  Codes out;
  for (std::size_t i = 0; i < 8; ++i) out.words[i] = InBytes(Right(bits, 4 * i));
  return out;
}

// The blocks of 32 numbers. What a block holds before its codes: a scale, an offset, fifth bits as bit j of a
// word.
template <PanelKind kKind>
HWY_INLINE void PutSimple(const RawBlocks& from, std::size_t k, const PanelWriter<kKind>& to) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  constexpr bool kExponent = kRecipe.scale == ScaleForm::kExponent;
  constexpr std::size_t kScaleBytes = kExponent ? 1 : kRecipe.offsets ? 4 : 2;
  for (std::size_t row = 0; row < 16; ++row) {
    std::memcpy(to.Scale(k, row), from.Of(row), kExponent ? 1 : 2);
    if constexpr (kRecipe.offsets) std::memcpy(to.Offset(k, row), from.Of(row) + 2, 2);
  }
  if constexpr (kRecipe.bits == 8) {
    Codes codes = from.ThirtyTwo(kScaleBytes);
    for (Words& words : codes.words) words = Raised(words);
    to.Put(k, codes);
  } else if constexpr (kRecipe.bits == 5) {
    const Codes low = LowThenHigh(from.Sixteen(kScaleBytes + 4));
    to.Put(k, Above(low, InNumbers(from.Sixteen(kScaleBytes).words[0]), 4));
  } else {
    to.Put(k, LowThenHigh(from.Sixteen(kScaleBytes)));
  }
}

// The layouts of the blocks of 256 numbers are described where quant/unpack_k.cc and unpack_codebook.cc read
// them. Of each: its bytes, where scale and offset stand, what puts the numbers of its sub-blocks, and the
// codes of 32 numbers from k, a multiple of 32.

struct Q2Blocks {
  static constexpr std::size_t kBytes = 84, kScale = 80, kOffset = 82;
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Run<4> both = from.Sixteen(0);
    for (std::size_t i = 0; i < 4; ++i) {
      to.PutFourSubScales(k, 4 * i, Field(both.words[i], 0, 15));
      to.PutFourSubOffsets(k, 4 * i, Field(both.words[i], 4, 15));
    }
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return Field(from.ThirtyTwo(16 + k / 128 * 32), k % 128 / 32 * 2, 3);
  }
};

struct Q3Blocks {
  static constexpr std::size_t kBytes = 110, kScale = 108;
  // Low nibbles in eight bytes from 96, those of the last eight above; their upper two bits in four bytes.
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Run<4> end = from.Sixteen(92);
    for (std::size_t i = 0; i < 4; ++i) {
      const Words low = Field(end.words[1 + i % 2], i / 2 * 4, 15);
      const Words six = Or(low, Left(Field(end.words[3], 2 * i, 3), 4));
      to.PutFourSubScales(k, 4 * i, Less32(six));
    }
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return Above(Field(from.ThirtyTwo(32 + k / 128 * 32), k % 128 / 32 * 2, 3),
                 Field(from.ThirtyTwo(0), k / 32, 1), 2);
  }
};

// Six bits each in twelve bytes from 4: four scales, four offsets, then nibbles of the others, whose upper
// two bits are the upper ones of the first eight bytes.
template <class Writer>
HWY_INLINE void PutSixBitPairs(const RawBlocks& from, std::size_t k, const Writer& to) {
  const Run<4> begin = from.Sixteen(0);
  const Words& scales = begin.words[1];
  const Words& offsets = begin.words[2];
  const Words& nibbles = begin.words[3];
  to.PutFourSubScales(k, 0, Field(scales, 0, 63));
  to.PutFourSubScales(k, 4, Or(Field(nibbles, 0, 15), Left(Field(scales, 6, 3), 4)));
  to.PutFourSubOffsets(k, 0, Field(offsets, 0, 63));
  to.PutFourSubOffsets(k, 4, Or(Field(nibbles, 4, 15), Left(Field(offsets, 6, 3), 4)));
}

struct Q4Blocks {
  static constexpr std::size_t kBytes = 144, kScale = 0, kOffset = 2;
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    PutSixBitPairs(from, k, to);
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return Field(from.ThirtyTwo(16 + k / 64 * 32), k % 64 / 32 * 4, 15);
  }
};

struct Q5Blocks {
  static constexpr std::size_t kBytes = 176, kScale = 0, kOffset = 2;
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    PutSixBitPairs(from, k, to);
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return Above(Field(from.ThirtyTwo(48 + k / 64 * 32), k % 64 / 32 * 4, 15),
                 Field(from.ThirtyTwo(16), k / 32, 1), 4);
  }
};

struct Q6Blocks {
  static constexpr std::size_t kBytes = 210, kScale = 208;
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Run<4> scales = from.Sixteen(192);
    for (std::size_t i = 0; i < 4; ++i) to.PutFourSubScales(k, 4 * i, scales.words[i]);
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return Above(Field(from.ThirtyTwo(k / 128 * 64 + k % 64), k % 128 / 64 * 4, 15),
                 Field(from.ThirtyTwo(128 + k / 128 * 32), k % 128 / 32 * 2, 3), 4);
  }
};

struct NonLinear4Blocks {
  static constexpr std::size_t kBytes = 136, kScale = 0;
  // Nibbles in four bytes from 4, their upper two bits in the two bytes before.
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Run<4> begin = from.Sixteen(0);
    for (std::size_t i = 0; i < 8; ++i) {
      const Words low = And(Right(begin.words[1], 4 * i), 15);
      const Words top = And(Right(begin.words[0], 16 + 2 * i), 3);
      to.PutSubScale(k, i, Less32(Or(low, Left(top, 4))));
    }
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return LowThenHigh(from.Sixteen(8 + k / 2));
  }
};

// A sub-block's scale of a grid: 1 and twice nibble `index` of words.
HWY_INLINE Words OddScale(const Words& nibbles, std::size_t index) {
  const Words twice = Left(And(Right(nibbles, 4 * index), 15), 1);
  return Changed(twice, [](VU part) { return hn::Or(part, hn::Set(DU(), 1)); });
}

// Four levels of a grid's point, of four bits or of two, to a byte each.
HWY_INLINE Words FourBitsEach(const Words& levels) {
  const Words apart = And(Or(levels, Left(levels, 8)), 0x00FF'00FF);
  return And(Or(apart, Left(apart, 4)), InEachByte(7));
}
HWY_INLINE Words TwoBitsEach(const Words& levels) {
  const Words apart = And(Or(levels, Left(levels, 12)), 0x000F'000F);
  return And(Or(apart, Left(apart, 6)), InEachByte(3));
}
// Codes of four levels of kBits, in bytes, with signs from bit `at` of words on.
template <std::size_t kBits>
HWY_INLINE Words WithSigns(const Words& levels, const Words& signs, std::size_t at) {
  return Or(levels, Left(InBytes(Right(signs, at)), kBits));
}

struct Grid3XxsBlocks {
  static constexpr std::size_t kBytes = 98, kScale = 0;
  // Eight words from 66, of 32 numbers each: four times seven signs, whose parity is the eighth, and a scale.
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Codes words = from.ThirtyTwo(66);
    for (std::size_t i = 0; i < 8; ++i) to.PutSubScale(k, i, OddScale(words.words[i], 7));
  }
  static std::uint32_t SignsOf(std::uint32_t word) {
    std::uint32_t signs = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint32_t seven = (word >> (7 * i)) & 127U;
      signs |= (seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1U) << 7) << (8 * i);
    }
    return signs;
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    const Words signs =
        from.OfRows([k](const std::uint8_t* block) { return SignsOf(quant::load_u32(block + 66 + k / 8)); });
    Codes codes;
    for (std::size_t i = 0; i < 8; ++i) {
      const Words points = from.OfRows([&](const std::uint8_t* block) -> std::uint32_t {
        return quant::kGridIq3Xxs[block[2 + k / 4 + i]];
      });
      codes.words[i] = WithSigns<3>(FourBitsEach(points), signs, 4 * i);
    }
    return codes;
  }
};

struct Grid3SBlocks {
  static constexpr std::size_t kBytes = 110, kScale = 0;
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Run<4> end = from.Sixteen(94);
    for (std::size_t i = 0; i < 8; ++i) to.PutSubScale(k, i, OddScale(end.words[3], i));
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    const Words signs =
        from.OfRows([k](const std::uint8_t* block) { return quant::load_u32(block + 74 + k / 8); });
    Codes codes;
    for (std::size_t i = 0; i < 8; ++i) {
      const Words points = from.OfRows([&](const std::uint8_t* block) -> std::uint32_t {
        const unsigned ninth = (unsigned{block[66 + k / 32]} >> i) & 1U;
        return quant::kGridIq3S[block[2 + k / 4 + i] | ninth << 8];
      });
      codes.words[i] = WithSigns<3>(FourBitsEach(points), signs, 4 * i);
    }
    return codes;
  }
};

struct Grid2SBlocks {
  static constexpr std::size_t kBytes = 82, kScale = 0;
  template <class Writer>
  HWY_INLINE static void PutSubs(const RawBlocks& from, std::size_t k, const Writer& to) {
    const Run<4> end = from.Sixteen(66);
    for (std::size_t i = 0; i < 16; ++i) to.PutSubScale(k, i, OddScale(end.words[2 + i / 8], i % 8));
  }
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    const Words signs =
        from.OfRows([k](const std::uint8_t* block) { return quant::load_u32(block + 34 + k / 8); });
    Codes codes;
    for (std::size_t i = 0; i < 4; ++i) {
      const Words points = from.OfRows([&](const std::uint8_t* block) -> std::uint32_t {
        const unsigned top = (unsigned{block[66 + k / 32]} >> (2 * i)) & 3U;
        return quant::kGridIq2S[block[2 + k / 8 + i] | top << 8];
      });
      codes.words[2 * i] = WithSigns<2>(TwoBitsEach(And(points, 255)), signs, 8 * i);
      codes.words[2 * i + 1] = WithSigns<2>(TwoBitsEach(Right(points, 8)), signs, 8 * i + 4);
    }
    return codes;
  }
};

// Numbers of three levels, 256 with one scale.

struct Ternary2Blocks {
  static constexpr std::size_t kBytes = 66, kScale = 64;
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    return Field(from.ThirtyTwo(k / 128 * 32), k % 128 / 32 * 2, 3);
  }
};

// Digit `index` of bytes that hold five to base 3, the highest first, as 256 times a fraction: each is what
// passes 256 when the rest is multiplied by 3.
HWY_INLINE Words Digit(const Words& bytes, std::size_t index) {
  const auto of_half = [index](VU half) {
    const VU low_byte = hn::Set(DU(), 0x00FF'00FF);
    VU rest = hn::And(half, low_byte);
    VU thrice = hn::Add(rest, hn::Add(rest, rest));
    for (std::size_t i = 0; i < index; ++i) {
      rest = hn::And(thrice, low_byte);
      thrice = hn::Add(rest, hn::Add(rest, rest));
    }
    return hn::And(hn::ShiftRight<8>(thrice), low_byte);
  };
  return Or(Changed(bytes, of_half), Left(Changed(Right(bytes, 8), of_half), 8));
}
template <std::size_t kCount>
HWY_INLINE Run<kCount> Digit(const Run<kCount>& bytes, std::size_t index) {
  Run<kCount> out;
  for (std::size_t i = 0; i < kCount; ++i) out.words[i] = Digit(bytes.words[i], index);
  return out;
}

struct Ternary1Blocks {
  static constexpr std::size_t kBytes = 54, kScale = 52;
  // 32 bytes of 160 numbers, 16 of 80 and 4 of 16: first the first digit of each byte, then the next.
  HWY_INLINE static Codes CodesOf(const RawBlocks& from, std::size_t k) {
    if (k < 160) return Digit(from.ThirtyTwo(0), k / 32);
    const Run<4> sixteen = from.Sixteen(32);
    const std::size_t first = (k - 160) / 16;
    if (first < 4) return Joined(Digit(sixteen, first), Digit(sixteen, first + 1));
    const Words four = from.Sixteen(36).words[3];
    return Joined(Digit(sixteen, first), {{Digit(four, 0), Digit(four, 1), Digit(four, 2), Digit(four, 3)}});
  }
};

template <class Blocks>
HWY_INLINE void PutTernary(const RawBlocks& from, std::size_t k, const PanelWriter<PanelKind::kTernary>& to) {
  for (std::size_t i = 0; i < kSuperBlock; i += 32) {
    for (std::size_t row = 0; row < 16; ++row)
      std::memcpy(to.Scale(k + i, row), from.Of(row) + Blocks::kScale, 2);
    to.Put(k + i, Blocks::CodesOf(from, i));
  }
}

// Four scales of 16 numbers each, floats of eight bits that halves hold exactly, then their nibbles.
HWY_INLINE void PutSmallFloats(const RawBlocks& from, std::size_t k,
                               const PanelWriter<PanelKind::kNVFP4>& to) {
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint16_t scale = quant::float_to_half(quant::half_float8(from.Of(row)[i]));
      std::memcpy(to.Scale(k + 16 * i, row), &scale, sizeof(scale));
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    // Twice eight bytes: of sixteen numbers each, eight of them low.
    const Run<4> bytes = from.Sixteen(4 + 16 * i);
    const Run<4> low = Field(bytes, 0, 15);
    const Run<4> high = Field(bytes, 4, 15);
    to.Put(k + 32 * i, {{low.words[0], low.words[1], high.words[0], high.words[1], low.words[2], low.words[3],
                         high.words[2], high.words[3]}});
  }
}

template <class Blocks, PanelKind kKind>
HWY_INLINE void PutSuper(const RawBlocks& from, std::size_t k, const PanelWriter<kKind>& to) {
  for (std::size_t row = 0; row < 16; ++row) {
    std::memcpy(to.Scale(k, row), from.Of(row) + Blocks::kScale, 2);
    if constexpr (recipe_of(kKind).offsets) std::memcpy(to.Offset(k, row), from.Of(row) + Blocks::kOffset, 2);
  }
  Blocks::PutSubs(from, k, to);
  for (std::size_t i = 0; i < kSuperBlock; i += 32) to.Put(k + i, Blocks::CodesOf(from, i));
}

template <PanelKind kKind>
void PutSimpleRows(const RawRows& rows, std::size_t columns, const PanelWriter<kKind>& to) {
  to.ClearEnd(columns);
  const std::size_t bytes = rows.stride / (columns / 32);
  for (std::size_t k = 0; k < columns; k += 32) PutSimple(RawBlocks(rows, k / 32 * bytes), k, to);
}

void PutSmallFloatRows(const RawRows& rows, std::size_t columns, const PanelWriter<PanelKind::kNVFP4>& to) {
  to.ClearEnd(columns);
  for (std::size_t k = 0; k < columns; k += 64) PutSmallFloats(RawBlocks(rows, k / 64 * 36), k, to);
}

template <class Blocks>
void PutTernaryRows(const RawRows& rows, std::size_t columns, const PanelWriter<PanelKind::kTernary>& to) {
  for (std::size_t k = 0; k < columns; k += kSuperBlock)
    PutTernary<Blocks>(RawBlocks(rows, k / kSuperBlock * Blocks::kBytes), k, to);
}

template <class Blocks, PanelKind kKind>
void PutSuperRows(const RawRows& rows, std::size_t columns, const PanelWriter<kKind>& to) {
  for (std::size_t k = 0; k < columns; k += kSuperBlock)
    PutSuper<Blocks>(RawBlocks(rows, k / kSuperBlock * Blocks::kBytes), k, to);
}

void PutCodes(BlockType type, const RawRows& rows, std::size_t columns, std::uint8_t* panel) {
  switch (type) {
    case BlockType::kQ8_0:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kQ8_0>(panel));
    case BlockType::kQ4_0:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kQ4_0>(panel));
    case BlockType::kQ4_1:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kQ4_1>(panel));
    case BlockType::kQ5_0:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kQ5_0>(panel));
    case BlockType::kQ5_1:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kQ5_1>(panel));
    case BlockType::kQ2_K:
      return PutSuperRows<Q2Blocks>(rows, columns, PanelWriter<PanelKind::kQ2_K>(panel));
    case BlockType::kQ3_K:
      return PutSuperRows<Q3Blocks>(rows, columns, PanelWriter<PanelKind::kQ3_K>(panel));
    case BlockType::kQ4_K:
      return PutSuperRows<Q4Blocks>(rows, columns, PanelWriter<PanelKind::kQ4_K>(panel));
    case BlockType::kQ5_K:
      return PutSuperRows<Q5Blocks>(rows, columns, PanelWriter<PanelKind::kQ5_K>(panel));
    case BlockType::kQ6_K:
      return PutSuperRows<Q6Blocks>(rows, columns, PanelWriter<PanelKind::kQ6_K>(panel));
    case BlockType::kIQ4_NL:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kIQ4_NL>(panel));
    case BlockType::kIQ4_XS:
      return PutSuperRows<NonLinear4Blocks>(rows, columns, PanelWriter<PanelKind::kIQ4_XS>(panel));
    case BlockType::kMXFP4:
      return PutSimpleRows(rows, columns, PanelWriter<PanelKind::kMXFP4>(panel));
    case BlockType::kNVFP4:
      return PutSmallFloatRows(rows, columns, PanelWriter<PanelKind::kNVFP4>(panel));
    case BlockType::kIQ3_XXS:
      return PutSuperRows<Grid3XxsBlocks>(rows, columns, PanelWriter<PanelKind::kIQ3_XXS>(panel));
    case BlockType::kIQ3_S:
      return PutSuperRows<Grid3SBlocks>(rows, columns, PanelWriter<PanelKind::kIQ3_S>(panel));
    case BlockType::kIQ2_S:
      return PutSuperRows<Grid2SBlocks>(rows, columns, PanelWriter<PanelKind::kIQ2_S>(panel));
    case BlockType::kTQ1_0:
      return PutTernaryRows<Ternary1Blocks>(rows, columns, PanelWriter<PanelKind::kTernary>(panel));
    case BlockType::kTQ2_0:
      return PutTernaryRows<Ternary2Blocks>(rows, columns, PanelWriter<PanelKind::kTernary>(panel));
    default:
      return;
  }
}

// The numbers in sixteen bytes of each row, a line for each.
HWY_INLINE void PutLines(const Run<4>& words, std::uint32_t, std::uint8_t* to) {
  for (std::size_t i = 0; i < 4; ++i) Store(words.words[i], to + i * kLine);
}
HWY_INLINE void PutLines(const Run<4>& words, std::uint16_t, std::uint8_t* to) {
  for (std::size_t i = 0; i < 4; ++i) {
    StoreHalves(words.words[i], to + 2 * i * kLine);
    StoreHalves(Right(words.words[i], 16), to + (2 * i + 1) * kLine);
  }
}

template <class Element>
void PutElements(const RawRows& rows, std::size_t columns, std::uint8_t* panel) {
  constexpr std::size_t kAtOnce = kLine / sizeof(Element);
  const std::size_t whole = columns / kAtOnce * kAtOnce;
  for (std::size_t k = 0; k < whole; k += kAtOnce) {
    // A line of each row first: rows may lie so that few of them fit into a cache together.
    alignas(64) std::uint8_t near[16 * kLine];
    for (std::size_t row = 0; row < 16; ++row)
      std::memcpy(near + row * kLine, rows.data + row * rows.stride + k * sizeof(Element), kLine);
    for (std::size_t at = 0; at < kLine; at += 16)
      PutLines(LoadSixteen(near + at, kLine), Element(), panel + (k + at / sizeof(Element)) * kLine);
  }
  for (std::size_t k = whole; k < columns; ++k) {
    for (std::size_t row = 0; row < 16; ++row)
      std::memcpy(panel + k * kLine + row * sizeof(Element),
                  rows.data + row * rows.stride + k * sizeof(Element), sizeof(Element));
  }
}

void PutHalves(const RawRows& rows, std::size_t columns, std::uint8_t* panel) {
  PutElements<std::uint16_t>(rows, columns, panel);
}

void PutFloats(const RawRows& rows, std::size_t columns, std::uint8_t* panel) {
  PutElements<std::uint32_t>(rows, columns, panel);
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(PutCodes);
HWY_EXPORT(PutHalves);
HWY_EXPORT(PutFloats);
}  // namespace

void put_codes(quant::BlockType type, const RawRows& rows, std::size_t columns,
               std::uint8_t* panel) noexcept {
  HWY_DYNAMIC_DISPATCH(PutCodes)(type, rows, columns, panel);
}

void put_halves(const RawRows& rows, std::size_t columns, std::uint8_t* panel) noexcept {
  HWY_DYNAMIC_DISPATCH(PutHalves)(rows, columns, panel);
}

void put_floats(const RawRows& rows, std::size_t columns, std::uint8_t* panel) noexcept {
  HWY_DYNAMIC_DISPATCH(PutFloats)(rows, columns, panel);
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
