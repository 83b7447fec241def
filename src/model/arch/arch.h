// Architectures: one file each, that reads what the GGUF file says and fills the list of layers.
#pragma once

#include <span>
#include <string_view>

#include "kvasir/result.h"
#include "model/hyperparameters.h"
#include "model/loader.h"

namespace kvasir::model {

// Builds the network of one architecture.
using BuildNetwork = Result<Network> (*)(Loader& loader, const Hyperparameters& sizes);

struct Architecture {
  std::string_view name;  // general.architecture
  BuildNetwork build;
  LayersHave have = LayersHave::kBoth;
};

// All architectures that run, by name.
[[nodiscard]] std::span<const Architecture> architectures() noexcept;

// kUnsupported names the unknown one and lists the known.
[[nodiscard]] Result<const Architecture*> find_architecture(std::string_view name);

[[nodiscard]] Result<Network> build_bert(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_cohere2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_command_r(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_deepseek2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_falcon(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_falcon_h1(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_gemma(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_gemma2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_gemma3(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_gpt2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_gpt_oss(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_gptneox(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_granite(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_granite_hybrid(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_internlm2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_jamba(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_lfm2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_llama(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_mamba(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_mamba2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_nemotron_h(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_olmo2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_olmoe(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_phi2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_phi3(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_qwen2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_qwen2moe(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_qwen3(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_qwen3_next(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_qwen3moe(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_rwkv6(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_rwkv7(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_smollm3(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_stablelm(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_starcoder2(Loader& loader, const Hyperparameters& sizes);
[[nodiscard]] Result<Network> build_t5(Loader& loader, const Hyperparameters& sizes);

}  // namespace kvasir::model
