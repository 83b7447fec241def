// DeepSeek-V2 and V3: latent attention, absorbed (see LatentAttention); behind some dense layers, experts
// with shared ones beside them. V3 scores experts by sigmoid, chooses them with a bias and from the best
// groups. RoPE turns adjacent dimensions.
// Sources: DeepSeek-AI, DeepSeek-V2, 2024; DeepSeek-AI, DeepSeek-V3 Technical Report, 2024.

#include <cmath>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {
namespace {

// The sizes that only this family has.
struct Sizes {
  std::uint32_t query_latent = 0;  // 0: queries have none
  std::uint32_t latent = 0;
  std::uint32_t turned = 0;
  std::uint32_t plain = 0;
  std::uint32_t value = 0;
  std::uint32_t rotary = 0;
  float scale = 0;
};

// YaRN's attention factor is left out of the rotation; scores take another, squared, from a key of their own.
Result<Sizes> read_sizes(Decoder& decoder) {
  const ArchitectureKeys& keys = decoder.keys();
  Sizes own;
  KVASIR_ASSIGN(own.query_latent, keys.count("attention.q_lora_rank", 0, kWidthMax, 0));
  KVASIR_ASSIGN(own.latent, keys.count("attention.kv_lora_rank", 1, simd::kMaxValueDims));
  KVASIR_ASSIGN(simd::RotarySpec spec,
                read_rotary(decoder.loader().file(), decoder.sizes(), simd::RopePairing::kAdjacent));
  own.turned = static_cast<std::uint32_t>(spec.dims);
  KVASIR_ASSIGN(const std::uint32_t key, keys.count("attention.key_length_mla", own.turned + 1, kWidthMax));
  own.plain = key - own.turned;
  KVASIR_ASSIGN(own.value, keys.count("attention.value_length_mla", 1, kWidthMax));
  double factor = 1;
  if (spec.yarn) {
    const double stretch = std::log(1 / spec.frequency_scale);
    KVASIR_ASSIGN(const double multiplier, keys.number("rope.scaling.yarn_log_multiplier", 0.0));
    spec.attention_factor /= 1 + 0.1 * stretch;
    factor = 1 + multiplier * stretch;
  }
  own.scale = static_cast<float>(factor * factor / std::sqrt(static_cast<double>(key)));
  KVASIR_ASSIGN(own.rotary, decoder.add_rotary(spec));
  return own;
}

Result<std::vector<Linear>> by_head(Loader& loader, const std::string& name, std::uint64_t in,
                                    std::uint64_t out, std::uint32_t heads) {
  std::vector<Linear> all(heads);
  for (std::uint32_t head = 0; head < heads; ++head) {
    KVASIR_ASSIGN(all[head], loader.linear_of(name, in, out, heads, head));
  }
  return all;
}

Result<Part> attention(Decoder& decoder, const Sizes& own, std::uint32_t layer) {
  Loader& loader = decoder.loader();
  const std::string prefix = block(layer) + "attn_";
  const std::uint64_t width = decoder.sizes().embedding;
  const std::uint32_t heads = decoder.sizes().heads[layer];
  const std::uint64_t queries = std::uint64_t{heads} * (own.plain + own.turned);
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm"));
  LatentAttention mixer;
  if (own.query_latent > 0) {
    KVASIR_ASSIGN(mixer.query_down, loader.linear(prefix + "q_a", width, own.query_latent));
    KVASIR_ASSIGN(mixer.query_norm, decoder.norm_of(prefix + "q_a_norm", own.query_latent, own.query_latent));
    KVASIR_ASSIGN(mixer.query_up, loader.linear(prefix + "q_b", own.query_latent, queries));
  } else {
    KVASIR_ASSIGN(mixer.query_up, loader.linear(prefix + "q", width, queries));
  }
  KVASIR_ASSIGN(mixer.down, loader.linear(prefix + "kv_a_mqa", width, own.latent + own.turned));
  KVASIR_ASSIGN(mixer.latent_norm, decoder.norm_of(prefix + "kv_a_norm", own.latent, own.latent));
  KVASIR_ASSIGN(mixer.keys, by_head(loader, prefix + "k_b", own.plain, own.latent, heads));
  KVASIR_ASSIGN(mixer.values, by_head(loader, prefix + "v_b", own.latent, own.value, heads));
  KVASIR_ASSIGN(mixer.output, loader.linear(prefix + "output", std::uint64_t{heads} * own.value, width));
  mixer.cells = {.heads = heads,
                 .geometry = {1, own.latent + own.turned, own.latent},
                 .rotary = own.rotary,
                 .scale = own.scale};
  decoder.add_cells(mixer.cells, 0);
  part.body = std::move(mixer);
  return part;
}

Result<Routing> read_routing(const ArchitectureKeys& keys) {
  constexpr std::uint32_t kSigmoid = 2;
  Routing routing{.sum_to_one = false};
  KVASIR_ASSIGN(const std::uint32_t gate, keys.count("expert_gating_func", 0, kSigmoid, 0));
  if (gate == kSigmoid) routing.gate = Routing::Gate::kSigmoid;
  KVASIR_ASSIGN(const std::uint32_t groups, keys.count("expert_group_count", 0, Routing::kGroupsMax, 0));
  if (groups <= 1) return routing;
  routing.groups = groups;
  KVASIR_ASSIGN(routing.groups_used, keys.count("expert_group_used_count", 1, groups));
  return routing;
}

// A group must be large enough, and enough groups be kept, for the choice.
Status check_groups(const ArchitectureKeys& keys, const Hyperparameters& sizes, const Routing& routing) {
  if (sizes.experts % routing.groups == 0 &&
      sizes.experts / routing.groups * routing.groups_used >= sizes.experts_used)
    return {};
  return fail(Outcome::kCorrupt, "'" + keys.name("expert_group_count") + "' " +
                                     std::to_string(routing.groups) + " does not fit " +
                                     std::to_string(sizes.experts) + " experts");
}

}  // namespace

Result<Network> build_deepseek2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  const ArchitectureKeys& keys = decoder.keys();
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const Sizes own, read_sizes(decoder));
  KVASIR_ASSIGN(const std::uint32_t dense, keys.count("leading_dense_block_count", 0, sizes.layers, 0));
  KVASIR_ASSIGN(const std::uint32_t shared, keys.count("expert_shared_count", 0, sizes.feed_forward[0], 0));
  KVASIR_ASSIGN(const Routing routing, read_routing(keys));
  KVASIR_TRY(check_groups(keys, sizes, routing));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    Layer built;
    KVASIR_ASSIGN(built.parts.emplace_back(), attention(decoder, own, layer));
    const bool routed = layer >= dense && sizes.experts > 0;
    KVASIR_ASSIGN(built.parts.emplace_back(),
                  routed ? decoder.experts(layer, {.routing = routing}) : decoder.feed_forward(layer));
    if (routed && shared > 0) {
      const std::uint64_t width = std::uint64_t{shared} * sizes.expert_feed_forward;
      KVASIR_ASSIGN(built.parts.emplace_back(), decoder.shared_expert(layer, width));
    }
    decoder.add_layer(std::move(built));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
