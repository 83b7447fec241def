#include "cli/weight_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace kvasir::cli {
namespace {

using quant::BlockType;

constexpr std::size_t kNamesShown = 3;

// Numbers of general.file_type: llama.cpp, include/llama.h, enum llama_ftype.
constexpr std::array kTargets = {
    WeightTarget{"F32", BlockType::kF32, 0},
    WeightTarget{"F16", BlockType::kF16, 1},
    WeightTarget{"BF16", BlockType::kBF16, 32},
    WeightTarget{"Q8_0", BlockType::kQ8_0, 7},
    WeightTarget{"Q4_0", BlockType::kQ4_0, 2},
    WeightTarget{"Q4_1", BlockType::kQ4_1, 3},
    WeightTarget{"Q5_0", BlockType::kQ5_0, 8},
    WeightTarget{"Q5_1", BlockType::kQ5_1, 9},
    WeightTarget{"Q2_K", BlockType::kQ2_K, 10},
    WeightTarget{"Q3_K", BlockType::kQ3_K, 11},
    WeightTarget{"Q4_K", BlockType::kQ4_K, 14},
    WeightTarget{"Q5_K", BlockType::kQ5_K, 16},
    WeightTarget{"Q6_K", BlockType::kQ6_K, 18},
    WeightTarget{"IQ4_NL", BlockType::kIQ4_NL, 25},
    WeightTarget{"IQ4_XS", BlockType::kIQ4_XS, 30},
    WeightTarget{"IQ3_S", BlockType::kIQ3_S, 26},
    WeightTarget{"IQ3_XXS", BlockType::kIQ3_XXS, 23},
    WeightTarget{"IQ2_S", BlockType::kIQ2_S, 28},
    WeightTarget{"MXFP4", BlockType::kMXFP4, 38},
    WeightTarget{"NVFP4", BlockType::kNVFP4, 39},
    WeightTarget{"TQ1_0", BlockType::kTQ1_0, 36},
    WeightTarget{"TQ2_0", BlockType::kTQ2_0, 37},
    WeightTarget{"Q4_K_M", BlockType::kQ4_K, 15, true},
    WeightTarget{"Q5_K_M", BlockType::kQ5_K, 17, true},
};

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Parts of names that mark matrices whose bits are worth more than their size: norms, routers, positions,
// convolutions, the small mixers of RWKV, and the like. The convention of llama.cpp's quantizer.
constexpr auto kKeptParts = std::to_array<std::string_view>({
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    "position_embd",
    "token_types",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
});

bool is_matrix(const TensorOutline& tensor) {
  const auto longer_than_one = [](std::uint64_t dim) { return dim > 1; };
  if (tensor.dims.size() < 2 || std::none_of(tensor.dims.begin() + 1, tensor.dims.end(), longer_than_one)) {
    return false;
  }
  if (!tensor.name.ends_with("weight")) return false;
  return std::ranges::none_of(
      kKeptParts, [&](std::string_view part) { return tensor.name.find(part) != std::string_view::npos; });
}

// N of "blk.N." anywhere in a name.
std::optional<std::uint64_t> block_number(std::string_view name) {
  constexpr std::string_view kMark = "blk.";
  const std::size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(mark + kMark.size());
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return number;
}

bool divides(const TensorOutline& tensor, BlockType type) {
  return tensor.dims[0] % quant::block_type_info(type).values == 0;
}

// The first and last eighth of the layers, and every third between.
bool more_bits(std::uint64_t index, std::uint64_t count) {
  const std::uint64_t eighth = count / 8;
  return index < eighth || index >= 7 * count / 8 || (index - eighth) % 3 == 2;
}

}  // namespace

Result<WeightTarget> find_weight_target(std::string_view name, bool packing) {
  for (const WeightTarget& target : kTargets) {
    if (same_name(target.name, name)) return target;
  }
  if (const quant::BlockTypeInfo* info = quant::find_block_type(name)) {
    return fail(Outcome::kUnsupported,
                fmt::format("weights of type {} are known, but not handled by this version; use "
                            "one of: {}",
                            info->name, weight_target_names(packing)));
  }
  return fail(Outcome::kInvalidArgument, fmt::format("there is no weight type '{}'; use one of: {}", name,
                                                     weight_target_names(packing)));
}

