#include "simd/attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/attention.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/cells-inl.h"
#include "simd/far_cells-inl.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// What a query has gathered from the tiles so far: value sums scaled by e^-max.
struct Gathered {
  alignas(64) float sums[kMaxValueDims];
  float max = kMinusInfinity;
  float weight = 0;
};

// Groups of sixteen cells that are scored together, for so many queries: as many sums as there are registers
// for, so that what is loaded of a key or a query serves several of them.
constexpr std::size_t kScoresAtOnce = kParts == 1 ? 8 : 4;
constexpr std::size_t GroupsAtOnce(std::size_t queries) {
  return kParts == 1 ? (queries > 4 ? 2 : 4) : 1;
}
constexpr std::size_t kGroupsMax = GroupsAtOnce(1);

// Whole groups that wait to be scored together: for the same variants of the queries.
struct WaitingGroups {
  KeyGroup groups[kGroupsMax];
  std::size_t at[kGroupsMax];  // where their scores stand in the tile
  std::size_t count = 0;
  std::size_t variant = 0;

  void add(const KeyGroup& group, std::size_t slot, std::size_t of_variant) {
    groups[count] = group;
    at[count++] = slot;
    variant = of_variant;
  }
};

// One tile of scores, and where the values of its cells lie. A group that reaches into the next tile is
// scored once, whole: what is the next tile's lies behind this one's until CarryOver().
constexpr std::size_t kTileSlots = kTile + kCellLanes;
struct Tile {
  alignas(64) float scores[kQueriesAtOnce][kTileSlots];
  StoredCells values[kTileSlots];
  StoredCells ahead[kTileSlots / kCellLanes];  // keys to ask for beside the values of sixteen slots
  const FarKeys* far = nullptr;
  WaitingGroups waiting;
};

// The ordinals [begin, end) of the tile that begins at ordinal `start`.
struct Stretch {
  std::size_t start;
  std::size_t begin;
  std::size_t end;
};

// The lanes [lane, lane + count) of a group of sixteen cells, whose scores stand in the tile from `at` on.
struct LaneRange {
  std::size_t lane;
  std::size_t count;
  std::size_t at;
};

// What a query takes of a tile: its cells [first, last), whose scores have become weights.
struct Share {
  float* scores;
  Gathered* gathered;
  std::size_t first;
  std::size_t last;
  float keep;  // factor of what was gathered before
  float take;  // factor of the tile's sums
  bool alone;  // nothing was, nor is: the tile's sums are kept as they are
};

// The scores of kGroups groups for kCount queries: sums[g * kCount + q].
template <class Keys, std::size_t kGroups, std::size_t kCount>
HWY_INLINE void Score(const AttentionShape& shape, const KeyGroup* groups, const float* const* queries,
                      F16x* sums) {
  Unrolled<kGroups * kCount>([&](auto i) KVASIR_LAMBDA { sums[i] = Splat(0.0f); });
  Keys::template Dot<kGroups, kCount>(groups, shape.key_dims, queries, sums);
  const F16x scale = Splat(shape.scale);
  Unrolled<kGroups * kCount>([&](auto i) KVASIR_LAMBDA { sums[i] = Mul(sums[i], scale); });
  if (shape.soft_cap == 0) return;
  for (std::size_t i = 0; i < kGroups * kCount; ++i) sums[i] = SoftCapped(sums[i], shape.soft_cap);
}

template <class Keys, std::size_t kGroups, std::size_t kCount>
HWY_NOINLINE void ScoreWhole(const AttentionShape& shape, const KeyGroup* groups, const std::size_t* at,
                             const float* const* queries, float (*out)[kTileSlots]) {
  F16x sums[kGroups * kCount];
  Score<Keys, kGroups, kCount>(shape, groups, queries, sums);
  Unrolled<kCount>([&](auto q) KVASIR_LAMBDA {
    Unrolled<kGroups>([&](auto g) KVASIR_LAMBDA { StoreFloats(sums[g * kCount + q], out[q] + at[g]); });
  });
}

