#include "engine/pool_shape.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kSpareStates = 16;

bool recurrent(const model::CacheGroup& group) {
  return group.kind == pages::GroupKind::kRecurrent;
}

std::uint64_t of_full_length(const PoolWishes& wishes) {
  return wishes.tokens / std::max<std::uint64_t>(1, wishes.context);
}

std::unexpected<Error> too_large(const PoolWishes& wishes) {
  return fail(Outcome::kInvalidArgument,
              "a pool of " + std::to_string(wishes.tokens) + " tokens is larger than can be managed",
              {.wanted = wishes.tokens, .setting = "--pool"});
}

// One frame size serves every group: cells of a page in any layer, and pieces of any state.
Result<std::size_t> frame_bytes_for(const model::Network& network, const PoolWishes& wishes,
                                    std::span<const kv::LayerGeometry> geometry) {
  KVASIR_ASSIGN(std::size_t bytes, kv::Arena::frame_bytes(geometry, wishes.types, wishes.page_cells));
  for (const model::CacheGroup& group : network.groups) {
    if (!recurrent(group)) continue;
    KVASIR_ASSIGN(const std::size_t least, kv::state_frame_bytes(group.states, geometry.empty()));
    bytes = std::max(bytes, least);
  }
  return bytes;
}

// What only reads texts keeps nothing of them: the least that a store can be.
PoolShape shape_for_texts(const PoolWishes& wishes) {
  PoolShape shape;
  shape.frame_bytes = 1;
  shape.spec = {.page_cells = wishes.page_cells,
                .frames = 1,
                .groups = {{.layers = 1}},
                .pass_tokens = wishes.pass_tokens};
  shape.states.emplace_back();
  return shape;
}

}  // namespace

std::uint64_t states_for(std::uint64_t conversations) noexcept {
  return kSpareStates + kStatesAtWork * conversations;
}

Result<PoolShape> pool_shape(const model::Network& network, const PoolWishes& wishes) {
  return base::within_memory([&]() -> Result<PoolShape> {
    PoolShape shape;
    for (const model::CacheGroup& group : network.groups)
      shape.geometry.insert(shape.geometry.end(), group.layers.begin(), group.layers.end());
    if (!network.decodes()) return shape_for_texts(wishes);
    KVASIR_ASSIGN(shape.frame_bytes, frame_bytes_for(network, wishes, shape.geometry));
    const auto pages = base::div_up<std::uint64_t>(wishes.tokens, wishes.page_cells);
    const std::uint64_t states = wishes.states > 0 ? wishes.states : states_for(of_full_length(wishes));
    std::uint64_t frames = 0;
    for (const model::CacheGroup& group : network.groups) {
      kv::StateLayout& layout = shape.states.emplace_back();
      auto layers = static_cast<std::uint32_t>(group.layers.size());
      if (recurrent(group)) {
        layout = kv::StateLayout(group.states, shape.frame_bytes);
        layers = layout.frames();
        shape.state_bytes += std::uint64_t{shape.frame_bytes} * layers;
      } else {
        shape.page_bytes += shape.frame_bytes * group.layers.size();
      }
      shape.spec.groups.push_back({layers, group.kind, group.width});
      const auto all = base::checked_mul<std::uint64_t>(recurrent(group) ? states : pages, layers);
      const auto sum = all ? base::checked_add(frames, *all) : std::nullopt;
      if (!sum || *sum > UINT32_MAX) return too_large(wishes);
      frames = *sum;
    }
    shape.spec.page_cells = wishes.page_cells;
    shape.spec.frames = static_cast<std::uint32_t>(frames);
    shape.spec.pass_tokens = wishes.pass_tokens;
    shape.spec.positions_can_move = network.positions_can_move;
    const auto bytes = base::checked_mul<std::uint64_t>(shape.frame_bytes, frames);
    if (!bytes) return too_large(wishes);
    shape.bytes = *bytes;
    return shape;
  });
}

Result<std::uint32_t> states_within(std::uint64_t bytes, const model::Network& network, PoolWishes wishes,
                                    std::uint64_t conversations) {
  const std::uint64_t least = states_for(of_full_length(wishes));
  const std::uint64_t wanted = std::max(least, states_for(conversations));
  wishes.states = 0;
  KVASIR_ASSIGN(const PoolShape shape, pool_shape(network, wishes));
  if (shape.state_bytes == 0) return 0;
  const std::uint64_t more = bytes > shape.bytes ? (bytes - shape.bytes) / shape.state_bytes : 0;
  return static_cast<std::uint32_t>(least + std::min(more, wanted - least));
}

Result<std::uint64_t> tokens_within(std::uint64_t bytes, const model::Network& network, PoolWishes wishes) {
  if (wishes.states == 0) wishes.states = static_cast<std::uint32_t>(states_for(1));
  wishes.tokens = 0;
  KVASIR_ASSIGN(const PoolShape shape, pool_shape(network, wishes));
  const std::uint64_t states = shape.bytes;
  if (bytes < states) return 0;
  if (shape.page_bytes == 0) return UINT64_MAX;
  return (bytes - states) / shape.page_bytes * wishes.page_cells;
}

}  // namespace kvasir::engine
