// Qwen2 with experts: weights are the plain probabilities over all, and every token also goes through a
// shared expert, whose part a gate of its own decides.
// Source: Yang et al., Qwen2 Technical Report, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_qwen2moe(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  KVASIR_ASSIGN(const std::uint32_t shared_width, decoder.keys().count("expert_shared_feed_forward_length", 1,
                                                                       kWidthMax, sizes.feed_forward[0]));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(Part experts, decoder.experts(layer, {.routing = {.sum_to_one = false}}));
    KVASIR_ASSIGN(Part shared, decoder.shared_expert(layer, shared_width));
    KVASIR_ASSIGN(std::get<FeedForward>(shared.body).share,
                  loader.linear(block(layer) + "ffn_gate_inp_shexp", sizes.embedding, 1));
    decoder.add_layer(std::move(mixer), std::move(experts), std::move(shared));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
