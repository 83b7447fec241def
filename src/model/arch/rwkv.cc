// RWKV-6 and RWKV-7: layers of a time mix, which keeps a state for each head,
// and a channel mix; both look at the token before. Sources: Peng et al., Eagle
// and Finch, 2024; Peng et al., RWKV-7 Goose, 2025.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"
#include "simd/scans.h"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kRankMax = 1U << 16;
constexpr float kHeadEpsilon = 64e-5F;  // of the norm of a head's output

// What both generations read.
struct Rwkv {
  Decoder decoder;
  std::uint32_t head_width = 0;

  [[nodiscard]] const Hyperparameters& sizes() const noexcept { return decoder.sizes(); }
  [[nodiscard]] Loader& loader() noexcept { return decoder.loader(); }

  Status begin();
  Result<Linear> square(const std::string& name) {
    return loader().linear(name, sizes().embedding, sizes().embedding);
  }
  Result<std::vector<float>> row(const std::string& name) {
    return loader().numbers(name, {sizes().embedding});
  }
  Result<LowRank> low_rank(const std::string& down, const std::string& up, std::uint32_t rank);
  Result<Norm> head_norm(const std::string& name);
  // What the token before read, and the state of every head.
  Result<StateEntry> add_before() { return add_state(decoder.network(), 1, 1, sizes().embedding); }
  Result<StateEntry> add_heads() {
    return add_state(decoder.network(), sizes().embedding / head_width, head_width,
                     simd::state_lanes(head_width));
  }
  Result<Part> channel_mix(std::uint32_t layer, bool gated);
};

Status Rwkv::begin() {
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(decoder.network().embedding_norm, decoder.norm("token_embd_norm"));
  KVASIR_ASSIGN(head_width, decoder.keys().count("wkv.head_size", 1, sizes().embedding));
  if (sizes().embedding % head_width == 0) return {};
  return fail(Outcome::kCorrupt, "'" + decoder.keys().name("embedding_length") + "' " +
                                     std::to_string(sizes().embedding) + " is no multiple of '" +
                                     decoder.keys().name("wkv.head_size") + "' " +
                                     std::to_string(head_width));
}

Result<LowRank> Rwkv::low_rank(const std::string& down, const std::string& up, std::uint32_t rank) {
  LowRank part;
  KVASIR_ASSIGN(part.down, loader().linear(down, sizes().embedding, rank));
  KVASIR_ASSIGN(part.up, loader().linear(up, rank, sizes().embedding));
  return part;
}

Result<Norm> Rwkv::head_norm(const std::string& name) {
  KVASIR_ASSIGN(Norm norm, decoder.norm_of(name, sizes().embedding, head_width));
  norm.epsilon = kHeadEpsilon;
  return norm;
}

Result<Part> Rwkv::channel_mix(std::uint32_t layer, bool gated) {
  const std::string prefix = block(layer) + "channel_mix_";
  const std::uint64_t width = sizes().feed_forward[layer];
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm_2"));
  ChannelMix body;
  KVASIR_ASSIGN(body.key_lerp, row(prefix + "lerp_k.weight"));
  KVASIR_ASSIGN(body.key, loader().linear(prefix + "key", sizes().embedding, width));
  KVASIR_ASSIGN(body.value, loader().linear(prefix + "value", width, sizes().embedding));
  if (gated) {
    KVASIR_ASSIGN(body.gate_lerp, row(prefix + "lerp_r.weight"));
    KVASIR_ASSIGN(body.gate, square(prefix + "receptance"));
  }
  KVASIR_ASSIGN(body.before, add_before());
  part.body = std::move(body);
  return part;
}

// One row of a tensor of several.
std::vector<float> row_of(const std::vector<float>& rows, std::size_t index, std::size_t width) {
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(index * width);
  return {first, first + static_cast<std::ptrdiff_t>(width)};
}

