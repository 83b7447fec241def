// The walk of products over codes, for any set of instructions. Included by one file for each set, inside its
// anonymous namespace, after a struct `Isa` that names the vectors (Bytes: sixteen rows of four codes, Ints
// and Floats: sixteen rows, Pairs: sixteen rows of two numbers of sixteen bits), what is done to them, how
// large a tile its registers hold, whether its dot products of codes of eight bits, whose zero is 128, take
// that off themselves, and whether two sums may share a lane.
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

// Whether the integer sums of a kind's sub-blocks, where sixteen bits hold them, go two to a lane: one
// instruction multiplies both with their sub-scales. All of a block's add up to less than 2^24 then, which
// floats hold exactly, so that sums of floats, one sub-block after the other, are the same numbers.
template <PanelKind kKind>
constexpr bool SumsShareLanes() {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  static_assert(kByteBlock / kRecipe.sub * kRecipe.paired_scale * 32767 < 1U << 24U);
  static_assert(kRecipe.paired_scale == 0 || (kRecipe.zero_bits < 0 && kRecipe.scale == ScaleForm::kSuper));
  return Isa::kSumsShareLanes && kRecipe.paired_scale > 0;
}

// The set of instructions, through the kind: where sums do not share lanes it does not name what that needs.
template <PanelKind kKind>
using IsaOf = std::conditional_t<SumsShareLanes<kKind>(), Isa, void>;

// A block of one panel.
template <PanelKind kKind>
class BlockReader {
 public:
  static constexpr CodeRecipe kRecipe = recipe_of(kKind);
  static constexpr BlockLayout kLayout = block_layout(kRecipe);

  BlockReader() = default;
  KVASIR_INLINE explicit BlockReader(const std::uint8_t* panel) : block_(panel) {}
  KVASIR_INLINE BlockReader Block(std::size_t index) const {
    return BlockReader(block_ + index * kLayout.bytes);
  }

  // The codes of k = 32 at + 4 step, ..., + 3.
  template <std::size_t kStep>
  KVASIR_INLINE Isa::Bytes Codes(std::size_t at) const {
    constexpr CodePieces kPieces = code_pieces(kRecipe.bits, kStep);
    const std::uint8_t* const lines = block_ + kLayout.codes + at * kLayout.thirty_two;
    Isa::Bytes codes = Piece<kPieces.of[0]>(lines);
    Unrolled<kPieces.count - 1>(
        [&](auto i) KVASIR_INLINE_LAMBDA { codes = Isa::Or(codes, Piece<kPieces.of[i + 1]>(lines)); });
    if constexpr (kRecipe.table != CodeTable::kNone) codes = Isa::LookUp(kRaised, codes);
    return codes;
  }

  // Asks for an eighth of the block: memory is far, and several panels are read at once, which is more than
  // the processor guesses. It comes into the second cache: what comes into the first waits in a queue that is
  // too short for memory.
  KVASIR_INLINE void Fetch(std::size_t eighth) const {
    constexpr std::size_t kLines = kLayout.bytes / kLine;
    const std::uint8_t* const from = block_ + eighth * kLines / 8 * kLine;
    Unrolled<(kLines + 7) / 8>([&](auto i) KVASIR_INLINE_LAMBDA { Isa::Fetch(from + i * kLine); });
  }

