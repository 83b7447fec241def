// RWKV-7. Source: Peng et al., RWKV-7 "Goose" with Expressive Dynamic State Evolution, 2025.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/rwkv.h"

namespace kvasir::model {
namespace {

// The matrices of low rank, `up` with what is added behind it.
Status read_low_ranks(Rwkv& rwkv, const std::string& prefix, bool first, TimeMix7& mixer) {
  const auto read = [&](const std::string& name, const char* rank_key) -> Result<LowRank> {
    const std::string key = std::string("attention.") + rank_key + "_lora_rank";
    KVASIR_ASSIGN(const std::uint32_t rank, rwkv.decoder.keys().count(key, 1, kRwkvRankMax));
    KVASIR_ASSIGN(LowRank part, rwkv.low_rank(prefix + name + "1", prefix + name + "2", rank));
    if (name == "g") return part;
    KVASIR_ASSIGN(part.up.bias, rwkv.row(prefix + name + "0.weight"));
    return part;
  };
  KVASIR_ASSIGN(mixer.decay, read("w", "decay"));
  KVASIR_ASSIGN(mixer.rate, read("a", "iclr"));
  KVASIR_ASSIGN(mixer.gate, read("g", "gate"));
  if (first) return {};
  KVASIR_ASSIGN(mixer.value_share, read("v", "value_residual_mix"));
  return {};
}

Result<Part> time_mix7(Rwkv& rwkv, std::uint32_t layer) {
  const std::string prefix = block(layer) + "time_mix_";
  const std::uint64_t width = rwkv.sizes().embedding;
  Part part;
  KVASIR_ASSIGN(part.norm, rwkv.decoder.norm(layer, "attn_norm"));
  TimeMix7 mixer;
  KVASIR_TRY(rwkv.read_time_mix(prefix, mixer));
  KVASIR_ASSIGN(const std::vector<float> fused,
                rwkv.loader().numbers(prefix + "lerp_fused.weight", {width, TimeMix7::kInputs}));
  for (std::size_t i = 0; i < TimeMix7::kInputs; ++i) mixer.lerps.push_back(row_of(fused, i, width));
  KVASIR_TRY(read_low_ranks(rwkv, prefix, layer == 0, mixer));
  KVASIR_ASSIGN(mixer.probe, rwkv.row(prefix + "k_k.weight"));
  KVASIR_ASSIGN(mixer.turn, rwkv.row(prefix + "k_a.weight"));
  KVASIR_ASSIGN(mixer.bonus, rwkv.row(prefix + "r_k.weight"));
  part.body = std::move(mixer);
  return part;
}

}  // namespace

Result<Network> build_rwkv7(Loader& loader, const Hyperparameters& sizes) {
  Rwkv rwkv{Decoder(loader, sizes, Norm::Kind::kMeanAndVariance)};
  KVASIR_TRY(rwkv.begin());
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part time, time_mix7(rwkv, layer));
    KVASIR_ASSIGN(Part channel, rwkv.channel_mix(layer, false));
    rwkv.decoder.add_layer(std::move(time), std::move(channel));
  }
  return rwkv.decoder.finish();
}

}  // namespace kvasir::model
