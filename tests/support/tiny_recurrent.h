// Small runnable models that keep recurrent states, with weights drawn from a seed.
#pragma once

#include <cstdint>

#include "support/tiny_model.h"

namespace kvasir::test {

// Mamba-2 of two layers.
[[nodiscard]] GgufDraft tiny_mamba2(std::uint64_t seed = 1);

// The same with attention in its second layer and a feed-forward part in its third (Nemotron-H).
[[nodiscard]] GgufDraft tiny_hybrid(std::uint64_t seed = 1);

}  // namespace kvasir::test
