// The mixer of Mamba-2. Source: Dao and Gu, Transformers are SSMs: Generalized Models and Efficient
// Algorithms Through Structured State Space Duality, 2024.

#include <utility>

#include "base/try.h"
#include "model/arch/recurrent.h"
#include "simd/scans.h"

namespace kvasir::model {
namespace {

Status check_heads(const ArchitectureKeys& keys, const StateSpaceSizes& sizes) {
  if (sizes.channels % sizes.rank == 0 && sizes.rank % sizes.groups == 0) return {};
  return fail(Outcome::kCorrupt, "'" + keys.name("ssm.inner_size") + "' " + std::to_string(sizes.channels) +
                                     " must be whole heads ('" + keys.name("ssm.time_step_rank") + "' " +
                                     std::to_string(sizes.rank) + "), and these whole groups ('" +
                                     keys.name("ssm.group_count") + "' " + std::to_string(sizes.groups) +
                                     ")");
}

// gate, input and time are the rows of ssm_in, one behind the other.
Status read_mamba2_input(Decoder& decoder, const std::string& prefix, const StateSpaceSizes& sizes,
                         Mamba2& mixer) {
  const std::uint64_t width = decoder.sizes().embedding;
  const std::uint64_t channels = sizes.channels;
  const std::uint64_t mixed = channels + std::uint64_t{2} * sizes.groups * sizes.dims;
  const std::uint64_t rows = channels + mixed + sizes.rank;
  Loader& loader = decoder.loader();
  KVASIR_ASSIGN(mixer.gate, loader.linear_rows(prefix + "in", width, rows, 0, channels));
  KVASIR_ASSIGN(mixer.input, loader.linear_rows(prefix + "in", width, rows, channels, mixed));
  KVASIR_ASSIGN(mixer.time, loader.linear_rows(prefix + "in", width, rows, channels + mixed, sizes.rank));
  KVASIR_ASSIGN(mixer.time.bias, loader.numbers(prefix + "dt.bias", {sizes.rank}));
  return {};
}

}  // namespace

Result<Part> mamba2(Decoder& decoder, std::uint32_t layer) {
  KVASIR_ASSIGN(const StateSpaceSizes sizes, StateSpaceSizes::read(decoder.keys()));
  KVASIR_TRY(check_heads(decoder.keys(), sizes));
  const std::string prefix = block(layer) + "ssm_";
  Loader& loader = decoder.loader();
  Part part;
  KVASIR_ASSIGN(part.norm, decoder.norm(layer, "attn_norm"));
  Mamba2 mixer;
  mixer.heads = sizes.rank;
  mixer.groups = sizes.groups;
  mixer.dims = sizes.dims;
  KVASIR_TRY(read_mamba2_input(decoder, prefix, sizes, mixer));
  KVASIR_ASSIGN(mixer.convolution, convolution(decoder, prefix + "conv1d",
                                               static_cast<std::uint32_t>(mixer.input.out()), sizes.taps));
  KVASIR_ASSIGN(mixer.decay, loader.numbers(prefix + "a", {sizes.rank}));
  KVASIR_ASSIGN(mixer.skip, loader.numbers(prefix + "d", {sizes.rank}));
  if (loader.has(prefix + "norm.weight")) {
    const std::uint64_t of_group = sizes.channels / sizes.groups;
    KVASIR_ASSIGN(std::vector<float> weight,
                  loader.numbers(prefix + "norm.weight", {of_group, sizes.groups}));
    mixer.norm =
        Norm{.weight = std::move(weight), .epsilon = decoder.sizes().norm_epsilon, .width = of_group};
  }
  KVASIR_ASSIGN(mixer.output, loader.linear(prefix + "out", sizes.channels, decoder.sizes().embedding));
  KVASIR_ASSIGN(mixer.state,
                add_state(decoder.network(), sizes.rank, sizes.dims, simd::state_lanes(mixer.head_width())));
  part.body = std::move(mixer);
  return part;
}

}  // namespace kvasir::model
