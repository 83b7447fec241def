// GPT-NeoX (Pythia, ...): attention and feed-forward read the same stream, each with a norm of its own, or
// one after the other where a key says so; norms subtract the mean, biases everywhere, GELU without a gate.
// RoPE turns halves of some leading dimensions.
// Source: Black et al., GPT-NeoX-20B: An Open-Source Autoregressive Language Model, 2022.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_gptneox(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const bool parallel, decoder.keys().flag("use_parallel_residual", true));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(Part feed_forward,
                  decoder.feed_forward(layer, {.activation = simd::Activation::kGelu, .gated = false}));
    feed_forward.same_input = parallel;
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
