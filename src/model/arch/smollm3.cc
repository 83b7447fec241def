// SmolLM3: Llama's block, where every fourth layer turns nothing. RoPE turns adjacent dimensions, as the GGUF
// converter reorders them to.
// Sources: Hugging Face, SmolLM3, 2025; Yang et al., RoPE to NoPE and Back Again, 2025.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_smollm3(Loader& loader, const Hyperparameters& sizes) {
  constexpr std::uint32_t kPeriod = 4;
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kAdjacent));
  const std::uint32_t none = decoder.add_no_rotary();
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    const bool turns = (layer + 1) % kPeriod != 0;
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = turns ? rotary : none}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