template <class Keys, std::size_t kCount>
HWY_NOINLINE void ScorePart(const AttentionShape& shape, const KeyGroup& group, const LaneRange& lanes,
                            const float* const* queries, float (*out)[kTileSlots]) {
  F16x sums[kCount];
  Score<Keys, 1, kCount>(shape, &group, queries, sums);
  Unrolled<kCount>([&](auto q) KVASIR_LAMBDA {
    alignas(64) float scores[kCellLanes];
    StoreFloats(sums[q], scores);
    for (std::size_t i = 0; i < lanes.count; ++i) out[q][lanes.at + i] = scores[lanes.lane + i];
  });
}

// Calls score(constant, q) for queries [q, q + constant), in the few numbers that there is code for.
template <class Body>
HWY_INLINE void InSome(std::size_t queries, const Body& score) {
  for (std::size_t q = 0; q < queries;) {
    if constexpr (kScoresAtOnce > 4) {
      if (queries - q >= kScoresAtOnce) {
        score(std::integral_constant<std::size_t, kScoresAtOnce>(), q);
        q += kScoresAtOnce;
        continue;
      }
    }
    if (queries - q >= 4) {
      score(std::integral_constant<std::size_t, 4>(), q);
      q += 4;
    } else {
      score(std::integral_constant<std::size_t, 1>(), q);
      q += 1;
    }
  }
}

using Variants = std::array<const float*, kQueriesAtOnce>;
Variants VariantsOf(std::span<const AttentionQuery> queries, std::size_t variant) {
  Variants variants = {};
  for (std::size_t q = 0; q < queries.size(); ++q)
    variants[q] = queries[q].query + variant * queries[q].variant_stride;
  return variants;
}

// Scores the groups that wait.
template <class Keys>
void ScoreWaiting(const AttentionShape& shape, std::span<const AttentionQuery> queries, Tile& tile) {
  WaitingGroups& waiting = tile.waiting;
  const Variants variants = VariantsOf(queries, waiting.variant);
  InSome(queries.size(), [&](auto count, std::size_t q) KVASIR_LAMBDA {
    constexpr std::size_t kAtOnce = GroupsAtOnce(count);
    std::size_t g = 0;
    for (; g + kAtOnce <= waiting.count; g += kAtOnce) {
      ScoreWhole<Keys, kAtOnce, count>(shape, waiting.groups + g, waiting.at + g, variants.data() + q,
                                       tile.scores + q);
    }
    for (; g < waiting.count; ++g) {
      ScoreWhole<Keys, 1, count>(shape, waiting.groups + g, waiting.at + g, variants.data() + q,
                                 tile.scores + q);
    }
    // Once is enough: what is read now is near.
    for (KeyGroup& group : waiting.groups) group.values = group.keys;
  });
  waiting.count = 0;
}

// Where the keys of the group that begins with a cell lie.
HWY_INLINE StoredCells KeysOf(const AttentionShape& shape, const CellLayout& keys, const CellRun& run,
                              std::size_t cell) {
  return {run.keys + shape.keys_offset + cell * keys.number_bytes(),
          run.keys + shape.key_scales_offset + cell * keys.scale_bytes()};
}

// Where the value of a cell lies.
HWY_INLINE StoredCells ValuesOf(const AttentionShape& shape, const CellLayout& values, const CellRun& run,
                                std::size_t cell) {
  return {run.values + shape.values_offset + cell * values.number_bytes(),
          run.values + shape.value_scales_offset + cell * values.scale_bytes()};
}

// Notes where the values of the lanes lie, the first of which is `cell`.
HWY_INLINE void PlaceValues(const AttentionShape& shape, const CellLayout& values, const CellRun& run,
                            std::size_t cell, const LaneRange& lanes, Tile& tile) {
  for (std::size_t i = 0; i < lanes.count; ++i) {
    tile.values[lanes.at + i] = ValuesOf(shape, values, run, cell + i);
  }
}

