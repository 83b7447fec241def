// StableLM: Llama's block with norms that subtract the mean. The model of 12 billion norms each head of query
// and key with weights of its own, and its feed-forward part reads what attention reads: it has no norm for
// it. RoPE turns halves of some leading dimensions.
// Source: Bellagente et al., Stable LM 2 1.6B Technical Report, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_stablelm(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    const bool parallel = !loader.has(block(layer) + "ffn_norm.weight");
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary, .head_norm = HeadNorm::kEachOwn}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.norm = parallel ? "" : "ffn_norm"}));
    feed_forward.same_input = parallel;
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
