// The rows that recurrent mixers compute in: [row] unless it says otherwise.
#pragma once

#include <array>

#include "model/recurrent_parts.h"
#include "model/rows.h"

namespace kvasir::model {

struct MambaScratch {
  InputRows input;  // convolved; then what the scan gives
  FloatRows gate;
  FloatRows coefficients;
  InputRows rank;  // of the time step
  FloatRows time;
};

struct Mamba2Scratch {
  FloatRows input;        // convolved; what the scan gives takes the values' place
  InputRows gate;         // then the gated output
  FloatRows time, decay;  // of each head
};

struct GatedConvolutionScratch {
  FloatRows before, after;
  InputRows input;
};

struct GatedDeltaScratch {
  FloatRows mixed;            // convolved; what the scan gives takes the values' place
  InputRows gate;             // then the gated output
  FloatRows strength, decay;  // of each value head
};

struct TimeMixScratch {
  FloatRows first;  // [sequence]: what the token before its first row read
  InputRows start;  // RWKV-6: what says how much of the token before goes into each input
  std::array<InputRows, TimeMix7::kInputs> input;
  std::array<InputRows, TimeMix7::kInputs> low;  // between the two matrices of low rank
  FloatRows receptance, key, value, decay;
  FloatRows probe, correction, share;  // RWKV-7
  FloatRows first_value;               // RWKV-7: of the first layer
  InputRows gate;                      // then the gated output
  FloatRows read;                      // what the scan gives
};

struct ChannelMixScratch {
  FloatRows first;  // [sequence]: what the token before its first row read
  InputRows key_input, gate_input, hidden;
  FloatRows gate;
};

struct RecurrentScratch {
  MambaScratch mamba;
  Mamba2Scratch mamba2;
  GatedConvolutionScratch gated_convolution;
  GatedDeltaScratch gated_delta;
  TimeMixScratch time_mix;
  ChannelMixScratch channel_mix;
};

}  // namespace kvasir::model
