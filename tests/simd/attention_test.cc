// Attention against a double-precision loop, and against itself on other layouts of the same cells.

#include "simd/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

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

// Attention over the cells laid down at `places`, one run a contiguous piece.
std::vector<float> attend_at(const Data& data, const std::vector<std::size_t>& places, std::size_t dims,
                             const std::vector<std::size_t>& visible, float poison) {
  std::size_t pages = 0;
  for (const std::size_t place : places) pages = std::max(pages, place / kPageCells + 1);
  Cells cells(dims, pages, poison);
  for (std::size_t i = 0; i < places.size(); ++i) {
    cells.put(places[i], data.keys.data() + i * dims, data.values.data() + i * dims);
  }
  std::vector<CellRun> runs;
  for (std::size_t i = 0; i < places.size();) {
    std::size_t count = 1;
    while (i + count < places.size() && places[i + count] == places[i] + count &&
           places[i + count] % kPageCells != 0) {
      ++count;
    }
    runs.push_back(cells.run(places[i], count, i));
    i += count;
  }
  std::vector<float> out(visible.size() * dims);
  std::vector<AttentionQuery> queries;
  for (std::size_t q = 0; q < visible.size(); ++q) {
    queries.push_back({data.queries.data() + q * dims, out.data() + q * dims, visible[q]});
  }
  const AttentionShape shape{.key_dims = dims, .value_dims = dims, .scale = 0.25f};
  for (std::size_t q = 0; q < queries.size(); q += kQueriesAtOnce) {
    attend(shape, runs, std::span(queries).subspan(q, std::min(kQueriesAtOnce, queries.size() - q)));
  }
  return out;
}

std::vector<std::size_t> in_order(std::size_t cells) {
  std::vector<std::size_t> places(cells);
  for (std::size_t i = 0; i < cells; ++i) places[i] = i;
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
    std::vector<std::size_t> places = in_order(3 * cells);
    std::shuffle(places.begin(), places.end(), random);
    places.resize(cells);
    if (trial % 2 == 0) std::sort(places.begin(), places.end());
    const std::vector<float> scattered = attend_at(data, places, dims, visible, poison);
    ASSERT_EQ(0, std::memcmp(plain.data(), scattered.data(), plain.size() * sizeof(float)))
        << "trial " << trial;
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

}  // namespace
}  // namespace kvasir::simd
