#include "support/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace kvasir::test {
namespace {

std::atomic<std::int64_t> alive = 0;
std::atomic<std::int64_t> most = 0;

struct ThreadFault {
  bool armed = false;
  bool fired = false;
  bool once = false;
  std::uint64_t left = 0;
};
thread_local ThreadFault thread_fault;

struct ThreadCount {
  bool counting = false;
  std::uint64_t count = 0;
  std::uint64_t largest = 0;
};
thread_local ThreadCount thread_count;

bool refused() noexcept {
  if (!thread_fault.armed || (thread_fault.once && thread_fault.fired)) return false;
  if (thread_fault.left > 0) {
    --thread_fault.left;
    return false;
  }
  return thread_fault.fired = true;
}

void count(void* memory) noexcept {
  const std::int64_t now = alive += static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::int64_t seen = most;
  while (now > seen && !most.compare_exchange_weak(seen, now)) {
  }
}

}  // namespace

AllocationMeter::AllocationMeter() noexcept : start_(alive) {
  most = start_;
}
std::int64_t AllocationMeter::peak() const noexcept {
  return most - start_;
}
std::int64_t AllocationMeter::now() const noexcept {
  return alive - start_;
}

AllocationCount::AllocationCount() noexcept {
  thread_count = {.counting = true};
}
AllocationCount::~AllocationCount() {
  thread_count.counting = false;
}
std::uint64_t AllocationCount::count() const noexcept {
  return thread_count.count;
}
std::uint64_t AllocationCount::largest() const noexcept {
  return thread_count.largest;
}

AllocationFault::AllocationFault(std::uint64_t n, Lasting lasting) noexcept {
  thread_fault = {.armed = true, .once = lasting == Lasting::kOnce, .left = n};
}
AllocationFault::~AllocationFault() {
  thread_fault.armed = false;
}
bool AllocationFault::fired() const noexcept {
  return thread_fault.fired;
}

namespace {

void* allocate(std::size_t bytes) {
  void* memory = refused() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  count(memory);
  if (thread_count.counting) {
    ++thread_count.count;
    thread_count.largest = std::max<std::uint64_t>(thread_count.largest, bytes);
  }
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  alive -= static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace
}  // namespace kvasir::test

void* operator new(std::size_t bytes) {
  return kvasir::test::allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return kvasir::test::allocate(bytes);
}
void operator delete(void* memory) noexcept {
  kvasir::test::release(memory);
}
void operator delete[](void* memory) noexcept {
  kvasir::test::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  kvasir::test::release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  kvasir::test::release(memory);
}
