// RWKV-6. Source: Peng et al., Eagle and Finch: RWKV with Matrix-Valued States and Dynamic Recurrence, 2024.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/rwkv.h"

namespace kvasir::model {
namespace {

// time_mix_w1 holds the matrices down of all inputs one behind the other,
// time_mix_w2 those up, and time_mix_lerp_fused what is added behind them.
Status read_lerps(Rwkv& rwkv, const std::string& prefix, TimeMix6& mixer) {
  const std::uint64_t width = rwkv.sizes().embedding;
  KVASIR_ASSIGN(const std::uint32_t rank, rwkv.decoder.keys().count("time_mix_extra_dim", 1, kRwkvRankMax));
  KVASIR_ASSIGN(const std::vector<float> fused,
                rwkv.loader().numbers(prefix + "lerp_fused.weight", {width, TimeMix6::kInputs}));
  for (std::size_t i = 0; i < TimeMix6::kInputs; ++i) {
    LowRank lerp;
    KVASIR_ASSIGN(lerp.down,
                  rwkv.loader().linear_rows(prefix + "w1", width, TimeMix6::kInputs * rank, i * rank, rank));
    KVASIR_ASSIGN(lerp.up, rwkv.loader().linear_of(prefix + "w2", rank, width, TimeMix6::kInputs, i));
    lerp.up.bias = row_of(fused, i, width);
    mixer.lerps.push_back(std::move(lerp));
  }
  return {};
}

Result<Part> time_mix6(Rwkv& rwkv, std::uint32_t layer) {
  const std::string prefix = block(layer) + "time_mix_";
  Part part;
  KVASIR_ASSIGN(part.norm, rwkv.decoder.norm(layer, "attn_norm"));
  TimeMix6 mixer;
  KVASIR_TRY(rwkv.read_time_mix(prefix, mixer));
  KVASIR_ASSIGN(mixer.first_lerp, rwkv.row(prefix + "lerp_x.weight"));
  KVASIR_TRY(read_lerps(rwkv, prefix, mixer));
  KVASIR_ASSIGN(const std::uint32_t rank, rwkv.decoder.keys().count("time_decay_extra_dim", 1, kRwkvRankMax));
  KVASIR_ASSIGN(mixer.decay, rwkv.low_rank(prefix + "decay_w1", prefix + "decay_w2", rank));
  KVASIR_ASSIGN(mixer.decay.up.bias, rwkv.row(prefix + "decay.weight"));
  KVASIR_ASSIGN(mixer.gate, rwkv.square(prefix + "gate"));
  KVASIR_ASSIGN(mixer.bonus,
                rwkv.loader().numbers(prefix + "first.weight", {mixer.head_width, mixer.heads()}));
  part.body = std::move(mixer);
  return part;
}

}  // namespace

Result<Network> build_rwkv6(Loader& loader, const Hyperparameters& sizes) {
  Rwkv rwkv{Decoder(loader, sizes, Norm::Kind::kMeanAndVariance)};
  KVASIR_TRY(rwkv.begin());
  KVASIR_ASSIGN(const std::uint32_t rescale,
                rwkv.decoder.keys().count("rescale_every_n_layers", 0, UINT32_MAX, 0));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part time, time_mix6(rwkv, layer));
    KVASIR_ASSIGN(Part channel, rwkv.channel_mix(layer, true));
    if (rescale > 0 && (layer + 1) % rescale == 0) channel.stream_scale = 0.5F;
    rwkv.decoder.add_layer(std::move(time), std::move(channel));
  }
  return rwkv.decoder.finish();
}

}  // namespace kvasir::model
