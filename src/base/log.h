// Lines for whoever set_log() names. Any thread.
#pragma once

#include <string>

#include "kvasir/log.h"

namespace kvasir::base {

// Whether anybody takes lines of that level.
[[nodiscard]] bool logs(LogLevel level) noexcept;

// Hands the line on. For log(), which makes none that nobody takes.
void log_line(LogLevel level, const std::string& line);

// The line that `make` answers, where somebody takes it. One that cannot be made for want of memory is left
// out.
template <class Make>
void log(LogLevel level, const Make& make) noexcept {
  if (!logs(level)) return;
  try {
    log_line(level, make());
  } catch (...) {  // NOLINT(bugprone-empty-catch): what is logged has happened, heard of or not
  }
}

}  // namespace kvasir::base
