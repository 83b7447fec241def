// Llama and its kin (Mistral, Mixtral, SmolLM, ...): pre-norm blocks of grouped-query attention and a gated
// feed-forward part or experts. RoPE turns adjacent dimensions, as the GGUF converter reorders them to.
// Sources: Touvron et al., LLaMA, 2023; Jiang et al., Mixtral of Experts, 2024.

#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_llama(Loader& loader, const Hyperparameters& sizes) {
  return decoder_like_llama(loader, sizes, simd::RopePairing::kAdjacent);
}

}  // namespace kvasir::model