  // The scale of a sub-block of the block; where 256 numbers share factors, its own.
  KVASIR_INLINE Isa::Floats Scale(std::size_t sub) const {
    if constexpr (kRecipe.scale == ScaleForm::kHalf) {
      return Isa::Halves(block_ + sub * kLayout.scale_step);
    } else if constexpr (kRecipe.scale == ScaleForm::kExponent) {
      return Isa::Exponents(block_ + sub * kLayout.scale_step);
    } else {
      return Isa::SignedBytes(block_ + kLayout.sub_scales + sub * 16);
    }
  }
  // The sub-scales of sub-blocks 2 pair, above, and 2 pair + 1, below.
  KVASIR_INLINE Isa::Pairs SubScales(std::size_t pair) const
    requires(SumsShareLanes<kKind>())
  {
    return IsaOf<kKind>::LoadSubScales(block_ + kLayout.sub_scales + pair * 32);
  }
  KVASIR_INLINE Isa::Floats ScaleOfBlock() const {
    if constexpr (kFactor != 1) return Isa::Mul(Isa::Halves(block_), Isa::Splat(&kFactor));
    return Isa::Halves(block_);
  }
  KVASIR_INLINE Isa::Floats Offset(std::size_t sub) const {
    return Isa::Halves(block_ + kLayout.offsets + sub * kLayout.scale_step);
  }
  KVASIR_INLINE Isa::Floats OffsetOfBlock() const { return Isa::Halves(block_ + kLayout.offsets); }
  // The sub-offsets of sub-blocks 2 pair and 2 pair + 1.
  KVASIR_INLINE Isa::Pairs SubOffsets(std::size_t pair) const {
    return Isa::LoadPairs(block_ + kLayout.sub_offsets + pair * 32);
  }

 private:
  // The numbers of the table + 128, so that codes are not negative.
  static constexpr std::array<std::uint8_t, 16> kRaised = [] {
    std::array<std::uint8_t, 16> raised{};
    for (std::size_t i = 0; i < 16; ++i)
      raised[i] = static_cast<std::uint8_t>(numbers_of(kRecipe.table)[i] + 128);
    return raised;
  }();
  static constexpr float kFactor = kRecipe.factor;

  template <CodePiece kPiece>
  KVASIR_INLINE static Isa::Bytes Piece(const std::uint8_t* lines) {
    constexpr int kLeft = static_cast<int>(kPiece.to) - static_cast<int>(kPiece.from);
    const Isa::Bytes line = Isa::Load(lines + kPiece.line * kLine);
    if constexpr (kPiece.bits == 8) return line;
    return Isa::And(Isa::template Shift<kLeft>(line), ((1 << kPiece.bits) - 1) << kPiece.to);
  }

  const std::uint8_t* block_ = nullptr;
};

// Columns of a tile.
template <std::size_t kColumns>
struct TileColumns {
  const std::int8_t* bytes[kColumns];
  const std::int16_t* sums[kColumns];  // of sub-blocks
  const float* scales[kColumns];
  const std::int16_t* reaches[kColumns];
};

template <PanelKind kKind, std::size_t kColumns>
KVASIR_INLINE TileColumns<kColumns> ColumnsOf(const ByteColumns& x, std::size_t column) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  TileColumns<kColumns> columns{};
  for (std::size_t c = 0; c < kColumns; ++c) {
    const std::size_t at = (column + c) * x.stride;
    columns.bytes[c] = x.bytes + at;
    columns.sums[c] = kRecipe.sub == 16 ? x.sums16 + at / 16 : x.sums32 + at / 32;
    columns.scales[c] = x.scales + at / kByteBlock;
    columns.reaches[c] = x.reaches + at / kByteBlock;
  }
  return columns;
}

// A sub-block's or 32 numbers' place in the rows, and in their block.
struct Place {
  std::size_t of_row = 0;
  std::size_t of_block = 0;
};

// Adds the products of a sub-block to integer sums: kFirst is its first step in its 32 numbers.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, std::size_t kFirst>
KVASIR_INLINE void AddSubBlock(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x, Place sub,
                               Isa::Ints* whole) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  const std::size_t k = sub.of_row * kRecipe.sub;
  const std::size_t at = sub.of_block * kRecipe.sub / 32;  // in the block
  Unrolled<kRecipe.sub / 4>([&](auto i) KVASIR_INLINE_LAMBDA {
    Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
      const Isa::Bytes codes = blocks[p].template Codes<kFirst + i>(at);
      Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
        Isa::Ints& sum = whole[p * kColumns + c];
        sum = Isa::template Dot<is_wide(kRecipe)>(sum, codes, x.bytes[c] + k + i * 4);
      });
    });
  });
}

