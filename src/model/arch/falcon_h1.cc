// Falcon-H1: Mamba-2 and attention side by side on the same input, then a gated feed-forward part. The
// multipliers of its training are folded into the weights by the converter.
// Source: Zuo et al., Falcon-H1, 2025.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"

namespace kvasir::model {

Result<Network> build_falcon_h1(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part scan, mamba2(decoder, layer));
    KVASIR_ASSIGN(Part attention, decoder.attention(layer, {.rotary = rotary, .norm = ""}));
    attention.same_input = true;
    // The first converters left ".weight" off this norm's name.
    const std::string norm = block(layer) + "ffn_norm";
    const bool bare = loader.has(norm);
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.norm = bare ? "" : "ffn_norm"}));
    if (bare) {
      KVASIR_ASSIGN(std::vector<float> weight, loader.vector(norm, sizes.embedding));
      feed_forward.norm =
          Norm{.weight = std::move(weight), .epsilon = sizes.norm_epsilon, .width = sizes.embedding};
    }
    decoder.add_layer(std::move(scan), std::move(attention), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