// Scores some of a group's cells at once.
template <class Keys>
void ScoreLanes(const AttentionShape& shape, const KeyGroup& group, const LaneRange& lanes,
                std::span<const AttentionQuery> queries, std::size_t variant, Tile& tile) {
  const Variants variants = VariantsOf(queries, variant);
  InSome(queries.size(), [&](auto count, std::size_t q) KVASIR_LAMBDA {
    ScorePart<Keys, count>(shape, group, lanes, variants.data() + q, tile.scores + q);
  });
}

// Scores the ordinals of `stretch` that lie in `run`, and the cells behind them in the same group of lanes;
// whole groups may be left waiting. Answers the ordinal behind the last.
template <class Keys>
std::size_t ScoreRun(const AttentionShape& shape, const CellRun& run, std::span<const AttentionQuery> queries,
                     const Stretch& stretch, FarKeys& far, Tile& tile) {
  const CellLayout keys = key_layout(shape.key_element, shape.key_dims);
  const CellLayout values = value_layout(shape.value_element, shape.value_dims);
  std::size_t ordinal = std::max(stretch.begin, run.ordinal);
  const std::size_t run_end = run.ordinal + run.count;
  while (ordinal < std::min(stretch.end, run_end)) {
    const std::size_t cell = run.cell + (ordinal - run.ordinal);
    const std::size_t lane = cell % kCellLanes;
    const LaneRange lanes = {lane, std::min(kCellLanes - lane, run_end - ordinal), ordinal - stretch.start};
    const KeyGroup group = {KeysOf(shape, keys, run, cell - lane), ValuesOf(shape, values, run, cell)};
    tile.ahead[lanes.at / kCellLanes] = far.Of(ordinal + kTile);
    if (lanes.count == kCellLanes) {
      if (tile.waiting.count == kGroupsMax || tile.waiting.variant != run.query)
        ScoreWaiting<Keys>(shape, queries, tile);
      tile.waiting.add(group, lanes.at, run.query);
    } else {
      ScoreLanes<Keys>(shape, group, lanes, queries, run.query, tile);
    }
    PlaceValues(shape, values, run, cell, lanes, tile);
    ordinal += lanes.count;
  }
  return ordinal;
}

template <class Keys>
std::size_t ScoreRuns(const AttentionShape& shape, std::span<const CellRun> runs,
                      std::span<const AttentionQuery> queries, const Stretch& stretch, FarKeys& far,
                      Tile& tile) {
  std::size_t scored = stretch.begin;
  for (const CellRun& run : runs) {
    if (run.ordinal >= stretch.end) break;
    if (run.ordinal + run.count <= stretch.begin) continue;
    scored = ScoreRun<Keys>(shape, run, queries, stretch, far, tile);
  }
  ScoreWaiting<Keys>(shape, queries, tile);
  return scored;
}

// Scores the ordinals of `stretch`, and what ScoreRun() adds to them. Answers the ordinal behind the last.
std::size_t ScoreTile(const AttentionShape& shape, std::span<const CellRun> runs,
                      std::span<const AttentionQuery> queries, const Stretch& stretch, FarKeys& far,
                      Tile& tile) {
  switch (shape.key_element) {
    case CacheElement::kF32:
      return ScoreRuns<FloatKeys<float>>(shape, runs, queries, stretch, far, tile);
    case CacheElement::kF16:
      return ScoreRuns<FloatKeys<hwy::float16_t>>(shape, runs, queries, stretch, far, tile);
    case CacheElement::kBF16:
      return ScoreRuns<FloatKeys<hwy::bfloat16_t>>(shape, runs, queries, stretch, far, tile);
    case CacheElement::kQ8_0:
      return ScoreRuns<Q8_0Keys>(shape, runs, queries, stretch, far, tile);
    case CacheElement::kQ4_0:
      return ScoreRuns<Q4_0Keys>(shape, runs, queries, stretch, far, tile);
  }
  return stretch.begin;
}

