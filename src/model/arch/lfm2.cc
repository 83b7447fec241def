// LFM2: short gated convolutions, in some layers attention with norms of queries and keys in their place;
// gated feed-forward parts. Source: Liquid AI, LFM2 technical report, 2025.

#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/recurrent.h"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kTapsMax = 64;

Result<Part> gated_convolution(Decoder& decoder, std::uint32_t layer) {
  const std::string prefix = block(layer) + "shortconv.";
  const std::uint64_t width = decoder.sizes().embedding;
  KVASIR_ASSIGN(const std::uint32_t taps, decoder.keys().count("shortconv.l_cache", 2, kTapsMax));
  Loader& loader = decoder.loader();
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm"));
  GatedConvolution mixer;
  KVASIR_ASSIGN(mixer.before, loader.linear_rows(prefix + "in_proj", width, 3 * width, 0, width));
  KVASIR_ASSIGN(mixer.after, loader.linear_rows(prefix + "in_proj", width, 3 * width, width, width));
  KVASIR_ASSIGN(mixer.input, loader.linear_rows(prefix + "in_proj", width, 3 * width, 2 * width, width));
  KVASIR_ASSIGN(mixer.convolution, convolution(decoder, prefix + "conv", decoder.sizes().embedding, taps));
  KVASIR_ASSIGN(mixer.output, loader.linear(prefix + "out_proj", width, width));
  part.body = std::move(mixer);
  return part;
}

}  // namespace

Result<Network> build_lfm2(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes);
  // The norm of the output goes by the name of one of the embedding.
  KVASIR_TRY(decoder.read_ends(loader.has("output_norm.weight") ? "output_norm" : "token_embd_norm"));
  KVASIR_ASSIGN(const std::uint32_t rotary, decoder.add_rotary(simd::RopePairing::kHalves));
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    KVASIR_ASSIGN(Part mixer, sizes.kv_heads[layer] == 0 ? gated_convolution(decoder, layer)
                                                         : decoder.attention(layer, {.rotary = rotary}));
    KVASIR_ASSIGN(Part feed_forward, decoder.feed_forward(layer));
    decoder.add_layer(std::move(mixer), std::move(feed_forward));
  }
  return decoder.finish();
}

}  // namespace kvasir::model
