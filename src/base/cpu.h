// What the machine gives this process: processors and memory.
#pragma once

#include <cstdint>

namespace kvasir::base {

// Processors this process may use at once: those of its affinity mask, limited by the quota of its control
// group (rounded up). At least 1. Never fails: what cannot be read does not limit.
[[nodiscard]] int usable_processors() noexcept;

// Bytes of memory that could be taken without swapping, limited by the control group. 0 where it cannot be
// told.
[[nodiscard]] std::uint64_t available_memory() noexcept;

}  // namespace kvasir::base
