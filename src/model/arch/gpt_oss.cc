// gpt-oss: attention with a learned sink for each head, every second layer, from the first on, over a window;
// experts with biases and a clamped gate, weighed by the softmax of the chosen scores. RoPE turns halves.
// Source: OpenAI, gpt-oss-120b & gpt-oss-20b Model Card, 2025.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_gpt_oss(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t window, decoder.keys().count("attention.sliding_window", 1, UINT32_MAX));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  const ExpertForm form{.routing = {.gate = Routing::Gate::kSoftmaxOfChosen},
                        .activation = simd::Activation::kSwishOfSeven,
                        .norm = "post_attention_norm"};
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer,
                  decoder.attention(layer, {.rotary = rotary, .window = layer % 2 == 0 ? window : 0}));
    KVASIR_ASSIGN(Decoder::cells_of(mixer).sinks,
                  loader.vector(block(layer) + "attn_sinks.weight", sizes.heads[layer]));
    KVASIR_ASSIGN(Part experts, decoder.experts(layer, form));
    decoder.add_layer(std::move(mixer), std::move(experts));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
