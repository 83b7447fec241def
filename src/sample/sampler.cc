#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>

#include "simd/vector_math.h"

namespace kvasir::sample {
namespace {

std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Whether logit `a` of token `i` comes before logit `b` of token `j`: a total order, NaN last.
bool before(float a, Token i, float b, Token j) noexcept {
  if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
  if (std::isnan(a) || a == b) return i < j;
  return a > b;
}

}  // namespace

Status check(const SamplerSettings& settings) {
  const auto refuse = [](const char* what) { return fail(Outcome::kInvalidArgument, what); };
  if (!(settings.temperature >= 0) || std::isinf(settings.temperature)) {
    return refuse("the temperature must be a number from 0 up");
  }
  if (!(settings.top_p > 0 && settings.top_p <= 1)) return refuse("top-p must be above 0 and at most 1");
  if (!(settings.min_p >= 0 && settings.min_p <= 1)) return refuse("min-p must be from 0 to 1");
  return {};
}

Token most_likely(std::span<const float> logits) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (before(logits[i], static_cast<Token>(i), logits[best], static_cast<Token>(best))) best = i;
  }
  return static_cast<Token>(best);
}

double keyed_uniform(std::uint64_t seed, std::uint64_t counter) noexcept {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
  const std::uint64_t bits = mix(mix(seed + kGolden) + (counter + 1) * kGolden);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Result<Token> Sampler::sample(std::span<const float> logits, std::uint64_t accepted) {
  if (logits.empty()) return fail(Outcome::kInvalidArgument, "there is no logit to sample from");
  if (settings_.temperature == 0) return most_likely(logits);
  try {
    gather(logits);
    cut_by_probability();
    return draw(accepted);
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory,
                "no memory to sample from " + std::to_string(logits.size()) + " logits");
  }
}

// The top-k candidates, most likely first.
void Sampler::gather(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) candidates_[i] = {static_cast<Token>(i), logits[i]};
  const auto more_likely = [](const Candidate& a, const Candidate& b) {
    return before(a.logit, a.token, b.logit, b.token);
  };
  const std::size_t keep =
      settings_.top_k == 0 ? logits.size() : std::min<std::size_t>(settings_.top_k, logits.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(keep),
                    candidates_.end(), more_likely);
  candidates_.resize(keep);
  // A NaN can be drawn only where there is nothing else.
  const auto first_nan =
      std::ranges::find_if(candidates_, [](const Candidate& c) { return std::isnan(c.logit); });
  candidates_.erase(first_nan == candidates_.begin() ? first_nan + 1 : first_nan, candidates_.end());
}

void Sampler::cut_by_probability() {
  probabilities_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) probabilities_[i] = candidates_[i].logit;
  simd::softmax(probabilities_);
  std::size_t keep = 0;
  float reached = 0;
  while (keep < candidates_.size() && (keep == 0 || reached < settings_.top_p))
    reached += probabilities_[keep++];
  const float least = settings_.min_p * probabilities_[0];
  while (keep > 1 && probabilities_[keep - 1] < least) --keep;
  candidates_.resize(keep);
}

Token Sampler::draw(std::uint64_t accepted) {
  probabilities_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    // Relative to the most likely, so that a small temperature overflows nothing.
    probabilities_[i] = (candidates_[i].logit - candidates_[0].logit) / settings_.temperature;
  }
  simd::softmax(probabilities_);
  double left = keyed_uniform(seed_, accepted);
  for (std::size_t i = 0; i + 1 < candidates_.size(); ++i) {
    left -= static_cast<double>(probabilities_[i]);
    if (left < 0) return candidates_[i].token;
  }
  return candidates_.back().token;
}

}  // namespace kvasir::sample
