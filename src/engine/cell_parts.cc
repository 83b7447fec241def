// The bytes of cells by their parts: what each layer keeps of a cell, or the entries of a state. What several
// cells side by side have of one part comes together, cell by cell; then the next part.

#include <algorithm>

#include "base/try.h"
#include "engine/blocks_read.h"
#include "engine/engine.h"

namespace kvasir::engine {

std::uint32_t Engine::part_count(std::size_t group) const noexcept {
  const std::size_t entries = states_[group].entries().size();
  return static_cast<std::uint32_t>(entries > 0 ? entries : model_->network().groups[group].layers.size());
}

std::uint64_t Engine::part_bytes(std::size_t group, std::uint32_t part) const noexcept {
  const std::span<const kv::StateGeometry> entries = states_[group].entries();
  return entries.empty() ? arena_.cell_bytes(model_->network().groups[group].layers[part])
                         : entries[part].bytes();
}

std::uint64_t Engine::cell_bytes(std::size_t group) const noexcept {
  std::uint64_t bytes = 0;
  for (std::uint32_t part = 0; part < part_count(group); ++part) bytes += part_bytes(group, part);
  return bytes;
}

// Of cells in the pool.
void Engine::read_part(const CellPart& part, std::span<std::byte> out) const noexcept {
  if (states_[part.group].frames() > 0) {
    const std::span<const pages::FrameId> frames = store_->group(part.group).frames(part.at.page);
    return arena_.export_state(states_[part.group], frames, part.part, part.skipped / sizeof(float), out);
  }
  const kv::LayerGeometry& layer = model_->network().groups[part.group].layers[part.part];
  const bool last = part.part + 1 == part_count(part.group);
  const kv::FrameCell next = place(part.group, part.at, last ? part.part : part.part + 1);
  arena_.export_cells(layer, place(part.group, part.at, part.part), part.count, out, last ? nullptr : &next);
}

void Engine::write_part(const CellPart& part, std::span<const std::byte> in) noexcept {
  if (states_[part.group].frames() > 0) {
    const std::span<const pages::FrameId> frames = store_->group(part.group).frames(part.at.page);
    return arena_.import_state(states_[part.group], frames, part.part, part.skipped / sizeof(float), in);
  }
  const kv::LayerGeometry& layer = model_->network().groups[part.group].layers[part.part];
  arena_.import_cells(layer, place(part.group, part.at, part.part), part.count, in);
}

// Wherever they lie.
Status Engine::export_part(const CellPart& part, BlocksRead& read, std::span<std::byte> out) const {
  if (!pages::in_tier(part.at.page)) {
    read_part(part, out);
    return {};
  }
  const pages::TierRunId run = pages::tier_run(part.at.page);
  KVASIR_ASSIGN(const std::span<const std::byte> all, read.bytes(*tiers_, store_->tier_runs().block(run)));
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < part.part; ++i)
    before += part_bytes(part.group, i) * store_->tier_runs().cells(run);
  const std::uint64_t cell = part_bytes(part.group, part.part);
  std::ranges::copy(all.subspan(before + part.at.cell * cell + part.skipped, out.size()), out.begin());
  return {};
}

}  // namespace kvasir::engine
