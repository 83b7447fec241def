// The mixer of Mamba. Source: Gu and Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces,
// 2023.

#include <utility>

#include "base/try.h"
#include "model/arch/recurrent.h"
#include "simd/scans.h"

namespace kvasir::model {
namespace {

Result<std::optional<Norm>> plain_norm(Decoder& decoder, std::uint64_t size) {
  return Norm{
      .weight = std::vector<float>(size, 1.0F), .epsilon = decoder.sizes().norm_epsilon, .width = size};
}

Status read_coefficient_norms(Decoder& decoder, std::uint32_t layer, std::uint32_t rank, Mamba& mixer) {
  KVASIR_ASSIGN(const bool plain, decoder.keys().flag("ssm.dt_b_c_rms", false));
  const auto read = [&](const char* name, std::uint64_t size) -> Result<std::optional<Norm>> {
    if (!layer_has(decoder, layer, name))
      return plain ? plain_norm(decoder, size) : Result<std::optional<Norm>>(std::nullopt);
    const std::string full = block(layer) + name;
    // "NAME.weight" without its last part.
    return decoder.norm_of(full.substr(0, full.rfind('.')), size, size);
  };
  KVASIR_ASSIGN(mixer.time_norm, read("ssm_dt_norm.weight", rank));
  KVASIR_ASSIGN(mixer.enter_norm, read("ssm_b_norm.weight", mixer.dims));
  KVASIR_ASSIGN(mixer.leave_norm, read("ssm_c_norm.weight", mixer.dims));
  return {};
}

}  // namespace

Result<Part> mamba(Decoder& decoder, std::uint32_t layer) {
  KVASIR_ASSIGN(const StateSpaceSizes sizes, StateSpaceSizes::read(decoder.keys()));
  const std::string prefix = block(layer) + "ssm_";
  const std::uint64_t width = decoder.sizes().embedding;
  const std::uint64_t channels = sizes.channels;
  Loader& loader = decoder.loader();
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm"));
  Mamba mixer;
  mixer.dims = sizes.dims;
  KVASIR_ASSIGN(mixer.input, loader.linear_rows(prefix + "in", width, 2 * channels, 0, channels));
  KVASIR_ASSIGN(mixer.gate, loader.linear_rows(prefix + "in", width, 2 * channels, channels, channels));
  KVASIR_ASSIGN(mixer.convolution, convolution(decoder, prefix + "conv1d", sizes.channels, sizes.taps));
  KVASIR_ASSIGN(mixer.coefficients,
                loader.linear(prefix + "x", channels, sizes.rank + std::uint64_t{2} * sizes.dims));
  KVASIR_ASSIGN(mixer.time, loader.linear(prefix + "dt", sizes.rank, channels));
  KVASIR_TRY(read_coefficient_norms(decoder, layer, sizes.rank, mixer));
  KVASIR_ASSIGN(const std::vector<float> decay, loader.numbers(prefix + "a", {sizes.dims, channels}));
  mixer.decay = in_blocks(decay, sizes.channels, sizes.dims);
  KVASIR_ASSIGN(const std::vector<float> skip, loader.numbers(prefix + "d", {channels}));
  mixer.skip = in_blocks(skip, sizes.channels, 1);
  KVASIR_ASSIGN(mixer.output, loader.linear(prefix + "out", channels, width));
  KVASIR_ASSIGN(mixer.state,
                add_state(decoder.network(), blocks_of(sizes.channels), sizes.dims, simd::kChannelBlock));
  part.body = std::move(mixer);
  return part;
}

}  // namespace kvasir::model
