#include "model/arch/gemma_parts.h"

#include <cmath>
#include <utility>

#include "base/try.h"

namespace kvasir::model {

void scale_scores_by_width(Part& mixer, const Hyperparameters& sizes) {
  CellAttention& cells = Decoder::cells_of(mixer);
  cells.scale = 1 / std::sqrt(static_cast<float>(sizes.embedding) / static_cast<float>(cells.heads));
}

Status add_gemma_layer(Decoder& decoder, std::uint32_t layer, Part mixer) {
  KVASIR_ASSIGN(mixer.output_norm, decoder.norm(layer, "post_attention_norm"));
  KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer, {.activation = simd::Activation::kGelu}));
  KVASIR_ASSIGN(feed_forward.output_norm, decoder.norm(layer, "post_ffw_norm"));
  decoder.add_layer(std::move(mixer), std::move(feed_forward));
  return {};
}

}  // namespace kvasir::model
