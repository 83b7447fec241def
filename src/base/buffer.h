// Large aligned memory, taken at start and given back at the end.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "kvasir/result.h"

namespace kvasir::base {

// Owns bytes whose start is aligned to 64 (2 MiB and backed by huge pages, where the kernel allows,
// from 2 MiB on). Move-only. The bytes stay where they are when the Buffer moves.
class Buffer {
 public:
  // Zeros. `bytes` may be 0. kOutOfMemory names the bytes wanted.
  [[nodiscard]] static Result<Buffer> allocate(std::size_t bytes);

  // The same, of any content: for whoever writes all of it before anything is read.
  [[nodiscard]] static Result<Buffer> allocate_unset(std::size_t bytes);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer();

  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // The bytes as an array of T.
  template <class T>
  [[nodiscard]] std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  [[nodiscard]] std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  Buffer(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kvasir::base
