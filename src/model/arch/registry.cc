#include <algorithm>
#include <array>
#include <string>

#include "base/utf8.h"
#include "model/arch/arch.h"

namespace kvasir::model {
namespace {

constexpr std::size_t kShownBytes = 64;  // of a name that is not known

constexpr std::array kArchitectures = {
    Architecture{"falcon-h1", build_falcon_h1},
    Architecture{"granitehybrid", build_granite_hybrid, LayersHave::kWhatTheyCount},
    Architecture{"jamba", build_jamba, LayersHave::kWhatTheyCount},
    Architecture{"lfm2", build_lfm2, LayersHave::kWhatTheyCount},
    Architecture{"llama", build_llama},
    Architecture{"mamba", build_mamba, LayersHave::kWhatTheyCount},
    Architecture{"mamba2", build_mamba2, LayersHave::kWhatTheyCount},
    Architecture{"nemotron_h", build_nemotron_h, LayersHave::kWhatTheyCount},
    Architecture{"qwen2", build_qwen2},
    Architecture{"qwen3", build_qwen3},
    Architecture{"qwen3next", build_qwen3_next},
    Architecture{"rwkv6", build_rwkv6, LayersHave::kWhatTheyCount},
    Architecture{"rwkv7", build_rwkv7, LayersHave::kWhatTheyCount},
};

}  // namespace

std::span<const Architecture> architectures() noexcept {
  return kArchitectures;
}

Result<const Architecture*> find_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  if (found != kArchitectures.end()) return found;
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return fail(Outcome::kUnsupported, "models of architecture '" + base::printable(name, kShownBytes) +
                                         "' do not run here; known are " + known);
}

}  // namespace kvasir::model
