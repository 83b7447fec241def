// Activations as blocks of signed bytes: what products read where the weights are codes.
//
// A block of 256 numbers shares a scale: the greatest magnitude / 127. A number is stored as
// number / scale, rounded to the nearest, ties to even; so no byte is -128. A block with a number that is not
// finite has the scale NaN and zeros: whatever it is multiplied with shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "kvasir/result.h"

namespace kvasir::simd {

// Numbers of an activation that share a scale.
inline constexpr std::size_t kByteBlock = 256;

// The greatest that ByteColumns::reaches can be.
inline constexpr int kMostReach = 32 * 127;

// `count` columns. A view.
struct ByteColumns {
  const std::int8_t* bytes = nullptr;    // column c begins at bytes + c * stride
  const float* scales = nullptr;         // [c * stride / 256 + k / 256]
  const std::int16_t* sums16 = nullptr;  // [c * stride / 16 + k / 16]: of those 16 bytes
  const std::int16_t* sums32 = nullptr;  // [c * stride / 32 + k / 32]
  // [c * stride / 256 + k / 256]: the greatest sum of the positive bytes, or of the magnitudes of the
  // negative ones, that any 32 bytes of the block have.
  const std::int16_t* reaches = nullptr;
  std::size_t count = 0;
  std::size_t width = 0;   // numbers of a column, a multiple of 32
  std::size_t stride = 0;  // a multiple of 256

  [[nodiscard]] ByteColumns from(std::size_t first, std::size_t some) const noexcept {
    return {bytes + first * stride,
            scales + first * stride / kByteBlock,
            sums16 + first * stride / 16,
            sums32 + first * stride / 32,
            reaches + first * stride / kByteBlock,
            some,
            width,
            stride};
  }
};

// Owns the bytes of a fixed number of columns. Move-only.
class ByteRows {
 public:
  ByteRows() = default;

  // Room for `rows` columns of up to `width` numbers. kOutOfMemory.
  [[nodiscard]] static Result<ByteRows> allocate(std::size_t rows, std::size_t width);

  [[nodiscard]] bool empty() const noexcept { return stride_ == 0; }

  // Packs the numbers of one column from number `first` on, which begins a block; what is missing to a whole
  // block counts as zeros. first + numbers.size() <= the width. Any thread; different blocks at once.
  void pack(std::size_t row, std::span<const float> numbers, std::size_t first = 0) noexcept;

  // The columns [first, first + count), of `width` numbers each.
  [[nodiscard]] ByteColumns columns(std::size_t first, std::size_t count, std::size_t width) const noexcept;

 private:
  base::Buffer bytes_;
  base::Buffer scales_;
  base::Buffer sums16_;
  base::Buffer sums32_;
  base::Buffer reaches_;
  std::size_t stride_ = 0;
};

}  // namespace kvasir::simd
