// The scalar twin of the engine: a transformer over a whole prompt in plain loops. No cache, no threads, no
// vectors, no passes; it is meant to be read beside the papers in one sitting, and everything faster is held
// to it.
//
// It shares one thing with the product on purpose: a matrix product adds weight times input over ascending k
// with one fused multiply-add each. All else is computed in double and rounded once to float where it is
// kept.
//
// Sources: Vaswani et al., Attention Is All You Need, 2017; Touvron et al., LLaMA, 2023 (norm, gate, layout);
// Ainslie et al., GQA, 2023; Su et al., RoFormer, 2021; Peng et al., YaRN, 2023; Jiang et al., Mixtral of
// Experts, 2024; Gemma Team, Gemma 2, 2024 (windows, soft caps); DeepSeek-AI, DeepSeek-V3, 2024 (routing).
#pragma once

#include <span>
#include <vector>

#include "gguf/gguf.h"
#include "kvasir/token.h"
#include "model/layers.h"

namespace kvasir::oracle {

// How the pairs of a head turn, read from the file by the twin itself.
struct Rope {
  std::vector<double> frequencies;  // [pair]: radians a position
  double magnitude = 1;             // multiplies what was turned
  bool halves = false;              // pair i is (i, i + pairs); else (2 i, 2 i + 1)
};

// The rotation that the rope.* keys, head sizes and rope_freqs.weight of a valid file describe.
[[nodiscard]] Rope read_rope(const gguf::File& file);

// How far (normalized mean squared error) the engine with an F32 cache may be from its twin. Products have
// one order of sums in both, so they pass differences on and add none. What differs is rounding elsewhere: a
// norm, a rotation, a softmax with its sum over values and a gate each stay within about 8 units of 2^-24 of
// exact arithmetic; six such parts a layer, their errors independent: sqrt(6 x 4 layers) x 8 x 2^-24
// is 2.3e-6, its square 5e-12.
inline constexpr double kTwinBound = 5e-12;

// Weights of codes take their input in steps of a 127th. A difference that small may still put a number into
// another step, which moves everything behind it, and then others too: in the end as far as rounding all of
// them to steps does. A block of 256 normal numbers reaches 2.9 deviations, a gated product's about 6: steps
// of that much by 127 have an error of up to (6 / 127)^2 / 12 = 1.9e-4 in each of about ten products that a
// number passes through. Tokens that no such accident has reached stay within kTwinBound.
inline constexpr double kTwinBoundOfSteps = 2e-3;

// Whether the twin computes all parts of a model: attention, latent attention, feed-forward parts and
// experts.
[[nodiscard]] bool knows_every_part(const model::Network& network);

// Of such a model the logits of every token at positions 0, 1, 2, ..., row after row. What turns as the
// file's rope.* keys say (the first rotation of a model of the llama kind) is read from the file; other
// rotations are as the model has them.
[[nodiscard]] std::vector<float> scalar_forward(const model::Network& network, const gguf::File& file,
                                                std::span<const Token> tokens);

}  // namespace kvasir::oracle
