// What the generations of RWKV read alike: layers of a time mix, which keeps a state for each head, and a
// channel mix; both look at the token before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/try.h"
#include "kvasir/result.h"
#include "model/arch/decoder.h"
#include "model/arch/recurrent.h"
#include "model/layers.h"
#include "simd/scans.h"

namespace kvasir::model {

constexpr std::uint32_t kRwkvRankMax = 1U << 16;

struct Rwkv {
  Decoder decoder;
  std::uint32_t head_width = 0;

  [[nodiscard]] const Hyperparameters& sizes() const noexcept { return decoder.sizes(); }
  [[nodiscard]] Loader& loader() noexcept { return decoder.loader(); }

  Status begin();
  Result<Linear> square(const std::string& name) {
    return loader().linear(name, sizes().embedding, sizes().embedding);
  }
  Result<std::vector<float>> row(const std::string& name) {
    return loader().numbers(name, {sizes().embedding});
  }
  Result<LowRank> low_rank(const std::string& down, const std::string& up, std::uint32_t rank);
  Result<Norm> head_norm(const std::string& name);
  // What the token before read, and the state of every head.
  Result<StateEntry> add_before() { return add_state(decoder.network(), 1, 1, sizes().embedding); }
  Result<StateEntry> add_heads() {
    return add_state(decoder.network(), sizes().embedding / head_width, head_width,
                     simd::state_lanes(head_width));
  }
  Result<Part> channel_mix(std::uint32_t layer, bool gated);

  // What the time mixes of all generations have.
  template <class TimeMix>
  Status read_time_mix(const std::string& prefix, TimeMix& mixer) {
    mixer.head_width = head_width;
    KVASIR_ASSIGN(mixer.receptance, square(prefix + "receptance"));
    KVASIR_ASSIGN(mixer.key, square(prefix + "key"));
    KVASIR_ASSIGN(mixer.value, square(prefix + "value"));
    KVASIR_ASSIGN(mixer.output, square(prefix + "output"));
    KVASIR_ASSIGN(mixer.norm, head_norm(prefix + "ln"));
    KVASIR_ASSIGN(mixer.before, add_before());
    KVASIR_ASSIGN(mixer.state, add_heads());
    return {};
  }
};

// One row of a tensor of several.
std::vector<float> row_of(const std::vector<float>& rows, std::size_t index, std::size_t width);

}  // namespace kvasir::model
