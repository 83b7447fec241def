#include <algorithm>
#include <array>
#include <string>

#include "model/arch/arch.h"

namespace kvasir::model {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", build_llama},
    Architecture{"qwen2", build_qwen2},
    Architecture{"qwen3", build_qwen3},
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
  return fail(Outcome::kUnsupported, "models of architecture '" + std::string(name.substr(0, 64)) +
                                         "' do not run here; known are " + known);
}

}  // namespace kvasir::model
