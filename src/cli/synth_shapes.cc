#include "cli/synth_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kvasir::cli {
namespace {

using enum Size;
using enum Fill;

constexpr std::uint64_t kTrainedLength = 32768;
constexpr std::uint64_t kTaps = 4;                                          // of a scan's convolution
constexpr std::uint64_t kDecayRank = 64, kValueRank = 32, kGateRank = 128;  // of RWKV-7's small mixers

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

// What a scan of Mamba-2 says of itself.
std::vector<KeyRecipe> scan_keys() {
  return {
      {"ssm.conv_kernel", Extent(kTaps)},
      {"ssm.inner_size", Extent(kChannels)},
      {"ssm.state_size", Extent(kScanDims)},
      {"ssm.time_step_rank", Extent(kScanHeads)},
      {"ssm.group_count", Extent(std::uint64_t{1})},
  };
}

std::vector<KeyRecipe> mamba2_keys() {
  std::vector<KeyRecipe> keys = {
      {"context_length", Extent(kTrainedLength)},
      {"embedding_length", Extent(kWidth)},
      {"block_count", Extent(kLayers)},
      {"feed_forward_length", Extent(std::uint64_t{0})},
      {"attention.head_count", Extent(std::uint64_t{0})},
      {"attention.layer_norm_rms_epsilon", 1e-5F},
      {"vocab_size", Extent(kVocabulary)},
  };
  std::ranges::copy(scan_keys(), std::back_inserter(keys));
  return keys;
}

std::vector<TensorRecipe> scan_tensors() {
  return {
      {"ssm_in.weight", kMatrix, {kWidth, kScanInput}},
      {"ssm_conv1d.weight", kMatrix, {kTaps, kScanMixed}},
      {"ssm_conv1d.bias", kBias, {kScanMixed}},
      {"ssm_dt.bias", kBias, {kScanHeads}},
      {"ssm_a", kDecay, {std::uint64_t{1}, kScanHeads}},
      {"ssm_d", kNorm, {std::uint64_t{1}, kScanHeads}},
      {"ssm_norm.weight", kNorm, {kChannels, std::uint64_t{1}}},
      {"ssm_out.weight", kMatrix, {kChannels, kWidth}},
  };
}

const std::vector<TensorRecipe>& mamba2_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = scan_tensors();
    layer.push_back({"attn_norm.weight", kNorm, {kWidth}});
    return layer;
  }();
  return tensors;
}

// Falcon-H1's: a scan and attention side by side.
std::vector<KeyRecipe> hybrid_keys() {
  std::vector<KeyRecipe> keys = decoder_keys(1e-5F, 100000.0F);
  keys.push_back({"attention.key_length", Extent(kHeadSize)});
  keys.push_back({"attention.value_length", Extent(kHeadSize)});
  std::ranges::copy(scan_keys(), std::back_inserter(keys));
  return keys;
}

const std::vector<TensorRecipe>& hybrid_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = llama_layer();
    // As converters name it, without ".weight".
    for (TensorRecipe& tensor : layer) {
      if (tensor.name == "ffn_norm.weight") tensor.name = "ffn_norm";
    }
    std::ranges::copy(scan_tensors(), std::back_inserter(layer));
    return layer;
  }();
  return tensors;
}

std::vector<KeyRecipe> rwkv7_keys() {
  return {
      {"context_length", Extent(kTrainedLength)},
      {"embedding_length", Extent(kWidth)},
      {"block_count", Extent(kLayers)},
      {"feed_forward_length", Extent(kFeedForward)},
      {"attention.head_count", Extent(std::uint64_t{0})},
      {"attention.layer_norm_epsilon", 1e-5F},
      {"wkv.head_size", Extent(kScanHeadSize)},
      {"token_shift_count", Extent(std::uint64_t{2})},
      {"attention.decay_lora_rank", Extent(kDecayRank)},
      {"attention.iclr_lora_rank", Extent(kDecayRank)},
      {"attention.value_residual_mix_lora_rank", Extent(kValueRank)},
      {"attention.gate_lora_rank", Extent(kGateRank)},
      {"vocab_size", Extent(kVocabulary)},
  };
}

