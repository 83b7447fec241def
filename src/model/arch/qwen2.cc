// Qwen2: Llama's block with biases on query, key and value; RoPE turns halves.
// Source: Yang et al., Qwen2 Technical Report, 2024.

#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_qwen2(Loader& loader, const Hyperparameters& sizes) {
  return decoder_like_llama(loader, sizes, simd::RopePairing::kHalves);
}

}  // namespace kvasir::model
