// Attention of floats against a double-precision loop, against its definition in plain loops, and against
// itself on other layouts of the same cells. The types of the cache are tests/kv's.

#include "simd/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "simd/naive_attention.h"

namespace kvasir::simd {
namespace {

constexpr std::size_t kPageCells = 32;

// One head's keys and values in pages, each cell at a place of its own choosing.
class Cells {
 public:
  Cells(std::size_t dims, std::size_t pages, float poison) : dims_(dims), padded_((dims + 15) / 16 * 16) {
    keys_.assign(pages * kPageCells * dims_, poison);
    values_.assign(pages * kPageCells * padded_, poison);
  }

  void put(std::size_t place, const float* key, const float* value) {
    const std::size_t page = place / kPageCells;
    const std::size_t cell = place % kPageCells;
    float* keys = keys_.data() + page * kPageCells * dims_ + cell / 16 * 16 * dims_ + cell % 16;
    for (std::size_t d = 0; d < dims_; ++d) keys[d * 16] = key[d];
    std::memcpy(values_.data() + place * padded_, value, dims_ * sizeof(float));
    std::fill_n(values_.data() + place * padded_ + dims_, padded_ - dims_, 0.0f);
  }

  [[nodiscard]] CellRun run(std::size_t place, std::size_t count, std::size_t ordinal) const {
    const std::size_t page = place / kPageCells;
    return {reinterpret_cast<const std::byte*>(keys_.data() + page * kPageCells * dims_),
            reinterpret_cast<const std::byte*>(values_.data() + page * kPageCells * padded_),
            place % kPageCells, count, ordinal};
  }

 private:
  std::size_t dims_;
  std::size_t padded_;
  std::vector<float> keys_;
  std::vector<float> values_;
};

struct Data {
  std::vector<float> keys, values, queries;
};

Data random_data(std::size_t cells, std::size_t dims, std::size_t queries, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Data data{std::vector<float>(cells * dims), std::vector<float>(cells * dims),
            std::vector<float>(queries * dims)};
  for (auto* part : {&data.keys, &data.values, &data.queries}) {
    for (float& value : *part) value = normal(random);
  }
  return data;
}

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// What a query sees: the ordinals [first, visible) but for those hidden, and its sink.
struct Sight {
  std::size_t visible = 0;
  std::size_t first = 0;
  std::vector<OrdinalRange> hidden;
  float sink = kMinusInfinity;
  std::int32_t position = 0;  // for biases
};

std::vector<Sight> from_the_start(const std::vector<std::size_t>& visible) {
  std::vector<Sight> sights;
  for (const std::size_t count : visible) sights.push_back({count});
  return sights;
}

constexpr std::int32_t kReach = 20;

// How the cells lie: the cell at ordinal `first` + i at places[i], scored by the variant variants[first + i].
struct Lay {
  std::vector<std::size_t> places;
  std::size_t first = 0;
  std::vector<std::uint32_t> variants;
  std::size_t variant_count = 1;
  float poison = 0;
  float soft_cap = 0;
  std::vector<std::int32_t> positions;  // by ordinal, where scores are biased
  std::vector<float> biases;            // of the distances [-kReach, kReach]
  std::size_t pieces = 1;               // in which the tiles are gone through, if more, the last piece first

