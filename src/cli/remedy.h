// What the program says of an error: its sentence, and the flag that would help.
#pragma once

#include <string>

#include "kvasir/result.h"

namespace kvasir::cli {

// The error's sentence; where there is no room and a larger --ctx or --pool would make some, that too.
[[nodiscard]] std::string sentence_of(const Error& error);

}  // namespace kvasir::cli
