// What a model is made of: a list of layers, each a list of parts from a small set. Data only; forward walks
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kv/arena.h"
#include "kvasir/token.h"
#include "model/recurrent_parts.h"
#include "model/weights.h"
#include "pages/types.h"
#include "simd/rotary.h"
#include "simd/vector_math.h"

namespace kvasir::model {

// A number for each head and distance between positions, which is added to scores.
struct PositionBias {
  std::int32_t reach = 0;     // from which distance on, to either side, it stays the same
  std::vector<float> values;  // [head][distance + reach], distances in [-reach, reach]

  // Where the number of distance 0 is.
  [[nodiscard]] const float* of(std::size_t head) const noexcept {
    const std::size_t width = 2 * static_cast<std::size_t>(reach) + 1;
    return values.data() + head * width + static_cast<std::size_t>(reach);
  }
};

// How queries read the cells of one layer of a group: what every kind of attention has in common. Each KV
// head serves heads / kv_heads query heads.
struct CellAttention {
  std::uint32_t heads = 0;
  kv::LayerGeometry geometry;
  std::uint32_t group = 0;           // the cache group, and
  std::uint32_t layer_in_group = 0;  // which of its layers this is
  std::uint32_t rotary = 0;          // index of the model's rotary table; an empty table turns nothing
  float scale = 1;
  float soft_cap = 0;        // scores become cap x tanh(score / cap); 0: they stay
  std::vector<float> sinks;  // [head]: a score that takes weight and gives no value; empty: none
  std::shared_ptr<const PositionBias> bias;  // layers may share it; null: none

  [[nodiscard]] std::uint32_t heads_per_kv() const noexcept { return heads / geometry.kv_heads; }
};

// Grouped-query attention.
struct Attention {
  Linear query, key, value, output;
  std::optional<Linear> gate;                // what the heads have read is multiplied by 1 / (1 + e^-gate(x))
  std::optional<Norm> query_norm, key_norm;  // before rotation
  CellAttention cells;
};

// Reads an encoder's output: its keys and values are those of a source's tokens, and a token sees all of
// them.
struct CrossAttention {
  Attention attention;
};

// Multi-head latent attention, absorbed: what a token keeps is one vector for all heads, its latent, and one
// turned key beside it. The matrices that would unpack keys and values from latents are applied to the query
// and to what was read. A cell's key is (turned part, latent), its value the latent.
// Source: DeepSeek-AI, DeepSeek-V2, 2024.
struct LatentAttention {
  std::optional<Linear> query_down;  // to a query latent; none: query_up reads the input
  std::optional<Norm> query_norm;    // of that latent
  Linear query_up;                   // [head]: (plain part, part to turn)
  Linear down;                       // to (latent, part to turn)
  Norm latent_norm;
  std::vector<Linear> keys;    // [head]: plain part of a query to latent
  std::vector<Linear> values;  // [head]: what was read of latents to a value
  Linear output;
  CellAttention cells;

  [[nodiscard]] std::size_t latent() const noexcept { return cells.geometry.value_dims; }
  [[nodiscard]] std::size_t turned() const noexcept { return cells.geometry.key_dims - latent(); }
  [[nodiscard]] std::size_t plain() const noexcept { return keys.front().in(); }
};

// down(activation(gate(x)) * up(x)), or down(activation(up(x))) without a gate.
struct FeedForward {
  std::optional<Linear> gate;
  Linear up, down;
  simd::Activation activation = simd::Activation::kSilu;
  std::optional<Linear> share;  // of one row: what the part gives is multiplied by 1 / (1 + e^-share(x))
};

// How a router's scores become a choice of experts and their weights.
struct Routing {
  enum class Gate : std::uint8_t {
    kSoftmax,          // probabilities over all experts
    kSigmoid,          // each expert by itself
    kSoftmaxOfChosen,  // raw scores choose; the weights are their softmax
  };
  std::uint32_t used = 0;  // experts for each token
  Gate gate = Gate::kSoftmax;
  bool sum_to_one = true;    // weights are divided by the sum of the chosen ones
  float scale = 1;           // of the weights
  std::vector<float> bias;   // [expert]: added where they are chosen, not where they are weighed
  std::uint32_t groups = 1;  // of as many experts each; only those of the best `groups_used`, by the sum of
  std::uint32_t groups_used = 1;  // their two highest scores, can be chosen

