// The mixers that keep a state of fixed size instead of cells. Data only, as layers.h; a state is laid out in
// entries of a recurrent group, each in the pieces that its scan reads and writes (kv/state_layout.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/weights.h"

namespace kvasir::model {

// Which entry of which group's states something keeps.
struct StateEntry {
  std::uint32_t group = 0;
  std::uint32_t entry = 0;
};

// A causal convolution of each channel over the last `taps` tokens. A piece of its state is a block of
// channels, as simd::convolve_step() has it.
struct ShortConvolution {
  std::uint32_t channels = 0;
  std::uint32_t taps = 0;
  std::vector<float> weight;  // [block][tap][simd::kChannelBlock], the newest token's tap last
  std::vector<float> bias;    // [block][simd::kChannelBlock], or empty
  StateEntry state;
};

// Selective scan of channels, each with a state of `dims` numbers. A piece of its state is a block of
// channels, as simd::selective_step() has it. Source: Gu and Dao, Mamba, 2023; with norms, Lieber et al.,
// Jamba, 2024.
struct Mamba {
  Linear input, gate;  // to channels
  ShortConvolution convolution;
  Linear coefficients;  // of channels: the low rank of the time step, then B, then C
  Linear time;          // from the low rank to channels
  std::optional<Norm> time_norm, enter_norm, leave_norm;  // of the low rank, B and C
  std::vector<float> decay;                               // A: [block][dims][simd::kChannelBlock], below 0
  std::vector<float> skip;                                // D: [block][simd::kChannelBlock]
  Linear output;
  std::uint32_t dims = 0;
  StateEntry state;
};

// Selective scan of heads: one time step and one decay a head, B and C shared by the heads of a group. A
// piece of its state is a head: [dims][simd::state_lanes(head_width)]. Source: Dao and Gu, Transformers are
// SSMs, 2024.
struct Mamba2 {
  Linear gate, input, time;      // input: values of all heads, then B of all groups, then C
  ShortConvolution convolution;  // of the input
  std::vector<float> decay;      // A: [head], below 0
  std::vector<float> skip;       // D: [head]
  std::optional<Norm> norm;      // of the gated output, group by group
  Linear output;
  std::uint32_t heads = 0;
  std::uint32_t groups = 0;
  std::uint32_t dims = 0;  // of B and of C
  StateEntry state;

  [[nodiscard]] std::uint32_t channels() const noexcept { return static_cast<std::uint32_t>(output.in()); }
  [[nodiscard]] std::uint32_t head_width() const noexcept { return channels() / heads; }
};

// output(after(x) * convolution(before(x) * input(x)))
// Source: Liquid AI, LFM2, 2025.
struct GatedConvolution {
  Linear before, after, input, output;
  ShortConvolution convolution;
};

// Heads with a state that is corrected by what it answers to the key, and decays. Each key head serves
// value_heads / key_heads value heads. A piece of its state is a value head:
// [key_width][simd::state_lanes(value_width)].
// Source: Yang et al., Gated Delta Networks, 2024, as in Qwen3-Next.
struct GatedDelta {
  Linear mixed;                  // queries, then keys, then values, of all heads
  ShortConvolution convolution;  // of those
  Linear gate;                   // of the output
  Linear strength, time;         // to value heads; the time step is before softplus
  std::vector<float> decay;      // A: [value head], below 0
  Norm norm;                     // of each head's output
  Linear output;
  float epsilon = 0;  // of the norm that queries and keys are brought to length 1 by
  std::uint32_t key_heads = 0;
  std::uint32_t value_heads = 0;
  std::uint32_t key_width = 0;
  std::uint32_t value_width = 0;
  StateEntry state;
};

// Two matrices with a row of `middle` numbers between them.
struct LowRank {
  Linear down, up;
};

// RWKV-6's mixer. A piece of its state is a head: [head_width][simd::state_lanes(head_width)]; what the token
// before read is one piece.
// Source: Peng et al., Eagle and Finch, 2024.
struct TimeMix6 {
  static constexpr std::size_t kInputs = 5;  // of decay, key, value, receptance and gate
  std::vector<float> first_lerp;             // how much of the token before goes into what follows
  std::vector<LowRank> lerps;                // [input]: how much of it goes into each input
  LowRank decay;
  Linear receptance, key, value, gate, output;
  std::vector<float> bonus;  // [head * width]: of a token's own key
  Norm norm;                 // of each head's output
  std::uint32_t head_width = 0;
  StateEntry before, state;

  [[nodiscard]] std::uint32_t heads() const noexcept {
    return static_cast<std::uint32_t>(output.in()) / head_width;
  }
};

// RWKV-7's mixer; its state as RWKV-6's.
// Source: Peng et al., RWKV-7 Goose, 2025.
struct TimeMix7 {
  static constexpr std::size_t kInputs = 6;  // of receptance, decay, key, value, rate and gate
  std::vector<std::vector<float>> lerps;     // [input]: how much of the token before goes into each
  LowRank decay, rate, gate;
  std::optional<LowRank> value_share;  // how much of the first layer's value is taken; there none
  Linear receptance, key, value, output;
  std::vector<float> probe;  // times the key: what the state is asked
  std::vector<float> turn;   // how far the rate changes the key
  std::vector<float> bonus;  // [head * width]: of a token's own key
  Norm norm;                 // of each head's output
  std::uint32_t head_width = 0;
  StateEntry before, state;

  [[nodiscard]] std::uint32_t heads() const noexcept {
    return static_cast<std::uint32_t>(output.in()) / head_width;
  }
};

// The feed-forward part of RWKV: squares of positive numbers between two matrices, of inputs that have a part
// of the token before, and in RWKV-6 a gate.
struct ChannelMix {
  std::vector<float> key_lerp;
  std::vector<float> gate_lerp;  // empty without a gate
  Linear key, value;
  std::optional<Linear> gate;
  StateEntry before;
};

}  // namespace kvasir::model