  [[nodiscard]] std::uint32_t variant(std::size_t i) const {
    return variants.empty() ? 0 : variants[first + i];
  }
};

// One run for each contiguous piece of one variant.
std::vector<CellRun> runs_of(const Cells& cells, const Lay& lay) {
  std::vector<CellRun> runs;
  for (std::size_t i = 0; i < lay.places.size();) {
    std::size_t count = 1;
    while (i + count < lay.places.size() && lay.places[i + count] == lay.places[i] + count &&
           lay.places[i + count] % kPageCells != 0 && lay.variant(i + count) == lay.variant(i)) {
      ++count;
    }
    runs.push_back(cells.run(lay.places[i], count, lay.first + i));
    runs.back().query = lay.variant(i);
    i += count;
  }
  return runs;
}

// Query q of a Data has its variants one behind the other.
std::vector<AttentionQuery> queries_of(const Data& data, std::size_t dims, const std::vector<Sight>& sights,
                                       std::size_t variant_count, std::vector<float>& out) {
  out.assign(sights.size() * dims, 0);
  std::vector<AttentionQuery> queries;
  for (std::size_t q = 0; q < sights.size(); ++q) {
    queries.push_back({.query = data.queries.data() + q * variant_count * dims,
                       .out = out.data() + q * dims,
                       .visible = sights[q].visible,
                       .first = sights[q].first,
                       .variant_stride = dims,
                       .hidden = sights[q].hidden,
                       .sink = sights[q].sink});
  }
  return queries;
}

constexpr float kScale = 0.25f;

// attend() in its two steps.
void attend_in_pieces(const AttentionShape& shape, std::span<const CellRun> runs,
                      std::span<const AttentionQuery> queries, std::size_t pieces) {
  KeptTiles all = {.begin = SIZE_MAX};
  for (const AttentionQuery& query : queries) {
    all.begin = std::min(all.begin, query.first / kTile);
    all.end = std::max(all.end, (query.visible + kTile - 1) / kTile);
  }
  all.begin = std::min(all.begin, all.end);
  const std::size_t tiles = all.end - all.begin;
  const std::size_t of_tile = queries.size() * tile_floats(shape.value_dims);
  // What nobody writes is NaN.
  std::vector<float> memory(tiles * of_tile + 16, NAN);
  all.kept = memory.data();
  while (reinterpret_cast<std::uintptr_t>(all.kept) % 64 != 0) ++all.kept;
  for (std::size_t piece = pieces; piece-- > 0;) {
    const std::size_t begin = tiles * piece / pieces;
    const std::size_t end = tiles * (piece + 1) / pieces;
    attend_tiles(shape, runs, queries, {all.begin + begin, all.begin + end, all.kept + begin * of_tile});
  }
  merge_tiles(shape, queries, all);
}

std::vector<float> attend_at(const Data& data, const Lay& lay, std::size_t dims,
                             const std::vector<Sight>& sights) {
  std::size_t pages = 0;
  for (const std::size_t place : lay.places) pages = std::max(pages, place / kPageCells + 1);
  Cells cells(dims, pages, lay.poison);
  for (std::size_t i = 0; i < lay.places.size(); ++i) {
    const std::size_t at = (lay.first + i) * dims;
    cells.put(lay.places[i], data.keys.data() + at, data.values.data() + at);
  }
  const std::vector<CellRun> runs = runs_of(cells, lay);
  std::vector<float> out;
  std::vector<AttentionQuery> queries = queries_of(data, dims, sights, lay.variant_count, out);
  AttentionShape shape{.key_dims = dims, .value_dims = dims, .scale = kScale, .soft_cap = lay.soft_cap};
  if (!lay.biases.empty()) {
    shape.positions = lay.positions.data();
    shape.reach = kReach;
    for (std::size_t q = 0; q < queries.size(); ++q) {
      queries[q].bias = lay.biases.data() + kReach;
      queries[q].position = sights[q].position;
    }
  }
  for (std::size_t q = 0; q < queries.size(); q += kQueriesAtOnce) {
    const std::span some = std::span(queries).subspan(q, std::min(kQueriesAtOnce, queries.size() - q));
    if (lay.pieces == 1) {
      attend(shape, runs, some);
    } else {
      attend_in_pieces(shape, runs, some, lay.pieces);
    }
  }
  return out;
}

std::vector<float> attend_at(const Data& data, const std::vector<std::size_t>& places, std::size_t dims,
                             const std::vector<std::size_t>& visible, float poison) {
  return attend_at(data, Lay{.places = places, .poison = poison}, dims, from_the_start(visible));
}

// The same by the definition.
std::vector<float> naive(const Data& data, std::size_t dims, const std::vector<Sight>& sights,
                         const std::vector<std::uint32_t>& variants = {}, std::size_t variant_count = 1,
                         float soft_cap = 0) {
  test::NaiveCells cells{.variants = variants};
  for (std::size_t at = 0; at < data.keys.size(); at += dims) {
    const auto begin = static_cast<std::ptrdiff_t>(at);
    const auto end = static_cast<std::ptrdiff_t>(at + dims);
    cells.keys.emplace_back(data.keys.begin() + begin, data.keys.begin() + end);
    cells.values.emplace_back(data.values.begin() + begin, data.values.begin() + end);
  }
  std::vector<float> unused;
  std::vector<float> out;
  for (const AttentionQuery& query : queries_of(data, dims, sights, variant_count, unused)) {
    const std::vector<float> one = test::naive_attention(cells, query, {kScale, soft_cap});
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<std::size_t> in_order(std::size_t cells) {
  std::vector<std::size_t> places(cells);
  for (std::size_t i = 0; i < cells; ++i) places[i] = i;
  return places;
}

// Distinct places in three times as many, in any order or ascending with gaps.
std::vector<std::size_t> scattered(std::size_t cells, bool ascending, std::mt19937& random) {
  std::vector<std::size_t> places = in_order(3 * cells);
  std::shuffle(places.begin(), places.end(), random);
  places.resize(cells);
  if (ascending) std::ranges::sort(places);
  return places;
}

TEST(Attention, AgreesWithDoublePrecision) {
  const std::size_t dims = 24;
  const std::size_t cells = 300;
  const Data data = random_data(cells, dims, 3, 1);
  const std::vector<std::size_t> visible = {1, 129, 300};
  const std::vector<float> out = attend_at(data, in_order(cells), dims, visible, 0);
  for (std::size_t q = 0; q < visible.size(); ++q) {
    std::vector<double> scores(visible[q]);
    double max = -1e300;
    for (std::size_t i = 0; i < visible[q]; ++i) {
      double dot = 0;
      for (std::size_t d = 0; d < dims; ++d) {
        dot += static_cast<double>(data.queries[q * dims + d]) * static_cast<double>(data.keys[i * dims + d]);
      }
      scores[i] = dot * 0.25;
      max = std::max(max, scores[i]);
    }
    double weight = 0;
    for (double& score : scores) weight += score = std::exp(score - max);
    for (std::size_t d = 0; d < dims; ++d) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t i = 0; i < visible[q]; ++i) {
        sum += scores[i] * static_cast<double>(data.values[i * dims + d]);
        magnitude += std::fabs(scores[i] * static_cast<double>(data.values[i * dims + d]));
      }
      // A weight is off by up to (24 + 16) roundings of a score near 10; the sums add 300 more of relative
      // size.
      ASSERT_NEAR(sum / weight, static_cast<double>(out[q * dims + d]),
                  magnitude / weight * 1000 * std::ldexp(1, -24));
    }
  }
}

TEST(Attention, GivesTheSameBitsWhereverTheCellsLieAndWhateverLiesBetweenThem) {
  const std::size_t dims = 16;
  const std::size_t cells = 200;
  const Data data = random_data(cells, dims, 9, 2);
  const std::vector<std::size_t> visible = {1, 2, 16, 17, 127, 128, 129, 199, 200};
  const std::vector<float> plain = attend_at(data, in_order(cells), dims, visible, 0);
  const float poison = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<std::size_t> places = scattered(cells, trial % 2 == 0, random);
    ASSERT_TRUE(same_bits(plain, attend_at(data, places, dims, visible, poison))) << "trial " << trial;
  }
}

TEST(Attention, GivesAQueryTheSameBitsAloneAndBesideOthers) {
  const std::size_t dims = 20;
  const Data data = random_data(150, dims, 8, 4);
  const std::vector<std::size_t> visible = {150, 3, 77, 150, 149, 1, 128, 129};
  const std::vector<float> together = attend_at(data, in_order(150), dims, visible, 0);
  for (std::size_t q = 0; q < visible.size(); ++q) {
    Data alone = data;
    alone.queries.assign(data.queries.begin() + static_cast<std::ptrdiff_t>(q * dims),
                         data.queries.begin() + static_cast<std::ptrdiff_t>((q + 1) * dims));
    const std::vector<float> out = attend_at(alone, in_order(150), dims, {visible[q]}, 0);
    ASSERT_EQ(0, std::memcmp(out.data(), together.data() + q * dims, dims * sizeof(float))) << "query " << q;
  }
}

TEST(Attention, LetsACellOfInfinitelyNegativeScoreWeighNothing) {
  const std::size_t dims = 16;
  Data data = random_data(2, dims, 1, 5);
  for (std::size_t d = 0; d < dims; ++d) data.queries[d] = 1;
  for (std::size_t d = 0; d < dims; ++d) data.keys[d] = -std::numeric_limits<float>::infinity();
  const std::vector<float> out = attend_at(data, in_order(2), dims, {2}, 0);
  for (std::size_t d = 0; d < dims; ++d) EXPECT_EQ(data.values[dims + d], out[d]);
  const std::vector<float> none = attend_at(data, in_order(2), dims, {1}, 0);
  for (std::size_t d = 0; d < dims; ++d) EXPECT_EQ(0, none[d]);
}

TEST(Attention, GivesTheBitsOfItsDefinition) {
  for (const std::size_t dims : {1U, 7U, 16U, 24U, 64U, 80U, 96U, 128U, 200U}) {
    const std::vector<std::size_t> visible = {1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 257, 300, 77};
    const Data data = random_data(300, dims, visible.size(), static_cast<unsigned>(dims));
    const std::vector<Sight> sights = from_the_start(visible);
    EXPECT_TRUE(same_bits(naive(data, dims, sights), attend_at(data, {in_order(300)}, dims, sights))) << dims;
  }
}

TEST(Attention, KeepsTheBitsOfItsDefinitionWhereScoresAreInfiniteOrLarge) {
  const std::size_t dims = 16;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(6);
  for (int trial = 0; trial < 50; ++trial) {
    Data data = random_data(200, dims, 8, random());
    for (float& query : data.queries) query = std::fabs(query) + 0.01f;
    for (int i = 0; i < 150; ++i) {
      const std::size_t cell = random() % 200;
      const float factor = random() % 2 == 0 ? -kInfinity : 50.0f;
      for (std::size_t d = 0; d < dims; ++d) {
        float& key = data.keys[cell * dims + d];
        key = std::fabs(key) * factor;
      }
    }
    std::vector<Sight> sights;
    for (int q = 0; q < 8; ++q) {
      const std::size_t visible = 1 + random() % 200;
      sights.push_back({visible, random() % visible});
    }
    ASSERT_TRUE(same_bits(naive(data, dims, sights), attend_at(data, {in_order(200)}, dims, sights)))
        << "trial " << trial;
  }
}

TEST(Attention, OfAWindowReadsNothingBelowIt) {
  const std::size_t dims = 24;
  const std::size_t cells = 700;
  const float poison = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    // Queries that follow one another, as in a prompt, or that have nothing to do with one another.
    std::vector<Sight> sights;
    const std::size_t count = 1 + random() % kQueriesAtOnce;
    const std::size_t width = 1 + random() % 300;
    const std::size_t end = count + random() % (cells - count);
    for (std::size_t q = 0; q < count; ++q) {
      const std::size_t visible = trial % 2 == 0 ? end - count + q + 1 : 1 + random() % cells;
      sights.push_back({visible, visible > width ? visible - width : 0});
    }
    Data data = random_data(cells, dims, count, random());
    const std::vector<float> expected = naive(data, dims, sights);
    std::size_t first = cells;
    for (const Sight& sight : sights) first = std::min(first, sight.first);
    // Below every window the runs may be there, poisoned, or be missing.
    std::fill_n(data.keys.begin(), first * dims, poison);
    std::fill_n(data.values.begin(), first * dims, poison);
    const std::vector<std::size_t> all = scattered(cells, trial % 3 == 0, random);
    ASSERT_TRUE(same_bits(expected, attend_at(data, {.places = all, .poison = poison}, dims, sights)))
        << "trial " << trial;
    const std::vector<std::size_t> above(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
    ASSERT_TRUE(same_bits(expected,
                          attend_at(data, {.places = above, .first = first, .poison = poison}, dims, sights)))
        << "trial " << trial;
  }
}

TEST(Attention, OfAWindowIsUnmovedByWhatOnlyOtherQueriesSee) {
  const std::size_t dims = 16;
  const std::size_t cells = 400;
  const std::vector<Sight> sights = {{400, 0}, {130, 100}, {400, 399}, {129, 128}, {300, 140}};
  Data data = random_data(cells, dims, sights.size(), 8);
  for (std::size_t q = 0; q < sights.size(); ++q) {
    Data masked = data;
    for (std::size_t i = 0; i < cells; ++i) {
      if (i >= sights[q].first && i < sights[q].visible) continue;
      std::fill_n(masked.keys.begin() + static_cast<std::ptrdiff_t>(i * dims), dims, NAN);
      std::fill_n(masked.values.begin() + static_cast<std::ptrdiff_t>(i * dims), dims, NAN);
    }
    const std::vector<float> clean = attend_at(data, {in_order(cells)}, dims, sights);
    const std::vector<float> poisoned = attend_at(masked, {in_order(cells)}, dims, sights);
    ASSERT_EQ(0, std::memcmp(clean.data() + q * dims, poisoned.data() + q * dims, dims * sizeof(float)))
        << "query " << q;
  }
}

TEST(Attention, OfAnEmptyWindowIsZero) {
  const std::size_t dims = 20;
  const Data data = random_data(40, dims, 3, 9);
  const std::vector<Sight> sights = {{40, 0}, {10, 10}, {20, 30}};
  const std::vector<float> out = attend_at(data, {in_order(40)}, dims, sights);
  const std::vector<float> whole = attend_at(data, {in_order(40)}, dims, {{40, 0}});
  EXPECT_EQ(0, std::memcmp(out.data(), whole.data(), dims * sizeof(float)));
  EXPECT_EQ(std::vector<float>(out.begin() + static_cast<std::ptrdiff_t>(dims), out.end()),
            std::vector<float>(2 * dims));
}

// Random ranges within [first, visible), which ascend and do not meet.
std::vector<OrdinalRange> random_ranges(std::size_t first, std::size_t visible, std::mt19937& random) {
  std::vector<OrdinalRange> ranges;
  for (std::size_t at = first + random() % 40; at < visible;) {
    const std::size_t end = std::min<std::size_t>(visible, at + 1 + random() % 150);
    ranges.push_back({at, end});
    at = end + 1 + random() % 200;
  }
  return ranges;
}

TEST(Attention, ReadsNothingThatIsHiddenInTheMiddle) {
  const std::size_t dims = 20;
  const std::size_t cells = 500;
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<Sight> sights;
    const std::size_t count = 1 + random() % kQueriesAtOnce;
    // The same cells are hidden from all, so that they may be poisoned.
    const std::vector<OrdinalRange> ranges = random_ranges(0, cells, random);
    for (std::size_t q = 0; q < count; ++q) {
      const std::size_t visible = 1 + random() % cells;
      sights.push_back(
          {visible, random() % visible, random() % 4 == 0 ? std::vector<OrdinalRange>() : ranges});
    }
    Data data = random_data(cells, dims, count, random());
    const std::vector<float> expected = naive(data, dims, sights);
    const std::vector<std::size_t> places = scattered(cells, trial % 2 == 0, random);
    ASSERT_TRUE(same_bits(expected, attend_at(data, {.places = places, .poison = NAN}, dims, sights)))
        << "trial " << trial;
    for (Sight& sight : sights) sight.hidden = ranges;
    const std::vector<float> clean = naive(data, dims, sights);
    for (const OrdinalRange& range : ranges) {
      for (std::vector<float>* const part : {&data.keys, &data.values}) {
        std::fill(part->begin() + static_cast<std::ptrdiff_t>(range.begin * dims),
                  part->begin() + static_cast<std::ptrdiff_t>(range.end * dims), NAN);
      }
    }
    ASSERT_TRUE(same_bits(clean, attend_at(data, {.places = places, .poison = NAN}, dims, sights)))
        << "trial " << trial;
  }
}

