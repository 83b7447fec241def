// How a decoder reads attention.

#include <string>
#include <utility>

#include "base/try.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Status Decoder::read_query_key_value(std::uint32_t layer, bool gated, Attention& mixer) {
  const std::string prefix = block(layer) + "attn_";
  const std::uint64_t width = sizes_->embedding;
  const std::uint64_t queries = std::uint64_t{sizes_->heads[layer]} * sizes_->key_dims;
  const std::uint64_t keys = std::uint64_t{sizes_->kv_heads[layer]} * sizes_->key_dims;
  const std::uint64_t values = std::uint64_t{sizes_->kv_heads[layer]} * sizes_->value_dims;
  if (!loader_->has(prefix + "qkv.weight")) {
    if (gated) {
      const Loader::HeadRows rows{sizes_->heads[layer], std::uint64_t{2} * sizes_->key_dims};
      KVASIR_ASSIGN(mixer.query, loader_->linear_of_heads(prefix + "q", width, rows, 0, sizes_->key_dims));
      KVASIR_ASSIGN(mixer.gate,
                    loader_->linear_of_heads(prefix + "q", width, rows, sizes_->key_dims, sizes_->key_dims));
    } else {
      KVASIR_ASSIGN(mixer.query, loader_->linear(prefix + "q", width, queries));
    }
    KVASIR_ASSIGN(mixer.key, loader_->linear(prefix + "k", width, keys));
    KVASIR_ASSIGN(mixer.value, loader_->linear(prefix + "v", width, values));
    return {};
  }
  const std::string fused = prefix + "qkv";
  const std::uint64_t rows = queries + keys + values;
  KVASIR_ASSIGN(mixer.query, loader_->linear_rows(fused, width, rows, 0, queries));
  KVASIR_ASSIGN(mixer.key, loader_->linear_rows(fused, width, rows, queries, keys));
  KVASIR_ASSIGN(mixer.value, loader_->linear_rows(fused, width, rows, queries + keys, values));
  return {};
}

Status Decoder::read_head_norms(std::uint32_t layer, HeadNorm form, Attention& mixer) {
  const std::string prefix = block(layer) + "attn_";
  if (!loader_->has(prefix + "q_norm.weight")) return {};
  const auto read = [&](const char* name, std::uint64_t heads) -> Result<Norm> {
    const std::uint64_t dims = sizes_->key_dims;
    if (form == HeadNorm::kEachAlike) return norm_of(prefix + name, dims, dims);
    if (form == HeadNorm::kTogether) return norm_of(prefix + name, heads * dims, heads * dims);
    KVASIR_ASSIGN(std::vector<float> weight, loader_->matrix(prefix + name + ".weight", dims, heads));
    return Norm{.weight = std::move(weight), .epsilon = sizes_->norm_epsilon, .kind = norm_, .width = dims};
  };
  KVASIR_ASSIGN(mixer.query_norm, read("q_norm", mixer.cells.heads));
  KVASIR_ASSIGN(mixer.key_norm, read("k_norm", mixer.cells.geometry.kv_heads));
  return {};
}

Result<Part> Decoder::attention(std::uint32_t layer, const AttentionForm& form) {
  if (form.rotary >= network_.rotary.size()) {
    return fail(Outcome::kInternal, "the attention of layer " + std::to_string(layer) + " has rotary table " +
                                        std::to_string(form.rotary) + " of " +
                                        std::to_string(network_.rotary.size()) +
                                        "; add_rotary() or add_no_rotary() comes before it");
  }
  Part part;
  if (!form.norm.empty()) {
    KVASIR_ASSIGN(part.norm, norm(layer, form.norm));
  }
  Attention mixer;
  mixer.cells.heads = sizes_->heads[layer];
  mixer.cells.geometry = {sizes_->kv_heads[layer], sizes_->key_dims, sizes_->value_dims};
  mixer.cells.rotary = form.rotary;
  mixer.cells.scale = sizes_->attention_scale;
  KVASIR_TRY(read_query_key_value(layer, form.gated, mixer));
  KVASIR_ASSIGN(mixer.output,
                loader_->linear(block(layer) + "attn_output",
                                std::uint64_t{mixer.cells.heads} * sizes_->value_dims, sizes_->embedding));
  KVASIR_TRY(read_head_norms(layer, form.head_norm, mixer));
  if (!form.both_ways) add_cells(mixer.cells, form.window);
  part.body = std::move(mixer);
  return part;
}

}  // namespace kvasir::model
