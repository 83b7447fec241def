#include "model/arch/decoder.h"

#include <algorithm>
#include <utility>

#include "base/try.h"

namespace kvasir::model {

std::string block(std::uint32_t layer) {
  return "blk." + std::to_string(layer) + ".";
}

Status Decoder::read_ends(const std::string& output_norm) {
  KVASIR_ASSIGN(Linear embedding, loader_->linear("token_embd", sizes_->embedding, sizes_->vocabulary));
  network_.token_embedding = std::move(embedding.weight);
  KVASIR_ASSIGN(network_.output_norm, norm(output_norm));
  if (loader_->has("output.weight")) {
    KVASIR_ASSIGN(network_.output, loader_->linear("output", sizes_->embedding, sizes_->vocabulary));
  }
  return {};
}

Result<std::uint32_t> Decoder::add_rotary(simd::RopePairing pairing) {
  KVASIR_ASSIGN(simd::RotarySpec spec, read_rotary(loader_->file(), *sizes_, pairing));
  if (loader_->has("rope_freqs.weight")) {
    KVASIR_ASSIGN(spec.factors, loader_->vector("rope_freqs.weight", spec.dims / 2));
  }
  return add_rotary(spec);
}

Result<std::uint32_t> Decoder::add_rotary(const simd::RotarySpec& spec) {
  auto table = simd::RotaryTable::make(spec);
  // The keys are checked; what is wrong can only be in the factors.
  if (!table) return fail(Outcome::kCorrupt, "the tensor 'rope_freqs.weight': " + table.error().message());
  network_.rotary.push_back(*std::move(table));
  return static_cast<std::uint32_t>(network_.rotary.size() - 1);
}

std::uint32_t Decoder::add_no_rotary() {
  network_.rotary.emplace_back();
  return static_cast<std::uint32_t>(network_.rotary.size() - 1);
}

Result<Norm> Decoder::norm(const std::string& name) const {
  return norm_of(name, sizes_->embedding, sizes_->embedding);
}

Result<Norm> Decoder::norm_of(const std::string& name, std::uint64_t size, std::uint64_t width) const {
  auto norm = norm_ == Norm::Kind::kRootMeanSquare ? loader_->norm(name, size, sizes_->norm_epsilon)
                                                   : loader_->layer_norm(name, size, sizes_->norm_epsilon);
  if (norm) norm->width = width;
  return norm;
}

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

void Decoder::add_cells(CellAttention& cells, std::uint64_t window) {
  add_cells_of(cells, window == 0 ? pages::GroupKind::kFull : pages::GroupKind::kWindow, window);
}

void Decoder::add_cross_cells(CellAttention& cells) {
  add_cells_of(cells, pages::GroupKind::kCross, 0);
}

void Decoder::add_cells_of(CellAttention& cells, pages::GroupKind kind, std::uint64_t width) {
  auto group = std::ranges::find_if(
      network_.groups, [&](const CacheGroup& some) { return some.kind == kind && some.width == width; });
  if (group == network_.groups.end()) {
    network_.groups.push_back({.kind = kind, .width = width});
    group = std::prev(network_.groups.end());
  }
  cells.group = static_cast<std::uint32_t>(group - network_.groups.begin());
  cells.layer_in_group = static_cast<std::uint32_t>(group->layers.size());
  group->layers.push_back(cells.geometry);
  group->rotary.push_back(cells.rotary);
}

Result<Part> Decoder::feed_forward(std::uint32_t layer, const FeedForwardForm& form) {
  const std::string prefix = block(layer) + "ffn_";
  const std::uint64_t width = sizes_->feed_forward[layer];
  Part part;
  if (!form.norm.empty()) {
    KVASIR_ASSIGN(part.norm, norm(layer, form.norm));
  }
  FeedForward body;
  body.activation = form.activation;
  if (form.gated) {
    KVASIR_ASSIGN(body.gate, loader_->linear(prefix + "gate", sizes_->embedding, width));
  }
  KVASIR_ASSIGN(body.up, loader_->linear(prefix + "up", sizes_->embedding, width));
  KVASIR_ASSIGN(body.down, loader_->linear(prefix + "down", width, sizes_->embedding));
  part.body = std::move(body);
  return part;
}

Result<Part> Decoder::experts(std::uint32_t layer, const ExpertForm& form) {
  const std::string prefix = block(layer) + "ffn_";
  const std::uint64_t width = sizes_->expert_feed_forward;
  const auto matrix = [&](const char* name, std::uint64_t in, std::uint64_t out, std::uint32_t index) {
    return loader_->linear_of(prefix + name + "_exps", in, out, sizes_->experts, index);
  };
  Part part;
  if (!form.norm.empty()) {
    KVASIR_ASSIGN(part.norm, norm(layer, form.norm));
  }
  Experts body;
  body.routing = form.routing;
  body.routing.used = sizes_->experts_used;
  KVASIR_ASSIGN(body.routing.sum_to_one, keys_.flag("expert_weights_norm", form.routing.sum_to_one));
  KVASIR_ASSIGN(const double scale, keys_.number("expert_weights_scale", 0.0));
  if (scale != 0) body.routing.scale = static_cast<float>(scale);  // 0 is how converters write "none"
  KVASIR_ASSIGN(body.router, loader_->linear(prefix + "gate_inp", sizes_->embedding, sizes_->experts));
  const std::string bias = block(layer) + "exp_probs_b.bias";
  if (loader_->has(bias)) {
    KVASIR_ASSIGN(body.routing.bias, loader_->vector(bias, sizes_->experts));
  }
  for (std::uint32_t index = 0; index < sizes_->experts; ++index) {
    FeedForward expert;
    expert.activation = form.activation;
    KVASIR_ASSIGN(expert.gate, matrix("gate", sizes_->embedding, width, index));
    KVASIR_ASSIGN(expert.up, matrix("up", sizes_->embedding, width, index));
    KVASIR_ASSIGN(expert.down, matrix("down", width, sizes_->embedding, index));
    body.experts.push_back(std::move(expert));
  }
  part.body = std::move(body);
  return part;
}

Result<Part> Decoder::shared_expert(std::uint32_t layer, std::uint64_t width) {
  const std::string prefix = block(layer) + "ffn_";
  Part part{.same_input = true};
  FeedForward body;
  KVASIR_ASSIGN(body.gate, loader_->linear(prefix + "gate_shexp", sizes_->embedding, width));
  KVASIR_ASSIGN(body.up, loader_->linear(prefix + "up_shexp", sizes_->embedding, width));
  KVASIR_ASSIGN(body.down, loader_->linear(prefix + "down_shexp", width, sizes_->embedding));
  part.body = std::move(body);
  return part;
}

Result<Network> decoder_like_llama(Loader& loader, const Hyperparameters& sizes, simd::RopePairing pairing) {
  Decoder decoder(loader, sizes);
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(pairing));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(Part feed_forward,
                  sizes.experts > 0 ? decoder.experts(layer) : decoder.feed_forward(layer));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