TEST(Attention, GivesASinkItsPartOfTheWeight) {
  const std::size_t dims = 16;
  const std::size_t cells = 300;
  const std::vector<float> sinks = {kMinusInfinity, -200.0f, -1.0f, 0.0f, 3.0f, 60.0f, 200.0f, NAN};
  std::vector<Sight> sights;
  for (const float sink : sinks) sights.push_back({.visible = cells, .sink = sink});
  Data data = random_data(cells, dims, sinks.size(), 12);
  for (std::size_t q = 1; q < sinks.size(); ++q)
    std::copy_n(data.queries.begin(), dims, data.queries.begin() + static_cast<std::ptrdiff_t>(q * dims));
  const std::vector<float> out = attend_at(data, {in_order(cells)}, dims, sights);
  EXPECT_TRUE(same_bits(naive(data, dims, sights), out) || std::isnan(out[7 * dims]));
  EXPECT_TRUE(same_bits({out.begin(), out.begin() + dims}, {out.begin() + dims, out.begin() + 2 * dims}))
      << "a sink far below every score takes nothing";
  double weight = 0;
  for (std::size_t i = 0; i < cells; ++i) {
    double score = 0;
    for (std::size_t d = 0; d < dims; ++d)
      score += static_cast<double>(data.queries[d]) * static_cast<double>(data.keys[i * dims + d]);
    weight += std::exp(score * static_cast<double>(kScale));
  }
  for (std::size_t q = 2; q < 6; ++q) {
    const double part = weight / (weight + std::exp(static_cast<double>(sinks[q])));
    for (std::size_t d = 0; d < dims; ++d)
      ASSERT_NEAR(static_cast<double>(out[d]) * part, static_cast<double>(out[q * dims + d]), 1e-5);
  }
  for (std::size_t d = 0; d < dims; ++d) {
    EXPECT_EQ(0, out[6 * dims + d]) << "a sink far above every score takes all";
    EXPECT_TRUE(std::isnan(out[7 * dims + d]));
  }
}

