#include "model/hyperparameters.h"

#include <cmath>

#include "base/try.h"
#include "base/utf8.h"
#include "simd/attention.h"

namespace kvasir::model {
namespace {

// Beyond any model in use; what a file claims within them is then held against its tensors.
constexpr std::uint32_t kLayersMax = 4096;
constexpr std::uint32_t kWidthMax = 1U << 20;
constexpr std::uint32_t kHeadsMax = 4096;
constexpr std::uint32_t kExpertsMax = 4096;

constexpr std::size_t kShownBytes = 64;  // of a text that is not known

// Why a key that must be there cannot be had: a missing one makes the model corrupt, all else is as it is.
std::unexpected<Error> needed(const Error& error) {
  return error.code() == Outcome::kNotFound ? fail(Outcome::kCorrupt, error.message()) : fail(error);
}

// A count that a file may give for all layers or as an array with one entry a layer, which must then be
// equal.
Result<std::uint32_t> uniform_count(const gguf::File& file, const ArchitectureKeys& keys,
                                    const std::string& key, const std::string& full_key,
                                    std::optional<std::uint32_t> otherwise) {
  const gguf::Value* const given = file.find(full_key);
  if (given == nullptr || !given->is_array()) return keys.count(key, 1, kHeadsMax, otherwise);
  const auto array = file.get_int_array(full_key);
  if (!array) return fail(array.error());
  for (const std::int64_t value : *array) {
    if (value != array->front())
      return fail(Outcome::kUnsupported, "'" + full_key + "' differs from layer to layer");
  }
  if (array->empty() || array->front() < 1 || array->front() > std::int64_t{kHeadsMax}) {
    return fail(Outcome::kCorrupt, "'" + full_key + "' must be from 1 to " + std::to_string(kHeadsMax));
  }
  return static_cast<std::uint32_t>(array->front());
}

Status read_heads(const gguf::File& file, const ArchitectureKeys& keys, Hyperparameters& sizes) {
  const std::string prefix = sizes.architecture + ".";
  KVASIR_ASSIGN(sizes.heads,
                uniform_count(file, keys, "attention.head_count", prefix + "attention.head_count", {}));
  KVASIR_ASSIGN(sizes.kv_heads, uniform_count(file, keys, "attention.head_count_kv",
                                              prefix + "attention.head_count_kv", sizes.heads));
  if (sizes.heads % sizes.kv_heads != 0) {
    return fail(Outcome::kCorrupt, "'attention.head_count' " + std::to_string(sizes.heads) +
                                       " is no multiple of 'attention.head_count_kv' " +
                                       std::to_string(sizes.kv_heads));
  }
  if (!keys.has("attention.key_length") && sizes.embedding % sizes.heads != 0) {
    return fail(Outcome::kCorrupt, "'embedding_length' " + std::to_string(sizes.embedding) +
                                       " is no multiple of 'attention.head_count' " +
                                       std::to_string(sizes.heads));
  }
  KVASIR_ASSIGN(sizes.key_dims,
                keys.count("attention.key_length", 1, kWidthMax, sizes.embedding / sizes.heads));
  KVASIR_ASSIGN(sizes.value_dims,
                keys.count("attention.value_length", 1, simd::kMaxValueDims, sizes.key_dims));
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.key_dims));
  KVASIR_ASSIGN(const double attention_scale, keys.number("attention.scale", scale));
  sizes.attention_scale = static_cast<float>(attention_scale == 0 ? scale : attention_scale);
  return {};
}

}  // namespace

Result<std::uint32_t> ArchitectureKeys::count(std::string_view key, std::uint32_t least, std::uint32_t most,
                                              std::optional<std::uint32_t> otherwise) const {
  const auto value = file_->get_uint(name(key));
  if (!value && value.error().code() == Outcome::kNotFound && otherwise) return *otherwise;
  if (!value) return needed(value.error());
  if (*value < least || *value > most) {
    return fail(Outcome::kCorrupt,
                "'" + name(key) + "' is " + std::to_string(*value) + ", it must be from " +
                    std::to_string(least) + " to " + std::to_string(most),
                {.wanted = *value, .limit = most});
  }
  return static_cast<std::uint32_t>(*value);
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

Result<std::string> ArchitectureKeys::text(std::string_view key, std::string_view otherwise) const {
  const auto value = file_->get_string(name(key));
  if (!value && value.error().code() == Outcome::kNotFound) return std::string(otherwise);
  if (!value) return needed(value.error());
  return std::string(*value);
}

Result<Hyperparameters> Hyperparameters::read(const gguf::File& file) {
  Hyperparameters sizes;
  KVASIR_ASSIGN(sizes.architecture, file.get_string("general.architecture"));
  const ArchitectureKeys keys(file, sizes.architecture);
  KVASIR_ASSIGN(sizes.layers, keys.count("block_count", 1, kLayersMax));
  KVASIR_ASSIGN(sizes.embedding, keys.count("embedding_length", 1, kWidthMax));
  KVASIR_ASSIGN(sizes.feed_forward, keys.count("feed_forward_length", 1, kWidthMax));
  KVASIR_ASSIGN(sizes.context, keys.count("context_length", 1, UINT32_MAX));
  KVASIR_TRY(read_heads(file, keys, sizes));
  KVASIR_ASSIGN(sizes.experts, keys.count("expert_count", 0, kExpertsMax, 0));
  if (sizes.experts > 0) {
    KVASIR_ASSIGN(sizes.experts_used, keys.count("expert_used_count", 1, sizes.experts));
  }
  KVASIR_ASSIGN(const double epsilon, keys.number("attention.layer_norm_rms_epsilon"));
  if (epsilon < 0) {
    return fail(Outcome::kCorrupt, "'" + keys.name("attention.layer_norm_rms_epsilon") + "' is negative");
  }
  sizes.norm_epsilon = static_cast<float>(epsilon);
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
