// Token ids as text: decimal numbers with white space between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir::cli {

// kInvalidArgument names the word that is no id.
[[nodiscard]] Result<std::vector<Token>> parse_ids(std::string_view text);

// The ids of a file, "-" being standard input. As parse_ids; else as opening and reading a file.
[[nodiscard]] Result<std::vector<Token>> read_ids(const std::string& path);

}  // namespace kvasir::cli
