// Command R7B and its kin (Cohere 2): Command R's block, where three of every four layers see a window and
// turn, and the fourth sees everything and turns nothing. RoPE turns adjacent dimensions.
// Source: Cohere, Command A: An Enterprise-Ready Large Language Model, 2025.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_cohere2(Loader& loader, const Hyperparameters& sizes) {
  constexpr std::uint32_t kPeriod = 4;
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const double logit_scale, decoder.keys().number("logit_scale", 1.0));
  decoder.network().logit_scale = static_cast<float>(logit_scale);
  KVASIR_ASSIGN(const std::uint32_t window, decoder.keys().count("attention.sliding_window", 1, UINT32_MAX));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kAdjacent));
  const std::uint32_t none = decoder.add_no_rotary();
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    const bool sees_all = layer % kPeriod == kPeriod - 1;
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = sees_all ? none : rotary,
                                                        .window = sees_all ? 0 : window}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.norm = ""}));
    feed_forward.same_input = true;
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