// The integer sums of a sub-block.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, std::size_t kFirst>
KVASIR_INLINE void SumSubBlock(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x, Place sub,
                               Isa::Ints* whole) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  constexpr bool kWide = is_wide(kRecipe);
  static_assert(!kWide || kRecipe.zero_bits == 7);
  Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
    const Isa::Ints begin =
        kRecipe.zero_bits < 0 || (kWide && Isa::kWideCodesLoseTheirZero)
            ? Isa::NoInts()
            : Isa::SplatInts(-x.sums[c][sub.of_row] * (1 << std::max(0, kRecipe.zero_bits)));
    Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA { whole[p * kColumns + c] = begin; });
  });
  AddSubBlock<kKind, kPanels, kColumns, kFirst>(blocks, x, sub, whole);
}

// What a sub-block adds to the parts of its block, of which it is the first or not.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, bool kBegin>
KVASIR_INLINE void ScaleSubBlock(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x, Place sub,
                                 const Isa::Ints* whole, Isa::Floats* part) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
    const Isa::Floats scale = blocks[p].Scale(sub.of_block);
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      Isa::Floats& to = part[p * kColumns + c];
      const Isa::Floats number = Isa::ToFloats(whole[p * kColumns + c]);
      if constexpr (kBegin && kRecipe.paired_scale == 0) {
        to = Isa::Mul(number, scale);
      } else {
        to = Isa::MulAdd(number, scale, kBegin ? Isa::Zero() : to);
      }
    });
    if constexpr (kRecipe.offsets && kRecipe.scale == ScaleForm::kHalf) {
      const Isa::Floats offset = blocks[p].Offset(sub.of_block);
      Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
        Isa::Floats& to = part[p * kColumns + c];
        to = Isa::MulAdd(offset, Isa::SplatInt(x.sums[c] + sub.of_row), to);
      });
    }
  });
}

// The sub-blocks of 32 numbers, and what they add to the parts of their block.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, bool kBegin>
KVASIR_INLINE void AddThirtyTwo(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x, Place at,
                                Isa::Floats* part) {
  constexpr std::size_t kSubs = 32 / recipe_of(kKind).sub;
  Unrolled<kSubs>([&](auto s) KVASIR_INLINE_LAMBDA {
    const Place sub = {at.of_row * kSubs + s, at.of_block * kSubs + s};
    Isa::Ints whole[kPanels * kColumns];
    SumSubBlock<kKind, kPanels, kColumns, s * 4>(blocks, x, sub, whole);
    ScaleSubBlock<kKind, kPanels, kColumns, kBegin && s == 0>(blocks, x, sub, whole, part);
  });
}

// Whether sixteen bits hold every sum of a sub-block, of the `index`th block of all columns.
template <PanelKind kKind, std::size_t kColumns>
KVASIR_INLINE bool IsNarrow(const TileColumns<kColumns>& x, std::size_t index) {
  constexpr int kMostCode = (1 << recipe_of(kKind).bits) - 1;
  if constexpr (kMostCode * kMostReach <= 32767) return true;
  int reach = 0;
  Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA { reach = std::max<int>(reach, x.reaches[c][index]); });
  return kMostCode * reach <= 32767;
}

// Adds a pair of narrow sub-blocks, the sums of the first above those of the second, times their sub-scales.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns>
  requires(SumsShareLanes<kKind>())
KVASIR_INLINE void AddPair(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x, Place first,
                           Isa::Ints* sums) {
  constexpr std::size_t kSecond = recipe_of(kKind).sub == 16 ? 4 : 0;
  Isa::Ints both[kPanels * kColumns];
  SumSubBlock<kKind, kPanels, kColumns, 0>(blocks, x, first, both);
  Unrolled<kPanels * kColumns>([&](auto i)
                                   KVASIR_INLINE_LAMBDA { both[i] = IsaOf<kKind>::ToUpperHalf(both[i]); });
  AddSubBlock<kKind, kPanels, kColumns, kSecond>(blocks, x, {first.of_row + 1, first.of_block + 1}, both);
  Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
    const Isa::Pairs scales = blocks[p].SubScales(first.of_block / 2);
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      Isa::Ints& to = sums[p * kColumns + c];
      to = IsaOf<kKind>::DotUpperAndLower(to, both[p * kColumns + c], scales);
    });
  });
}

