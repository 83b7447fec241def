// Each step against the same recurrence in double precision, over many tokens, at sizes that fill lanes,
// blocks and neither. The state is carried in floats by both, so that a bound is one of a single token.
#include "simd/scans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "base/buffer.h"

namespace kvasir::simd {
namespace {

double ulps(double count) {
  return count * std::ldexp(1, -24);
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::vector<float> row(std::size_t size, float spread = 1.0f) {
    std::normal_distribution<float> normal(0.0f, spread);
    std::vector<float> out(size);
    std::ranges::generate(out, [&] { return normal(random_); });
    return out;
  }
  std::vector<float> between(std::size_t size, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> out(size);
    std::ranges::generate(out, [&] { return uniform(random_); });
    return out;
  }

 private:
  std::mt19937 random_;
};

// A sum in double precision and what its terms add up to in size.
struct Exact {
  double sum = 0;
  double size = 0;
  void add(double term) {
    sum += term;
    size += std::fabs(term);
  }
  // Whether a float is this, up to so many roundings.
  [[nodiscard]] bool is(float got, double roundings) const {
    return std::fabs(sum - static_cast<double>(got)) <= size * ulps(roundings) + 1e-35;
  }
};

double d(float value) {
  return static_cast<double>(value);
}

TEST(ConvolveStep, SumsTheLastTokensOfEachChannelAndRemembersThem) {
  for (const std::size_t channels : {1, 15, 16, 17, 63, 64}) {
    for (const std::size_t taps : {2, 3, 4, 7}) {
      Draw draw(static_cast<unsigned>(channels * 10 + taps));
      const std::vector<float> weight = draw.row(taps * kChannelBlock);
      const std::vector<float> bias = taps == 3 ? std::vector<float>() : draw.row(kChannelBlock);
      std::vector<float> history((taps - 1) * kChannelBlock, 0.0f);
      std::vector<std::vector<float>> inputs(taps - 1, std::vector<float>(channels, 0.0f));
      for (int token = 0; token < 20; ++token) {
        inputs.push_back(draw.row(channels));
        std::vector<float> row = inputs.back();
        convolve_step(history, weight, bias, row);
        for (std::size_t c = 0; c < channels; ++c) {
          Exact exact;
          if (!bias.empty()) exact.add(d(bias[c]));
          for (std::size_t tap = 0; tap < taps; ++tap) {
            exact.add(d(inputs[inputs.size() - taps + tap][c]) * d(weight[tap * kChannelBlock + c]));
          }
          ASSERT_TRUE(exact.is(row[c], 16)) << channels << " " << taps << " " << token;
        }
      }
      for (std::size_t tap = 0; tap + 1 < taps; ++tap) {
        for (std::size_t c = 0; c < kChannelBlock; ++c) {
          const float kept = c < channels ? inputs[inputs.size() - taps + 1 + tap][c] : 0.0f;
          ASSERT_EQ(kept, history[tap * kChannelBlock + c]);
        }
      }
    }
  }
}

struct SelectiveCase {
  std::size_t channels, dimensions;
};

void check_selective(const SelectiveCase& of) {
  const auto [channels, dimensions] = of;
  Draw draw(static_cast<unsigned>(channels * 100 + dimensions));
  const std::vector<float> decay = draw.between(dimensions * kChannelBlock, -4.0f, -0.01f);
  const std::vector<float> skip = draw.row(kChannelBlock);
  std::vector<float> state(dimensions * kChannelBlock, 0.0f);
  for (int token = 0; token < 12; ++token) {
    const std::vector<float> time = draw.row(channels, 2.0f);
    const std::vector<float> gate = draw.row(channels, 2.0f);
    const std::vector<float> enter = draw.row(dimensions);
    const std::vector<float> leave = draw.row(dimensions);
    const std::vector<float> input = draw.row(channels);
    const std::vector<float> before(state.begin(), state.end());
    std::vector<float> out = input;
    selective_step({decay, skip, time, out, gate, enter, leave}, state, out);
    for (std::size_t c = 0; c < channels; ++c) {
      const double t =
          d(time[c]) > 0 ? d(time[c]) + std::log1p(std::exp(-d(time[c]))) : std::log1p(std::exp(d(time[c])));
      Exact read;
      for (std::size_t n = 0; n < dimensions; ++n) {
        const std::size_t at = n * kChannelBlock + c;
        Exact next;
        next.add(d(before[at]) * std::exp(t * d(decay[at])));
        next.add(t * d(input[c]) * d(enter[n]));
        // e^(t A): an error of 12 units of t, times |t A|, and three of e.
        ASSERT_TRUE(next.is(state[at], 20 + 14 * t * std::fabs(d(decay[at])))) << c << " " << n;
        read.add(d(state[at]) * d(leave[n]));
      }
      read.add(d(input[c]) * d(skip[c]));
      const double silu = d(gate[c]) / (1 + std::exp(-d(gate[c])));
      read.sum *= silu;
      read.size *= std::fabs(silu);
      ASSERT_TRUE(read.is(out[c], 10 + static_cast<double>(dimensions))) << c;
    }
    for (std::size_t at = 0; at < state.size(); ++at) {
      if (at % kChannelBlock >= channels) {
        ASSERT_EQ(0.0f, state[at]);
      }
    }
  }
}

TEST(SelectiveStep, AgreesWithTheRecurrenceInDoublePrecision) {
  for (const std::size_t channels : {1, 16, 33, 64}) {
    for (const std::size_t dimensions : {1, 16, 19}) check_selective({channels, dimensions});
  }
}

// Floats that begin a line, as states do.
class Lines {
 public:
  explicit Lines(std::size_t count)
      : buffer_(base::Buffer::allocate(count * sizeof(float)).value()), count_(count) {}
  [[nodiscard]] std::span<float> all() { return {reinterpret_cast<float*>(buffer_.data()), count_}; }

