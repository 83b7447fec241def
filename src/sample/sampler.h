// From a row of logits to a token. A draw depends on the row, the settings, the seed and the number of tokens
// that the conversation ever accepted, and on nothing else: not on batches, threads or other conversations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/generation.h"
#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir::sample {

using SamplerSettings = kvasir::Sampler;

// kInvalidArgument names the setting that is out of range: temperature below 0, top-p not in (0, 1], min-p
// not in [0, 1], or not a number.
[[nodiscard]] Status check(const SamplerSettings& settings);

// Draws. Its memory is kept from draw to draw; one thread at a time.
class Sampler {
 public:
  // `settings` must have passed check().
  Sampler(const SamplerSettings& settings, std::uint64_t seed) : settings_(settings), seed_(seed) {}

  // The token for a row of logits, when the conversation has accepted `accepted` tokens so far. A NaN counts
  // as the lowest logit. kInvalidArgument for an empty row. The row is not changed. kOutOfMemory.
  [[nodiscard]] Result<Token> sample(std::span<const float> logits, std::uint64_t accepted);

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  void reseed(std::uint64_t seed) noexcept { seed_ = seed; }

 private:
  struct Candidate {
    Token token = 0;
    float logit = 0;
  };
  void gather(std::span<const float> logits);
  void cut_by_probability();
  [[nodiscard]] Token draw(std::uint64_t accepted);

  SamplerSettings settings_;
  std::uint64_t seed_;
  std::vector<Candidate> candidates_;  // most likely first
  std::vector<float> probabilities_;
};

// The most likely token, ties to the lower id, NaN last. An empty row gives 0.
[[nodiscard]] Token most_likely(std::span<const float> logits) noexcept;

// A number in [0, 1) that depends on the two numbers alone, evenly spread. Method: the finalizer of
// SplitMix64 (Steele, Lea, Flood, 2014) over seed and counter.
[[nodiscard]] double keyed_uniform(std::uint64_t seed, std::uint64_t counter) noexcept;

}  // namespace kvasir::sample
