// Gemma: Llama's block with a gate of GELU and embeddings scaled by the root of their width. The norms of a
// file have the one of 1 + weight added already. RoPE turns halves.
// Source: Gemma Team, Gemma: Open Models Based on Gemini Research and Technology, 2024.

#include <cmath>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_gemma(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  decoder.network().embedding_scale = std::sqrt(static_cast<float>(sizes.embedding));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.activation = simd::Activation::kGelu}));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
