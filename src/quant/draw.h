// Random weights drawn as blocks of a type, without ever being floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvasir/result.h"
#include "quant/block_type.h"

namespace kvasir::quant {

// What the numbers of drawn blocks are like: spread around `mean` with this standard deviation.
struct Spread {
  float mean = 0.0F;
  float deviation = 1.0F;
};

// Draws blocks that a packer could have made: no reserved bit patterns, scales finite. A block depends on the
// drawer and on its index alone, so any pieces, in any order, on any threads, give the same bytes. Immutable;
// any thread.
class BlockDrawer {
 public:
  // `key` tells one stream of blocks from another. kUnsupported for a type that does not unpack,
  // kInvalidArgument for a deviation that is not positive and finite, or a mean of a type that cannot have
  // one (all but plain floats).
  [[nodiscard]] static Result<BlockDrawer> create(BlockType type, Spread spread, std::uint64_t key);

  // Fills `blocks`, whole blocks from index `first_block` on; a torn block at the end is left alone.
  void draw(std::uint64_t first_block, std::span<std::byte> blocks) const noexcept;

 private:
  BlockDrawer(const BlockTypeInfo& info, Spread spread, std::uint64_t key) noexcept
      : info_(&info), spread_(spread), key_(key) {}

  const BlockTypeInfo* info_;
  Spread spread_;  // deviation in units of what the type's blocks have at unit scale
  std::uint64_t key_;
};

// A 64-bit number mixed from two, such as a seed and an index: every bit of both decides every bit of the
// result.
[[nodiscard]] std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace kvasir::quant