// The parts of a narrow block, the `index`th of its rows. ask() is called for each 32 numbers, as below.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, class Ask>
KVASIR_INLINE void SumNarrow(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x,
                             std::size_t index, const Ask& ask, Isa::Floats* part) {
  constexpr std::size_t kSub = recipe_of(kKind).sub;
  constexpr std::size_t kSubs = kByteBlock / kSub;
  Isa::Ints sums[kPanels * kColumns];
  Unrolled<kPanels * kColumns>([&](auto i) KVASIR_INLINE_LAMBDA { sums[i] = Isa::NoInts(); });
  for (std::size_t sub = 0; sub < kSubs; sub += 2) {
    for (std::size_t k = sub * kSub; k < (sub + 2) * kSub; k += 32) ask((index * kByteBlock + k) / 32);
    AddPair<kKind, kPanels, kColumns>(blocks, x, {index * kSubs + sub, sub}, sums);
  }
  Unrolled<kPanels * kColumns>([&](auto i) KVASIR_INLINE_LAMBDA { part[i] = Isa::ToFloats(sums[i]); });
}

// The parts of a block, the `index`th of its rows, of `count` times 32 numbers.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, class Ask>
KVASIR_INLINE void SumBlock(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x,
                            std::size_t index, std::size_t count, const Ask& ask, Isa::Floats* part) {
  if constexpr (SumsShareLanes<kKind>()) {
    if (IsNarrow<kKind>(x, index)) return SumNarrow<kKind, kPanels, kColumns>(blocks, x, index, ask, part);
  }
  const std::size_t begin = index * (kByteBlock / 32);
  ask(begin);
  AddThirtyTwo<kKind, kPanels, kColumns, true>(blocks, x, {begin, 0}, part);
  for (std::size_t at = 1; at < count; ++at) {
    ask(begin + at);
    AddThirtyTwo<kKind, kPanels, kColumns, false>(blocks, x, {begin + at, at}, part);
  }
}

// What 256 numbers of the weights share is multiplied once.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns>
KVASIR_INLINE void ScaleBlock(const BlockReader<kKind>* blocks, Isa::Floats* part) {
  Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
    const Isa::Floats scale = blocks[p].ScaleOfBlock();
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      Isa::Floats& to = part[p * kColumns + c];
      to = Isa::Mul(to, scale);
    });
  });
}

// Takes from the parts of a block, the `index`th of a row, what its offsets are.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns>
KVASIR_INLINE void TakeOffsets(const BlockReader<kKind>* blocks, const TileColumns<kColumns>& x,
                               std::size_t index, Isa::Floats* part) {
  constexpr std::size_t kSubs = kByteBlock / recipe_of(kKind).sub;
  Isa::Ints taken[kPanels * kColumns];
  Unrolled<kPanels * kColumns>([&](auto i) KVASIR_INLINE_LAMBDA { taken[i] = Isa::NoInts(); });
  for (std::size_t pair = 0; pair < kSubs / 2; ++pair) {
    Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
      const Isa::Pairs offsets = blocks[p].SubOffsets(pair);
      Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
        Isa::Ints& to = taken[p * kColumns + c];
        to = Isa::DotPairs(to, offsets, x.sums[c] + index * kSubs + pair * 2);
      });
    });
  }
  Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
    const Isa::Floats offset = blocks[p].OffsetOfBlock();
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      Isa::Floats& to = part[p * kColumns + c];
      to = Isa::NegativeMulAdd(Isa::ToFloats(taken[p * kColumns + c]), offset, to);
    });
  });
}

// Numbers of a row that a tile goes through at once: so much of its panels stays in the second cache while
// all columns pass. Whole blocks.
inline constexpr std::size_t kStretch = 8192;

// The numbers [first, last) of some panels, and which of the tiles that go through them one after the other
// this is. Each of the tiles asks for its share of what is read next: `next_panel` from `next` on.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t tile = 0;
  std::size_t tiles = 1;
  std::size_t next_panel = 0;
  std::size_t next = 0;
};

