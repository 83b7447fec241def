// The walk of products over codes, for any set of instructions. Included by one file for each set, inside its
// anonymous namespace, after a struct `Isa` that names the vectors (Bytes: sixteen rows of four codes, Ints
// and Floats: sixteen rows), what is done to them, and how large a tile its registers hold.
#include <algorithm>
#include <type_traits>
#include <utility>

// Calls body(0), ..., body(kCount - 1) with constants, so that arrays it indexes live in registers.
template <std::size_t kCount, class Body>
KVASIR_INLINE void Unrolled(const Body& body) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) KVASIR_INLINE_LAMBDA {
    (body(std::integral_constant<std::size_t, kIndex>()), ...);
  }(std::make_index_sequence<kCount>());
}

// Blocks of 32 numbers between a request for memory and its use.
inline constexpr std::size_t kFetchedAhead = 8;

// The arrays of one panel.
template <PanelKind kKind>
class PanelReader {
 public:
  static constexpr CodeRecipe kRecipe = recipe_of(kKind);

  PanelReader() = default;
  KVASIR_INLINE PanelReader(const std::uint8_t* panel, const PanelLayout& layout)
      : quants_(panel + layout.quants),
        high_bits_(panel + layout.high_bits),
        scales_(panel + layout.scales),
        offsets_(panel + layout.offsets),
        sub_scales_(panel + layout.sub_scales),
        sub_offsets_(panel + layout.sub_offsets) {}

  // The codes of k = 32 block + 4 step, ..., + 3.
  template <std::size_t kStep>
  KVASIR_INLINE Isa::Bytes Codes(std::size_t block) const {
    constexpr std::size_t kBits = kRecipe.bits;
    if constexpr (kBits == 8) {
      return Isa::Load(quants_ + (block * 8 + kStep) * 64);
    } else if constexpr (kBits < 4) {
      const Isa::Bytes low = Pairs<kStep, 0>(quants_, block);
      if constexpr (kBits == 2) return low;
      return Isa::Or(low, Bits<kStep, 2>(block));
    } else {
      const Isa::Bytes both = Isa::Load(quants_ + (block * 4 + kStep / 2) * 64);
      const Isa::Bytes low =
          kStep % 2 == 0 ? Isa::And(both, 15) : Isa::And(Isa::template Shift<-4>(both), 15);
      if constexpr (kBits == 5) return Isa::Or(low, Bits<kStep, 4>(block));
      if constexpr (kBits == 6) return Isa::Or(low, Pairs<kStep, 4>(high_bits_, block));
      if constexpr (kRecipe.table == CodeTable::kNonLinear4) return Isa::LookUp(kNonLinearCodes, low);
      if constexpr (kRecipe.table == CodeTable::kTwiceFloat4) return Isa::LookUp(kTwiceFloatCodes, low);
      return low;
    }
  }

  // Asks for what is read some blocks of 32 further on: memory is far, and its own guesses end with each of
  // its pages.
  KVASIR_INLINE void FetchAhead(std::size_t block) const {
    constexpr std::size_t kBits = kRecipe.bits;
    constexpr std::size_t kLines = kBits == 8 ? 8 : kBits >= 4 ? 4 : 2;
    constexpr std::size_t kHighLines = kBits == 8 ? 0 : kBits - kLines;
    const std::size_t at = block + kFetchedAhead;
    Unrolled<kLines>([&](auto i) KVASIR_INLINE_LAMBDA { Isa::Fetch(quants_ + (at * kLines + i) * 64); });
    if constexpr (kHighLines > 0) {
      Unrolled<kHighLines>([&](auto i)
                               KVASIR_INLINE_LAMBDA { Isa::Fetch(high_bits_ + (at * kHighLines + i) * 64); });
    }
    if constexpr (kRecipe.scale == ScaleForm::kHalf) {
      Isa::Fetch(scales_ + at * 32);
      if constexpr (kRecipe.offsets) Isa::Fetch(offsets_ + at * 32);
    } else {
      Isa::Fetch((kRecipe.scale == ScaleForm::kExponent ? scales_ : sub_scales_) + at * 512 / kRecipe.sub);
    }
  }

