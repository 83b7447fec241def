// Falcon: attention with few KV heads and feed-forward read the same stream, normed once for both or, in the
// larger models, once for each; norms subtract the mean, GELU without a gate. RoPE turns halves.
// Source: Almazrouei et al., The Falcon Series of Open Language Models, 2023.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_falcon(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    const bool two_norms = loader.has(block(layer) + "attn_norm_2.weight");
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary,
                                                        .norm = two_norms ? "attn_norm_2" : "attn_norm"}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.activation = simd::Activation::kGelu,
                                                                  .gated = false,
                                                                  .norm = two_norms ? "attn_norm" : ""}));
    feed_forward.same_input = true;
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