TEST(Attention, CapsScoresSoftly) {
  const std::size_t dims = 40;
  const std::size_t cells = 300;
  const std::vector<Sight> sights = from_the_start({1, 2, 16, 129, 300});
  const Data data = random_data(cells, dims, sights.size(), 13);
  for (const float cap : {0.5f, 8.0f, 50.0f}) {
    const std::vector<float> out =
        attend_at(data, {.places = in_order(cells), .soft_cap = cap}, dims, sights);
    EXPECT_TRUE(same_bits(naive(data, dims, sights, {}, 1, cap), out));
    EXPECT_FALSE(same_bits(attend_at(data, {in_order(cells)}, dims, sights), out));
  }
}

TEST(Attention, ScoresEveryRunWithItsOwnVariantOfTheQuery) {
  const std::size_t dims = 16;
  const std::size_t cells = 300;
  std::mt19937 random(10);
  for (int trial = 0; trial < 30; ++trial) {
    const std::size_t variant_count = 1 + random() % 5;
    const std::size_t count = 1 + random() % kQueriesAtOnce;
    const Data data = random_data(cells, dims, count * variant_count, random());
    std::vector<std::uint32_t> variants(cells);
    for (std::size_t i = 1; i < cells; ++i) {
      variants[i] =
          random() % 20 == 0 ? static_cast<std::uint32_t>(random() % variant_count) : variants[i - 1];
    }
    std::vector<Sight> sights;
    for (std::size_t q = 0; q < count; ++q) {
      const std::size_t visible = 1 + random() % cells;
      sights.push_back({visible, random() % visible});
    }
    const Lay lay{.places = scattered(cells, trial % 2 == 0, random),
                  .variants = variants,
                  .variant_count = variant_count,
                  .poison = NAN};
    ASSERT_TRUE(
        same_bits(naive(data, dims, sights, variants, variant_count), attend_at(data, lay, dims, sights)))
        << "trial " << trial;
  }
}

