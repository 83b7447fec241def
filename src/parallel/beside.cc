#include "parallel/beside.h"

#include <system_error>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::parallel {

Beside::~Beside() {
  {
    const base::Lock held(mutex_);
    stops_ = true;
  }
  change_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status Beside::begin(std::function<Status()> work) {
  return base::within_memory([&]() -> Status {
    KVASIR_TRY(wait());
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        const base::Lock held(mutex_);
        return status_ = work();
      }
    }
    {
      const base::Lock held(mutex_);
      work_ = std::move(work);
      busy_ = true;
    }
    change_.notify_all();
    return {};
  });
}

Status Beside::wait() {
  const base::Lock held(mutex_);
  while (busy_) change_.wait(mutex_);
  return status_;
}

void Beside::run() {
  const base::Lock held(mutex_);
  while (true) {
    while (!work_ && !stops_) change_.wait(mutex_);
    if (!work_) return;
    const std::function<Status()> work = std::exchange(work_, nullptr);
    Status status;
    {
      const base::Unlock meanwhile(mutex_);
      status = base::within_memory([&] { return work(); });
    }
    status_ = std::move(status);
    busy_ = false;
    change_.notify_all();
  }
}

}  // namespace kvasir::parallel