  // Scale and offset of a sub-block.
  KVASIR_INLINE Isa::Floats Scale(std::size_t sub) const {
    if constexpr (kRecipe.scale == ScaleForm::kHalf) {
      return Isa::Halves(scales_ + sub * 32);
    } else if constexpr (kRecipe.scale == ScaleForm::kExponent) {
      return Isa::Exponents(scales_ + sub * 16);
    } else {
      return Isa::Mul(Isa::Halves(scales_ + sub * kRecipe.sub / kSuperBlock * 32),
                      Isa::SignedBytes(sub_scales_ + sub * 16));
    }
  }
  KVASIR_INLINE Isa::Floats Offset(std::size_t sub) const {
    if constexpr (kRecipe.scale == ScaleForm::kHalf) {
      return Isa::Halves(offsets_ + sub * 32);
    } else {
      return Isa::Negative(Isa::Mul(Isa::Halves(offsets_ + sub * kRecipe.sub / kSuperBlock * 32),
                                    Isa::SignedBytes(sub_offsets_ + sub * 16)));
    }
  }

 private:
  // Tables of numbers + 128, so that codes are not negative.
  static constexpr std::array<std::uint8_t, 16> Raised(const std::array<std::int8_t, 16>& table) {
    std::array<std::uint8_t, 16> raised{};
    for (std::size_t i = 0; i < 16; ++i) raised[i] = static_cast<std::uint8_t>(table[i] + 128);
    return raised;
  }
  static constexpr std::array<std::uint8_t, 16> kNonLinearCodes = Raised(quant::kNonLinear4);
  static constexpr std::array<std::uint8_t, 16> kTwiceFloatCodes = Raised(quant::kTwiceFloat4);

  // Two bits of the array at `from`, or the single bits, moved left by kLeft.
  template <std::size_t kStep, int kLeft>
  KVASIR_INLINE static Isa::Bytes Pairs(const std::uint8_t* from, std::size_t block) {
    const Isa::Bytes all = Isa::Load(from + (block * 2 + kStep / 4) * 64);
    return Isa::And(Isa::template Shift<kLeft - static_cast<int>(kStep % 4 * 2)>(all), 3 << kLeft);
  }
  template <std::size_t kStep, int kLeft>
  KVASIR_INLINE Isa::Bytes Bits(std::size_t block) const {
    const Isa::Bytes all = Isa::Load(high_bits_ + block * 64);
    return Isa::And(Isa::template Shift<kLeft - static_cast<int>(kStep)>(all), 1 << kLeft);
  }

  const std::uint8_t* quants_ = nullptr;
  const std::uint8_t* high_bits_ = nullptr;
  const std::uint8_t* scales_ = nullptr;
  const std::uint8_t* offsets_ = nullptr;
  const std::uint8_t* sub_scales_ = nullptr;
  const std::uint8_t* sub_offsets_ = nullptr;
};

// Columns of a tile.
template <std::size_t kColumns>
struct TileColumns {
  const std::int8_t* bytes[kColumns];
  const std::int32_t* sums[kColumns];  // of sub-blocks
  const float* scales[kColumns];
};

template <PanelKind kKind, std::size_t kColumns>
KVASIR_INLINE TileColumns<kColumns> ColumnsOf(const ByteColumns& x, std::size_t column) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  TileColumns<kColumns> columns{};
  for (std::size_t c = 0; c < kColumns; ++c) {
    const std::size_t at = (column + c) * x.stride;
    columns.bytes[c] = x.bytes + at;
    columns.sums[c] = kRecipe.sub == 16 ? x.sums16 + at / 16 : x.sums32 + at / 32;
    columns.scales[c] = x.scales + at / kRecipe.block;
  }
  return columns;
}

