#include "base/log.h"

#include <atomic>
#include <utility>

#include "base/mutex.h"

namespace kvasir {
namespace {

constexpr int kNobody = static_cast<int>(LogLevel::kError) + 1;

// The least level that somebody takes.
std::atomic<int> least_taken{kNobody};

struct Log {
  base::Mutex mutex;
  LogSink sink KVASIR_GUARDED_BY(mutex);
};

// Never destroyed: threads that outlive main() may still have something to say.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

void set_log(LogLevel least, LogSink sink) {
  Log& all = the_log();
  const base::Lock held(all.mutex);
  least_taken.store(sink ? static_cast<int>(least) : kNobody, std::memory_order_relaxed);
  all.sink.swap(sink);  // that of before ends when the lock is let go
}

bool base::logs(LogLevel level) noexcept {
  return static_cast<int>(level) >= least_taken.load(std::memory_order_relaxed);
}

void base::log_line(LogLevel level, const std::string& line) {
  Log& all = the_log();
  const Lock held(all.mutex);
  if (all.sink && logs(level)) all.sink(level, line);
}

}  // namespace kvasir
