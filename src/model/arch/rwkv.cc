#include "model/arch/rwkv.h"

#include <utility>

#include "base/try.h"

namespace kvasir::model {
namespace {

constexpr float kHeadEpsilon = 64e-5F;  // of the norm of a head's output

}  // namespace

Status Rwkv::begin() {
  KVASIR_TRY(decoder.read_ends());
  KVASIR_ASSIGN(decoder.network().embedding_norm, decoder.norm("token_embd_norm"));
  KVASIR_ASSIGN(head_width, decoder.keys().count("wkv.head_size", 1, sizes().embedding));
  if (sizes().embedding % head_width == 0) return {};
  return fail(Outcome::kCorrupt, "'" + decoder.keys().name("embedding_length") + "' " +
                                     std::to_string(sizes().embedding) + " is no multiple of '" +
                                     decoder.keys().name("wkv.head_size") + "' " +
                                     std::to_string(head_width));
}

Result<LowRank> Rwkv::low_rank(const std::string& down, const std::string& up, std::uint32_t rank) {
  LowRank part;
  KVASIR_ASSIGN(part.down, loader().linear(down, sizes().embedding, rank));
  KVASIR_ASSIGN(part.up, loader().linear(up, rank, sizes().embedding));
  return part;
}

Result<Norm> Rwkv::head_norm(const std::string& name) {
  KVASIR_ASSIGN(Norm norm, decoder.norm_of(name, sizes().embedding, head_width));
  norm.epsilon = kHeadEpsilon;
  return norm;
}

Result<Part> Rwkv::channel_mix(std::uint32_t layer, bool gated) {
  const std::string prefix = block(layer) + "channel_mix_";
  const std::uint64_t width = sizes().feed_forward[layer];
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm_2"));
  ChannelMix body;
  KVASIR_ASSIGN(body.key_lerp, row(prefix + "lerp_k.weight"));
  KVASIR_ASSIGN(body.key, loader().linear(prefix + "key", sizes().embedding, width));
  KVASIR_ASSIGN(body.value, loader().linear(prefix + "value", width, sizes().embedding));
  if (gated) {
    KVASIR_ASSIGN(body.gate_lerp, row(prefix + "lerp_r.weight"));
    KVASIR_ASSIGN(body.gate, square(prefix + "receptance"));
  }
  KVASIR_ASSIGN(body.before, add_before());
  part.body = std::move(body);
  return part;
}

std::vector<float> row_of(const std::vector<float>& rows, std::size_t index, std::size_t width) {
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(index * width);
  return {first, first + static_cast<std::ptrdiff_t>(width)};
}

}  // namespace kvasir::model