// The integer sums of a sub-block: kFirst is its first step in its 32 numbers.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, std::size_t kFirst>
KVASIR_INLINE void SumSubBlock(const PanelReader<kKind>* readers, const TileColumns<kColumns>& x,
                               std::size_t sub, Isa::Ints* whole) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  constexpr bool kWide = kRecipe.bits == 8 || kRecipe.table != CodeTable::kNone;
  Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
    const Isa::Ints begin = kRecipe.zero_bits < 0
                                ? Isa::NoInts()
                                : Isa::SplatInts(-x.sums[c][sub] * (1 << std::max(0, kRecipe.zero_bits)));
    Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA { whole[p * kColumns + c] = begin; });
  });
  const std::size_t at = sub * kRecipe.sub;
  Unrolled<kRecipe.sub / 4>([&](auto i) KVASIR_INLINE_LAMBDA {
    Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
      const Isa::Bytes codes = readers[p].template Codes<kFirst + i>(at / 32);
      Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
        Isa::Ints& sum = whole[p * kColumns + c];
        sum = Isa::template Dot<kWide>(sum, codes, x.bytes[c] + at + i * 4);
      });
    });
  });
}

// What a sub-block adds to the parts of its block.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns>
KVASIR_INLINE void ScaleSubBlock(const PanelReader<kKind>* readers, const TileColumns<kColumns>& x,
                                 std::size_t sub, bool first, const Isa::Ints* whole, Isa::Floats* part) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
    const Isa::Floats scale = readers[p].Scale(sub);
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      Isa::Floats& to = part[p * kColumns + c];
      const Isa::Floats number = Isa::ToFloats(whole[p * kColumns + c]);
      to = first ? Isa::Mul(number, scale) : Isa::MulAdd(number, scale, to);
    });
    if constexpr (kRecipe.offsets) {
      const Isa::Floats offset = readers[p].Offset(sub);
      Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
        Isa::Floats& to = part[p * kColumns + c];
        to = Isa::MulAdd(offset, Isa::SplatInt(x.sums[c] + sub), to);
      });
    }
  });
}

// kPanels panels times kColumns columns. The first columns are those for which panels come from memory.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns>
KVASIR_INLINE void MultiplyTile(const Panels& weights, std::size_t panel, const ByteColumns& x,
                                std::size_t column, const ProductOutput& out) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  // One column is through with its panels so soon that requests would only be in its way.
  const bool fetch = column == 0 && kColumns > 1;
  constexpr std::size_t kTile = kPanels * kColumns;
  constexpr std::size_t kSubs = kRecipe.block / kRecipe.sub;
  PanelReader<kKind> readers[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    readers[p] =
        PanelReader<kKind>(reinterpret_cast<const std::uint8_t*>(weights.panel(panel + p)), weights.layout());
  }
  const TileColumns<kColumns> columns = ColumnsOf<kKind, kColumns>(x, column);
  Isa::Floats total[kTile];
  Unrolled<kTile>([&](auto i) KVASIR_INLINE_LAMBDA { total[i] = Isa::Zero(); });
  for (std::size_t block = 0; block < x.width / kRecipe.block; ++block) {
    Isa::Floats part[kTile];
    Unrolled<kTile>([&](auto i) KVASIR_INLINE_LAMBDA { part[i] = Isa::Zero(); });
    for (std::size_t s = 0; s < kSubs; ++s) {
      const std::size_t sub = block * kSubs + s;
      if (fetch && (kRecipe.sub == 32 || s % 2 == 0)) {
        const std::size_t some = sub * kRecipe.sub / 32;
        for (std::size_t p = 0; p < kPanels; ++p) readers[p].FetchAhead(some);
      }
      Isa::Ints whole[kTile];
      if (kRecipe.sub == 16 && sub % 2 == 1) {
        SumSubBlock<kKind, kPanels, kColumns, kRecipe.sub == 16 ? 4 : 0>(readers, columns, sub, whole);
      } else {
        SumSubBlock<kKind, kPanels, kColumns, 0>(readers, columns, sub, whole);
      }
      ScaleSubBlock<kKind, kPanels, kColumns>(readers, columns, sub, s == 0, whole, part);
    }
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      const Isa::Floats scale = Isa::Splat(columns.scales[c] + block);
      Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
        Isa::Floats& to = total[p * kColumns + c];
        to = Isa::MulAdd(part[p * kColumns + c], scale, to);
      });
    });
  }
  Unrolled<kTile>([&](auto i) KVASIR_INLINE_LAMBDA {
    Isa::Store(total[i], out.column(column + i % kColumns) + (panel + i / kColumns) * kPanelRows);
  });
}

