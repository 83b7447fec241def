// What architectures with recurrent mixers are put together from, under the
// tensor names of the GGUF convention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

// What the ssm.* keys say of a state space.
struct StateSpaceSizes {
  std::uint32_t taps = 0;  // of the convolution
  std::uint32_t channels = 0;
  std::uint32_t dims = 0;    // of the state
  std::uint32_t rank = 0;    // of Mamba's time step; in Mamba-2 the number of heads
  std::uint32_t groups = 1;  // of heads that share B and C; in a delta net the number of key heads

  [[nodiscard]] static Result<StateSpaceSizes> read(const ArchitectureKeys& keys);
};

// Declares what a mixer keeps, in the one recurrent group: so many pieces of
// rows times lanes numbers. Positions of the model no longer move. kUnsupported
// for pieces larger than can be counted.
[[nodiscard]] Result<StateEntry> add_state(Network& network, std::uint32_t pieces, std::uint64_t rows,
                                           std::uint64_t lanes);

// NAME.weight of `taps` x `channels`, and NAME.bias where the file has one.
[[nodiscard]] Result<ShortConvolution> convolution(Decoder& decoder, const std::string& name,
                                                   std::uint32_t channels, std::uint32_t taps);

// attn_norm and Mamba's ssm_*; with norms of time step, B and C where the file
// has them, or, with ssm.dt_b_c_rms, without weights.
[[nodiscard]] Result<Part> mamba(Decoder& decoder, std::uint32_t layer);

// attn_norm and Mamba-2's ssm_*.
[[nodiscard]] Result<Part> mamba2(Decoder& decoder, std::uint32_t layer);

// How many blocks of simd::kChannelBlock so many channels are.
[[nodiscard]] std::uint32_t blocks_of(std::uint32_t channels) noexcept;

// What files have as [channel][row], `rows` numbers for each channel, as [block][row][channel of block], the
// last block padded with zeros.
[[nodiscard]] std::vector<float> in_blocks(const std::vector<float>& from, std::uint32_t channels,
                                           std::uint32_t rows);

// Whether the layer has a tensor of that name.
[[nodiscard]] bool layer_has(Decoder& decoder, std::uint32_t layer, const char* tensor);

}  // namespace kvasir::model
