// Mamba and Mamba-2: a selective scan a layer, no feed-forward part; Falcon-Mamba norms time step, B and C.
// Sources: Gu and Dao, Mamba, 2023; Dao and Gu, Transformers are SSMs, 2024; Zuo et al., Falcon Mamba, 2024.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"

namespace kvasir::model {
namespace {

Result<Network> mixers_alone(Loader& loader, const Hyperparameters& sizes,
                             Result<Part> (*mixer_of)(Decoder& decoder, std::uint32_t layer)) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, mixer_of(decoder, layer));
    decoder.add_layer(std::move(mixer));
  }
  return decoder.finish();
}

}  // namespace

Result<Network> build_mamba(Loader& loader, const Hyperparameters& sizes) {
  return mixers_alone(loader, sizes, mamba);
}

Result<Network> build_mamba2(Loader& loader, const Hyperparameters& sizes) {
  return mixers_alone(loader, sizes, mamba2);
}

}  // namespace kvasir::model
