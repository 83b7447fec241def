#include "model/arch/recurrent.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "simd/scans.h"

namespace kvasir::model {
namespace {

// Beyond any model in use; what a file claims within them is then held against
// its tensors.
constexpr std::uint32_t kTapsMax = 64;
constexpr std::uint32_t kDimsMax = 1U << 12;
constexpr std::uint32_t kChannelsMax = 1U << 20;

std::uint32_t blocks_of(std::uint32_t channels) noexcept {
  return base::div_up(channels, static_cast<std::uint32_t>(simd::kChannelBlock));
}

// What files have as [channel][row], `rows` numbers for each channel, as
// [block][row][channel of block], the last block padded with zeros.
std::vector<float> in_blocks(const std::vector<float>& from, std::uint32_t channels, std::uint32_t rows) {
  std::vector<float> out(std::size_t{blocks_of(channels)} * rows * simd::kChannelBlock);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::size_t block = channel / simd::kChannelBlock;
    for (std::size_t row = 0; row < rows; ++row) {
      out[(block * rows + row) * simd::kChannelBlock + channel % simd::kChannelBlock] =
          from[channel * rows + row];
    }
  }
  return out;
}

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

bool layer_has(Decoder& decoder, std::uint32_t layer, const char* tensor) {
  return decoder.loader().has(block(layer) + tensor);
}

Result<StateSpaceSizes> StateSpaceSizes::read(const ArchitectureKeys& keys) {
  StateSpaceSizes sizes;
  KVASIR_ASSIGN(sizes.taps, keys.count("ssm.conv_kernel", 2, kTapsMax));
  KVASIR_ASSIGN(sizes.channels, keys.count("ssm.inner_size", 1, kChannelsMax));
  KVASIR_ASSIGN(sizes.dims, keys.count("ssm.state_size", 1, kDimsMax));
  KVASIR_ASSIGN(sizes.rank, keys.count("ssm.time_step_rank", 1, kChannelsMax));
  KVASIR_ASSIGN(sizes.groups, keys.count("ssm.group_count", 0, kChannelsMax, 1));
  // Some converters of models without groups write none.
  sizes.groups = std::max<std::uint32_t>(1, sizes.groups);
  return sizes;
}

Result<StateEntry> add_state(Network& network, std::uint32_t pieces, std::uint64_t rows,
                             std::uint64_t lanes) {
  const auto floats = base::checked_mul(rows, lanes);
  if (!floats || *floats > UINT32_MAX) {
    return fail(Outcome::kUnsupported,
                "a state of " + std::to_string(rows) + " times " + std::to_string(lanes) +
                    " numbers for each head cannot be kept",
                {.wanted = rows, .limit = UINT32_MAX});
  }
  network.positions_can_move = false;
  auto group = std::ranges::find(network.groups, pages::GroupKind::kRecurrent, &CacheGroup::kind);
  if (group == network.groups.end()) {
    network.groups.push_back({.kind = pages::GroupKind::kRecurrent});
    group = std::prev(network.groups.end());
  }
  const StateEntry entry{static_cast<std::uint32_t>(group - network.groups.begin()),
                         static_cast<std::uint32_t>(group->states.size())};
  group->states.push_back({pieces, static_cast<std::uint32_t>(*floats)});
  return entry;
}

Result<ShortConvolution> convolution(Decoder& decoder, const std::string& name, std::uint32_t channels,
                                     std::uint32_t taps) {
  ShortConvolution part{.channels = channels, .taps = taps};
  KVASIR_ASSIGN(const std::vector<float> weight,
                decoder.loader().numbers(name + ".weight", {taps, channels}));
  part.weight = in_blocks(weight, channels, taps);
  if (decoder.loader().has(name + ".bias")) {
    KVASIR_ASSIGN(const std::vector<float> bias, decoder.loader().numbers(name + ".bias", {channels}));
    part.bias = in_blocks(bias, channels, 1);
  }
  KVASIR_ASSIGN(part.state, add_state(decoder.network(), blocks_of(channels), taps - 1, simd::kChannelBlock));
  return part;
}

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
