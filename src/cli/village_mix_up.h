// What no cache may ever do, done on purpose: the demonstration must notice.
#pragma once

#include <cstdint>

#include "kvasir/executor.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Hands two idle conversations the bytes of each other's first `cells` cells, and tells nobody. The one thing
// of the demonstration that reaches below the public API, through a seam made for tests. Errors as
// engine::Engine::mix_up_cells().
[[nodiscard]] Status mix_up(Executor& executor, const Conversation& a, const Conversation& b,
                            std::uint64_t cells);

}  // namespace kvasir::cli
