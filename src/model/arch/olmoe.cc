// OLMoE: Llama's block with one norm over all heads of query and of key, and experts whose weights are the
// plain probabilities over all. RoPE turns halves.
// Source: Muennighoff et al., OLMoE: Open Mixture-of-Experts Language Models, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_olmoe(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary, .head_norm = HeadNorm::kTogether}));
    KVASIR_ASSIGN(Part experts, decoder.experts(layer, {.routing = {.sum_to_one = false}}));
    decoder.add_layer(std::move(mixer), std::move(experts));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
