#include "model/arch/recurrent.h"

#include <algorithm>

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

}  // namespace

std::uint32_t blocks_of(std::uint32_t channels) noexcept {
  return base::div_up(channels, static_cast<std::uint32_t>(simd::kChannelBlock));
}

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

}  // namespace kvasir::model