// Adds to the scores of the ordinals [begin, end) what each query adds by distance.
void AddBias(const AttentionShape& shape, std::span<const AttentionQuery> queries, std::size_t start,
             std::size_t begin, std::size_t end, Tile& tile) {
  if (shape.positions == nullptr) return;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    if (queries[q].bias == nullptr) continue;
    for (std::size_t ordinal = begin; ordinal < end; ++ordinal) {
      const std::int32_t distance = shape.positions[ordinal] - queries[q].position;
      tile.scores[q][ordinal - start] += queries[q].bias[std::clamp(distance, -shape.reach, shape.reach)];
    }
  }
}

// Moves the first `count` slots behind the tile to its front.
void CarryOver(std::size_t queries, std::size_t count, Tile& tile) {
  for (std::size_t q = 0; q < queries; ++q) std::copy_n(tile.scores[q] + kTile, count, tile.scores[q]);
  std::copy_n(tile.values + kTile, count, tile.values);
}

// Sixteen numbers from `i` on; those outside [first, last) are `rest`.
HWY_NOINLINE F16x LoadPart(const float* numbers, std::size_t i, std::size_t first, std::size_t last,
                           float rest) {
  alignas(64) float lanes[16];
  for (std::size_t l = 0; l < 16; ++l) lanes[l] = i + l >= first && i + l < last ? numbers[i + l] : rest;
  return LoadFloats(lanes);
}

HWY_INLINE F16x LoadWithin(const float* numbers, std::size_t i, std::size_t first, std::size_t last,
                           float rest) {
  const bool whole = first <= i && i + 16 <= last;
  return whole ? LoadFloats(numbers + i) : LoadPart(numbers, i, first, last, rest);
}

// Of sixteen numbers from `i` on, those within [first, last); the others stay.
void StoreWithin(const F16x& values, float* numbers, std::size_t i, std::size_t first, std::size_t last) {
  if (first <= i && i + 16 <= last) return StoreFloats(values, numbers + i);
  alignas(64) float lanes[16];
  StoreFloats(values, lanes);
  for (std::size_t l = 0; l < 16; ++l) {
    if (i + l >= first && i + l < last) numbers[i + l] = lanes[l];
  }
}

struct Greatest {
  float score;   // -infinity where there is none
  bool defined;  // no score is NaN
};

Greatest GreatestOf(const float* scores, std::size_t first, std::size_t last) {
  F16x greatest = Splat(kMinusInfinity);
  auto undefined = hn::IsNaN(greatest.part[0]);
  for (std::size_t i = first / 16 * 16; i < last; i += 16) {
    const F16x some = LoadWithin(scores, i, first, last, kMinusInfinity);
    for (std::size_t p = 0; p < kParts; ++p) {
      const VF part = some.part[p];
      undefined = hn::Or(undefined, hn::IsNaN(part));
      greatest.part[p] = hn::Max(part, greatest.part[p]);
    }
  }
  VF most = greatest.part[0];
  for (std::size_t p = 1; p < kParts; ++p) most = hn::Max(most, greatest.part[p]);
  return {hn::GetLane(hn::MaxOfLanes(DF(), most)), hn::AllFalse(DF(), undefined)};
}

// Replaces the scores [first, last) by e^(score - max) and returns their sum.
float Exponentials(float* scores, std::size_t first, std::size_t last, float max) {
  F16x sums = Splat(0.0f);
  const F16x shift = Splat(max);
  for (std::size_t i = first / 16 * 16; i < last; i += 16) {
    const F16x weights = ExpOfNegative(Sub(LoadWithin(scores, i, first, last, max), shift));
    if (first <= i && i + 16 <= last) {
      StoreFloats(weights, scores + i);
      sums = Add(sums, weights);
    } else {
      StoreWithin(weights, scores, i, first, last);
      sums = Add(sums, LoadWithin(scores, i, first, last, 0.0f));
    }
  }
  return SumLanes(sums);
}

