// OLMo 2: no norm before a part but one behind it, and one norm over all heads of query and of key. RoPE
// turns halves.
// Source: OLMo Team, 2 OLMo 2 Furious, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_olmo2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer,
                  decoder.attention(layer, {.rotary = rotary, .norm = "", .head_norm = HeadNorm::kTogether}));
    KVASIR_ASSIGN(mixer.output_norm, decoder.norm(layer, "post_attention_norm"));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.norm = ""}));
    KVASIR_ASSIGN(feed_forward.output_norm, decoder.norm(layer, "post_ffw_norm"));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
