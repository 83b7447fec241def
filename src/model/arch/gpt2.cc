// GPT-2: learned positions are added to the embeddings and nothing turns; norms that subtract the mean,
// biases everywhere, GELU without a gate. A key cannot be moved to another position, and there are no more
// positions than were learned.
// Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019.

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_gpt2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(Linear positions, loader.linear("position_embd", sizes.embedding, sizes.context));
  decoder.network().position_embedding = std::move(positions.weight);
  decoder.network().positions_can_move = false;
  const std::uint32_t none = decoder.add_no_rotary();
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = none}));
    KVASIR_ASSIGN(Part feed_forward,
                  decoder.feed_forward(layer, {.activation = simd::Activation::kGelu, .gated = false}));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