  static constexpr std::uint32_t kGroupsMax = 64;
};

// The weighted sum of the experts that a router chooses for each token.
struct Experts {
  Linear router;
  std::vector<FeedForward> experts;
  Routing routing;
};

// A mixer or a feed-forward part. Each kind has its stages in a file of its own: see part_kinds.h.
using PartBody = std::variant<Attention, LatentAttention, CrossAttention, FeedForward, Experts, Mamba, Mamba2,
                              GatedConvolution, GatedDelta, TimeMix6, TimeMix7, ChannelMix>;

// stream = stream + scale x output_norm(body(norm(stream))), where a missing norm leaves its input as it is.
struct Part {
  std::optional<Norm> norm;
  PartBody body;
  std::optional<Norm> output_norm;
  float scale = 1;
  // Reads the stream as the part before read it: both are added to it. Without a norm of its own it reads
  // what the part before read, normed; only the second of such a row of parts may have one of its own.
  bool same_input = false;
  std::optional<Norm> stream_norm;  // of the stream behind this part, which it becomes
  float stream_scale = 1;           // the same as a factor
};

struct Layer {
  std::vector<Part> parts;
};

// Whether each token of a pass has a cell of its own in a group of this kind.
[[nodiscard]] constexpr bool stores_cells(pages::GroupKind kind) noexcept {
  return kind == pages::GroupKind::kFull || kind == pages::GroupKind::kWindow;
}

// What a model declares to whoever builds a cache for it.
struct CacheGroup {
  pages::GroupKind kind = pages::GroupKind::kFull;
  std::uint64_t width = 0;                // of a window
  std::vector<kv::LayerGeometry> layers;  // full, window, cross: one a layer
  std::vector<kv::StateGeometry> states;  // recurrent: one a layer
  std::vector<std::uint32_t> rotary;      // [layer]: the rotary table that turns its keys
};

// What reads a text both ways, as one unit. Its parts follow one another; those with attention let each token
// see the whole text, whatever group they name.
struct EncoderStack {
  std::vector<Layer> layers;
  std::optional<Norm> output_norm;
};

// How the outputs of a text's tokens become what it is known by.
enum class Pooling : std::uint8_t {
  kNone,   // every token's output
  kMean,   // their mean
  kFirst,  // that of the first token
  kLast,   // that of the last token
  kRank,   // a score of the whole text, by a matrix of its own
};

// A whole model, as an architecture file fills it.
struct Network {
  simd::Panels token_embedding;
  float embedding_scale = 1;
  std::optional<simd::Panels> position_embedding;  // [position]: added to the token's
  std::vector<float> segment_embedding;            // of all tokens, added to the token's; empty: none
  std::optional<Norm> embedding_norm;
  std::vector<Layer> layers;  // of the decoder; none in a model that only reads
  std::optional<Norm> output_norm;
  std::optional<EncoderStack> encoder;
  Pooling pooling = Pooling::kNone;  // of the encoder's output, as the file says
  std::optional<Token> start_token;  // that a decoder which reads a source begins with
  std::optional<Linear> output;      // none: the token embedding serves
  float logit_scale = 1;
  float logit_cap = 0;  // logits become cap x tanh(logit / cap); 0: they stay
  std::vector<simd::RotaryTable> rotary;
  std::vector<CacheGroup> groups;
  bool positions_can_move = true;  // false: learned positions, a norm behind RoPE, any recurrent group
  bool takes_bytes = false;        // whether any weights do; set by whoever loads them

  // Whether it has a decoder, and whether that reads a source.
  [[nodiscard]] bool decodes() const noexcept { return !layers.empty(); }
  [[nodiscard]] bool reads_source() const noexcept { return encoder && decodes(); }

  // A token's embedding, as wide as `out`, with its scale.
  void read_embedding(std::uint32_t token, std::span<float> out) const noexcept;

  // What turns the keys of a group's layer.
  [[nodiscard]] const simd::RotaryTable& rotary_of(std::size_t group, std::size_t layer) const noexcept {
    return rotary[groups[group].rotary[layer]];
  }

  [[nodiscard]] const simd::Panels& output_weight() const noexcept {
    return output ? output->weight : token_embedding;
  }
};

}  // namespace kvasir::model
