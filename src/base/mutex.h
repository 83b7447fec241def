// Locks that clang's thread-safety analysis understands: which lock guards what is declared, and `./dev lint`
// proves that nothing is touched without it. Other compilers see ordinary mutexes. The attributes:
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KVASIR_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define KVASIR_THREAD_ATTRIBUTE(x)
#endif

#define KVASIR_CAPABILITY(name) KVASIR_THREAD_ATTRIBUTE(capability(name))
#define KVASIR_SCOPED_CAPABILITY KVASIR_THREAD_ATTRIBUTE(scoped_lockable)
// A variable, and what a pointer points to.
#define KVASIR_GUARDED_BY(mutex) KVASIR_THREAD_ATTRIBUTE(guarded_by(mutex))
#define KVASIR_PT_GUARDED_BY(mutex) KVASIR_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
// A function that is called with locks held, or without.
#define KVASIR_REQUIRES(...) KVASIR_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define KVASIR_EXCLUDES(...) KVASIR_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// A function that takes a lock, or gives it back.
#define KVASIR_ACQUIRE(...) KVASIR_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define KVASIR_RELEASE(...) KVASIR_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define KVASIR_ASSERT_HELD KVASIR_THREAD_ATTRIBUTE(assert_capability(this))
// A function that touches what is guarded where another rule allows it; its comment says which.
#define KVASIR_UNCHECKED KVASIR_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace kvasir::base {

class KVASIR_CAPABILITY("mutex") Mutex {
 public:
  void lock() KVASIR_ACQUIRE() { mutex_.lock(); }
  void unlock() KVASIR_RELEASE() { mutex_.unlock(); }
  // Tells the analysis, which does not look from a function into a lambda that it calls, what holds there.
  void assert_held() const noexcept KVASIR_ASSERT_HELD {}

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds a mutex for as long as it lives.
class KVASIR_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) KVASIR_ACQUIRE(mutex) : mutex_(&mutex) { mutex.lock(); }
  ~Lock() KVASIR_RELEASE() { mutex_->unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex* mutex_;
};

// Lets go of a mutex for as long as it lives.
class KVASIR_SCOPED_CAPABILITY Unlock {
 public:
  explicit Unlock(Mutex& mutex) KVASIR_RELEASE(mutex) : mutex_(&mutex) { mutex.unlock(); }
  ~Unlock() KVASIR_RELEASE() { mutex_->lock(); }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  Mutex* mutex_;
};

// What threads wait for, with a mutex that is released meanwhile and held again afterwards. A wait may end
// for no reason: its caller looks, and waits again.
class Condition {
 public:
  void wait(Mutex& mutex) KVASIR_REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  // False where the time is up.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point until) KVASIR_REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(held, until) == std::cv_status::no_timeout;
    held.release();
    return in_time;
  }
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds most) KVASIR_REQUIRES(mutex) {
    return wait_until(mutex, std::chrono::steady_clock::now() + most);
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace kvasir::base
