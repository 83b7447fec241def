#include <algorithm>
#include <array>
#include <string>

#include "base/utf8.h"
#include "model/arch/arch.h"

namespace kvasir::model {
namespace {

constexpr std::size_t kShownBytes = 64;  // of a name that is not known

constexpr std::array kArchitectures = {
    Architecture{"bert", build_bert},
    Architecture{"cohere2", build_cohere2},
    Architecture{"command-r", build_command_r},
    Architecture{"deepseek2", build_deepseek2},
    Architecture{"falcon", build_falcon},
    Architecture{"falcon-h1", build_falcon_h1},
    Architecture{"gemma", build_gemma},
    Architecture{"gemma2", build_gemma2},
    Architecture{"gemma3", build_gemma3},
    Architecture{"gpt-oss", build_gpt_oss},
    Architecture{"gpt2", build_gpt2},
    Architecture{"gptneox", build_gptneox},
    Architecture{"granite", build_granite},
    Architecture{"granitehybrid", build_granite_hybrid, LayersHave::kWhatTheyCount},
    Architecture{"granitemoe", build_granite},
    Architecture{"internlm2", build_internlm2},
    Architecture{"jamba", build_jamba, LayersHave::kWhatTheyCount},
    Architecture{"lfm2", build_lfm2, LayersHave::kWhatTheyCount},
    Architecture{"llama", build_llama},
    Architecture{"mamba", build_mamba, LayersHave::kWhatTheyCount},
    Architecture{"mamba2", build_mamba2, LayersHave::kWhatTheyCount},
    Architecture{"nemotron_h", build_nemotron_h, LayersHave::kWhatTheyCount},
    Architecture{"olmo2", build_olmo2},
    Architecture{"olmoe", build_olmoe},
    Architecture{"phi2", build_phi2},
    Architecture{"phi3", build_phi3},
    Architecture{"qwen2", build_qwen2},
    Architecture{"qwen2moe", build_qwen2moe},
    Architecture{"qwen3", build_qwen3},
    Architecture{"qwen3moe", build_qwen3moe},
    Architecture{"qwen3next", build_qwen3_next},
    Architecture{"rwkv6", build_rwkv6, LayersHave::kWhatTheyCount},
    Architecture{"rwkv7", build_rwkv7, LayersHave::kWhatTheyCount},
    Architecture{"smollm3", build_smollm3},
    Architecture{"stablelm", build_stablelm},
    Architecture{"starcoder2", build_starcoder2},
    Architecture{"t5", build_t5},
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
