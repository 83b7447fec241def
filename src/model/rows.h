// Rows of numbers that a pass computes in.
#pragma once

#include <cstddef>
#include <span>

#include "base/buffer.h"
#include "kvasir/result.h"
#include "model/layers.h"
#include "simd/byte_columns.h"
#include "simd/products.h"

namespace kvasir::model {

// Rows of floats, each row's start a multiple of 64 bytes and padded to whole panels.
class FloatRows {
 public:
  FloatRows() = default;
  [[nodiscard]] static Result<FloatRows> allocate(std::size_t rows, std::size_t width);

  [[nodiscard]] std::span<float> row(std::size_t index) noexcept {
    return {data() + index * stride_, width_};
  }
  [[nodiscard]] std::span<const float> row(std::size_t index) const noexcept {
    return {bytes_.as<float>().data() + index * stride_, width_};
  }
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::size_t rows() const noexcept {
    return stride_ == 0 ? 0 : bytes_.size() / (stride_ * sizeof(float));
  }

  // The rows [first, first + count) as what a product reads, and all rows from `first` on as where one
  // writes.
  [[nodiscard]] simd::Activations columns(std::size_t first, std::size_t count) const noexcept {
    return {bytes_.as<float>().data() + first * stride_, count, width_, stride_};
  }
  [[nodiscard]] simd::ProductOutput output(std::size_t first = 0) noexcept {
    return {data() + first * stride_, stride_};
  }

 private:
  [[nodiscard]] float* data() noexcept { return bytes_.as<float>().data(); }
  base::Buffer bytes_;
  std::size_t width_ = 0;
  std::size_t stride_ = 0;
};

// What a product reads: floats, and the same as bytes where weights of this model are codes.
struct ProductInput {
  simd::Activations floats;
  const simd::ByteRows* bytes = nullptr;  // null or empty: never packed
  std::size_t first = 0;                  // column of the bytes that is the first of the floats

  // The columns [from, from + count) of these.
  [[nodiscard]] ProductInput some(std::size_t from, std::size_t count) const noexcept {
    return {{floats.column(from), count, floats.width, floats.stride}, bytes, first + from};
  }

  // The rows of panels [first_panel, last_panel) of weight times these, in the form that `weight` takes, plus
  // bias, which is empty or of all rows of `weight`.
  void multiply(const simd::Panels& weight, std::span<const float> bias, std::size_t first_panel,
                std::size_t last_panel, const simd::ProductOutput& output) const noexcept;
};

// Rows of floats that products read.
class InputRows {
 public:
  InputRows() = default;
  [[nodiscard]] static Result<InputRows> allocate(std::size_t rows, std::size_t width, bool as_bytes);

  // Writing a row is followed by pack(): its first `width` floats become what products read.
  [[nodiscard]] std::span<float> row(std::size_t index) noexcept { return floats_.row(index); }
  [[nodiscard]] std::span<const float> row(std::size_t index) const noexcept { return floats_.row(index); }
  void pack(std::size_t index, std::size_t width) noexcept;
  // As if those floats stood in the row from `first` on, which begins a block of bytes, for products that
  // take bytes; the row's floats stay as they are.
  void pack_block(std::size_t index, std::size_t first, std::span<const float> numbers) noexcept {
    if (!bytes_.empty()) bytes_.pack(index, numbers, first);
  }

  [[nodiscard]] std::size_t width() const noexcept { return floats_.width(); }
  [[nodiscard]] std::size_t rows() const noexcept { return floats_.rows(); }

  [[nodiscard]] ProductInput columns(std::size_t first, std::size_t count) const noexcept {
    return {floats_.columns(first, count), &bytes_, first};
  }
  // Where a product writes what is then turned into an input in place.
  [[nodiscard]] simd::ProductOutput output(std::size_t first = 0) noexcept { return floats_.output(first); }

 private:
  FloatRows floats_;
  simd::ByteRows bytes_;  // empty where no weights take them
};

// Makes room for so many rows of that width, beside what there is room for already: what rows hold is lost
// where they grow. kOutOfMemory, with nothing changed.
[[nodiscard]] Status grow(FloatRows& rows, std::size_t count, std::size_t width);
[[nodiscard]] Status grow(InputRows& rows, std::size_t count, std::size_t width, bool as_bytes);

}  // namespace kvasir::model
