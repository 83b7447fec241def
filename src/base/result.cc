#include "kvasir/result.h"

namespace kvasir {

std::string_view outcome_name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kIdle:
      return "idle";
    case Outcome::kSuspended:
      return "suspended";
    case Outcome::kNoSpace:
      return "no space";
    case Outcome::kStalled:
      return "stalled";
    case Outcome::kBusy:
      return "busy";
    case Outcome::kNeedsPrompt:
      return "needs prompt";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kInvalidArgument:
      return "invalid argument";
    case Outcome::kWrongState:
      return "wrong state";
    case Outcome::kNotFound:
      return "not found";
    case Outcome::kUnsupported:
      return "unsupported";
    case Outcome::kOutOfMemory:
      return "out of memory";
    case Outcome::kComputeFailed:
      return "compute failed";
    case Outcome::kCorrupt:
      return "corrupt";
    case Outcome::kIo:
      return "I/O";
    case Outcome::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace kvasir