 private:
  base::Buffer buffer_;
  std::size_t count_;
};

struct HeadCase {
  std::size_t keys, values;
  bool one_decay, reads_before;
};

void check_outer(const HeadCase& of) {
  Draw draw(static_cast<unsigned>(of.keys * 100 + of.values));
  const std::size_t lanes = state_lanes(of.values);
  Lines lines(of.keys * lanes);
  const std::span<float> state = lines.all();
  for (int token = 0; token < 12; ++token) {
    const std::vector<float> decay = draw.between(of.one_decay ? 1 : of.keys, 0.5f, 1.0f);
    const std::vector<float> key = draw.row(of.keys);
    const std::vector<float> query = draw.row(of.keys);
    const std::vector<float> value = draw.row(of.values);
    const std::vector<float> before(state.begin(), state.end());
    std::vector<float> out = value;
    // Every second token leaves the state before it where it is, and every fourth goes past the caches.
    const bool apart = token % 2 == 1;
    const StateStore store = token % 4 == 3 ? StateStore::kAway : StateStore::kNear;
    if (apart) std::ranges::fill(state, 7.0f);
    outer_step({decay, key, query, out, 0.75f, -0.5f, of.reads_before},
               apart ? before : std::span<const float>(state), state, out, store);
    for (std::size_t v = 0; v < of.values; ++v) {
      Exact read;
      for (std::size_t k = 0; k < of.keys; ++k) {
        Exact next;
        next.add(d(before[k * lanes + v]) * d(decay[of.one_decay ? 0 : k]));
        next.add(d(key[k]) * 0.75 * d(value[v]));
        ASSERT_TRUE(next.is(state[k * lanes + v], 4)) << k << " " << v;
        read.add(d(of.reads_before ? before[k * lanes + v] : state[k * lanes + v]) * d(query[k]));
      }
      read.add(-0.5 * d(value[v]));
      ASSERT_TRUE(read.is(out[v], static_cast<double>(of.keys) + 4)) << v;
    }
    for (std::size_t at = 0; at < state.size(); ++at) {
      if (at % lanes >= of.values) {
        ASSERT_EQ(0.0f, state[at]);
      }
    }
  }
}

TEST(OuterStep, AgreesWithTheRecurrenceInDoublePrecision) {
  for (const std::size_t keys : {1, 16, 37}) {
    for (const std::size_t values : {1, 16, 31, 32, 48, 64, 65}) {
      check_outer({keys, values, true, false});
      check_outer({keys, values, false, true});
    }
  }
}

void check_delta(const HeadCase& of) {
  Draw draw(static_cast<unsigned>(of.keys * 100 + of.values));
  const std::size_t lanes = state_lanes(of.values);
  Lines lines(of.keys * lanes);
  const std::span<float> state = lines.all();
  for (int token = 0; token < 12; ++token) {
    const std::vector<float> decay = draw.between(of.one_decay ? 1 : of.keys, 0.5f, 1.0f);
    const std::vector<float> probe = draw.row(of.keys, 0.2f);
    const std::vector<float> correction = draw.row(of.keys, 0.2f);
    const std::vector<float> key = draw.row(of.keys);
    const std::vector<float> query = draw.row(of.keys);
    const std::vector<float> value = draw.row(of.values);
    const std::vector<float> before(state.begin(), state.end());
    std::vector<float> out = value;
    const bool apart = token % 2 == 1;
    const StateStore store = token % 4 == 3 ? StateStore::kAway : StateStore::kNear;
    if (apart) std::ranges::fill(state, 7.0f);
    delta_step({decay, probe, correction, key, query, out, -0.5f, 0.75f},
               apart ? before : std::span<const float>(state), state, out, store);
    for (std::size_t v = 0; v < of.values; ++v) {
      Exact answer;
      for (std::size_t k = 0; k < of.keys; ++k) answer.add(-0.5 * d(before[k * lanes + v]) * d(probe[k]));
      Exact read;
      for (std::size_t k = 0; k < of.keys; ++k) {
        Exact next;
        next.add(d(before[k * lanes + v]) * d(decay[of.one_decay ? 0 : k]));
        next.add(d(correction[k]) * answer.sum);
        next.add(d(key[k]) * 0.75 * d(value[v]));
        // The answer is off by what its terms' size allows, not by what is left of their sum.
        next.size += std::fabs(d(correction[k])) * answer.size;
        ASSERT_TRUE(next.is(state[k * lanes + v], static_cast<double>(of.keys) + 6)) << k << " " << v;
        read.add(d(state[k * lanes + v]) * d(query[k]));
      }
      ASSERT_TRUE(read.is(out[v], static_cast<double>(of.keys) + 4)) << v;
    }
  }
}

TEST(DeltaStep, AgreesWithTheRecurrenceInDoublePrecision) {
  for (const std::size_t keys : {1, 16, 37}) {
    for (const std::size_t values : {1, 16, 31, 32, 48, 64, 65}) {
      check_delta({keys, values, true, false});
      check_delta({keys, values, false, false});
    }
  }
}

TEST(OuterStep, GivesAValueTheSameBitsBesideOthersAndAlone) {
  Draw draw(7);
  const std::vector<float> decay = draw.between(24, 0.5f, 1.0f);
  const std::vector<float> key = draw.row(24);
  const std::vector<float> query = draw.row(24);
  const std::vector<float> value = draw.row(70);
  std::vector<float> state(24 * state_lanes(70), 0.0f);
  std::vector<float> all(70);
  std::vector<std::vector<float>> alone(70, std::vector<float>(24 * 16, 0.0f));
  for (int token = 0; token < 3; ++token) {
    outer_step({decay, key, query, value, 0.5f, 2.0f, false}, state, state, all);
    for (std::size_t v = 0; v < 70; ++v) {
      std::vector<float> one(1);
      outer_step({decay, key, query, std::span(value).subspan(v, 1), 0.5f, 2.0f, false}, alone[v], alone[v],
                 one);
      ASSERT_EQ(all[v], one[0]) << v;
    }
  }
}

}  // namespace
}  // namespace kvasir::simd
