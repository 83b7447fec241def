// Which experts a token goes to, and in which order their parts are summed.
#pragma once

#include <cstdint>
#include <span>

#include "model/workspace.h"

namespace kvasir::model {

// Chooses the `chosen.size()` experts of highest score, ties and NaN to the lower index (a NaN counts as the
// lowest score), into `chosen` in ascending index. scores.size() >= chosen.size(). Any thread.
void choose_experts(std::span<const float> scores, std::span<std::uint32_t> chosen) noexcept;

// For the first `rows` rows of scratch.router, whose scores become probabilities in place: chooses for each
// as `routing` says, weighs what is chosen, and sorts the assignments by expert. Sources: Shazeer et al.,
// Sparsely-Gated Mixture-of-Experts, 2017; Jiang et al., Mixtral of Experts, 2024; DeepSeek-AI, DeepSeek-V3
// Technical Report, 2024 (sigmoid, bias of the choice, groups).
void route(ExpertScratch& scratch, std::size_t rows, std::size_t experts, const Routing& routing) noexcept;

}  // namespace kvasir::model
