#include "base/checksum.h"

#include <xxhash.h>
#if defined(KVASIR_XXHASH_DISPATCH)
#include <xxh_x86dispatch.h>  // its functions stand for those of the same names, ten times as fast
#endif

namespace kvasir::base {

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace kvasir::base
