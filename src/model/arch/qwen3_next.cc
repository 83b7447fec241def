// Qwen3-Next: gated delta nets, in some layers gated attention in their place;
// experts beside a shared one that takes a share of its own. Sources: Qwen
// Team, Qwen3-Next, 2025; Yang et al., Gated Delta Networks, 2024.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"
#include "simd/scans.h"

namespace kvasir::model {
namespace {

// attn_qkv, attn_gate, ssm_ba: the rows of ssm_ba are those of each key head,
// its value heads' strengths, then their time steps.
Status read_inputs(Decoder& decoder, std::uint32_t layer, GatedDelta& mixer) {
  Loader& loader = decoder.loader();
  const std::string prefix = block(layer);
  const std::uint64_t width = decoder.sizes().embedding;
  const std::uint64_t keys = std::uint64_t{mixer.key_heads} * mixer.key_width;
  const std::uint64_t values = std::uint64_t{mixer.value_heads} * mixer.value_width;
  const std::uint64_t of_key = mixer.value_heads / mixer.key_heads;
  KVASIR_ASSIGN(mixer.mixed, loader.linear(prefix + "attn_qkv", width, 2 * keys + values));
  KVASIR_ASSIGN(mixer.gate, loader.linear(prefix + "attn_gate", width, values));
  const Loader::HeadRows rows{mixer.key_heads, 2 * of_key};
  KVASIR_ASSIGN(mixer.strength, loader.linear_of_heads(prefix + "ssm_ba", width, rows, 0, of_key));
  KVASIR_ASSIGN(mixer.time, loader.linear_of_heads(prefix + "ssm_ba", width, rows, of_key, of_key));
  KVASIR_ASSIGN(mixer.time.bias, loader.numbers(prefix + "ssm_dt.bias", {mixer.value_heads}));
  return {};
}

Result<Part> gated_delta(Decoder& decoder, std::uint32_t layer) {
  KVASIR_ASSIGN(const StateSpaceSizes sizes, StateSpaceSizes::read(decoder.keys()));
  if (sizes.rank % sizes.groups != 0 || sizes.channels % sizes.rank != 0) {
    return fail(Outcome::kCorrupt, "'" + decoder.keys().name("ssm.inner_size") + "' " +
                                       std::to_string(sizes.channels) + ", " + std::to_string(sizes.rank) +
                                       " value heads and " + std::to_string(sizes.groups) +
                                       " key heads do not divide");
  }
  const std::string prefix = block(layer) + "ssm_";
  Loader& loader = decoder.loader();
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm"));
  GatedDelta mixer;
  mixer.epsilon = decoder.sizes().norm_epsilon;
  mixer.key_heads = sizes.groups;
  mixer.value_heads = sizes.rank;
  mixer.key_width = sizes.dims;
  mixer.value_width = sizes.channels / sizes.rank;
  KVASIR_TRY(read_inputs(decoder, layer, mixer));
  KVASIR_ASSIGN(mixer.convolution, convolution(decoder, prefix + "conv1d",
                                               static_cast<std::uint32_t>(mixer.mixed.out()), sizes.taps));
  KVASIR_ASSIGN(mixer.decay, loader.numbers(prefix + "a", {mixer.value_heads}));
  KVASIR_ASSIGN(mixer.norm, decoder.norm_of(prefix + "norm", mixer.value_width, mixer.value_width));
  KVASIR_ASSIGN(mixer.output, loader.linear(prefix + "out", sizes.channels, decoder.sizes().embedding));
  KVASIR_ASSIGN(mixer.state, add_state(decoder.network(), mixer.value_heads, mixer.key_width,
                                       simd::state_lanes(mixer.value_width)));
  part.body = std::move(mixer);
  return part;
}

Result<Part> shared_expert(Decoder& decoder, std::uint32_t layer, std::uint32_t width) {
  KVASIR_ASSIGN(Part part, decoder.shared_expert(layer, width));
  auto* const body = std::get_if<FeedForward>(&part.body);
  KVASIR_ASSIGN(body->share,
                decoder.loader().linear(block(layer) + "ffn_gate_inp_shexp", decoder.sizes().embedding, 1));
  return part;
}

}  // namespace

Result<Network> build_qwen3_next(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  KVASIR_ASSIGN(const std::uint32_t shared,
                decoder.keys().count("expert_shared_feed_forward_length", 1, 1U << 20));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, layer_has(decoder, layer, "attn_q.weight")
                                  ? decoder.attention(layer, {.rotary = rotary, .gated = true})
                                  : gated_delta(decoder, layer));
    KVASIR_ASSIGN(Part experts, decoder.experts(layer, {.norm = "post_attention_norm"}));
    KVASIR_ASSIGN(Part beside, shared_expert(decoder, layer, shared));
    decoder.add_layer(std::move(mixer), std::move(experts), std::move(beside));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
