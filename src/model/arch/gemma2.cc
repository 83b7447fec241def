// Gemma 2: Gemma with a norm behind each part, soft caps on scores and logits, and every second layer, from
// the first on, seeing a window only.
// Source: Gemma Team, Gemma 2: Improving Open Language Models at a Practical Size, 2024.

#include <cmath>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"
#include "model/arch/gemma_parts.h"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kLayersOf27B = 46;

}  // namespace

Result<Network> build_gemma2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  Network& network = decoder.network();
  network.embedding_scale = std::sqrt(static_cast<float>(sizes.embedding));
  KVASIR_ASSIGN(const double logit_cap, decoder.keys().positive("final_logit_softcapping", 30.0));
  network.logit_cap = static_cast<float>(logit_cap);
  KVASIR_ASSIGN(const double score_cap, decoder.keys().positive("attn_logit_softcapping", 50.0));
  KVASIR_ASSIGN(const std::uint32_t window,
                decoder.keys().count("attention.sliding_window", 1, UINT32_MAX, 4096));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer,
                  decoder.attention(layer, {.rotary = rotary, .window = layer % 2 == 0 ? window : 0}));
    Decoder::cells_of(mixer).soft_cap = static_cast<float>(score_cap);
    if (sizes.layers == kLayersOf27B) scale_scores_by_width(mixer, sizes);
    KVASIR_TRY(add_gemma_layer(decoder, layer, std::move(mixer)));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