// acc[q * kChunks + c] += weight * value over the cells [first, last), in order. The weights of the kCount
// shares stand in rows of the tile that follow one another.
template <class Values, std::size_t kCount, std::size_t kChunks>
HWY_INLINE void AddCells(const Tile& tile, const Share* shares, std::size_t first, std::size_t last,
                         std::size_t chunk, F16x* acc) {
  F16x sums[kCount * kChunks];
  Unrolled<kCount * kChunks>([&](auto i) KVASIR_LAMBDA { sums[i] = acc[i]; });
  const float* const weights = shares[0].scores;
  for (std::size_t cell = first; cell < last; ++cell) {
    if (chunk == 0) tile.far->AskFor(tile.ahead[cell / kCellLanes], cell % kCellLanes);
    F16x value[kChunks];
    Values::template Load<kChunks>(tile.values[cell], chunk, value);
    Unrolled<kCount>([&](auto q) KVASIR_LAMBDA {
      const F16x weight = Splat(weights[q * kTileSlots + cell]);
      Unrolled<kChunks>([&](auto c) KVASIR_LAMBDA {
        sums[q * kChunks + c] = MulAdd(weight, value[c], sums[q * kChunks + c]);
      });
    });
  }
  Unrolled<kCount * kChunks>([&](auto i) KVASIR_LAMBDA { acc[i] = sums[i]; });
}

// The cells that only some of the queries see, each query by itself.
template <class Values, std::size_t kChunks>
HWY_NOINLINE void AddCellsAlone(const Tile& tile, const Share& share, std::size_t first, std::size_t last,
                                std::size_t chunk, F16x* acc) {
  AddCells<Values, 1, kChunks>(tile, &share, first, last, chunk, acc);
}

// gathered = gathered * keep + sum over the cells of weight * value * take, for the dimensions of kChunks
// chunks.
template <class Values, std::size_t kCount, std::size_t kChunks>
void AddChunks(const Tile& tile, const Share* shares, std::size_t chunk) {
  std::size_t all_first = 0;
  std::size_t all_last = kTile;
  for (std::size_t q = 0; q < kCount; ++q) {
    all_first = std::max(all_first, shares[q].first);
    all_last = std::min(all_last, shares[q].last);
  }
  all_last = std::max(all_last, all_first);
  F16x acc[kCount * kChunks];
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t c = 0; c < kChunks; ++c) acc[q * kChunks + c] = Splat(0.0f);
    const std::size_t last = std::min(all_first, shares[q].last);
    if (shares[q].first < last) {
      AddCellsAlone<Values, kChunks>(tile, shares[q], shares[q].first, last, chunk, acc + q * kChunks);
    }
  }
  AddCells<Values, kCount, kChunks>(tile, shares, all_first, all_last, chunk, acc);
  for (std::size_t q = 0; q < kCount; ++q) {
    if (all_last < shares[q].last) {
      AddCellsAlone<Values, kChunks>(tile, shares[q], all_last, shares[q].last, chunk, acc + q * kChunks);
    }
    for (std::size_t c = 0; c < kChunks; ++c) {
      float* to = shares[q].gathered->sums + (chunk + c) * 16;
      if (shares[q].alone) {
        StoreFloats(acc[q * kChunks + c], to);
        continue;
      }
      StoreFloats(
          MulAdd(acc[q * kChunks + c], Splat(shares[q].take), Mul(LoadFloats(to), Splat(shares[q].keep))),
          to);
    }
  }
}

// Chunks whose sums, for `count` queries, fit into the registers beside a value and a weight.
constexpr std::size_t ChunksAtOnce(std::size_t count) {
  const std::size_t vectors = kParts == 1 ? 24 : 12;
  std::size_t chunks = 4;
  while (chunks > 1 && chunks * count * kParts > vectors) chunks /= 2;
  return chunks;
}

template <class Values, std::size_t kCount>
void AddValues(const AttentionShape& shape, const Tile& tile, const Share* shares) {
  constexpr std::size_t kChunks = ChunksAtOnce(kCount);
  const std::size_t chunks = (shape.value_dims + 15) / 16;
  std::size_t chunk = 0;
  for (; chunk + kChunks <= chunks; chunk += kChunks) AddChunks<Values, kCount, kChunks>(tile, shares, chunk);
  if constexpr (kChunks > 2) {
    for (; chunk + 2 <= chunks; chunk += 2) AddChunks<Values, kCount, 2>(tile, shares, chunk);
  }
  for (; chunk < chunks; ++chunk) AddChunks<Values, kCount, 1>(tile, shares, chunk);
}

