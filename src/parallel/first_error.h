// The first error of several threads that work side by side.
#pragma once

#include <optional>
#include <utility>

#include "base/mutex.h"
#include "kvasir/result.h"

namespace kvasir::parallel {

class FirstError {
 public:
  // Any thread.
  void keep(Error error) {
    const base::Lock lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  // Once all are done.
  [[nodiscard]] Status status() && {
    const base::Lock lock(mutex_);
    if (error_) return fail(*std::move(error_));
    return {};
  }

 private:
  base::Mutex mutex_;
  std::optional<Error> error_ KVASIR_GUARDED_BY(mutex_);
};

}  // namespace kvasir::parallel
