#include "simd/attention.h"

#include <algorithm>
#include <array>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/attention.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
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

// One tile of scores, and where the values of its cells lie.
struct Tile {
  alignas(64) float scores[kQueriesAtOnce][kTile];
  const std::byte* values[kTile];
};

// Scores of the lanes [lane, lane + count) of one group of sixteen cells, for kCount queries.
template <class T, std::size_t kCount>
HWY_INLINE void ScoreLanes(const AttentionShape& shape, const T* HWY_RESTRICT keys,
                           const AttentionQuery* queries, std::size_t lane, std::size_t count, std::size_t at,
                           Tile& tile) {
  F16x sums[kCount];
  for (std::size_t q = 0; q < kCount; ++q) sums[q] = Splat(0.0f);
  for (std::size_t d = 0; d < shape.key_dims; ++d) {
    const F16x key = LoadElements(keys + d * kCellLanes);
    for (std::size_t q = 0; q < kCount; ++q) sums[q] = MulAdd(key, Splat(queries[q].query[d]), sums[q]);
  }
  const F16x scale = Splat(shape.scale);
  for (std::size_t q = 0; q < kCount; ++q) {
    alignas(64) float scores[kCellLanes];
    StoreFloats(Mul(sums[q], scale), scores);
    for (std::size_t i = 0; i < count; ++i) tile.scores[q][at + i] = scores[lane + i];
  }
}

template <class T>
void ScoreGroup(const AttentionShape& shape, const T* keys, std::span<const AttentionQuery> queries,
                std::size_t lane, std::size_t count, std::size_t at, Tile& tile) {
  const AttentionQuery* q = queries.data();
  switch (queries.size()) {
    case 1:
      return ScoreLanes<T, 1>(shape, keys, q, lane, count, at, tile);
    case 2:
      return ScoreLanes<T, 2>(shape, keys, q, lane, count, at, tile);
    case 3:
      return ScoreLanes<T, 3>(shape, keys, q, lane, count, at, tile);
    case 4:
      return ScoreLanes<T, 4>(shape, keys, q, lane, count, at, tile);
    case 5:
      return ScoreLanes<T, 5>(shape, keys, q, lane, count, at, tile);
    case 6:
      return ScoreLanes<T, 6>(shape, keys, q, lane, count, at, tile);
    case 7:
      return ScoreLanes<T, 7>(shape, keys, q, lane, count, at, tile);
    default:
      return ScoreLanes<T, 8>(shape, keys, q, lane, count, at, tile);
  }
}

// Fills the tile that begins at ordinal `start` with the scores of the ordinals [start, end) that lie in
// `run`.
template <class T>
void ScoreRun(const AttentionShape& shape, const CellRun& run, std::span<const AttentionQuery> queries,
              std::size_t start, std::size_t end, Tile& tile) {
  const std::size_t value_bytes = (shape.value_dims + 15) / 16 * 16 * element_bytes(shape.value_element);
  const std::byte* values = run.values + shape.values_offset;
  std::size_t ordinal = std::max(start, run.ordinal);
  const std::size_t last = std::min(end, run.ordinal + run.count);
  while (ordinal < last) {
    const std::size_t cell = run.cell + (ordinal - run.ordinal);
    const std::size_t lane = cell % kCellLanes;
    const std::size_t count = std::min(kCellLanes - lane, last - ordinal);
    const T* keys = reinterpret_cast<const T*>(run.keys + shape.keys_offset) +
                    cell / kCellLanes * kCellLanes * shape.key_dims;
    ScoreGroup(shape, keys, queries, lane, count, ordinal - start, tile);
    for (std::size_t i = 0; i < count; ++i)
      tile.values[ordinal - start + i] = values + (cell + i) * value_bytes;
    ordinal += count;
  }
}

void ScoreTile(const AttentionShape& shape, std::span<const CellRun> runs,
               std::span<const AttentionQuery> queries, std::size_t start, std::size_t end, Tile& tile) {
  for (const CellRun& run : runs) {
    if (run.ordinal >= end) break;
    if (run.ordinal + run.count <= start) continue;
    switch (shape.key_element) {
      case CacheElement::kF32:
        ScoreRun<float>(shape, run, queries, start, end, tile);
        break;
      case CacheElement::kF16:
        ScoreRun<hwy::float16_t>(shape, run, queries, start, end, tile);
        break;
      case CacheElement::kBF16:
        ScoreRun<hwy::bfloat16_t>(shape, run, queries, start, end, tile);
        break;
    }
  }
}

