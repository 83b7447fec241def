// T5: an encoder and a decoder that reads its output. Positions enter as a number for each head and bucket of
// distances, which is added to scores; scores are not scaled. The first layer's numbers serve all layers that
// bring none. ReLU without a gate, or GELU with one.
// Source: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer,
// 2019; Shazeer, GLU Variants Improve Transformer, 2020 (the gate).

#include <memory>
#include <utility>

#include "base/try.h"
#include "model/arch/arch.h"
#include "model/arch/decoder.h"
#include "model/arch/t5_bias.h"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kBucketsMax = 1U << 16;
constexpr std::uint32_t kLayersMax = 4096;

struct Side {
  std::string prefix;  // of tensors
  std::uint32_t layers = 0;
  bool both_ways = false;
};

class Reader {
 public:
  Reader(Loader& loader, const Hyperparameters& sizes)
      : decoder_(loader, sizes), loader_(&loader), sizes_(&sizes) {}

  Result<Network> read() {
    const ArchitectureKeys& keys = decoder_.keys();
    KVASIR_ASSIGN(buckets_, keys.count("attention.relative_buckets_count", 4, kBucketsMax));
    KVASIR_ASSIGN(const std::uint32_t layers,
                  keys.count("decoder_block_count", 1, kLayersMax, sizes_->layers));
    Network& network = decoder_.network();
    KVASIR_ASSIGN(Linear embedding, loader_->linear("token_embd", sizes_->embedding, sizes_->vocabulary));
    network.token_embedding = std::move(embedding.weight);
    KVASIR_ASSIGN(network.output_norm, decoder_.norm("dec.output_norm"));
    if (loader_->has("output.weight")) {
      KVASIR_ASSIGN(network.output, loader_->linear("output", sizes_->embedding, sizes_->vocabulary));
    }
    KVASIR_ASSIGN(const std::uint32_t start,
                  keys.count("decoder_start_token_id", 0, sizes_->vocabulary - 1, 0));
    network.start_token = static_cast<Token>(start);
    static_cast<void>(decoder_.add_no_rotary());  // which every part of it has
    EncoderStack encoder;
    KVASIR_ASSIGN(encoder.layers, layers_of({"enc.blk.", sizes_->layers, true}));
    KVASIR_ASSIGN(encoder.output_norm, decoder_.norm("enc.output_norm"));
    network.encoder = std::move(encoder);
    KVASIR_ASSIGN(network.layers, layers_of({"dec.blk.", layers, false}));
    return decoder_.finish();
  }

 private:
  Result<std::vector<Layer>> layers_of(const Side& side) {
    std::vector<Layer> layers;
    std::shared_ptr<const PositionBias> bias;
    for (std::uint32_t index = 0; index < side.layers; ++index) {
      const std::string prefix = side.prefix + std::to_string(index) + ".";
      if (index == 0 || loader_->has(prefix + "attn_rel_b.weight")) {
        KVASIR_ASSIGN(bias, bias_of(prefix, side.both_ways));
      }
      Layer layer;
      KVASIR_ASSIGN(Attention attention, attention_of(prefix + "attn_"));
      attention.cells.bias = bias;
      if (!side.both_ways) decoder_.add_cells(attention.cells, 0);
      KVASIR_TRY(add_part(layer, prefix + "attn_norm", std::move(attention)));
      if (!side.both_ways) {
        KVASIR_ASSIGN(Attention cross, attention_of(prefix + "cross_attn_"));
        decoder_.add_cross_cells(cross.cells);
        KVASIR_TRY(add_part(layer, prefix + "cross_attn_norm", CrossAttention{std::move(cross)}));
      }
      KVASIR_ASSIGN(FeedForward body, feed_forward_of(prefix + "ffn_"));
      KVASIR_TRY(add_part(layer, prefix + "ffn_norm", std::move(body)));
      layers.push_back(std::move(layer));
    }
    return layers;
  }

  Status add_part(Layer& layer, const std::string& norm, PartBody body) {
    Part part;
    KVASIR_ASSIGN(part.norm, decoder_.norm(norm));
    part.body = std::move(body);
    layer.parts.push_back(std::move(part));
    return {};
  }

  Result<std::shared_ptr<const PositionBias>> bias_of(const std::string& prefix, bool both_ways) {
    const std::uint32_t heads = sizes_->heads[0];
    KVASIR_ASSIGN(const std::vector<float> numbers,
                  loader_->matrix(prefix + "attn_rel_b.weight", heads, buckets_));
    return std::make_shared<const PositionBias>(bias_of_buckets(numbers, buckets_, heads, both_ways));
  }

  Result<Attention> attention_of(const std::string& prefix) {
    const std::uint64_t width = sizes_->embedding;
    const std::uint64_t keys = std::uint64_t{sizes_->heads[0]} * sizes_->key_dims;
    const std::uint64_t values = std::uint64_t{sizes_->heads[0]} * sizes_->value_dims;
    Attention part;
    KVASIR_ASSIGN(part.query, loader_->linear(prefix + "q", width, keys));
    KVASIR_ASSIGN(part.key, loader_->linear(prefix + "k", width, keys));
    KVASIR_ASSIGN(part.value, loader_->linear(prefix + "v", width, values));
    KVASIR_ASSIGN(part.output, loader_->linear(prefix + "o", values, width));
    part.cells.heads = sizes_->heads[0];
    part.cells.geometry = {sizes_->heads[0], sizes_->key_dims, sizes_->value_dims};
    return part;
  }

  Result<FeedForward> feed_forward_of(const std::string& prefix) {
    const std::uint64_t width = sizes_->feed_forward[0];
    FeedForward body;
    body.activation = simd::Activation::kRelu;
    if (loader_->has(prefix + "gate.weight")) {
      body.activation = simd::Activation::kGelu;
      KVASIR_ASSIGN(body.gate, loader_->linear(prefix + "gate", sizes_->embedding, width));
    }
    KVASIR_ASSIGN(body.up, loader_->linear(prefix + "up", sizes_->embedding, width));
    KVASIR_ASSIGN(body.down, loader_->linear(prefix + "down", width, sizes_->embedding));
    return body;
  }

  Decoder decoder_;
  Loader* loader_;
  const Hyperparameters* sizes_;
  std::uint32_t buckets_ = 0;
};

}  // namespace

Result<Network> build_t5(Loader& loader, const Hyperparameters& sizes) {
  return Reader(loader, sizes).read();
}

}  // namespace kvasir::model
