// What the library does and nobody asked about, told line by line: to a game's own log, say. A value header.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace kvasir {

enum class LogLevel : std::uint8_t {
  kDebug = 0,  // each step, and each run of cells that goes to a tier or comes back
  kInfo = 1,   // what was loaded, made, saved
  kWarn = 2,   // what failed behind the scenes: a tier's file, somebody's return from it
  kError = 3,  // nothing so far: what is called answers its errors itself
};

// Called with one line at a time, without its end. It must not call the library: the line may come from
// inside a call, with that call's locks held. What it throws is swallowed.
using LogSink = std::function<void(LogLevel, std::string_view)>;

// From now on lines of `least` and above go to `sink`, and to no other; an empty one ends it, as it begins.
// For all models and executors of the process. Any thread; when it returns, the sink of before is not called
// any more. Lines that nobody takes are never put together.
void set_log(LogLevel least, LogSink sink);

}  // namespace kvasir
