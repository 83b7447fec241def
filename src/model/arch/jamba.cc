// Jamba: Mamba with norms of time step, B and C; in some layers attention without positions in its place;
// dense feed-forward parts and experts in turn, the experts weighed by their plain probabilities. Source:
// Lieber et al., Jamba, 2024.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"

namespace kvasir::model {

Result<Network> build_jamba(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  const std::uint32_t unturned = decoder.add_no_rotary();
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, sizes.kv_heads[layer] == 0 ? mamba(decoder, layer)
                                                         : decoder.attention(layer, {.rotary = unturned}));
    KVASIR_ASSIGN(Part feed_forward, layer_has(decoder, layer, "ffn_gate_inp.weight")
                                         ? decoder.experts(layer, {.routing = {.sum_to_one = false}})
                                         : decoder.feed_forward(layer));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