template <PanelKind kKind>
KVASIR_INLINE BlockReader<kKind> PanelOf(const Panels& weights, std::size_t panel) {
  return BlockReader<kKind>(reinterpret_cast<const std::uint8_t*>(weights.panel(panel)));
}

// kPanels panels times kColumns columns. The sums so far are in the output, unless this is their beginning.
// One panel and one column ask for nothing: their processor's guesses are better, and asking disturbs them.
template <PanelKind kKind, std::size_t kPanels, std::size_t kColumns, bool kAsks = true>
[[gnu::noinline]] void MultiplyTile(const Panels& weights, std::size_t panel, const ByteColumns& x,
                                    std::size_t column, const Stretch& stretch, const ProductOutput& out) {
  constexpr CodeRecipe kRecipe = recipe_of(kKind);
  constexpr std::size_t kTile = kPanels * kColumns;
  constexpr std::size_t kOfBlock = kByteBlock / 32;
  BlockReader<kKind> panels[kPanels];
  BlockReader<kKind> ahead[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    panels[p] = PanelOf<kKind>(weights, panel + p);
    ahead[p] = PanelOf<kKind>(weights, stretch.next_panel + p);
  }
  std::size_t asking = stretch.first / 32 + stretch.tile;
  const auto ask = [&](std::size_t at) KVASIR_INLINE_LAMBDA {
    if constexpr (!kAsks) return;
    if (at != asking) return;
    asking += stretch.tiles;
    const std::size_t far = at - stretch.first / 32 + stretch.next / 32;
    if (far >= x.width / 32) return;
    Unrolled<kPanels>([&](auto p)
                          KVASIR_INLINE_LAMBDA { ahead[p].Block(far / kOfBlock).Fetch(far % kOfBlock); });
  };
  const TileColumns<kColumns> columns = ColumnsOf<kKind, kColumns>(x, column);
  const auto sums = [&](auto i) KVASIR_INLINE_LAMBDA {
    return out.sums(column + i % kColumns, panel + i / kColumns);
  };
  Isa::Floats total[kTile];
  Unrolled<kTile>([&](auto i) KVASIR_INLINE_LAMBDA {
    total[i] = stretch.first == 0 ? Isa::Zero() : Isa::LoadFloats(sums(i));
    // They are far away, each in a line of its own; without this they would be waited for when they are
    // stored.
    __builtin_prefetch(sums(i), 1);
  });
  for (std::size_t block = stretch.first / kByteBlock; block * kByteBlock < stretch.last; ++block) {
    const std::size_t count = std::min(kOfBlock, stretch.last / 32 - block * kOfBlock);
    BlockReader<kKind> blocks[kPanels];
    Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA { blocks[p] = panels[p].Block(block); });
    Isa::Floats part[kTile];
    SumBlock<kKind, kPanels, kColumns>(blocks, columns, block, count, ask, part);
    if constexpr (kRecipe.scale == ScaleForm::kSuper) {
      ScaleBlock<kKind, kPanels, kColumns>(blocks, part);
      if constexpr (kRecipe.offsets) TakeOffsets<kKind, kPanels, kColumns>(blocks, columns, block, part);
    }
    Unrolled<kColumns>([&](auto c) KVASIR_INLINE_LAMBDA {
      const Isa::Floats scale = Isa::Splat(columns.scales[c] + block);
      Unrolled<kPanels>([&](auto p) KVASIR_INLINE_LAMBDA {
        Isa::Floats& to = total[p * kColumns + c];
        to = Isa::MulAdd(part[p * kColumns + c], scale, to);
      });
    });
  }
  Unrolled<kTile>([&](auto i) KVASIR_INLINE_LAMBDA { Isa::Store(total[i], sums(i)); });
}

// Columns that the next tile takes of `left`: as many as fit, but for none that would be left alone.
constexpr std::size_t ColumnsOfTile(std::size_t left) {
  constexpr std::size_t kMost = Isa::kColumnsAtOnce;
  if (left >= kMost && left != kMost + 2) return kMost;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}
