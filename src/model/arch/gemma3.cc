// Gemma 3: Gemma 2's block with norms on the heads of query and key in the place of soft caps. Of every six
// layers five see a window, with a rotary table of their own that no scaling stretches, and the sixth sees
// everything.
// Source: Gemma Team, Gemma 3 Technical Report, 2025.

#include <cmath>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"
#include "model/arch/gemma_parts.h"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kLayersOf27B = 62;

}  // namespace

Result<Network> build_gemma3(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  const ArchitectureKeys& keys = decoder.keys();
  decoder.network().embedding_scale = std::sqrt(static_cast<float>(sizes.embedding));
  KVASIR_ASSIGN(const double logit_cap, keys.number("final_logit_softcapping", 0.0));
  decoder.network().logit_cap = static_cast<float>(logit_cap);
  KVASIR_ASSIGN(const std::uint32_t window, keys.count("attention.sliding_window", 1, UINT32_MAX, 1024));
  KVASIR_ASSIGN(const std::uint32_t period, keys.count("attention.sliding_window_pattern", 1, UINT32_MAX, 6));
  KVASIR_ASSIGN(const std::uint32_t everywhere, decoder.add_rotary(simd::RopePairing::kHalves));
  simd::RotarySpec near{.dims = sizes.key_dims, .pairing = simd::RopePairing::kHalves};
  KVASIR_ASSIGN(near.base, keys.positive("rope.freq_base_swa", 10000.0));
  KVASIR_ASSIGN(const std::uint32_t nearby, decoder.add_rotary(near));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    const bool sees_all = layer % period == period - 1;
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = sees_all ? everywhere : nearby,
                                                        .window = sees_all ? 0 : window}));
    if (sizes.layers == kLayersOf27B) scale_scores_by_width(mixer, sizes);
    KVASIR_TRY(add_gemma_layer(decoder, layer, std::move(mixer)));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