const std::vector<TensorRecipe>& rwkv7_tensors() {
  static const std::vector<TensorRecipe> tensors = {
      {"token_embd.weight", kMatrix, {kWidth, kVocabulary}},
      {"token_embd_norm.weight", kNorm, {kWidth}},
      {"token_embd_norm.bias", kBias, {kWidth}},
      {"output_norm.weight", kNorm, {kWidth}},
      {"output_norm.bias", kBias, {kWidth}},
      {"output.weight", kMatrix, {kWidth, kVocabulary}},
  };
  return tensors;
}

const std::vector<TensorRecipe>& rwkv7_layer() {
  static const std::vector<TensorRecipe> tensors = {
      {"attn_norm.weight", kNorm, {kWidth}},
      {"attn_norm.bias", kBias, {kWidth}},
      {"attn_norm_2.weight", kNorm, {kWidth}},
      {"attn_norm_2.bias", kBias, {kWidth}},
      {"time_mix_w0.weight", kBias, {kWidth}},
      {"time_mix_w1.weight", kMatrix, {kWidth, kDecayRank}},
      {"time_mix_w2.weight", kMatrix, {kDecayRank, kWidth}},
      {"time_mix_a0.weight", kBias, {kWidth}},
      {"time_mix_a1.weight", kMatrix, {kWidth, kDecayRank}},
      {"time_mix_a2.weight", kMatrix, {kDecayRank, kWidth}},
      {"time_mix_v0.weight", kBias, {kWidth}},
      {"time_mix_v1.weight", kMatrix, {kWidth, kValueRank}},
      {"time_mix_v2.weight", kMatrix, {kValueRank, kWidth}},
      {"time_mix_g1.weight", kMatrix, {kWidth, kGateRank}},
      {"time_mix_g2.weight", kMatrix, {kGateRank, kWidth}},
      {"time_mix_lerp_fused.weight", kBias, {kWidth, std::uint64_t{1}, std::uint64_t{1}, std::uint64_t{6}}},
      {"time_mix_k_k.weight", kNorm, {kWidth}},
      {"time_mix_k_a.weight", kNorm, {kWidth}},
      {"time_mix_r_k.weight", kBias, {kWidth}},
      {"time_mix_key.weight", kMatrix, {kWidth, kWidth}},
      {"time_mix_value.weight", kMatrix, {kWidth, kWidth}},
      {"time_mix_receptance.weight", kMatrix, {kWidth, kWidth}},
      {"time_mix_ln.weight", kNorm, {kWidth}},
      {"time_mix_ln.bias", kBias, {kWidth}},
      {"time_mix_output.weight", kMatrix, {kWidth, kWidth}},
      {"channel_mix_lerp_k.weight", kBias, {kWidth}},
      {"channel_mix_key.weight", kMatrix, {kWidth, kFeedForward}},
      {"channel_mix_value.weight", kMatrix, {kFeedForward, kWidth}},
  };
  return tensors;
}

// The first layer has no value of an earlier one to take a part of: nothing reads its v1 and v2, and files
// have them in the rank of the rate.
const std::vector<TensorRecipe>& rwkv7_first_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = rwkv7_layer();
    for (TensorRecipe& tensor : layer) {
      if (tensor.name == "time_mix_v1.weight") tensor.dims = {kWidth, kDecayRank};
      if (tensor.name == "time_mix_v2.weight") tensor.dims = {kDecayRank, kWidth};
    }
    return layer;
  }();
  return tensors;
}

