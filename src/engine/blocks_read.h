// Blocks of tiers that somebody reads piece by piece: each of them is read once while its pieces are wanted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/try.h"
#include "kvasir/result.h"
#include "tiers/tiers.h"

namespace kvasir::engine {

// Not thread-safe.
class BlocksRead {
 public:
  // The bytes of a block, valid until it is forgotten. Errors as Tiers::read(). Throws std::bad_alloc.
  [[nodiscard]] Result<std::span<const std::byte>> bytes(const tiers::Tiers& tiers, tiers::Block block) {
    auto known = std::ranges::find(blocks_, block, &Known::block);
    if (known == blocks_.end()) {
      KVASIR_ASSIGN(tiers::BytesOfBlock read, tiers.read(block));
      blocks_.push_back({block, std::move(read), false});
      known = blocks_.end() - 1;
    }
    known->used = true;
    return known->bytes.all();
  }

  // Forgets those that nobody has asked for since the last call.
  void forget_unused() noexcept {
    std::erase_if(blocks_, [](const Known& known) { return !known.used; });
    for (Known& known : blocks_) known.used = false;
  }

 private:
  struct Known {
    tiers::Block block{};
    tiers::BytesOfBlock bytes;
    bool used = false;
  };
  std::vector<Known> blocks_;
};

}  // namespace kvasir::engine
