// Gemma 2: Gemma with a norm behind each part, soft caps on scores and logits, and every second layer, from
// the first on, seeing a window only.
// Source: Gemma Team, Gemma 2: Improving Open Language Models at a Practical Size, 2024.

#include <cmath>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {
namespace {

// The report's largest model divides scores by the root of embedding / heads instead of a head's size, which
// no key tells; it is the one of 46 layers.
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
    CellAttention& cells = Decoder::cells_of(mixer);
    cells.soft_cap = static_cast<float>(score_cap);
    if (sizes.layers == kLayersOf27B)
      cells.scale = 1 / std::sqrt(static_cast<float>(sizes.embedding) / static_cast<float>(cells.heads));
    KVASIR_ASSIGN(mixer.output_norm, decoder.norm(layer, "post_attention_norm"));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.activation = simd::Activation::kGelu}));
    KVASIR_ASSIGN(feed_forward.output_norm, decoder.norm(layer, "post_ffw_norm"));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