// Models with recurrent states: a small scan, a small hybrid, and two of the sizes in use (Mamba-2 370M,
// RWKV-7 World 0.4B).
std::vector<Shape> recurrent_shapes() {
  return {
      {.name = "mamba2-tiny",
       .architecture = "mamba2",
       .sizes = {.width = 128,
                 .layers = 4,
                 .vocabulary = 512,
                 .scan_heads = 8,
                 .scan_head_size = 32,
                 .scan_dims = 32},
       .keys = mamba2_keys(),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, mamba2_layer()}}},
      {.name = "hybrid-tiny",
       .architecture = "falcon-h1",
       .sizes = {.width = 128,
                 .layers = 4,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_size = 32,
                 .feed_forward = 256,
                 .vocabulary = 512,
                 .scan_heads = 8,
                 .scan_head_size = 32,
                 .scan_dims = 32},
       .keys = hybrid_keys(),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, hybrid_layer()}}},
      {.name = "mamba2-370m",
       .architecture = "mamba2",
       .sizes = {.width = 1024,
                 .layers = 48,
                 .vocabulary = 50288,
                 .scan_heads = 32,
                 .scan_head_size = 64,
                 .scan_dims = 128},
       .keys = mamba2_keys(),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, mamba2_layer()}}},
      {.name = "rwkv7-0.4b",
       .architecture = "rwkv7",
       .sizes =
           {.width = 1024, .layers = 24, .feed_forward = 4096, .vocabulary = 65536, .scan_head_size = 64},
       .keys = rwkv7_keys(),
       .tensors = rwkv7_tensors(),
       .stacks = {{"blk.", std::uint64_t{1}, rwkv7_first_layer()}, {"blk.", kLayers, rwkv7_layer(), 1}}},
  };
}

const std::vector<TensorRecipe>& routed_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = llama_layer();
    std::erase_if(layer, [](const TensorRecipe& tensor) {
      return tensor.name.starts_with("ffn_") && tensor.fill == kMatrix;
    });
    layer.push_back({"ffn_gate_inp.weight", kMatrix, {kWidth, kExperts}});
    layer.push_back({"ffn_gate_exps.weight", kMatrix, {kWidth, kFeedForward, kExperts}});
    layer.push_back({"ffn_up_exps.weight", kMatrix, {kWidth, kFeedForward, kExperts}});
    layer.push_back({"ffn_down_exps.weight", kMatrix, {kFeedForward, kWidth, kExperts}});
    return layer;
  }();
  return tensors;
}

std::vector<KeyRecipe> routed_keys() {
  std::vector<KeyRecipe> keys = decoder_keys(1e-5F, 10000.0F);
  keys.push_back({"expert_count", Extent(kExperts)});
  keys.push_back({"expert_used_count", Extent(std::uint64_t{2})});
  return keys;
}

// Gemma 2's: a window in every second layer, norms behind each part, caps.
const std::vector<TensorRecipe>& window_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = llama_layer();
    layer.push_back({"post_attention_norm.weight", kNorm, {kWidth}});
    layer.push_back({"post_ffw_norm.weight", kNorm, {kWidth}});
    return layer;
  }();
  return tensors;
}

std::vector<KeyRecipe> window_keys() {
  std::vector<KeyRecipe> keys = decoder_keys(1e-6F, 10000.0F);
  keys.push_back({"attention.key_length", Extent(kHeadSize)});
  keys.push_back({"attention.value_length", Extent(kHeadSize)});
  keys.push_back({"attention.sliding_window", Extent(std::uint64_t{128})});
  keys.push_back({"attn_logit_softcapping", 50.0F});
  keys.push_back({"final_logit_softcapping", 30.0F});
  return keys;
}

// Models of experts and of windows.
std::vector<Shape> other_shapes() {
  return {
      {.name = "moe-tiny",
       .architecture = "llama",
       .sizes = {.width = 256,
                 .layers = 4,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_size = 64,
                 .feed_forward = 256,
                 .experts = 8,
                 .vocabulary = 512},
       .keys = routed_keys(),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, routed_layer()}}},
      {.name = "moe-16x",
       .architecture = "llama",
       .sizes = {.width = 1024,
                 .layers = 16,
                 .heads = 16,
                 .kv_heads = 4,
                 .head_size = 64,
                 .feed_forward = 1024,
                 .experts = 16,
                 .vocabulary = 32000},
       .keys = routed_keys(),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, routed_layer()}}},
      {.name = "window-tiny",
       .architecture = "gemma2",
       .sizes = {.width = 256,
                 .layers = 4,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_size = 64,
                 .feed_forward = 768,
                 .vocabulary = 512},
       .keys = window_keys(),
       .tensors = tied_tensors(),
       .stacks = {{"blk.", kLayers, window_layer()}}},
  };
}

// An encoder and a decoder that reads its output; positions enter as numbers for buckets of distances, which
// the first layer has for all.
constexpr std::uint64_t kBuckets = 32;

