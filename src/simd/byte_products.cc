#include "simd/byte_products.h"

#include <array>

namespace kvasir::simd {

std::span<const BytePath> byte_paths() noexcept {
#if defined(__x86_64__)
  static const std::array paths = {kAvx512Bytes, kAvx2Bytes, kPortableBytes};
#elif defined(__aarch64__)
  static const std::array paths = {kNeonBytes, kPortableBytes};
#else
  static const std::array paths = {kPortableBytes};
#endif
  return paths;
}

const BytePath& best_byte_path() noexcept {
  static const BytePath& best = []() -> const BytePath& {
    for (const BytePath& path : byte_paths()) {
      if (path.runs_here()) return path;
    }
    return byte_paths().back();
  }();
  return best;
}

}  // namespace kvasir::simd
