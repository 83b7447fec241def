// Parts that several architectures share, under the tensor names of the GGUF convention.
#pragma once

#include <cstdint>
#include <string>

#include "kvasir/result.h"
#include "model/hyperparameters.h"
#include "model/loader.h"

namespace kvasir::model {

// "blk.LAYER." before a tensor's name.
[[nodiscard]] std::string block(std::uint32_t layer);

// token_embd, output_norm, output (the embedding serves where it is missing), one rotary table, and one cache
// group in which every layer of `sizes` attends.
[[nodiscard]] Result<Network> decoder_frame(Loader& loader, const Hyperparameters& sizes,
                                            simd::RopePairing pairing);

// attn_q, attn_k, attn_v, or the three as one in attn_qkv; attn_output; attn_q_norm and attn_k_norm where the
// file has them.
[[nodiscard]] Result<Attention> attention(Loader& loader, const Hyperparameters& sizes, std::uint32_t layer);

// ffn_gate, ffn_up, ffn_down; or, with experts, ffn_gate_inp and their *_exps.
[[nodiscard]] Result<GatedFeedForward> gated_feed_forward(Loader& loader, const Hyperparameters& sizes,
                                                          std::uint32_t layer);
[[nodiscard]] Result<Experts> experts(Loader& loader, const Hyperparameters& sizes, std::uint32_t layer);

// A layer of attn_norm, attention, ffn_norm and a gated feed-forward part or experts.
[[nodiscard]] Result<Layer> decoder_layer(Loader& loader, const Hyperparameters& sizes, std::uint32_t layer);

// decoder_frame and a decoder_layer for each layer.
[[nodiscard]] Result<Network> decoder(Loader& loader, const Hyperparameters& sizes,
                                      simd::RopePairing pairing);

}  // namespace kvasir::model
