// Where a verb's output file goes: a path, a pipe or a device, or "-" for standard output.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Starts replacing `path` as FileSystem::replace does; what is there already must be a readable plain file,
// else as FileSystem::open_read. "-" streams to standard output, and a pipe or a device (/dev/null) is
// streamed to as well: there nothing can be taken back. kInvalidArgument where that is a terminal; kIo.
[[nodiscard]] Result<std::unique_ptr<base::ReplacingFile>> open_output(base::FileSystem& files,
                                                                       const std::string& path);

}  // namespace kvasir::cli