// time_mix_w1 holds the matrices down of all inputs one behind the other,
// time_mix_w2 those up, and time_mix_lerp_fused what is added behind them.
Status read_lerps(Rwkv& rwkv, const std::string& prefix, TimeMix6& mixer) {
  const std::uint64_t width = rwkv.sizes().embedding;
  KVASIR_ASSIGN(const std::uint32_t rank, rwkv.decoder.keys().count("time_mix_extra_dim", 1, kRankMax));
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
  mixer.head_width = rwkv.head_width;
  KVASIR_ASSIGN(mixer.first_lerp, rwkv.row(prefix + "lerp_x.weight"));
  KVASIR_TRY(read_lerps(rwkv, prefix, mixer));
  KVASIR_ASSIGN(const std::uint32_t rank, rwkv.decoder.keys().count("time_decay_extra_dim", 1, kRankMax));
  KVASIR_ASSIGN(mixer.decay, rwkv.low_rank(prefix + "decay_w1", prefix + "decay_w2", rank));
  KVASIR_ASSIGN(mixer.decay.up.bias, rwkv.row(prefix + "decay.weight"));
  KVASIR_ASSIGN(mixer.receptance, rwkv.square(prefix + "receptance"));
  KVASIR_ASSIGN(mixer.key, rwkv.square(prefix + "key"));
  KVASIR_ASSIGN(mixer.value, rwkv.square(prefix + "value"));
  KVASIR_ASSIGN(mixer.gate, rwkv.square(prefix + "gate"));
  KVASIR_ASSIGN(mixer.output, rwkv.square(prefix + "output"));
  KVASIR_ASSIGN(mixer.bonus,
                rwkv.loader().numbers(prefix + "first.weight", {mixer.head_width, mixer.heads()}));
  KVASIR_ASSIGN(mixer.norm, rwkv.head_norm(prefix + "ln"));
  KVASIR_ASSIGN(mixer.before, rwkv.add_before());
  KVASIR_ASSIGN(mixer.state, rwkv.add_heads());
  part.body = std::move(mixer);
  return part;
}

// The matrices of low rank, `up` with what is added behind it.
Status read_low_ranks(Rwkv& rwkv, const std::string& prefix, bool first, TimeMix7& mixer) {
  const auto read = [&](const std::string& name, const char* rank_key) -> Result<LowRank> {
    const std::string key = std::string("attention.") + rank_key + "_lora_rank";
    KVASIR_ASSIGN(const std::uint32_t rank, rwkv.decoder.keys().count(key, 1, kRankMax));
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
  mixer.head_width = rwkv.head_width;
  KVASIR_ASSIGN(const std::vector<float> fused,
                rwkv.loader().numbers(prefix + "lerp_fused.weight", {width, TimeMix7::kInputs}));
  for (std::size_t i = 0; i < TimeMix7::kInputs; ++i) mixer.lerps.push_back(row_of(fused, i, width));
  KVASIR_TRY(read_low_ranks(rwkv, prefix, layer == 0, mixer));
  KVASIR_ASSIGN(mixer.receptance, rwkv.square(prefix + "receptance"));
  KVASIR_ASSIGN(mixer.key, rwkv.square(prefix + "key"));
  KVASIR_ASSIGN(mixer.value, rwkv.square(prefix + "value"));
  KVASIR_ASSIGN(mixer.output, rwkv.square(prefix + "output"));
  KVASIR_ASSIGN(mixer.probe, rwkv.row(prefix + "k_k.weight"));
  KVASIR_ASSIGN(mixer.turn, rwkv.row(prefix + "k_a.weight"));
  KVASIR_ASSIGN(mixer.bonus, rwkv.row(prefix + "r_k.weight"));
  KVASIR_ASSIGN(mixer.norm, rwkv.head_norm(prefix + "ln"));
  KVASIR_ASSIGN(mixer.before, rwkv.add_before());
  KVASIR_ASSIGN(mixer.state, rwkv.add_heads());
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
