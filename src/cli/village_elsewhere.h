// The half of the demonstration that runs in another process: a saved character is loaded and asked.
#pragma once

#include <string>

#include "kvasir/executor.h"
#include "kvasir/model.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Loads the archive into a cache of pages of another size, asks, and answers one line: the digest of the last
// logits in hex, a blank, and what was said. Errors as Conversation::load().
[[nodiscard]] Result<std::string> recall(const Model& model, ExecutorOptions options, const std::string& file,
                                         const std::string& question);

}  // namespace kvasir::cli
