// Whole numbers as flags take them: neither clamped nor wrapped.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace kvasir::cli {

// Accepts digits alone, for a number within [least, most].
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least = 0, std::uint64_t most = UINT64_MAX);

}  // namespace kvasir::cli
