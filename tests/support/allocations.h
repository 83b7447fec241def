// What a piece of code takes from operator new, and what it does when there is no more.
//
// A program that links kvasir_test_allocations has operator new and delete replaced.
#pragma once

#include <cstdint>

namespace kvasir::test {

// Counts the bytes that are alive in the whole process beyond those at its start. One at a time.
class AllocationMeter {
 public:
  AllocationMeter() noexcept;
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;
  ~AllocationMeter() = default;

  // The most there were at once, and those there are now.
  [[nodiscard]] std::int64_t peak() const noexcept;
  [[nodiscard]] std::int64_t now() const noexcept;

 private:
  std::int64_t start_;
};

// Counts what this thread takes from operator new while it lives. One at a time for each thread.
class AllocationCount {
 public:
  AllocationCount() noexcept;
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  ~AllocationCount();

  [[nodiscard]] std::uint64_t count() const noexcept;
  [[nodiscard]] std::uint64_t largest() const noexcept;  // bytes of one
};

// While it lives, the n-th operator new of this thread (from 0) throws std::bad_alloc: and each one after it,
// or that one alone.
class AllocationFault {
 public:
  enum class Lasting : std::uint8_t { kOnce, kFromThenOn };

  explicit AllocationFault(std::uint64_t n, Lasting lasting = Lasting::kFromThenOn) noexcept;
  AllocationFault(const AllocationFault&) = delete;
  AllocationFault& operator=(const AllocationFault&) = delete;
  ~AllocationFault();

  // Whether one was refused.
  [[nodiscard]] bool fired() const noexcept;
};

}  // namespace kvasir::test
