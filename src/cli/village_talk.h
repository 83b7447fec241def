// A talk of the user with one of the village, while others talk beside.
#pragma once

#include <cstddef>

#include "cli/village.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Line by line from standard input until that ends. Answers go to standard output; with each of them a few
// others are asked in the same passes. kCancelled where the user interrupts; errors of what it calls.
[[nodiscard]] Status talk_to(Village& village, std::size_t who);

}  // namespace kvasir::cli
