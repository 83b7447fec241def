// What a pool is made of for a model: how large its frames are, how many there are, and how a recurrent state
// lies in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/layers.h"
#include "pages/types.h"

namespace kvasir::engine {

// What a pool is asked for, as EngineOptions has it.
struct PoolWishes {
  std::uint64_t tokens = 0;       // to hold in every group that keeps cells of tokens
  std::uint64_t context = 0;      // longest conversation, in tokens
  std::uint32_t states = 0;       // recurrent states to hold beside them; 0: for those of full length
  std::uint32_t page_cells = 0;   // in a page
  std::uint32_t pass_tokens = 0;  // most in a pass
  kv::CacheTypes types;
};

struct PoolShape {
  pages::StoreSpec spec;
  std::size_t frame_bytes = 0;
  std::uint64_t page_bytes = 0;             // of one page in every group that keeps cells of tokens
  std::uint64_t state_bytes = 0;            // of one state in every recurrent group
  std::uint64_t bytes = 0;                  // of all frames
  std::vector<kv::StateLayout> states;      // [group]: empty but of recurrent ones
  std::vector<kv::LayerGeometry> geometry;  // of all layers
};

// Recurrent states that a conversation takes at once: that it has and that a step writes.
inline constexpr std::uint32_t kStatesAtWork = 2;

// Recurrent states for so many conversations at once, and some for checkpoints.
[[nodiscard]] std::uint64_t states_for(std::uint64_t conversations) noexcept;

// kInvalidArgument for a pool that is larger than can be managed, or a page or a layer that makes no sense;
// kUnsupported as kv::Arena::frame_bytes() and kv::state_frame_bytes(); kOutOfMemory.
[[nodiscard]] Result<PoolShape> pool_shape(const model::Network& network, const PoolWishes& wishes);

// Recurrent states for the conversations of full length that a pool holds, and for so many conversations as
// far as `bytes` are enough for the whole pool, whatever `wishes.states` says; 0 in a model that keeps none.
// Errors as pool_shape().
[[nodiscard]] Result<std::uint32_t> states_within(std::uint64_t bytes, const model::Network& network,
                                                  PoolWishes wishes, std::uint64_t conversations);

// Tokens of a pool of so many bytes, whatever `wishes.tokens` says; UINT64_MAX where they take none. Errors
// as pool_shape().
[[nodiscard]] Result<std::uint64_t> tokens_within(std::uint64_t bytes, const model::Network& network,
                                                  PoolWishes wishes);

}  // namespace kvasir::engine
