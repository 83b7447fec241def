#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <new>

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
    // So short that the message itself takes no memory.
    return fail(Outcome::kOutOfMemory, "out of memory",
                {.wanted = logits.size() * (sizeof(Candidate) + sizeof(float))});
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
  // What is not finite has no probability: infinity is certain, the others are drawn where nothing else is.
  if (!std::isfinite(candidates_[0].logit)) candidates_.resize(1);
  candidates_.erase(std::ranges::find_if(candidates_.begin() + 1, candidates_.end(),
                                         [](const Candidate& c) { return !std::isfinite(c.logit); }),
                    candidates_.end());
}

void Sampler::cut_by_probability() {
  probabilities_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) probabilities_[i] = candidates_[i].logit;
  simd::softmax(probabilities_);
  std::size_t keep = candidates_.size();
  if (settings_.top_p < 1) {
    keep = 0;
    double reached = 0;
    while (keep < candidates_.size() && (keep == 0 || reached < double{settings_.top_p}))
      reached += double{probabilities_[keep++]};
  }
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
  // Rounded probabilities do not add up to exactly one, and the least likely may have become zero.
  double sum = 0;
  for (const float probability : probabilities_) sum += double{probability};
  double left = keyed_uniform(seed_, accepted) * sum;
  Token token = candidates_[0].token;
  for (std::size_t i = 0; i < candidates_.size() && probabilities_[i] > 0 && left >= 0; ++i) {
    token = candidates_[i].token;
    left -= double{probabilities_[i]};
  }
  return token;
}

}  // namespace kvasir::sample
