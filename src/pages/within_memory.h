// Memory that is not there, as an error.
#pragma once

#include <new>

#include "kvasir/result.h"

namespace kvasir::pages {

// Runs `work`, which answers a Result. The message is short enough to need no memory itself.
template <class Work>
auto within_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

}  // namespace kvasir::pages
