// What an archive holds, for people and programs.
#pragma once

#include <memory>

#include "base/file.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Reads and checks the whole archive, then prints what it holds, as text or as one JSON object. kCorrupt and
// kUnsupported say what is wrong with it.
[[nodiscard]] Status inspect_archive(std::unique_ptr<base::ReadFile> file, bool as_json);

}  // namespace kvasir::cli
