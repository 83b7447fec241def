// What attention asks for ahead of its use. Included once for each target.

// clang-format off
#if defined(KVASIR_SIMD_FAR_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_SIMD_FAR_CELLS_INL_H_
#undef KVASIR_SIMD_FAR_CELLS_INL_H_
#else
#define KVASIR_SIMD_FAR_CELLS_INL_H_
#endif
// clang-format on

#include <algorithm>
#include <cstddef>
#include <span>

#include "hwy/highway.h"
#include "simd/attention.h"
#include "simd/cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {

// Finds what is asked for while cells are scored: their values, which come next, and keys that follow them.
class FarCells {
 public:
  FarCells(const AttentionShape& shape, std::span<const CellRun> runs)
      : runs_(runs),
        keys_offset_(shape.keys_offset),
        values_offset_(shape.values_offset),
        key_bytes_(key_layout(shape.key_element, shape.key_dims).number_bytes()),
        value_bytes_(value_layout(shape.value_element, shape.value_dims).number_bytes()) {}

  // While the cells of `run` from `cell` on are scored, the first of which is `ordinal`. Ordinals ascend.
  Fetching Beside(const CellRun& run, std::size_t cell, std::size_t ordinal) {
    Fetching fetching = {run.keys, run.values + values_offset_ + cell * value_bytes_};
    while (run_ < runs_.size() && runs_[run_].ordinal + runs_[run_].count <= ordinal + kCellsAhead) ++run_;
    if (run_ == runs_.size()) return fetching;
    const CellRun& far = runs_[run_];
    const std::size_t skipped = ordinal + kCellsAhead - std::min(ordinal + kCellsAhead, far.ordinal);
    const std::size_t group = (far.cell + skipped) / kCellLanes * kCellLanes;
    fetching.keys = far.keys + keys_offset_ + group * key_bytes_;
    return fetching;
  }

 private:
  static constexpr std::size_t kCellsAhead = 64;

  std::span<const CellRun> runs_;
  std::size_t run_ = 0;
  std::size_t keys_offset_;
  std::size_t values_offset_;
  std::size_t key_bytes_;  // of a cell
  std::size_t value_bytes_;
};

}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KVASIR_SIMD_FAR_CELLS_INL_H_