// How many of the shares from the first on have rows of the tile that follow one another.
std::size_t Following(std::span<const Share> shares) {
  std::size_t count = 1;
  while (count < shares.size() && shares[count].scores == shares[0].scores + count * kTileSlots) ++count;
  return count;
}

template <class Values>
void AddValues(const AttentionShape& shape, const Tile& tile, std::span<const Share> shares) {
  for (std::size_t q = 0; q < shares.size();) {
    const std::size_t left = Following(shares.subspan(q));
    if (left >= 8) {
      AddValues<Values, 8>(shape, tile, shares.data() + q);
      q += 8;
    } else if (left >= 4) {
      AddValues<Values, 4>(shape, tile, shares.data() + q);
      q += 4;
    } else {
      AddValues<Values, 1>(shape, tile, shares.data() + q);
      q += 1;
    }
  }
}

void AddValues(const AttentionShape& shape, const Tile& tile, std::span<const Share> shares) {
  switch (shape.value_element) {
    case CacheElement::kF32:
      return AddValues<FloatValues<float>>(shape, tile, shares);
    case CacheElement::kF16:
      return AddValues<FloatValues<hwy::float16_t>>(shape, tile, shares);
    case CacheElement::kBF16:
      return AddValues<FloatValues<hwy::bfloat16_t>>(shape, tile, shares);
    case CacheElement::kQ8_0:
      return AddValues<Q8_0Values>(shape, tile, shares);
    case CacheElement::kQ4_0:
      return AddValues<Q4_0Values>(shape, tile, shares);
  }
}

// The first cells from `begin` on, below `end`, that a query sees: all up to where some are hidden.
OrdinalRange NextSeen(const AttentionQuery& query, std::size_t begin, std::size_t end) {
  for (const OrdinalRange& hidden : query.hidden) {
    if (hidden.end <= begin) continue;
    if (hidden.begin > begin) return {begin, std::min<std::size_t>(end, hidden.begin)};
    begin = hidden.end;
  }
  return {begin, end};
}

// What is taken of a tile at once: what each query sees of it without a gap.
struct Shares {
  bool alone = false;
  Share shares[kQueriesAtOnce];
  float maxima[kQueriesAtOnce];        // of the scores
  alignas(64) float factors[16] = {};  // the exponents of `keep`, then those of `take`
  std::size_t count = 0;
};
static_assert(2 * kQueriesAtOnce <= 16);

// Adds the scores [first, last) of a query, unless they weigh nothing.
void AddShare(float* scores, std::size_t first, std::size_t last, Gathered& gathered, Shares& to) {
  if (first >= last) return;
  const Greatest greatest = GreatestOf(scores, first, last);
  if (greatest.score == kMinusInfinity && greatest.defined) return;
  const float new_max = gathered.max > greatest.score ? gathered.max : greatest.score;
  const bool empty = gathered.weight == 0;  // nothing gathered yet
  to.factors[to.count] = empty ? kMinusInfinity : gathered.max - new_max;
  to.factors[kQueriesAtOnce + to.count] = greatest.score - new_max;
  gathered.max = new_max;
  to.maxima[to.count] = greatest.score;
  to.shares[to.count++] = {scores, &gathered, first, last, 0, 0, to.alone};
}

// Turns the scores of the shares into weights and merges their sums, and those of the values, into what the
// queries have gathered.
void TakeShares(const AttentionShape& shape, Tile& tile, Shares& all) {
  StoreFloats(Exp(LoadFloats(all.factors)), all.factors);
  for (std::size_t i = 0; i < all.count; ++i) {
    Share& share = all.shares[i];
    share.keep = all.factors[i];
    share.take = all.factors[kQueriesAtOnce + i];
    const float sum = Exponentials(share.scores, share.first, share.last, all.maxima[i]);
    share.gathered->weight = share.gathered->weight * share.keep + sum * share.take;
  }
  AddValues(shape, tile, std::span<const Share>(all.shares, all.count));
}

