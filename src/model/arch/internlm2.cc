// InternLM2: Llama's block. RoPE turns adjacent dimensions, as the GGUF converter reorders them to.
// Source: Cai et al., InternLM2 Technical Report, 2024.

#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_internlm2(Loader& loader, const Hyperparameters& sizes) {
  return decoder_like_llama(loader, sizes, simd::RopePairing::kAdjacent);
}

}  // namespace kvasir::model