TEST(Attention, GivesTheBitsOfItsDefinitionInPiecesOfTilesThatAreMerged) {
  const std::size_t dims = 40;
  const std::size_t cells = 1100;
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t variant_count = 1 + random() % 3;
    const std::size_t count = 1 + random() % kQueriesAtOnce;
    const Data data = random_data(cells, dims, count * variant_count, random());
    std::vector<std::uint32_t> variants(cells);
    for (std::size_t i = 0; i < cells; ++i) variants[i] = static_cast<std::uint32_t>(i / 150 % variant_count);
    std::vector<Sight> sights;
    for (std::size_t q = 0; q < count; ++q) {
      const std::size_t visible = random() % (cells + 1);
      sights.push_back({.visible = visible, .first = trial % 2 == 0 ? 0 : random() % (visible + 1)});
      if (random() % 2 == 0) sights.back().sink = static_cast<float>(random() % 8) - 4;
    }
    Lay lay{.places = scattered(cells, trial % 3 == 0, random),
            .variants = variants,
            .variant_count = variant_count,
            .poison = NAN,
            .soft_cap = trial % 5 == 0 ? 3.0f : 0.0f};
    const std::vector<float> whole = attend_at(data, lay, dims, sights);
    ASSERT_TRUE(same_bits(naive(data, dims, sights, variants, variant_count, lay.soft_cap), whole))
        << "trial " << trial;
    lay.pieces = 2 + random() % 10;
    ASSERT_TRUE(same_bits(whole, attend_at(data, lay, dims, sights))) << "trial " << trial;
  }
}

TEST(Attention, GivesTheSameBitsInPiecesWhereScoresAreBiasedByDistance) {
  const std::size_t dims = 24;
  const std::size_t cells = 1100;
  std::mt19937 random(12);
  const Data data = random_data(cells, dims, 2, 13);
  const std::vector<Sight> sights = {{.visible = cells, .position = 1500},
                                     {.visible = 900, .first = 140, .position = 880}};
  Lay lay{.places = scattered(cells, false, random)};
  for (std::size_t i = 0; i < cells; ++i) lay.positions.push_back(static_cast<std::int32_t>(i + i / 300));
  std::normal_distribution<float> normal;
  for (std::int32_t i = 0; i <= 2 * kReach; ++i) lay.biases.push_back(3 * normal(random));
  const std::vector<float> whole = attend_at(data, lay, dims, sights);
  for (lay.pieces = 2; lay.pieces < 12; ++lay.pieces)
    ASSERT_TRUE(same_bits(whole, attend_at(data, lay, dims, sights))) << lay.pieces << " pieces";
  lay.biases.clear();
  EXPECT_FALSE(same_bits(whole, attend_at(data, lay, dims, sights))) << "the bias must show";
}

}  // namespace
}  // namespace kvasir::simd
