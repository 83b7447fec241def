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

// Finds the keys that are read a tile later: they are asked for while values are read, as values are while
// keys are, so that memory is never left alone.
class FarKeys {
 public:
  FarKeys(const AttentionShape& shape, std::span<const CellRun> runs)
      : runs_(runs),
        numbers_offset_(shape.keys_offset),
        scales_offset_(shape.key_scales_offset),
        layout_(key_layout(shape.key_element, shape.key_dims)) {}

  // Those of the group of the cell of this ordinal, or of the last cell. Ordinals ascend.
  StoredCells Of(std::size_t ordinal) {
    while (run_ + 1 < runs_.size() && runs_[run_].ordinal + runs_[run_].count <= ordinal) ++run_;
    const CellRun& run = runs_[run_];
    const std::size_t skipped =
        std::min<std::size_t>(ordinal - std::min(ordinal, run.ordinal), run.count - 1);
    const std::size_t group = (run.cell + skipped) / kCellLanes * kCellLanes;
    return {run.keys + numbers_offset_ + group * layout_.number_bytes(),
            run.keys + scales_offset_ + group * layout_.scale_bytes()};
  }

  // Before the first tile nothing was read that its keys could be asked for beside.
  void AskForTile(std::size_t begin, std::size_t end) {
    for (std::size_t ordinal = begin; ordinal < end; ordinal += kCellLanes) {
      const StoredCells keys = Of(ordinal);
      for (std::size_t lane = 0; lane < kCellLanes; ++lane) AskFor(keys, lane);
    }
  }

  // Beside lane `lane` of the cells whose values are read: as much of those keys. Inline, since compilers
  // leave out calls of a function that does nothing but ask.
  HWY_INLINE void AskFor(const StoredCells& keys, std::size_t lane) const {
    AskForShare(keys.numbers, lane, layout_.number_bytes());
    AskForShare(keys.scales, lane, layout_.scale_bytes());
  }

 private:
  // The lines that begin within share `index` of an array of shares of so many bytes.
  static HWY_INLINE void AskForShare(const std::byte* from, std::size_t index, std::size_t bytes) {
    const std::size_t first = (index * bytes + kAskedBytes - 1) / kAskedBytes * kAskedBytes;
    for (std::size_t at = first; at < (index + 1) * bytes; at += kAskedBytes)
      HWY_NAMESPACE::AskFor(from + at);
  }

  std::span<const CellRun> runs_;
  std::size_t run_ = 0;
  std::size_t numbers_offset_;
  std::size_t scales_offset_;
  CellLayout layout_;
};

}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KVASIR_SIMD_FAR_CELLS_INL_H_
