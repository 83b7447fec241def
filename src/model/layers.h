// What a model is made of: a list of layers, each a mixer and a feed-forward part from a small set. Data
// only; forward walks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kv/arena.h"
#include "simd/panels.h"
#include "simd/rotary.h"

namespace kvasir::model {

// y = W x + b; an empty bias is none.
struct Linear {
  simd::Panels weight;
  std::vector<float> bias;

  [[nodiscard]] std::size_t in() const noexcept { return weight.columns(); }
  [[nodiscard]] std::size_t out() const noexcept { return weight.rows(); }
};

// Root-mean-square norm.
struct Norm {
  std::vector<float> weight;
  float epsilon = 0;
};

// Grouped-query attention over the cells of a group: each KV head serves heads / kv_heads query heads.
struct Attention {
  Linear query, key, value, output;
  std::optional<Norm> query_norm, key_norm;  // of each head, before rotation
  std::uint32_t heads = 0;
  kv::LayerGeometry geometry;
  std::uint32_t group = 0;           // the cache group, and
  std::uint32_t layer_in_group = 0;  // which of its layers this is
  std::uint32_t rotary = 0;          // index of the model's rotary table
  float scale = 1;

  [[nodiscard]] std::uint32_t heads_per_kv() const noexcept { return heads / geometry.kv_heads; }
};

// down(silu(gate(x)) * up(x))
struct GatedFeedForward {
  Linear gate, up, down;
};

// A router's choice of `used` experts for each token. Their weights are the softmax over all, divided by
// their sum.
struct Experts {
  Linear router;
  std::vector<GatedFeedForward> experts;
  std::uint32_t used = 0;
};

// x += mixer(mixer_norm(x)); x += feed_forward(feed_forward_norm(x))
struct Layer {
  Norm mixer_norm;
  Attention mixer;
  Norm feed_forward_norm;
  std::variant<GatedFeedForward, Experts> feed_forward;
};

// What a model declares to whoever builds a cache for it: one entry a group, the geometry of each of its
// layers.
struct CacheGroup {
  std::vector<kv::LayerGeometry> layers;
};

// A whole model, as an architecture file fills it.
struct Network {
  simd::Panels token_embedding;
  std::vector<Layer> layers;
  Norm output_norm;
  std::optional<Linear> output;  // none: the token embedding serves
  std::vector<simd::RotaryTable> rotary;
  std::vector<CacheGroup> groups;

  [[nodiscard]] const simd::Panels& output_weight() const noexcept {
    return output ? output->weight : token_embedding;
  }
};

}  // namespace kvasir::model
