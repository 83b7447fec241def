// How many threads compute where no flag says.
#pragma once

#include "base/cpu.h"

namespace kvasir::cli {

// The processors that this process may use, looked up once: every verb asks before its flags are read.
inline int default_threads() noexcept {
  static const int threads = base::usable_processors();
  return threads;
}

}  // namespace kvasir::cli
