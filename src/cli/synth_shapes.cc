#include "cli/synth_shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::cli {
namespace {

using enum Size;
using enum Fill;

constexpr std::uint64_t kTrainedLength = 32768;

// What every decoder of transformer layers says of itself.
std::vector<KeyRecipe> decoder_keys(float norm_epsilon, float rope_base) {
  return {
      {"context_length", Extent(kTrainedLength)},
      {"embedding_length", Extent(kWidth)},
      {"block_count", Extent(kLayers)},
      {"feed_forward_length", Extent(kFeedForward)},
      {"attention.head_count", Extent(kHeads)},
      {"attention.head_count_kv", Extent(kKvHeads)},
      {"attention.layer_norm_rms_epsilon", norm_epsilon},
      {"rope.freq_base", rope_base},
      {"rope.dimension_count", Extent(kHeadSize)},
      {"vocab_size", Extent(kVocabulary)},
  };
}

// No output matrix: the embedding serves.
const std::vector<TensorRecipe>& tied_tensors() {
  static const std::vector<TensorRecipe> tensors = {
      {"token_embd.weight", kMatrix, {kWidth, kVocabulary}},
      {"output_norm.weight", kNorm, {kWidth}},
  };
  return tensors;
}

const std::vector<TensorRecipe>& llama_layer() {
  static const std::vector<TensorRecipe> tensors = {
      {"attn_norm.weight", kNorm, {kWidth}},
      {"attn_q.weight", kMatrix, {kWidth, kQueries}},
      {"attn_k.weight", kMatrix, {kWidth, kKeys}},
      {"attn_v.weight", kMatrix, {kWidth, kKeys}},
      {"attn_output.weight", kMatrix, {kQueries, kWidth}},
      {"ffn_norm.weight", kNorm, {kWidth}},
      {"ffn_gate.weight", kMatrix, {kWidth, kFeedForward}},
      {"ffn_up.weight", kMatrix, {kWidth, kFeedForward}},
      {"ffn_down.weight", kMatrix, {kFeedForward, kWidth}},
  };
  return tensors;
}

const std::vector<TensorRecipe>& qwen2_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = llama_layer();
    layer.push_back({"attn_q.bias", kBias, {kQueries}});
    layer.push_back({"attn_k.bias", kBias, {kKeys}});
    layer.push_back({"attn_v.bias", kBias, {kKeys}});
    return layer;
  }();
  return tensors;
}

std::vector<Shape> make_shapes() {
  return {
      {.name = "llama-1b",
       .architecture = "llama",
       .sizes = {.width = 2048,
                 .layers = 16,
                 .heads = 32,
                 .kv_heads = 8,
                 .head_size = 64,
                 .feed_forward = 8192,
                 .vocabulary = 128256},
       .keys = decoder_keys(1e-5F, 500000.0F),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, llama_layer()}}},
      {.name = "qwen-0.5b",
       .architecture = "qwen2",
       .sizes = {.width = 896,
                 .layers = 24,
                 .heads = 14,
                 .kv_heads = 2,
                 .head_size = 64,
                 .feed_forward = 4864,
                 .vocabulary = 151936},
       .keys = decoder_keys(1e-6F, 1000000.0F),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, qwen2_layer()}}},
      {.name = "llama-tiny",
       .architecture = "llama",
       .sizes = {.width = 256,
                 .layers = 4,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_size = 64,
                 .feed_forward = 768,
                 .vocabulary = 512},
       .keys = decoder_keys(1e-5F, 10000.0F),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, llama_layer()}}},
  };
}

SynthTensor filled_in(const TensorRecipe& recipe, const std::string& prefix, const Sizes& sizes) {
  SynthTensor tensor{prefix + std::string(recipe.name), recipe.fill, {}};
  for (const Extent& extent : recipe.dims) tensor.dims.push_back(extent.in(sizes));
  return tensor;
}

}  // namespace

std::uint64_t Sizes::of(Size size) const noexcept {
  switch (size) {
    case kWidth:
      return width;
    case kLayers:
      return layers;
    case kHeads:
      return heads;
    case kKvHeads:
      return kv_heads;
    case kHeadSize:
      return head_size;
    case kQueries:
      return std::uint64_t{heads} * head_size;
    case kKeys:
      return std::uint64_t{kv_heads} * head_size;
    case kFeedForward:
      return feed_forward;
    case kVocabulary:
      return vocabulary;
  }
  return 0;
}

std::uint64_t Extent::in(const Sizes& sizes) const noexcept {
  if (const auto* size = std::get_if<Size>(&value)) return sizes.of(*size);
  return *std::get_if<std::uint64_t>(&value);
}

std::span<const Shape> synth_shapes() {
  static const std::vector<Shape> shapes = make_shapes();
  return shapes;
}

const Shape* find_synth_shape(std::string_view name) {
  for (const Shape& shape : synth_shapes()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::vector<SynthTensor> tensors_of(const Shape& shape, const Sizes& sizes) {
  std::vector<SynthTensor> tensors;
  for (const TensorRecipe& recipe : shape.tensors) tensors.push_back(filled_in(recipe, "", sizes));
  for (const Stack& stack : shape.stacks) {
    for (std::uint64_t layer = 0; layer < stack.layers.in(sizes); ++layer) {
      const std::string prefix = fmt::format("{}{}.", stack.prefix, layer);
      for (const TensorRecipe& recipe : stack.tensors) tensors.push_back(filled_in(recipe, prefix, sizes));
    }
  }
  return tensors;
}

std::vector<gguf::KeyValue> hyperparameters_of(const Shape& shape, const Sizes& sizes) {
  std::vector<gguf::KeyValue> keys;
  for (const KeyRecipe& recipe : shape.keys) {
    const auto* number = std::get_if<float>(&recipe.value);
    gguf::Value value =
        number != nullptr
            ? gguf::Value::scalar(*number)
            : gguf::Value::scalar(static_cast<std::uint32_t>(std::get<Extent>(recipe.value).in(sizes)));
    keys.push_back({fmt::format("{}.{}", shape.architecture, recipe.suffix), std::move(value)});
  }
  return keys;
}

}  // namespace kvasir::cli