std::vector<KeyRecipe> t5_keys() {
  return {
      {"context_length", Extent(kTrainedLength)},
      {"embedding_length", Extent(kWidth)},
      {"block_count", Extent(kLayers)},
      {"decoder_block_count", Extent(kLayers)},
      {"decoder_start_token_id", Extent(std::uint64_t{0})},
      {"feed_forward_length", Extent(kFeedForward)},
      {"attention.head_count", Extent(kHeads)},
      {"attention.key_length", Extent(kHeadSize)},
      {"attention.value_length", Extent(kHeadSize)},
      {"attention.relative_buckets_count", Extent(kBuckets)},
      {"attention.layer_norm_rms_epsilon", 1e-6F},
      {"vocab_size", Extent(kVocabulary)},
  };
}

const std::vector<TensorRecipe>& t5_tensors() {
  static const std::vector<TensorRecipe> tensors = {
      {"token_embd.weight", kMatrix, {kWidth, kVocabulary}},
      {"enc.output_norm.weight", kNorm, {kWidth}},
      {"dec.output_norm.weight", kNorm, {kWidth}},
      {"enc.blk.0.attn_rel_b.weight", kBias, {kHeads, kBuckets}},
      {"dec.blk.0.attn_rel_b.weight", kBias, {kHeads, kBuckets}},
  };
  return tensors;
}

const std::vector<TensorRecipe>& t5_encoder_layer() {
  static const std::vector<TensorRecipe> tensors = {
      {"attn_norm.weight", kNorm, {kWidth}},
      {"attn_q.weight", kMatrix, {kWidth, kQueries}},
      {"attn_k.weight", kMatrix, {kWidth, kQueries}},
      {"attn_v.weight", kMatrix, {kWidth, kQueries}},
      {"attn_o.weight", kMatrix, {kQueries, kWidth}},
      {"ffn_norm.weight", kNorm, {kWidth}},
      {"ffn_up.weight", kMatrix, {kWidth, kFeedForward}},
      {"ffn_down.weight", kMatrix, {kFeedForward, kWidth}},
  };
  return tensors;
}

const std::vector<TensorRecipe>& t5_decoder_layer() {
  static const std::vector<TensorRecipe> tensors = [] {
    std::vector<TensorRecipe> layer = t5_encoder_layer();
    layer.push_back({"cross_attn_norm.weight", kNorm, {kWidth}});
    layer.push_back({"cross_attn_q.weight", kMatrix, {kWidth, kQueries}});
    layer.push_back({"cross_attn_k.weight", kMatrix, {kWidth, kQueries}});
    layer.push_back({"cross_attn_v.weight", kMatrix, {kWidth, kQueries}});
    layer.push_back({"cross_attn_o.weight", kMatrix, {kQueries, kWidth}});
    return layer;
  }();
  return tensors;
}

std::vector<Shape> transformer_shapes() {
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
      {.name = "t5-tiny",
       .architecture = "t5",
       .sizes = {.width = 256,
                 .layers = 2,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_size = 64,
                 .feed_forward = 768,
                 .vocabulary = 512},
       .keys = t5_keys(),
       .tensors = t5_tensors(),
       .stacks = {{"enc.blk.", kLayers, t5_encoder_layer()}, {"dec.blk.", kLayers, t5_decoder_layer()}}},
  };
}

std::vector<Shape> make_shapes() {
  std::vector<Shape> shapes = transformer_shapes();
  for (Shape& shape : other_shapes()) shapes.push_back(std::move(shape));
  for (Shape& shape : recurrent_shapes()) shapes.push_back(std::move(shape));
  return shapes;
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
    case kExperts:
      return experts;
    case kVocabulary:
      return vocabulary;
    case kChannels:
      return std::uint64_t{scan_heads} * scan_head_size;
    case kScanHeads:
      return scan_heads;
    case kScanHeadSize:
      return scan_head_size;
    case kScanDims:
      return scan_dims;
    case kScanMixed:
      return of(kChannels) + std::uint64_t{2} * scan_dims;
    case kScanInput:
      return of(kChannels) + of(kScanMixed) + scan_heads;
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
    for (std::uint64_t layer = stack.first; layer < stack.layers.in(sizes); ++layer) {
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