template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns>
void MultiplyColumns(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
                     std::size_t column, const ProductOutput& out) {
  std::size_t panel = first;
  for (; panel + kPanels <= last; panel += kPanels)
    MultiplyTile<kKind, kPanels, kColumns>(weights, panel, x, column, out);
  if constexpr (kPanels > 1) {
    for (; panel < last; ++panel) MultiplyTile<kKind, 1, kColumns>(weights, panel, x, column, out);
  }
}

template <PanelKind kKind>
void MultiplyKind(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
                  const ProductOutput& out) {
  constexpr std::size_t kPanels = Isa::kPanelsAtOnce;
  constexpr std::size_t kColumns = Isa::kColumnsAtOnce;
  if (x.count == 1)
    return MultiplyColumns<kKind, Isa::kPanelsOfOneColumn, 1>(weights, first, last, x, 0, out);
  for (std::size_t panel = first; panel < last; panel += kPanels) {
    const std::size_t end = std::min(last, panel + kPanels);
    std::size_t column = 0;
    for (; column + kColumns <= x.count; column += kColumns)
      MultiplyColumns<kKind, kPanels, kColumns>(weights, panel, end, x, column, out);
    for (; column + 2 <= x.count; column += 2)
      MultiplyColumns<kKind, kPanels, 2>(weights, panel, end, x, column, out);
    if (column < x.count) MultiplyColumns<kKind, kPanels, 1>(weights, panel, end, x, column, out);
  }
}

void Multiply(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
              const ProductOutput& out) {
  switch (weights.kind()) {
    case PanelKind::kQ8_0:
      return MultiplyKind<PanelKind::kQ8_0>(weights, first, last, x, out);
    case PanelKind::kQ4_0:
      return MultiplyKind<PanelKind::kQ4_0>(weights, first, last, x, out);
    case PanelKind::kQ4_1:
      return MultiplyKind<PanelKind::kQ4_1>(weights, first, last, x, out);
    case PanelKind::kQ5_0:
      return MultiplyKind<PanelKind::kQ5_0>(weights, first, last, x, out);
    case PanelKind::kQ5_1:
      return MultiplyKind<PanelKind::kQ5_1>(weights, first, last, x, out);
    case PanelKind::kQ2_K:
      return MultiplyKind<PanelKind::kQ2_K>(weights, first, last, x, out);
    case PanelKind::kQ3_K:
      return MultiplyKind<PanelKind::kQ3_K>(weights, first, last, x, out);
    case PanelKind::kQ4_K:
      return MultiplyKind<PanelKind::kQ4_K>(weights, first, last, x, out);
    case PanelKind::kQ5_K:
      return MultiplyKind<PanelKind::kQ5_K>(weights, first, last, x, out);
    case PanelKind::kQ6_K:
      return MultiplyKind<PanelKind::kQ6_K>(weights, first, last, x, out);
    case PanelKind::kIQ4_NL:
      return MultiplyKind<PanelKind::kIQ4_NL>(weights, first, last, x, out);
    case PanelKind::kIQ4_XS:
      return MultiplyKind<PanelKind::kIQ4_XS>(weights, first, last, x, out);
    case PanelKind::kMXFP4:
      return MultiplyKind<PanelKind::kMXFP4>(weights, first, last, x, out);
    case PanelKind::kF32:
    case PanelKind::kF16:
    case PanelKind::kBF16:
      return;
  }
}
