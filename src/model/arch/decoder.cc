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