std::string weight_target_names(bool packing) {
  std::string names;
  for (const WeightTarget& target : kTargets) {
    if (packing && !quant::block_type_info(target.base).packs) continue;
    names += (names.empty() ? "" : " ") + std::string(target.name);
  }
  return names;
}

std::string known_weight_type(const std::string& name, bool packing) {
  const auto target = find_weight_target(name, packing);
  return target || target.error().code() != Outcome::kInvalidArgument ? "" : target.error().message();
}

TypeChooser::TypeChooser(WeightTarget target, Model model, std::span<const TensorOutline> tensors)
    : target_(target), model_(std::move(model)) {
  const bool layers_given = model_.layers > 0;
  for (const TensorOutline& tensor : tensors) {
    if (tensor.name == "output.weight") tied_ = false;
    const auto block = block_number(tensor.name);
    if (!block) continue;
    if (tensor.name.ends_with("attn_v.weight")) value_blocks_.push_back(*block);
    if (!layers_given) model_.layers = std::max(model_.layers, *block + 1);
  }
  std::ranges::sort(value_blocks_);
}

TypeChoice TypeChooser::choose(const TensorOutline& tensor) const {
  if (!is_matrix(tensor)) return {BlockType::kF32, BlockType::kF32, Reason::kKept};
  const BlockType wished = target_.mixed ? mixed_type(tensor.name) : target_.base;
  if (divides(tensor, wished))
    return {wished, wished, wished == target_.base ? Reason::kAsAsked : Reason::kMix};
  const BlockType instead = divides(tensor, BlockType::kQ8_0) ? BlockType::kQ8_0 : BlockType::kF16;
  return {instead, wished, Reason::kRowLength};
}

bool TypeChooser::more_bits_for_value(std::uint64_t block) const {
  const auto at = std::ranges::lower_bound(value_blocks_, block);
  return more_bits(static_cast<std::uint64_t>(at - value_blocks_.begin()), value_blocks_.size());
}

// The convention of llama.cpp's quantizer for its file types Q4_K_M and Q5_K_M.
BlockType TypeChooser::mixed_type(std::string_view name) const {
  const bool four_bits = target_.base == BlockType::kQ4_K;
  const bool falcon = model_.architecture == "falcon";
  const bool eight_experts = model_.experts == 8;
  if (name == "output.weight" || (tied_ && name == "token_embd.weight")) {
    return falcon ? BlockType::kQ8_0 : BlockType::kQ6_K;
  }
  const std::uint64_t block = block_number(name).value_or(0);
  if (name.ends_with("attn_v.weight")) {
    if (eight_experts) return BlockType::kQ8_0;
    return more_bits_for_value(block) ? BlockType::kQ6_K : target_.base;
  }
  if (name.ends_with("attn_k.weight")) return eight_experts ? BlockType::kQ8_0 : target_.base;
  if (name.ends_with("attn_qkv.weight")) return four_bits ? BlockType::kQ5_K : BlockType::kQ6_K;
  if (name.ends_with("attn_output.weight")) {
    return eight_experts && four_bits && !falcon ? BlockType::kQ5_K : target_.base;
  }
  if (name.find("ffn_down") != std::string_view::npos) {
    const bool more = more_bits(block, model_.layers);
    if (falcon && four_bits) {
      if (block < model_.layers / 16) return BlockType::kQ6_K;
      return more ? BlockType::kQ5_K : BlockType::kQ4_K;
    }
    return more ? BlockType::kQ6_K : target_.base;
  }
  return target_.base;
}

void RowLengthNotes::add(std::string_view name, std::uint64_t row_length, const TypeChoice& choice) {
  if (choice.reason != Reason::kRowLength) return;
  tensors_[{row_length, choice.wished, choice.type}].push_back(name);
}

void RowLengthNotes::tell(const WorkHooks& hooks) const {
  for (const auto& [kind, names] : tensors_) {
    const quant::BlockTypeInfo& wished = quant::block_type_info(kind.wished);
    const std::size_t shown = std::min(names.size(), kNamesShown);
    std::string list =
        fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < names.size()) list += fmt::format(" and {} more", names.size() - shown);
    hooks.note(fmt::format(
        "rows of {} do not divide into the blocks of {} ({} values), so these become {}: {}", kind.row_length,
        wished.name, wished.values, quant::block_type_info(kind.type).name, list));
  }
}

}  // namespace kvasir::cli
