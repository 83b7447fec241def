// Phi-3: Llama's block with query, key and value as one matrix, gate and up as another. For long contexts
// the frequencies are divided by learned factors, one set for contexts up to the original one and one for
// longer (LongRoPE). RoPE turns halves.
// Sources: Abdin et al., Phi-3 Technical Report, 2024; Ding et al., LongRoPE, 2024.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {
namespace {

// The table of the context that the model is loaded for.
Result<std::uint32_t> add_long_rotary(Decoder& decoder) {
  const Hyperparameters& sizes = decoder.sizes();
  KVASIR_ASSIGN(simd::RotarySpec spec,
                read_rotary(decoder.loader().file(), sizes, simd::RopePairing::kHalves));
  if (decoder.loader().has("rope_factors_long.weight")) {
    KVASIR_ASSIGN(const std::uint32_t original,
                  decoder.keys().count("rope.scaling.original_context_length", 1, UINT32_MAX));
    const char* const set =
        sizes.used_context > original ? "rope_factors_long.weight" : "rope_factors_short.weight";
    KVASIR_ASSIGN(spec.factors, decoder.loader().vector(set, spec.dims / 2));
  }
  return decoder.add_rotary(spec);
}

Result<Part> feed_forward(Decoder& decoder, std::uint32_t layer) {
  const std::uint64_t width = decoder.sizes().embedding;
  const std::uint64_t inner = decoder.sizes().feed_forward[layer];
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "ffn_norm"));
  FeedForward body;
  const std::string both = block(layer) + "ffn_up";
  KVASIR_ASSIGN(body.gate, decoder.loader().linear_rows(both, width, 2 * inner, 0, inner));
  KVASIR_ASSIGN(body.up, decoder.loader().linear_rows(both, width, 2 * inner, inner, inner));
  KVASIR_ASSIGN(body.down, decoder.loader().linear(block(layer) + "ffn_down", inner, width));
  part.body = std::move(body);
  return part;
}

}  // namespace

Result<Network> build_phi3(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, add_long_rotary(decoder));
  KVASIR_ASSIGN(const std::uint32_t window,
                decoder.keys().count("attention.sliding_window", 0, UINT32_MAX, 0));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary, .window = window}));
    KVASIR_ASSIGN(Part gated, feed_forward(decoder, layer));
    decoder.add_layer(std::move(mixer), std::move(gated));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
