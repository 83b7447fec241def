// Phi-2: attention and feed-forward read the same normed input, norms subtract the mean, biases everywhere, a
// feed-forward part of GELU without a gate. RoPE turns halves of some leading dimensions.
// Source: Gunasekar et al., Textbooks Are All You Need, 2023; Microsoft, Phi-2 model card, 2023.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_phi2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(
        Part feed_forward,
        decoder.feed_forward(layer, {.activation = simd::Activation::kGelu, .gated = false, .norm = ""}));
    feed_forward.same_input = true;
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
