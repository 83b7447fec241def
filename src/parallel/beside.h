// Work done on a thread of its own beside its giver's, which mostly waits for something else than the
// processor, as the work does or the giver.
#pragma once

#include <functional>
#include <thread>

#include "base/mutex.h"
#include "kvasir/result.h"

namespace kvasir::parallel {

// One piece of work at a time. The thread begins with the first one; where the system starts no more threads,
// each is done by begin(). One thread gives and waits.
class Beside {
 public:
  Beside() = default;
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  // Waits for the work at hand.
  ~Beside();

  // Waits for the work before, and begins this: once an error was met, it is the answer and nothing is begun.
  // What the work uses outlives it. kOutOfMemory, and the errors of the work before.
  [[nodiscard]] Status begin(std::function<Status()> work);

  // How the work before ended; the first error stays. Nothing waits where there was none.
  [[nodiscard]] Status wait();

 private:
  void run();

  std::thread thread_;
  base::Mutex mutex_;
  base::Condition change_;
  std::function<Status()> work_ KVASIR_GUARDED_BY(mutex_);  // until the thread takes it
  bool busy_ KVASIR_GUARDED_BY(mutex_) = false;             // until the thread has done it
  Status status_ KVASIR_GUARDED_BY(mutex_);
  bool stops_ KVASIR_GUARDED_BY(mutex_) = false;
};

}  // namespace kvasir::parallel
