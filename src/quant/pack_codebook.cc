// Packing the types whose numbers index a table.
#include <array>
#include <cmath>
#include <limits>

#include "quant/codebooks.h"
#include "quant/codec.h"
#include "quant/fit.h"

namespace kvasir::quant {
namespace {

constexpr int kValues = 32;

// For a table of 16 integers: which entry is nearest to v, looked up by 2 * v rounded down. Midpoints of
// integers are multiples of one half, so that number decides (a tie goes to the greater entry).
template <int kLow, int kHigh>
struct Nearest {
  std::array<std::uint8_t, static_cast<std::size_t>(2 * (kHigh - kLow) + 1)> index{};

  explicit constexpr Nearest(const std::array<std::int8_t, 16>& table) {
    for (int twice = 2 * kLow; twice <= 2 * kHigh; ++twice) {
      int best = 0;
      for (int i = 1; i < 16; ++i) {
        const int here = twice - 2 * table[i];
        const int there = twice - 2 * table[best];
        const int distance = here < 0 ? -here : here;
        const int least = there < 0 ? -there : there;
        if (distance < least || (distance == least && table[i] > table[best])) best = i;
      }
      index[static_cast<std::size_t>(twice - 2 * kLow)] = static_cast<std::uint8_t>(best);
    }
  }

  [[nodiscard]] std::uint8_t operator()(float v) const noexcept {
    const float inside = clamp_to(v, static_cast<float>(kLow), static_cast<float>(kHigh));
    return index[static_cast<std::size_t>(static_cast<int>(2.0F * (inside - static_cast<float>(kLow))))];
  }
};

constexpr Nearest<-127, 113> kNearestNonLinear(kNonLinear4);
constexpr Nearest<-12, 12> kNearestFloat4(kTwiceFloat4);

// As fit_scale_once, with the table's numbers in place of integers.
ScaleFit fit_table_once(const float* x, float inverse) {
  Lanes xq;
  Lanes qq;
  for (int i = 0; i < kValues; i += 8) {
    for (int l = 0; l < 8; ++l) {
      const auto q = static_cast<float>(kNonLinear4[kNearestNonLinear(x[i + l] * inverse)]);
      xq.sums[l] += x[i + l] * q;
      qq.sums[l] += q * q;
    }
  }
  const float products = xq.total();
  const float squares = qq.total();
  return {products / squares, products * (products / squares)};
}

float fit_table(const float* x) {
  // What the extreme value may become: entries at both ends of the table, and a little beside them.
  constexpr std::array kReach = {-127.0F, -122.0F, -117.0F, -112.0F, -132.0F,
                                 -138.0F, -104.0F, 113.0F,  108.0F,  118.0F};
  const float extreme = extreme_of<kValues>(x);
  if (std::fabs(extreme) < kNothing) return 0.0F;
  ScaleFit best;
  for (const float level : kReach) {
    const ScaleFit fit = fit_table_once(x, level / extreme);
    if (fit.explained > best.explained) best = fit;
  }
  const ScaleFit improved = fit_table_once(x, inverse_of(best.scale));
  return improved.explained > best.explained ? improved.scale : best.scale;
}

}  // namespace

void pack_iq4_nl(const float* values, std::uint8_t* block) {
  const auto x = tamed<kValues>(values, kLargestHalf * 127);
  store_u16(block, scale_to_half(fit_table(x.data())));
  const float inverse = inverse_of(load_half(block));
  for (int j = 0; j < 16; ++j) {
    const int low = kNearestNonLinear(x[j] * inverse);
    const int high = kNearestNonLinear(x[j + 16] * inverse);
    block[2 + j] = static_cast<std::uint8_t>(low | (high << 4));
  }
}

namespace {

using Nibbles = std::array<std::uint8_t, kValues>;

// The numbers under this exponent, and the sum of squared differences in units of the extreme value squared.
float round_to_float4(const float* x, float unit, std::uint8_t exponent, Nibbles& nibbles) {
  const float scale = half_power_of_two(exponent);
  float error = 0.0F;
  for (int j = 0; j < kValues; ++j) {
    nibbles[j] = kNearestFloat4(x[j] / scale);  // a division: 1 / scale may be infinite
    const float difference = (x[j] - scale * static_cast<float>(kTwiceFloat4[nibbles[j]])) / unit;
    error += difference * difference;
  }
  return error;
}

}  // namespace

void pack_mxfp4(const float* values, std::uint8_t* block) {
  // 12 * 2^126, the largest number of the type, is beyond the largest float.
  const auto x = tamed<kValues>(values, std::numeric_limits<float>::max());
  const float extreme = std::fabs(extreme_of<kValues>(x.data()));
  Nibbles best{};
  std::uint8_t best_exponent = 0;
  if (extreme > 0.0F) {
    // The largest 4-bit float is 6 = 1.5 * 2^2. One exponent more or less may suit the rest better.
    const int usual = std::ilogb(extreme) - 2 + 127;
    float least = std::numeric_limits<float>::infinity();
    for (int exponent = usual - 1; exponent <= usual + 1; ++exponent) {
      Nibbles nibbles;
      const auto stored = static_cast<std::uint8_t>(exponent < 0 ? 0 : exponent);
      const float error = round_to_float4(x.data(), extreme, stored, nibbles);
      if (error < least) {
        least = error;
        best = nibbles;
        best_exponent = stored;
      }
    }
  }
  block[0] = best_exponent;
  for (int j = 0; j < 16; ++j) block[1 + j] = static_cast<std::uint8_t>(best[j] | (best[j + 16] << 4));
}

}  // namespace kvasir::quant
