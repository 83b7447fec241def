// Memory that is not there, as an error.
#pragma once

#include <new>

#include "kvasir/result.h"

namespace kvasir::base {

// Runs `work`, which answers a Result; kOutOfMemory where it throws std::bad_alloc. What `work` had changed
// by then stays changed. The sentence is short enough to need no memory itself.
template <class Work>
auto within_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

}  // namespace kvasir::base
