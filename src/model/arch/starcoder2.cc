// StarCoder2: norms that subtract the mean, biases everywhere, GELU without a gate. RoPE turns halves.
// Source: Lozhkov et al., StarCoder 2 and The Stack v2: The Next Generation, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_starcoder2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(Part feed_forward,
                  decoder.feed_forward(layer, {.activation = simd::Activation::kGelu, .gated = false}));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
