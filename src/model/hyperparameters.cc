#include "model/hyperparameters.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/try.h"
#include "base/utf8.h"
#include "simd/attention.h"

namespace kvasir::model {
namespace {

// Beyond any model in use; what a file claims within them is then held against its tensors.
constexpr std::uint32_t kLayersMax = 4096;
constexpr std::uint32_t kHeadsMax = 4096;
constexpr std::uint32_t kExpertsMax = 4096;

constexpr std::size_t kShownBytes = 64;  // of a text that is not known

// Why a key that must be there cannot be had: a missing one makes the model corrupt, all else is as it is.
std::unexpected<Error> needed(const Error& error) {
  return error.code() == Outcome::kNotFound ? fail(Outcome::kCorrupt, error.message()) : fail(error);
}

std::unexpected<Error> out_of_bounds(const std::string& key, std::uint64_t value, std::uint32_t least,
                                     std::uint32_t most) {
  return fail(Outcome::kCorrupt,
              "'" + key + "' is " + std::to_string(value) + ", it must be from " + std::to_string(least) +
                  " to " + std::to_string(most),
              {.wanted = value, .limit = most});
}

Status check_heads(const ArchitectureKeys& keys, const Hyperparameters& sizes) {
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    if (sizes.kv_heads[layer] == 0 || sizes.heads[layer] % sizes.kv_heads[layer] == 0) continue;
    return fail(Outcome::kCorrupt, "'" + keys.name("attention.head_count") + "' " +
                                       std::to_string(sizes.heads[layer]) + " is no multiple of '" +
                                       keys.name("attention.head_count_kv") + "' " +
                                       std::to_string(sizes.kv_heads[layer]));
  }
  return {};
}

Status read_heads(const ArchitectureKeys& keys, std::uint32_t least, Hyperparameters& sizes) {
  KVASIR_ASSIGN(sizes.heads, keys.counts("attention.head_count", sizes.layers, least, kHeadsMax));
  sizes.kv_heads = sizes.heads;
  if (keys.has("attention.head_count_kv")) {
    KVASIR_ASSIGN(sizes.kv_heads, keys.counts("attention.head_count_kv", sizes.layers, least, kHeadsMax));
  }
  KVASIR_TRY(check_heads(keys, sizes));
  const std::uint32_t most = *std::ranges::max_element(sizes.heads);
  if (most == 0) return {};
  if (!keys.has("attention.key_length") && sizes.embedding % most != 0) {
    return fail(Outcome::kCorrupt, "'" + keys.name("embedding_length") + "' " +
                                       std::to_string(sizes.embedding) + " is no multiple of '" +
                                       keys.name("attention.head_count") + "' " + std::to_string(most));
  }
  KVASIR_ASSIGN(sizes.key_dims, keys.count("attention.key_length", 1, kWidthMax, sizes.embedding / most));
  KVASIR_ASSIGN(sizes.value_dims,
                keys.count("attention.value_length", 1, simd::kMaxValueDims, sizes.key_dims));
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.key_dims));
  KVASIR_ASSIGN(const double attention_scale, keys.number("attention.scale", scale));
  sizes.attention_scale = static_cast<float>(attention_scale == 0 ? scale : attention_scale);
  return {};
}

Status read_experts(const ArchitectureKeys& keys, Hyperparameters& sizes) {
  KVASIR_ASSIGN(sizes.experts, keys.count("expert_count", 0, kExpertsMax, 0));
  if (sizes.experts == 0) return {};
  KVASIR_ASSIGN(sizes.experts_used, keys.count("expert_used_count", 1, sizes.experts));
  const std::uint32_t dense = *std::ranges::max_element(sizes.feed_forward);
  KVASIR_ASSIGN(sizes.expert_feed_forward, keys.count("expert_feed_forward_length", 1, kWidthMax, dense));
  return {};
}

// The epsilon of the kind of norm that the file has.
Status read_epsilon(const ArchitectureKeys& keys, Hyperparameters& sizes) {
  const std::string_view root_mean_square = "attention.layer_norm_rms_epsilon";
  const std::string_view layer_norm = "attention.layer_norm_epsilon";
  const bool only_other = !keys.has(root_mean_square) && keys.has(layer_norm);
  const std::string_view key = only_other ? layer_norm : root_mean_square;
  KVASIR_ASSIGN(const double epsilon, keys.number(key));
  if (epsilon < 0) return fail(Outcome::kCorrupt, "'" + keys.name(key) + "' is negative");
  sizes.norm_epsilon = static_cast<float>(epsilon);
  return {};
}

}  // namespace

Result<std::uint32_t> ArchitectureKeys::count(std::string_view key, std::uint32_t least, std::uint32_t most,
                                              std::optional<std::uint32_t> otherwise) const {
  const auto value = file_->get_uint(name(key));
  if (!value && value.error().code() == Outcome::kNotFound && otherwise) return *otherwise;
  if (!value) return needed(value.error());
  if (*value < least || *value > most) return out_of_bounds(name(key), *value, least, most);
  return static_cast<std::uint32_t>(*value);
}

Result<std::vector<std::uint32_t>> ArchitectureKeys::counts(std::string_view key, std::uint32_t layers,
                                                            std::uint32_t least, std::uint32_t most) const {
  const gguf::Value* const given = file_->find(name(key));
  if (given == nullptr || !given->is_array()) {
    KVASIR_ASSIGN(const std::uint32_t value, count(key, least, most));
    return std::vector<std::uint32_t>(layers, value);
  }
  const auto array = file_->get_int_array(name(key));
  if (!array) return fail(array.error());
  if (array->size() < layers) {
    return fail(Outcome::kCorrupt, "'" + name(key) + "' lists " + std::to_string(array->size()) +
                                       " counts for " + std::to_string(layers) + " layers");
  }
  std::vector<std::uint32_t> counts;
  for (const std::int64_t value : std::span(*array).first(layers)) {
    if (value < std::int64_t{least} || value > std::int64_t{most})
      return out_of_bounds(name(key), static_cast<std::uint64_t>(std::max<std::int64_t>(0, value)), least,
                           most);
    counts.push_back(static_cast<std::uint32_t>(value));
  }
  return counts;
}