// Replaces `count` scores by e^(score - max) and returns their sum. Scores behind `count` are replaced, never
// used.
float Exponentials(float* scores, std::size_t count, float max) {
  F16x sums = Splat(0.0f);
  const F16x shift = Splat(max);
  for (std::size_t i = 0; i < count; i += 16) {
    const std::size_t some = std::min<std::size_t>(16, count - i);
    const F16x e = Exp(Sub(LoadSome(scores + i, some, max), shift));
    StoreFloats(e, scores + i);
    sums = Add(sums, some == 16 ? e : LoadSome(scores + i, some, 0.0f));
  }
  return SumLanes(sums);
}

// gathered = gathered * keep + sum over the tile's cells of weight * value * take, sixteen dimensions at a
// time; the cells are added in order.
template <class T>
void AddValues(const Tile& tile, const float* weights, std::size_t count, std::size_t dims, float keep,
               float take, float* sums) {
  constexpr std::size_t kAtOnce = 4;
  for (std::size_t d = 0; d < dims; d += 16 * kAtOnce) {
    const std::size_t blocks = std::min(kAtOnce, (dims - d + 15) / 16);
    F16x acc[kAtOnce] = {Splat(0.0f), Splat(0.0f), Splat(0.0f), Splat(0.0f)};
    for (std::size_t i = 0; i < count; ++i) {
      const T* value = reinterpret_cast<const T*>(tile.values[i]) + d;
      const F16x weight = Splat(weights[i]);
      if (blocks == kAtOnce) {
        for (std::size_t b = 0; b < kAtOnce; ++b)
          acc[b] = MulAdd(weight, LoadElements(value + b * 16), acc[b]);
      } else {
        for (std::size_t b = 0; b < blocks; ++b)
          acc[b] = MulAdd(weight, LoadElements(value + b * 16), acc[b]);
      }
    }
    for (std::size_t b = 0; b < blocks; ++b) {
      float* to = sums + d + b * 16;
      StoreFloats(MulAdd(acc[b], Splat(take), Mul(LoadFloats(to), Splat(keep))), to);
    }
  }
}

// Merges the first `count` ordinals of the tile into what query `q` has gathered.
void GatherTile(const AttentionShape& shape, Tile& tile, std::size_t q, std::size_t count,
                Gathered& gathered) {
  float* scores = tile.scores[q];
  float max = kMinusInfinity;
  bool defined = true;
  for (std::size_t i = 0; i < count; ++i) {
    max = scores[i] > max ? scores[i] : max;
    defined = defined && scores[i] == scores[i];
  }
  if (max == kMinusInfinity && defined) return;  // every score is -infinity: these cells weigh nothing
  const float sum = Exponentials(scores, count, max);
  const float new_max = gathered.max > max ? gathered.max : max;
  alignas(64) float factors[16] = {gathered.max - new_max, max - new_max};
  if (gathered.weight == 0) factors[0] = kMinusInfinity;  // nothing gathered yet
  StoreFloats(Exp(LoadFloats(factors)), factors);
  const float keep = factors[0];
  const float take = factors[1];
  switch (shape.value_element) {
    case CacheElement::kF32:
      AddValues<float>(tile, scores, count, shape.value_dims, keep, take, gathered.sums);
      break;
    case CacheElement::kF16:
      AddValues<hwy::float16_t>(tile, scores, count, shape.value_dims, keep, take, gathered.sums);
      break;
    case CacheElement::kBF16:
      AddValues<hwy::bfloat16_t>(tile, scores, count, shape.value_dims, keep, take, gathered.sums);
      break;
  }
  gathered.weight = gathered.weight * keep + sum * take;
  gathered.max = new_max;
}

void Attend(const AttentionShape& shape, std::span<const CellRun> runs,
            std::span<const AttentionQuery> queries) {
  Tile tile;
  std::array<Gathered, kQueriesAtOnce> gathered;
  const std::size_t padded = (shape.value_dims + 15) / 16 * 16;
  std::size_t visible = 0;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    visible = std::max(visible, queries[q].visible);
    std::fill_n(gathered[q].sums, padded, 0.0f);
  }
  std::size_t first_run = 0;
  for (std::size_t start = 0; start < visible; start += kTile) {
    while (first_run < runs.size() && runs[first_run].ordinal + runs[first_run].count <= start) ++first_run;
    ScoreTile(shape, runs.subspan(first_run), queries, start, std::min(visible, start + kTile), tile);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      if (queries[q].visible <= start) continue;
      GatherTile(shape, tile, q, std::min(kTile, queries[q].visible - start), gathered[q]);
    }
  }
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const float weight = gathered[q].weight;
    for (std::size_t d = 0; d < shape.value_dims; ++d) {
      queries[q].out[d] = weight == 0 ? 0.0f : gathered[q].sums[d] / weight;
    }
  }
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(Attend);
}  // namespace

void attend(const AttentionShape& shape, std::span<const CellRun> runs,
            std::span<const AttentionQuery> queries) noexcept {
  HWY_DYNAMIC_DISPATCH(Attend)(shape, runs, queries);
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
