// What decoders are put together from, under the tensor names of the GGUF convention: an architecture file
// says which of it, in which order and with which differences.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "kvasir/result.h"
#include "model/hyperparameters.h"
#include "model/loader.h"

namespace kvasir::model {

// "blk.LAYER." before a tensor's name.
[[nodiscard]] std::string block(std::uint32_t layer);

// How the norms of queries and keys are laid out, where a file has them.
enum class HeadNorm : std::uint8_t {
  kEachAlike,  // every head by itself, with the same weights
  kEachOwn,    // every head by itself, with weights of its own
  kTogether,   // all heads as one row
};

// How the attention of a layer differs from Llama's.
struct AttentionForm {
  std::uint32_t rotary = 0;  // index of the rotary table
  std::uint64_t window = 0;  // how far a token sees; 0: everything before it
  std::string norm = "attn_norm";
  HeadNorm head_norm = HeadNorm::kEachAlike;
  bool gated = false;      // attn_q has a gate behind each head's query
  bool both_ways = false;  // of an encoder: it keeps no cells
};

// How a feed-forward part differs from Llama's.
struct FeedForwardForm {
  simd::Activation activation = simd::Activation::kSilu;
  bool gated = true;
  std::string norm = "ffn_norm";
};

// How experts differ from Mixtral's.
struct ExpertForm {
  Routing routing;  // `used` is read from the file
  simd::Activation activation = simd::Activation::kSilu;
  std::string norm = "ffn_norm";
};

// Reads a network piece by piece. Each of its calls answers as Loader's do.
class Decoder {
 public:
  // `norm` is the kind of all norms but those that say otherwise.
  Decoder(Loader& loader, const Hyperparameters& sizes, Norm::Kind norm = Norm::Kind::kRootMeanSquare)
      : loader_(&loader), sizes_(&sizes), keys_(loader.file(), sizes.architecture), norm_(norm) {}

  [[nodiscard]] const Hyperparameters& sizes() const noexcept { return *sizes_; }
  [[nodiscard]] const ArchitectureKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] Loader& loader() noexcept { return *loader_; }
  [[nodiscard]] Network& network() noexcept { return network_; }

  // token_embd, output_norm (or what it is called), and output where the file has it.
  [[nodiscard]] Status read_ends(const std::string& output_norm = "output_norm");

  // Adds a rotary table and answers its index: as the rope.* keys and rope_freqs.weight say, or as a
  // specification that an architecture has changed, or one that turns nothing.
  [[nodiscard]] Result<std::uint32_t> add_rotary(simd::RopePairing pairing);
  [[nodiscard]] Result<std::uint32_t> add_rotary(const simd::RotarySpec& spec);
  [[nodiscard]] std::uint32_t add_no_rotary();

  // A norm of the width of the stream.
  [[nodiscard]] Result<Norm> norm(const std::string& name) const;
  [[nodiscard]] Result<Norm> norm(std::uint32_t layer, const std::string& name) const {
    return norm(block(layer) + name);
  }
  // A norm of rows of another width, in pieces.
  [[nodiscard]] Result<Norm> norm_of(const std::string& name, std::uint64_t size, std::uint64_t width) const;

  // attn_norm; attn_q, attn_k, attn_v, or the three as one in attn_qkv; attn_output; attn_q_norm and
  // attn_k_norm where the file has them. An empty norm is none. kInternal before its rotary table.
  [[nodiscard]] Result<Part> attention(std::uint32_t layer, const AttentionForm& form = {});

  // ffn_norm; ffn_gate, ffn_up, ffn_down; or with experts ffn_gate_inp and their *_exps, and
  // exp_probs_b where the file has it. The keys expert_weights_norm and expert_weights_scale go before what
  // the form says.
  [[nodiscard]] Result<Part> feed_forward(std::uint32_t layer, const FeedForwardForm& form = {});
  [[nodiscard]] Result<Part> experts(std::uint32_t layer, const ExpertForm& form = {});

  // ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp: what every token goes through beside its experts. Reads
  // what they read.
  [[nodiscard]] Result<Part> shared_expert(std::uint32_t layer, std::uint64_t width);

  // Those of a part whose body is Attention.
  [[nodiscard]] static CellAttention& cells_of(Part& part) { return std::get<Attention>(part.body).cells; }

  // Declares a layer of a cache group for the part: the one group of this window (0: none).
  void add_cells(CellAttention& cells, std::uint64_t window);

  // The same for a part that reads an encoder's output.
  void add_cross_cells(CellAttention& cells);

  void add_layer(Layer layer) { network_.layers.push_back(std::move(layer)); }
  template <class... Parts>
  void add_layer(Part first, Parts... others) {
    Layer layer;
    layer.parts.push_back(std::move(first));
    (layer.parts.push_back(std::move(others)), ...);
    add_layer(std::move(layer));
  }

  // The network, to which nothing is added any more.
  [[nodiscard]] Network finish() { return std::move(network_); }

 private:
  void add_cells_of(CellAttention& cells, pages::GroupKind kind, std::uint64_t width);
  [[nodiscard]] Status read_query_key_value(std::uint32_t layer, bool gated, Attention& mixer);
  [[nodiscard]] Status read_head_norms(std::uint32_t layer, HeadNorm form, Attention& mixer);

  Loader* loader_;
  const Hyperparameters* sizes_;
  ArchitectureKeys keys_;
  Norm::Kind norm_;
  Network network_;
};

// Llama's layers: attention, then a feed-forward part or, where the file has experts, these.
[[nodiscard]] Result<Network> decoder_like_llama(Loader& loader, const Hyperparameters& sizes,
                                                 simd::RopePairing pairing);

}  // namespace kvasir::model
