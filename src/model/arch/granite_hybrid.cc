// Granite 4 hybrids: Mamba-2, in some layers attention in its place; experts beside a shared one, or a dense
// feed-forward part; Granite's scales of embedding, residual and logits. Attention has positions only where
// the file says that its rotation was trained. Source: IBM Granite, Granite 4.0 language models, 2025.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"

namespace kvasir::model {
namespace {

Result<std::uint32_t> add_rotary(Decoder& decoder) {
  KVASIR_ASSIGN(const bool trained, decoder.keys().flag("rope.scaling.finetuned", true));
  if (trained) return decoder.add_rotary(simd::RopePairing::kAdjacent);
  return decoder.add_no_rotary();
}

}  // namespace

Result<Network> build_granite_hybrid(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const double embedding, decoder.keys().positive("embedding_scale", 1.0));
  KVASIR_ASSIGN(const double residual, decoder.keys().positive("residual_scale", 1.0));
  KVASIR_ASSIGN(const double logits, decoder.keys().positive("logit_scale", 1.0));
  decoder.network().embedding_scale = static_cast<float>(embedding);
  decoder.network().logit_scale = static_cast<float>(1 / logits);
  KVASIR_ASSIGN(const std::uint32_t rotary, add_rotary(decoder));
  KVASIR_ASSIGN(const std::uint32_t shared,
                decoder.keys().count("expert_shared_feed_forward_length", 0, 1U << 20, 0));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    Layer built;
    KVASIR_ASSIGN(Part mixer, sizes.kv_heads[layer] == 0 ? mamba2(decoder, layer)
                                                         : decoder.attention(layer, {.rotary = rotary}));
    built.parts.push_back(std::move(mixer));
    KVASIR_ASSIGN(Part feed_forward,
                  sizes.experts > 0 ? decoder.experts(layer) : decoder.feed_forward(layer));
    built.parts.push_back(std::move(feed_forward));
    if (layer_has(decoder, layer, "ffn_gate_shexp.weight")) {
      KVASIR_ASSIGN(Part beside, decoder.shared_expert(layer, shared));
      built.parts.push_back(std::move(beside));
    }
    for (Part& part : built.parts) part.scale = static_cast<float>(residual);
    decoder.network().layers.push_back(std::move(built));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
