// Large aligned memory, taken at start and given back at the end.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "kvasir/result.h"

namespace kvasir::base {

// Owns bytes whose start is aligned to 64 (2 MiB and backed by huge pages, where the kernel allows,
// from 2 MiB on). Move-only. The bytes stay where they are when the Buffer moves.
class Buffer {
 public:
  // Zeros, all of them in memory when it returns. `bytes` may be 0. kOutOfMemory names the bytes wanted.
  [[nodiscard]] static Result<Buffer> allocate(std::size_t bytes);

  // Zeros as well, each page of which the system gives when something is first written there: for what may
  // never be used whole.
  [[nodiscard]] static Result<Buffer> allocate_on_touch(std::size_t bytes);

  // The same, of any content: for whoever writes all of it before anything is read.
  [[nodiscard]] static Result<Buffer> allocate_unset(std::size_t bytes);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_.swap(other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() = default;

  // Takes the pages of the bytes [first, last) from the system: still zeros, of memory that was allocated on
  // touch and not written yet. Any thread; different bytes at once.
  void touch(std::size_t first, std::size_t last) noexcept;

  [[nodiscard]] std::byte* data() noexcept { return memory_.get(); }
  [[nodiscard]] const std::byte* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // The bytes as an array of T.
  template <class T>
  [[nodiscard]] std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data()), size_ / sizeof(T)};
  }
  template <class T>
  [[nodiscard]] std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data()), size_ / sizeof(T)};
  }

 private:
  friend class Slab;
  [[nodiscard]] static Result<Buffer> of(std::size_t bytes, bool zeros);
  Buffer(std::shared_ptr<std::byte> memory, std::size_t size) : memory_(std::move(memory)), size_(size) {}
  std::shared_ptr<std::byte> memory_;  // shared by the parts of a Slab
  std::size_t size_ = 0;
};

// Hands out parts of large memory, so that many buffers of odd sizes waste no pages between them. The memory
// is given back with the last part. One thread uses it.
class Slab {
 public:
  // Of any content, its start aligned to 64. `bytes` may be 0. kOutOfMemory names the bytes wanted.
  [[nodiscard]] Result<Buffer> take(std::size_t bytes);

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;  // of memory_
  std::size_t used_ = 0;
};

}  // namespace kvasir::base
