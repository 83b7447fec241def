// From a row of logits to a token. A draw depends on the row, the settings, the seed and the number of tokens
// that the conversation ever accepted, and on nothing else: not on batches, threads or other conversations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir::sample {

// How a token is drawn. The cuts apply in this order: top-k, top-p, min-p; then the temperature.
// Sources: top-k: Fan et al., 2018; top-p: Holtzman et al., The Curious Case of Neural Text Degeneration,
// 2019; min-p: Nguyen et al., Turning Up the Heat, 2024.
struct SamplerSettings {
  float temperature = 0.8F;  // 0: the most likely token, ties to the lower id
  std::uint32_t top_k = 40;  // keep the k most likely; 0 keeps all
  float top_p = 0.95F;       // keep the most likely tokens whose probabilities reach p; 1 keeps all
  float min_p = 0.05F;       // keep tokens at least min_p times as likely as the most likely; 0 keeps all
};

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
