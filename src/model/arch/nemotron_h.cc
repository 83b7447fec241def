// Nemotron-H: every layer is one part: Mamba-2, attention without positions, or a feed-forward part of
// squared positive numbers without a gate. Source: NVIDIA, Nemotron-H, 2025.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"

namespace kvasir::model {

Result<Network> build_nemotron_h(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  const std::uint32_t unturned = decoder.add_no_rotary();
  const auto part_of = [&](std::uint32_t layer) -> Result<Part> {
    if (sizes.kv_heads[layer] > 0) return decoder.attention(layer, {.rotary = unturned});
    if (sizes.feed_forward[layer] == 0) return mamba2(decoder, layer);
    return decoder.feed_forward(
        layer, {.activation = simd::Activation::kSquaredRelu, .gated = false, .norm = "attn_norm"});
  };
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part part, part_of(layer));
    decoder.add_layer(std::move(part));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
