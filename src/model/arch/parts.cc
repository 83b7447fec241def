#include "model/arch/parts.h"

#include <utility>

#include "base/try.h"

namespace kvasir::model {

std::string block(std::uint32_t layer) {
  return "blk." + std::to_string(layer) + ".";
}

Result<Network> decoder_frame(Loader& loader, const Hyperparameters& sizes, simd::RopePairing pairing) {
  Network network;
  KVASIR_ASSIGN(Linear embedding, loader.linear("token_embd", sizes.embedding, sizes.vocabulary));
  network.token_embedding = std::move(embedding.weight);
  KVASIR_ASSIGN(network.output_norm, loader.norm("output_norm", sizes.embedding, sizes.norm_epsilon));
  if (loader.has("output.weight")) {
    KVASIR_ASSIGN(network.output, loader.linear("output", sizes.embedding, sizes.vocabulary));
  }
  KVASIR_ASSIGN(simd::RotarySpec spec, read_rotary(loader.file(), sizes, pairing));
  if (loader.has("rope_freqs.weight")) {
    KVASIR_ASSIGN(spec.factors, loader.vector("rope_freqs.weight", spec.dims / 2));
  }
  auto table = simd::RotaryTable::make(spec);
  // The keys are checked; what is wrong can only be in the factors.
  if (!table) return fail(Outcome::kCorrupt, "the tensor 'rope_freqs.weight': " + table.error().message());
  network.rotary.push_back(*std::move(table));
  const kv::LayerGeometry geometry{sizes.kv_heads, sizes.key_dims, sizes.value_dims};
  network.groups.push_back({std::vector<kv::LayerGeometry>(sizes.layers, geometry)});
  return network;
}

Result<Attention> attention(Loader& loader, const Hyperparameters& sizes, std::uint32_t layer) {
  const std::string prefix = block(layer) + "attn_";
  const std::uint64_t width = sizes.embedding;
  const std::uint64_t queries = std::uint64_t{sizes.heads} * sizes.key_dims;
  const std::uint64_t keys = std::uint64_t{sizes.kv_heads} * sizes.key_dims;
  const std::uint64_t values = std::uint64_t{sizes.kv_heads} * sizes.value_dims;
  Attention mixer;
  if (loader.has(prefix + "qkv.weight")) {
    const std::string fused = prefix + "qkv";
    const std::uint64_t rows = queries + keys + values;
    KVASIR_ASSIGN(mixer.query, loader.linear_rows(fused, width, rows, 0, queries));
    KVASIR_ASSIGN(mixer.key, loader.linear_rows(fused, width, rows, queries, keys));
    KVASIR_ASSIGN(mixer.value, loader.linear_rows(fused, width, rows, queries + keys, values));
  } else {
    KVASIR_ASSIGN(mixer.query, loader.linear(prefix + "q", width, queries));
    KVASIR_ASSIGN(mixer.key, loader.linear(prefix + "k", width, keys));
    KVASIR_ASSIGN(mixer.value, loader.linear(prefix + "v", width, values));
  }
  KVASIR_ASSIGN(mixer.output,
                loader.linear(prefix + "output", std::uint64_t{sizes.heads} * sizes.value_dims, width));
  if (loader.has(prefix + "q_norm.weight")) {
    KVASIR_ASSIGN(mixer.query_norm, loader.norm(prefix + "q_norm", sizes.key_dims, sizes.norm_epsilon));
    KVASIR_ASSIGN(mixer.key_norm, loader.norm(prefix + "k_norm", sizes.key_dims, sizes.norm_epsilon));
  }
  mixer.heads = sizes.heads;
  mixer.geometry = {sizes.kv_heads, sizes.key_dims, sizes.value_dims};
  mixer.layer_in_group = layer;
  mixer.scale = sizes.attention_scale;
  return mixer;
}

Result<GatedFeedForward> gated_feed_forward(Loader& loader, const Hyperparameters& sizes,
                                            std::uint32_t layer) {
  const std::string prefix = block(layer) + "ffn_";
  GatedFeedForward part;
  KVASIR_ASSIGN(part.gate, loader.linear(prefix + "gate", sizes.embedding, sizes.feed_forward));
  KVASIR_ASSIGN(part.up, loader.linear(prefix + "up", sizes.embedding, sizes.feed_forward));
  KVASIR_ASSIGN(part.down, loader.linear(prefix + "down", sizes.feed_forward, sizes.embedding));
  return part;
}

Result<Experts> experts(Loader& loader, const Hyperparameters& sizes, std::uint32_t layer) {
  const std::string prefix = block(layer) + "ffn_";
  const auto matrix = [&](const char* name, std::uint64_t in, std::uint64_t out, std::uint32_t index) {
    return loader.linear_of(prefix + name + "_exps", in, out, sizes.experts, index);
  };
  Experts part;
  part.used = sizes.experts_used;
  KVASIR_ASSIGN(part.router, loader.linear(prefix + "gate_inp", sizes.embedding, sizes.experts));
  for (std::uint32_t index = 0; index < sizes.experts; ++index) {
    GatedFeedForward expert;
    KVASIR_ASSIGN(expert.gate, matrix("gate", sizes.embedding, sizes.feed_forward, index));
    KVASIR_ASSIGN(expert.up, matrix("up", sizes.embedding, sizes.feed_forward, index));
    KVASIR_ASSIGN(expert.down, matrix("down", sizes.feed_forward, sizes.embedding, index));
    part.experts.push_back(std::move(expert));
  }
  return part;
}

Result<Layer> decoder_layer(Loader& loader, const Hyperparameters& sizes, std::uint32_t layer) {
  Layer built;
  KVASIR_ASSIGN(built.mixer_norm,
                loader.norm(block(layer) + "attn_norm", sizes.embedding, sizes.norm_epsilon));
  KVASIR_ASSIGN(built.mixer, attention(loader, sizes, layer));
  KVASIR_ASSIGN(built.feed_forward_norm,
                loader.norm(block(layer) + "ffn_norm", sizes.embedding, sizes.norm_epsilon));
  if (sizes.experts > 0) {
    KVASIR_ASSIGN(built.feed_forward, experts(loader, sizes, layer));
  } else {
    KVASIR_ASSIGN(built.feed_forward, gated_feed_forward(loader, sizes, layer));
  }
  return built;
}

Result<Network> decoder(Loader& loader, const Hyperparameters& sizes, simd::RopePairing pairing) {
  KVASIR_ASSIGN(Network network, decoder_frame(loader, sizes, pairing));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Layer built, decoder_layer(loader, sizes, layer));
    network.layers.push_back(std::move(built));
  }
  return network;
}

}  // namespace kvasir::model
