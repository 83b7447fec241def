// The steps of recurrent layers: each takes the state of one head or one block of channels past one token. A
// state is F32, with one row of lanes for each key, tap or dimension; a row's lanes never meet, and every sum
// over rows goes from the first to the last, so no bit depends on the width of a vector, nor on how the
// tokens are shared out among passes. Any thread; the state belongs to the caller.
#pragma once

#include <cstddef>
#include <span>

namespace kvasir::simd {

// Lanes of a state's row for so many values. The lanes that pad it stay what they were made, 0.
[[nodiscard]] constexpr std::size_t state_lanes(std::size_t values) noexcept {
  return (values + 15) / 16 * 16;
}

// What becomes of a state that a step leaves elsewhere than where it read: kAway goes past the caches, which
// is faster for what is not read soon; it is aligned to 64 bytes.
enum class StateStore : unsigned char { kNear, kAway };

// Channels that one step of a convolution or a selective scan takes. The last block of a layer may have
// fewer: its rows are shorter, its weights and its state padded with 0.
inline constexpr std::size_t kChannelBlock = 64;

// A causal convolution of each channel over the last `taps` tokens. history[tap][kChannelBlock] holds the
// inputs of the last taps - 1 tokens, the oldest first; weight[tap][kChannelBlock] in the same order, the
// newest token's last; bias[kChannelBlock] or empty. row[i] = bias[i] + the sum over the taps from the oldest
// on. At least two taps.
void convolve_step(std::span<float> history, std::span<const float> weight, std::span<const float> bias,
                   std::span<float> row) noexcept;

// One block of channels of a selective state space.
// Source: Gu and Dao, Mamba, 2023, algorithm 2 with the recurrence of equation 2.
struct SelectiveStep {
  std::span<const float> decay;  // A: [dimension][kChannelBlock], below 0
  std::span<const float> skip;   // D: [kChannelBlock]
  std::span<const float> time;   // before softplus; of the block's channels, as input, gate and out are
  std::span<const float> input;
  std::span<const float> gate;
  std::span<const float> enter;  // B: of each dimension
  std::span<const float> leave;  // C: of each dimension
};

// state[n][c] = state[n][c] * e^(t[c] * A[n][c]) + t[c] * input[c] * B[n], with t = softplus(time);
// out[c] = (the sum over n of state[n][c] * C[n] + input[c] * D[c]) * silu(gate[c]). out may be the input.
void selective_step(const SelectiveStep& step, std::span<float> state, std::span<float> out) noexcept;

// One head whose state is a decaying sum of key x value.
// Sources: Dao and Gu, Transformers are SSMs (Mamba-2), 2024; Peng et al., Eagle and Finch (RWKV-6), 2024.
struct OuterStep {
  std::span<const float> decay;  // of each key, or one of all
  std::span<const float> key;
  std::span<const float> query;  // of each key
  std::span<const float> value;
  float value_scale = 1;      // multiplies the value on its way into the state
  float skip = 0;             // times the value, added to the output
  bool reads_before = false;  // the output is that of the state before this token
};

// state[k][v] = before[k][v] * decay[k] + key[k] * (value_scale * value[v]), rows of state_lanes(values);
// `before` is the state itself, or one that does not overlap it. out[v] = the sum over k of query[k] *
// state[k][v], plus skip * value[v]. out may be the value.
void outer_step(const OuterStep& step, std::span<const float> before, std::span<float> state,
                std::span<float> out, StateStore store = StateStore::kNear) noexcept;

// One head whose state is corrected by what it answers to a probe (the delta rule).
// Sources: Peng et al., RWKV-7 Goose, 2025; Yang et al., Gated Delta Networks, 2024.
struct DeltaStep {
  std::span<const float> decay;       // of each key, or one of all
  std::span<const float> probe;       // of each key
  std::span<const float> correction;  // of each key
  std::span<const float> key;
  std::span<const float> query;  // of each key
  std::span<const float> value;
  float probe_scale = 1;  // multiplies the answer
  float value_scale = 1;  // multiplies the value
};

// answer[v] = probe_scale * the sum over k of probe[k] * before[k][v]; then state[k][v] = before[k][v] *
// decay[k] + correction[k] * answer[v] + key[k] * (value_scale * value[v]), rows of state_lanes(values).
// `before` is the state itself, or one that does not overlap it.
// out[v] = the sum over k of query[k] * state[k][v]. out may be the value.
void delta_step(const DeltaStep& step, std::span<const float> before, std::span<float> state,
                std::span<float> out, StateStore store = StateStore::kNear) noexcept;

}  // namespace kvasir::simd
