// Granite, dense and with experts: Llama's block with multipliers of embeddings, of what each part adds, of
// scores, and a divisor of logits. Where the file has one, every token also goes through a shared expert.
// RoPE turns adjacent dimensions, as the GGUF converter reorders them to.
// Source: Granite Team, IBM, Granite 3.0 Language Models, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_granite(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  const ArchitectureKeys& keys = decoder.keys();
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const double embedding_scale, keys.number("embedding_scale", 1.0));
  decoder.network().embedding_scale = static_cast<float>(embedding_scale);
  KVASIR_ASSIGN(const double logit_divisor, keys.positive("logit_scale", 1.0));
  decoder.network().logit_scale = static_cast<float>(1 / logit_divisor);
  KVASIR_ASSIGN(const double residual_scale, keys.number("residual_scale", 1.0));
  KVASIR_ASSIGN(const std::uint32_t shared_width,
                keys.count("expert_shared_feed_forward_length", 0, kWidthMax, 0));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kAdjacent));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    Layer built;
    KVASIR_ASSIGN(built.parts.emplace_back(), decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(built.parts.emplace_back(),
                  sizes.experts > 0 ? decoder.experts(layer) : decoder.feed_forward(layer));
    if (shared_width > 0) {
      KVASIR_ASSIGN(built.parts.emplace_back(), decoder.shared_expert(layer, shared_width));
    }
    for (Part& part : built.parts) part.scale = static_cast<float>(residual_scale);
    decoder.add_layer(std::move(built));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
