#include "simd/rotary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

namespace kvasir::simd {
namespace {

// How far pair `pair` is scaled by YaRN: 0 wholly scaled, 1 kept.
double yarn_kept(const YarnSpec& yarn, const RotarySpec& spec, double pair) {
  const auto dims = static_cast<double>(spec.dims);
  // The pair that turns `turns` times within the original context.
  const auto pair_of = [&](double turns) {
    return dims * std::log(yarn.original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(spec.base));
  };
  const double low = std::max(0.0, std::floor(pair_of(yarn.beta_fast)));
  const double high = std::min(dims - 1, std::ceil(pair_of(yarn.beta_slow)));
  const double ramp = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  return (1 - ramp) * yarn.extrapolation;
}

bool positive(double value) {
  return std::isfinite(value) && value > 0;
}

Status check(const RotarySpec& spec) {
  const auto refuse = [](const std::string& what) {
    return fail(Outcome::kInvalidArgument, "RoPE: " + what);
  };
  if (spec.dims == 0 || spec.dims % 2 != 0)
    return refuse(std::to_string(spec.dims) + " dimensions cannot turn in pairs");
  if (!positive(spec.base) || spec.base == 1) return refuse("the base must be positive and not 1");
  if (!positive(spec.frequency_scale)) return refuse("the scaling factor must be positive");
  if (!positive(spec.attention_factor)) return refuse("the attention factor must be positive");
  if (!spec.factors.empty() && spec.factors.size() != spec.dims / 2) {
    return refuse(std::to_string(spec.factors.size()) + " frequency factors for " +
                  std::to_string(spec.dims / 2) + " pairs");
  }
  if (!std::ranges::all_of(spec.factors, [](float factor) { return positive(factor); })) {
    return refuse("a frequency factor is not positive");
  }
  if (spec.yarn && (!positive(spec.yarn->original_context) || !positive(spec.yarn->beta_fast) ||
                    !positive(spec.yarn->beta_slow) || !std::isfinite(spec.yarn->extrapolation))) {
    return refuse("a YaRN setting is not positive");
  }
  return {};
}

}  // namespace

Result<RotaryTable> RotaryTable::make(const RotarySpec& spec) {
  if (const Status sound = check(spec); !sound) return fail(sound.error());
  RotaryTable table;
  table.pairing_ = spec.pairing;
  table.magnitude_ = spec.attention_factor;
  table.frequencies_.resize(spec.dims / 2);
  for (std::size_t i = 0; i < table.frequencies_.size(); ++i) {
    const auto pair = static_cast<double>(i);
    double frequency = std::pow(spec.base, -2 * pair / static_cast<double>(spec.dims));
    if (!spec.factors.empty()) frequency /= static_cast<double>(spec.factors[i]);
    const double kept = spec.yarn ? yarn_kept(*spec.yarn, spec, pair) : 0;
    table.frequencies_[i] = frequency * (spec.frequency_scale * (1 - kept) + kept);
  }
  if (spec.yarn && spec.yarn->extrapolation != 0)
    table.magnitude_ *= 1 + 0.1 * std::log(1 / spec.frequency_scale);
  return table;
}

void RotaryTable::turn(double position, double magnitude, std::span<float> cosines,
                       std::span<float> sines) const noexcept {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const CosSin at = cos_sin(position * frequencies_[i]);
    cosines[i] = static_cast<float>(at.cos * magnitude);
    sines[i] = static_cast<float>(at.sin * magnitude);
  }
}

void RotaryTable::turn_at(double position, std::span<float> cosines, std::span<float> sines) const noexcept {
  turn(position, magnitude_, cosines, sines);
}

void RotaryTable::pure_turn_at(std::int64_t distance, std::span<float> cosines,
                               std::span<float> sines) const noexcept {
  turn(static_cast<double>(distance), 1, cosines, sines);
}

void RotaryTable::rotate(std::span<float> head, std::span<const float> cosines,
                         std::span<const float> sines) const noexcept {
  const std::size_t pairs = frequencies_.size();
  const std::size_t first_step = pairing_ == RopePairing::kAdjacent ? 2 : 1;
  const std::size_t partner = pairing_ == RopePairing::kAdjacent ? 1 : pairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    float& a = head[i * first_step];
    float& b = head[i * first_step + partner];
    const float turned_a = a * cosines[i] - b * sines[i];
    const float turned_b = a * sines[i] + b * cosines[i];
    a = turned_a;
    b = turned_b;
  }
}

// Method: subtract the nearest multiple n of pi / 2, held in three parts so that n times each is exact
// enough, then Taylor's series on |r| <= pi / 4 (remainder below 2^-57) and the quadrant's exchange of the
// two.
CosSin cos_sin(double angle) noexcept {
  constexpr std::array<double, 3> kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                             -0x1.f1976b7ed8fbcp-110};
  const double n = std::nearbyint(angle * (2 / std::numbers::pi));
  double r = angle;
  for (const double part : kHalfPi) r = std::fma(-n, part, r);
  const double square = r * r;
  // Terms r^k / k! from the highest down.
  double sine = 0;
  for (int k = 17; k >= 3; k -= 2) sine = (sine + 1) * -square / static_cast<double>(k * (k - 1));
  double cosine = 0;
  for (int k = 18; k >= 2; k -= 2) cosine = (cosine + 1) * -square / static_cast<double>(k * (k - 1));
  sine = std::fma(sine, r, r);
  cosine += 1;
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

}  // namespace kvasir::simd
