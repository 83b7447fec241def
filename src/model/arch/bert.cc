// BERT: reads a text both ways and answers with vectors. Positions and the kind of text are learned and added
// to the embeddings; norms, which subtract the mean, stand behind the parts; biases everywhere, GELU without
// a gate.
// Source: Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, 2018; Reimers and Gurevych,
// Sentence-BERT, 2019 (pooling).

#include <array>
#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"

namespace kvasir::model {
namespace {

constexpr std::array kPoolings = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast,
                                  Pooling::kRank};

// What stands before the layers: tokens, their positions, and the first of the kinds of text.
Status read_embeddings(Decoder& decoder) {
  Loader& loader = decoder.loader();
  const Hyperparameters& sizes = decoder.sizes();
  Network& network = decoder.network();
  KVASIR_ASSIGN(Linear embedding, loader.linear("token_embd", sizes.embedding, sizes.vocabulary));
  network.token_embedding = std::move(embedding.weight);
  KVASIR_ASSIGN(Linear positions, loader.linear("position_embd", sizes.embedding, sizes.context));
  network.position_embedding = std::move(positions.weight);
  if (const gguf::Tensor* const kinds = loader.file().find_tensor("token_types.weight")) {
    const std::uint64_t count = kinds->dims.size() > 1 ? kinds->dims[1] : 1;
    KVASIR_ASSIGN(network.segment_embedding, loader.matrix("token_types.weight", sizes.embedding, count));
    network.segment_embedding.resize(sizes.embedding);
  }
  KVASIR_ASSIGN(network.embedding_norm, decoder.norm("token_embd_norm"));
  return {};
}

}  // namespace

Result<Network> build_bert(Loader& loader, const Hyperparameters& sizes) {
  Decoder decoder(loader, sizes, Norm::Kind::kMeanAndVariance);
  KVASIR_TRY(read_embeddings(decoder));
  Network& network = decoder.network();
  network.positions_can_move = false;
  KVASIR_ASSIGN(const std::uint32_t pooling,
                decoder.keys().count("pooling_type", 0, static_cast<std::uint32_t>(kPoolings.size() - 1), 0));
  network.pooling = kPoolings[pooling];
  const std::uint32_t none = decoder.add_no_rotary();
  EncoderStack encoder;
  for (std::uint32_t index = 0; index < sizes.layers; ++index) {
    KVASIR_ASSIGN(Part mixer, decoder.attention(index, {.rotary = none, .norm = "", .both_ways = true}));
    KVASIR_ASSIGN(mixer.stream_norm, decoder.norm(index, "attn_output_norm"));
    KVASIR_ASSIGN(
        Part feed_forward,
        decoder.feed_forward(index, {.activation = simd::Activation::kGelu, .gated = false, .norm = ""}));
    KVASIR_ASSIGN(feed_forward.stream_norm, decoder.norm(index, "layer_output_norm"));
    Layer layer;
    layer.parts.push_back(std::move(mixer));
    layer.parts.push_back(std::move(feed_forward));
    encoder.layers.push_back(std::move(layer));
  }
  network.encoder = std::move(encoder);
  return decoder.finish();
}

}  // namespace kvasir::model
