#include "support/tiny_recurrent.h"

#include <cmath>
#include <string>
#include <vector>

namespace kvasir::test {
namespace {

constexpr std::uint64_t kWidth = 48;
constexpr std::uint64_t kChannels = 96;
constexpr std::uint64_t kHeads = 6;  // of the scan
constexpr std::uint64_t kGroups = 2;
constexpr std::uint64_t kStates = 12;
constexpr std::uint64_t kTaps = 4;
constexpr std::uint64_t kVocabulary = 96;
constexpr std::uint64_t kHeadDims = 16;  // of attention
constexpr std::uint64_t kFeedForward = 80;

using quant::BlockType;

void matrix(GgufDraft& draft, const std::string& name, std::uint64_t in, std::uint64_t out) {
  draft.tensor(name + ".weight", {in, out}, BlockType::kF32,
               {0.0F, 1.0F / std::sqrt(static_cast<float>(in))});
}

void norm(GgufDraft& draft, const std::string& name, std::uint64_t size) {
  draft.tensor(name, {size}, BlockType::kF32, {1.0F, 0.1F});
}

void scan_layer(GgufDraft& draft, const std::string& block) {
  const std::uint64_t convolved = kChannels + 2 * kGroups * kStates;
  norm(draft, block + "attn_norm.weight", kWidth);
  matrix(draft, block + "ssm_in", kWidth, kChannels + convolved + kHeads);
  draft.tensor(block + "ssm_conv1d.weight", {kTaps, convolved}, BlockType::kF32, {0.0F, 0.5F});
  draft.tensor(block + "ssm_conv1d.bias", {convolved}, BlockType::kF32, {0.0F, 0.1F});
  draft.tensor(block + "ssm_dt.bias", {kHeads}, BlockType::kF32, {-1.0F, 0.5F});
  // Some heads forget in a few tokens, some in hundreds.
  draft.floats(block + "ssm_a", {1, kHeads}, {-0.002F, -0.01F, -0.05F, -0.2F, -0.5F, -1.0F});
  draft.tensor(block + "ssm_d", {1, kHeads}, BlockType::kF32, {0.0F, 1.0F});
  draft.tensor(block + "ssm_norm.weight", {kChannels / kGroups, kGroups}, BlockType::kF32, {1.0F, 0.1F});
  matrix(draft, block + "ssm_out", kChannels, kWidth);
}

GgufDraft draft_of(const std::string& architecture, std::uint32_t layers, std::uint64_t seed) {
  GgufDraft draft(seed);
  const std::string prefix = architecture + ".";
  const auto count = [&](const char* key, std::uint64_t value) {
    draft.set(prefix + key, static_cast<std::uint32_t>(value));
  };
  draft.set("general.architecture", architecture);
  count("block_count", layers);
  count("embedding_length", kWidth);
  count("feed_forward_length", 0);
  count("context_length", 4096);
  count("attention.head_count", 0);
  count("ssm.conv_kernel", kTaps);
  count("ssm.inner_size", kChannels);
  count("ssm.state_size", kStates);
  count("ssm.time_step_rank", kHeads);
  count("ssm.group_count", kGroups);
  draft.set(prefix + "attention.layer_norm_rms_epsilon", 1e-5F);
  draft.tensor("token_embd.weight", {kWidth, kVocabulary});
  norm(draft, "output_norm.weight", kWidth);
  matrix(draft, "output", kWidth, kVocabulary);
  return draft;
}

}  // namespace

GgufDraft tiny_mamba2(std::uint64_t seed) {
  GgufDraft draft = draft_of("mamba2", 2, seed);
  scan_layer(draft, "blk.0.");
  scan_layer(draft, "blk.1.");
  return draft;
}

GgufDraft tiny_hybrid(std::uint64_t seed) {
  GgufDraft draft = draft_of("nemotron_h", 3, seed);
  const auto counts = [&](const char* key, const std::vector<std::int32_t>& values) {
    draft.set(std::string("nemotron_h.") + key, gguf::Value::array(std::span<const std::int32_t>(values)));
  };
  counts("attention.head_count_kv", {0, 2, 0});
  counts("feed_forward_length", {0, 0, static_cast<std::int32_t>(kFeedForward)});
  draft.set("nemotron_h.attention.head_count", 4U);
  draft.set("nemotron_h.attention.key_length", static_cast<std::uint32_t>(kHeadDims));
  draft.set("nemotron_h.attention.value_length", static_cast<std::uint32_t>(kHeadDims));
  scan_layer(draft, "blk.0.");
  norm(draft, "blk.1.attn_norm.weight", kWidth);
  matrix(draft, "blk.1.attn_q", kWidth, 4 * kHeadDims);
  matrix(draft, "blk.1.attn_k", kWidth, 2 * kHeadDims);
  matrix(draft, "blk.1.attn_v", kWidth, 2 * kHeadDims);
  matrix(draft, "blk.1.attn_output", 4 * kHeadDims, kWidth);
  norm(draft, "blk.2.attn_norm.weight", kWidth);
  matrix(draft, "blk.2.ffn_up", kWidth, kFeedForward);
  matrix(draft, "blk.2.ffn_down", kFeedForward, kWidth);
  return draft;
}

}  // namespace kvasir::test