constexpr std::size_t TilesOf(std::size_t count) {
  std::size_t tiles = 0;
  for (; count > 0; count -= ColumnsOfTile(count)) ++tiles;
  return tiles;
}

// The first of the panels behind `panel` that are whole tiles; the same again where there are none.
template <std::size_t kPanels>
std::size_t NextPanel(const Panels& weights, std::size_t panel) {
  return panel + 2 * kPanels > weights.panel_count() ? panel : panel + kPanels;
}

// All columns through kPanels panels.
template <PanelKind kKind, std::size_t kPanels>
void MultiplyPanels(const Panels& weights, std::size_t panel, const ByteColumns& x,
                    const ProductOutput& out) {
  Stretch stretch = {.tiles = TilesOf(x.count)};
  // Of about one length, so that each asks for all of the next.
  const std::size_t stretches = (x.width + kStretch - 1) / kStretch;
  const std::size_t length = (x.width / stretches + kByteBlock - 1) / kByteBlock * kByteBlock;
  for (; stretch.first < x.width; stretch.first = stretch.last) {
    stretch.last = std::min(x.width, stretch.first + length);
    const bool more = stretch.last < x.width;
    stretch.next_panel = more ? panel : NextPanel<kPanels>(weights, panel);
    stretch.next = more ? stretch.last : 0;
    stretch.tile = 0;
    for (std::size_t column = 0; column < x.count; ++stretch.tile) {
      const std::size_t some = ColumnsOfTile(x.count - column);
      if (some == Isa::kColumnsAtOnce) {
        MultiplyTile<kKind, kPanels, Isa::kColumnsAtOnce>(weights, panel, x, column, stretch, out);
      } else if (some == 4) {
        MultiplyTile<kKind, kPanels, 4>(weights, panel, x, column, stretch, out);
      } else if (some == 2) {
        MultiplyTile<kKind, kPanels, 2>(weights, panel, x, column, stretch, out);
      } else {
        MultiplyTile<kKind, kPanels, 1>(weights, panel, x, column, stretch, out);
      }
      column += some;
    }
  }
}

// One column: a panel after the other, whole rows at once, so that memory is read from its start to its end.
template <PanelKind kKind>
void MultiplyOne(const Panels& weights, std::size_t panel, const ByteColumns& x, const ProductOutput& out) {
  MultiplyTile<kKind, 1, 1, false>(weights, panel, x, 0, {.last = x.width}, out);
}

template <PanelKind kKind>
void MultiplyKind(const Panels& weights, std::size_t first, std::size_t last, const ByteColumns& x,
                  const ProductOutput& out) {
  std::size_t panel = first;
  if (x.count == 1) {
    for (; panel < last; ++panel) MultiplyOne<kKind>(weights, panel, x, out);
  } else {
    constexpr std::size_t kPanels = Isa::kPanelsAtOnce;
    for (; panel + kPanels <= last; panel += kPanels) MultiplyPanels<kKind, kPanels>(weights, panel, x, out);
    if constexpr (kPanels > 1) {
      for (; panel < last; ++panel) MultiplyPanels<kKind, 1>(weights, panel, x, out);
    }
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
    case PanelKind::kNVFP4:
      return MultiplyKind<PanelKind::kNVFP4>(weights, first, last, x, out);
    case PanelKind::kIQ3_XXS:
      return MultiplyKind<PanelKind::kIQ3_XXS>(weights, first, last, x, out);
    case PanelKind::kIQ3_S:
      return MultiplyKind<PanelKind::kIQ3_S>(weights, first, last, x, out);
    case PanelKind::kIQ2_S:
      return MultiplyKind<PanelKind::kIQ2_S>(weights, first, last, x, out);
    case PanelKind::kTernary:
      return MultiplyKind<PanelKind::kTernary>(weights, first, last, x, out);
    case PanelKind::kF32:
    case PanelKind::kF16:
    case PanelKind::kBF16:
      return;
  }
}