Result<double> ArchitectureKeys::number(std::string_view key, std::optional<double> otherwise) const {
  const auto value = file_->get_float(name(key));
  if (!value && value.error().code() == Outcome::kNotFound && otherwise) return *otherwise;
  if (!value) return needed(value.error());
  if (!std::isfinite(*value)) return fail(Outcome::kCorrupt, "'" + name(key) + "' is not a finite number");
  return *value;
}

Result<double> ArchitectureKeys::positive(std::string_view key, std::optional<double> otherwise) const {
  KVASIR_ASSIGN(const double value, number(key, otherwise));
  if (value > 0) return value;
  return fail(Outcome::kCorrupt, "'" + name(key) + "' is " + std::to_string(value) + ", it must be above 0");
}

Result<bool> ArchitectureKeys::flag(std::string_view key, bool otherwise) const {
  const auto value = file_->get_bool(name(key));
  if (!value && value.error().code() == Outcome::kNotFound) return otherwise;
  if (!value) return fail(value.error());
  return *value;
}

Result<std::string> ArchitectureKeys::text(std::string_view key, std::string_view otherwise) const {
  const auto value = file_->get_string(name(key));
  if (!value && value.error().code() == Outcome::kNotFound) return std::string(otherwise);
  if (!value) return needed(value.error());
  return std::string(*value);
}

Result<Hyperparameters> Hyperparameters::read(const gguf::File& file, LayersHave have) {
  const std::uint32_t least = have == LayersHave::kBoth ? 1 : 0;
  Hyperparameters sizes;
  KVASIR_ASSIGN(sizes.architecture, file.get_string("general.architecture"));
  const ArchitectureKeys keys(file, sizes.architecture);
  KVASIR_ASSIGN(sizes.layers, keys.count("block_count", 1, kLayersMax));
  KVASIR_ASSIGN(sizes.embedding, keys.count("embedding_length", 1, kWidthMax));
  KVASIR_ASSIGN(sizes.feed_forward, keys.counts("feed_forward_length", sizes.layers, least, kWidthMax));
  KVASIR_ASSIGN(sizes.context, keys.count("context_length", 1, UINT32_MAX));
  sizes.used_context = sizes.context;
  KVASIR_TRY(read_heads(keys, least, sizes));
  KVASIR_TRY(read_experts(keys, sizes));
  KVASIR_TRY(read_epsilon(keys, sizes));
  const gguf::Tensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    return fail(Outcome::kCorrupt, "the file has no weights: 'token_embd.weight' is missing");
  }
  if (embedding->dims.size() != 2 || embedding->dims[1] > INT32_MAX) {
    return fail(Outcome::kCorrupt, "'token_embd.weight' is no matrix of a vocabulary");
  }
  sizes.vocabulary = static_cast<std::uint32_t>(embedding->dims[1]);
  return sizes;
}

Result<simd::RotarySpec> read_rotary(const gguf::File& file, const Hyperparameters& sizes,
                                     simd::RopePairing pairing) {
  const ArchitectureKeys keys(file, sizes.architecture);
  simd::RotarySpec spec;
  spec.pairing = pairing;
  KVASIR_ASSIGN(spec.dims, keys.count("rope.dimension_count", 2, sizes.key_dims, sizes.key_dims));
  if (spec.dims % 2 != 0) {
    return fail(Outcome::kCorrupt, "'" + keys.name("rope.dimension_count") + "' is " +
                                       std::to_string(spec.dims) + "; dimensions turn in pairs");
  }
  KVASIR_ASSIGN(spec.base, keys.positive("rope.freq_base", 10000.0));
  if (spec.base == 1) return fail(Outcome::kCorrupt, "'" + keys.name("rope.freq_base") + "' cannot be 1");
  KVASIR_ASSIGN(const double old_factor, keys.number("rope.scale_linear", 1.0));
  KVASIR_ASSIGN(const double factor, keys.number("rope.scaling.factor", old_factor));
  if (factor < 0) return fail(Outcome::kCorrupt, "'" + keys.name("rope.scaling.factor") + "' is negative");
  KVASIR_ASSIGN(spec.attention_factor, keys.positive("rope.scaling.attn_factor", 1.0));
  KVASIR_ASSIGN(const std::string type, keys.text("rope.scaling.type", "linear"));
  // A factor of 0 is how some converters write "none".
  if (type != "none" && factor != 0) spec.frequency_scale = 1 / factor;
  if (type == "yarn") {
    simd::YarnSpec yarn;
    KVASIR_ASSIGN(yarn.original_context,
                  keys.positive("rope.scaling.original_context_length", static_cast<double>(sizes.context)));
    KVASIR_ASSIGN(yarn.extrapolation, keys.number("rope.scaling.yarn_ext_factor", 1.0));
    KVASIR_ASSIGN(yarn.beta_fast, keys.positive("rope.scaling.yarn_beta_fast", 32.0));
    KVASIR_ASSIGN(yarn.beta_slow, keys.positive("rope.scaling.yarn_beta_slow", 1.0));
    spec.yarn = yarn;
  } else if (type != "linear" && type != "none") {
    return fail(Outcome::kUnsupported, "'" + keys.name("rope.scaling.type") + "' is '" +
                                           base::printable(type, kShownBytes) +
                                           "'; known are none, linear and yarn");
  }
  return spec;
}

}  // namespace kvasir::model
