// What Gemma 2 and Gemma 3 share beside the parts of every decoder.
#pragma once

#include <cstdint>

#include "kvasir/result.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

// For the reports' largest models, which no key tells: they divide scores by the root of
// embedding / heads instead of a head's size.
void scale_scores_by_width(Part& mixer, const Hyperparameters& sizes);

// A layer of `mixer` and a gated feed-forward part with GELU, each with a norm behind it too
// (post_attention_norm, post_ffw_norm). Errors as Decoder's.
[[nodiscard]] Status add_gemma_layer(Decoder& decoder, std::uint32_t layer, Part mixer);

}  // namespace kvasir::model