// Merges the tile that begins at `start` into what the queries have gathered: what each of them sees up to
// where cells are hidden from it, and then what it sees behind.
void GatherTile(const AttentionShape& shape, std::span<const AttentionQuery> queries, std::size_t start,
                bool alone, Tile& tile, Gathered* gathered) {
  std::array<std::size_t, kQueriesAtOnce> taken = {};
  for (std::size_t q = 0; q < queries.size(); ++q) taken[q] = std::max(start, queries[q].first);
  for (bool more = true; more;) {
    Shares shares;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled as far as counted
    shares.alone = alone;
    more = false;
    for (std::size_t q = 0; q < queries.size(); ++q) {
      const std::size_t end = std::min(start + kTile, queries[q].visible);
      if (taken[q] >= end) continue;
      const OrdinalRange seen = NextSeen(queries[q], taken[q], end);
      taken[q] = seen.end;
      more = more || seen.end < end;
      if (seen.begin < seen.end)
        AddShare(tile.scores[q], seen.begin - start, seen.end - start, gathered[q], shares);
    }
    TakeShares(shape, tile, shares);
  }
}

// e^(sink - max): what a sink adds to the weight that was gathered.
float SinkWeight(float sink, float max) {
  alignas(64) float lanes[16] = {sink - max};
  StoreFloats(Exp(LoadFloats(lanes)), lanes);
  return lanes[0];
}

// Scores the tiles that the queries see, one after the other, and calls take(start, tile) with each.
template <class Take>
void ThroughTiles(const AttentionShape& shape, std::span<const CellRun> runs,
                  std::span<const AttentionQuery> queries, const Take& take) {
  Tile tile;  // NOLINT(cppcoreguidelines-pro-type-member-init): 6 KB, of which what is read is written first
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t visible = 0;
  for (const AttentionQuery& query : queries) {
    if (query.first >= query.visible) continue;
    first = std::min(first, query.first);
    visible = std::max(visible, query.visible);
  }
  FarKeys far(shape, runs);
  tile.far = &far;
  if (!runs.empty() && first < visible) {
    std::ranges::fill(tile.ahead, far.Of(first));  // beside cells that the tile before has scored
    far.AskForTile(first, std::min(visible, first + kTile));
  }
  std::size_t first_run = 0;
  std::size_t scored = first;  // ordinals below are scored or seen by nobody
  for (std::size_t start = first / kTile * kTile; start < visible; start += kTile) {
    while (first_run < runs.size() && runs[first_run].ordinal + runs[first_run].count <= scored) ++first_run;
    const Stretch stretch = {start, scored, std::min(visible, start + kTile)};
    scored = ScoreTile(shape, runs.subspan(first_run), queries, stretch, far, tile);
    AddBias(shape, queries, start, stretch.begin, scored, tile);
    take(start, tile);
    if (scored > start + kTile) CarryOver(queries.size(), scored - (start + kTile), tile);
  }
}

// Writes what a query has read.
void Finish(const AttentionShape& shape, const AttentionQuery& query, const Gathered& gathered) {
  float weight = gathered.weight;
  if (weight != 0 && query.sink != kMinusInfinity) weight += SinkWeight(query.sink, gathered.max);
  for (std::size_t d = 0; d < shape.value_dims; ++d)
    query.out[d] = weight == 0 ? 0.0f : gathered.sums[d] / weight;
}

std::size_t PaddedDims(const AttentionShape& shape) {
  return (shape.value_dims + 15) / 16 * 16;
}

void Attend(const AttentionShape& shape, std::span<const CellRun> runs,
            std::span<const AttentionQuery> queries) {
  std::array<Gathered, kQueriesAtOnce> gathered;
  for (std::size_t q = 0; q < queries.size(); ++q) std::fill_n(gathered[q].sums, PaddedDims(shape), 0.0f);
  ThroughTiles(shape, runs, queries, [&](std::size_t start, Tile& tile) {
    GatherTile(shape, queries, start, false, tile, gathered.data());
  });
  for (std::size_t q = 0; q < queries.size(); ++q) Finish(shape, queries[q], gathered[q]);
}

