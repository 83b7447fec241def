// Qwen3: Llama's block with a norm on each head of query and key before rotation; RoPE turns halves.
// Source: Yang et al., Qwen3 Technical Report, 2025.

#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_qwen3(Loader& loader, const Hyperparameters& sizes) {
  return decoder_like_llama(loader, sizes, simd::RopePairing::kHalves);
}

}  // namespace kvasir::model
