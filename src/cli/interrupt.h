// Ctrl-C as a question that long work asks now and then.
#pragma once

namespace kvasir::cli {

// From now on SIGINT, SIGTERM and SIGHUP (unless the process was started with that one ignored) only set a
// flag, and system calls that wait are broken off; one that comes a good while after the first (0.3 s) ends
// the process, as it would have without this. Calling it again changes nothing. The main thread calls it.
void watch_interrupts();

// Whether such a signal has come since. Any thread.
[[nodiscard]] bool interrupted() noexcept;

}  // namespace kvasir::cli
