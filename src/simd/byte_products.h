// Inside the room: products of panels whose numbers are codes with activations as signed bytes.
//
// The order of every sum is fixed. For each sub-block of an activation's block, in ascending order:
//
//   whole = sum over k of (code - zero) x byte                exact, in 32-bit integers
//   part  = float(whole) x scale                              for the first sub-block of a block
//   part  = fma(float(whole), scale, part)                    for those behind it
//   part  = fma(offset, float(sum of bytes), part)            where sub-blocks have offsets of their own
//
// and after the last sub-block of a block (of a row's last block there may be fewer):
//
//   part  = part x scale of 256                               where scales are products of two
//   taken = sum over sub-blocks of sub-offset x sum of bytes  exact, where offsets are as well
//   part  = fma(-float(taken), offset of 256, part)           there
//   sum   = fma(part, scale of the activation's block, sum)
//
// `scale` and `offset` are floats, exact; where scales are products of two, the sub-block's factor. Rows are
// lanes; columns, panels and threads only repeat. Integers have no order of sums. Where a block's products of
// sums and sub-scales are integers that add up to less than 2^24, nor have floats, and a path may add
// integers: of kinds where one does (paired_scale) a product that is -0 is 0. So each path below gives the
// same bits.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "simd/byte_columns.h"
#include "simd/panels.h"
#include "simd/products.h"

namespace kvasir::simd {

// Computes the rows of panels [first, last) for every column. x.width == weights.columns(), and
// weights.takes_bytes().
using MultiplyBytes = void (*)(const Panels& weights, std::size_t first, std::size_t last,
                               const ByteColumns& x, const ProductOutput& out);

// One implementation, for the instructions that it is named after.
struct BytePath {
  std::string_view name;
  bool (*runs_here)() noexcept;  // whether this processor has them
  MultiplyBytes multiply;
};

// All that this build has, the fastest first; the last one runs everywhere.
[[nodiscard]] std::span<const BytePath> byte_paths() noexcept;

// The first that runs here.
[[nodiscard]] const BytePath& best_byte_path() noexcept;

extern const BytePath kPortableBytes;
#if defined(__x86_64__)
extern const BytePath kAvx2Bytes;
extern const BytePath kAvx512Bytes;
#elif defined(__aarch64__)
extern const BytePath kNeonBytes;
#endif

}  // namespace kvasir::simd