// What is kept of a query and a tile: these numbers, and from the sixteenth on the sums of values.
enum KeptOf : std::size_t { kKeptMax, kKeptWeight, kKeptSeen, kKeptSums = 16 };

void AttendTiles(const AttentionShape& shape, std::span<const CellRun> runs,
                 std::span<const AttentionQuery> queries, const KeptTiles& tiles) {
  std::array<AttentionQuery, kQueriesAtOnce> some;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    some[q] = queries[q];
    some[q].first = std::max(some[q].first, tiles.begin * kTile);
    some[q].visible = std::min(some[q].visible, tiles.end * kTile);
  }
  const std::span<const AttentionQuery> within = std::span(some).first(queries.size());
  const std::size_t floats = tile_floats(shape.value_dims);
  for (std::size_t i = 0; i < (tiles.end - tiles.begin) * queries.size(); ++i)
    tiles.kept[i * floats + kKeptSeen] = 0;
  ThroughTiles(shape, runs, within, [&](std::size_t start, Tile& tile) {
    std::array<Gathered, kQueriesAtOnce> gathered;
    GatherTile(shape, within, start, true, tile, gathered.data());
    float* to = tiles.kept + (start / kTile - tiles.begin) * within.size() * floats;
    for (std::size_t q = 0; q < within.size(); ++q, to += floats) {
      // Without cells that weigh anything nothing was gathered.
      if (gathered[q].weight == 0) continue;
      to[kKeptMax] = gathered[q].max;
      to[kKeptWeight] = gathered[q].weight;
      to[kKeptSeen] = 1;
      std::copy_n(gathered[q].sums, PaddedDims(shape), to + kKeptSums);
    }
  });
}

void MergeTiles(const AttentionShape& shape, std::span<const AttentionQuery> queries,
                const KeptTiles& tiles) {
  const std::size_t floats = tile_floats(shape.value_dims);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    Gathered gathered;
    std::fill_n(gathered.sums, PaddedDims(shape), 0.0f);
    const float* from = tiles.kept + q * floats;
    for (std::size_t tile = tiles.begin; tile < tiles.end; ++tile, from += queries.size() * floats) {
      if (from[kKeptSeen] == 0) continue;
      const float max = gathered.max > from[kKeptMax] ? gathered.max : from[kKeptMax];
      alignas(64) float factors[16] = {gathered.weight == 0 ? kMinusInfinity : gathered.max - max,
                                       from[kKeptMax] - max};
      StoreFloats(Exp(LoadFloats(factors)), factors);
      gathered.max = max;
      gathered.weight = gathered.weight * factors[0] + from[kKeptWeight] * factors[1];
      for (std::size_t d = 0; d < shape.value_dims; d += 16) {
        const F16x before = Mul(LoadFloats(gathered.sums + d), Splat(factors[0]));
        StoreFloats(MulAdd(LoadFloats(from + kKeptSums + d), Splat(factors[1]), before), gathered.sums + d);
      }
    }
    Finish(shape, queries[q], gathered);
  }
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(Attend);
HWY_EXPORT(AttendTiles);
HWY_EXPORT(MergeTiles);
}  // namespace

void attend(const AttentionShape& shape, std::span<const CellRun> runs,
            std::span<const AttentionQuery> queries) noexcept {
  HWY_DYNAMIC_DISPATCH(Attend)(shape, runs, queries);
}

void attend_tiles(const AttentionShape& shape, std::span<const CellRun> runs,
                  std::span<const AttentionQuery> queries, const KeptTiles& tiles) noexcept {
  HWY_DYNAMIC_DISPATCH(AttendTiles)(shape, runs, queries, tiles);
}

void merge_tiles(const AttentionShape& shape, std::span<const AttentionQuery> queries,
                 const KeptTiles& tiles) noexcept {
  HWY_DYNAMIC_DISPATCH(MergeTiles)(shape, queries, tiles);
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
