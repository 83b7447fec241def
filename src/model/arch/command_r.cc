// Command R: attention and feed-forward read the same normed input, norms subtract the mean and have no bias,
// logits are scaled. The larger model norms each head of query and key with weights of its own. RoPE turns
// adjacent dimensions.
// Source: Cohere For AI, Command R and Command R+ model cards, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_command_r(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const double logit_scale, decoder.keys().number("logit_scale", 1.0));
  decoder.network().logit_scale = static_cast<float>(logit_scale);
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kAdjacent));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary, .head_norm = HeadNorm::kEachOwn}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.norm = ""}));
    feed_forward.same_input = true;
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
