// Qwen3 with experts: Qwen3's attention, and experts weighed by their probabilities among the chosen.
// Source: Yang et al., Qwen3 Technical Report, 2025.

#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Network> build_qwen3moe(Loader& loader, const Hyperparameters& sizes) {
  return decoder_like_llama(loader, sizes, simd::RopePairing::kHalves);
}

}  // namespace kvasir::model
