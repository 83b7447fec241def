// What the index and the checkpoints give up for others.
//
// The least recently used goes first, be it a block of the index or a checkpoint; a block is used when it is
// entered or found, a checkpoint when it is kept or restored. A checkpoint whose first cells a conversation
// still holds would free nothing: it goes when nothing else is left.

#include <algorithm>

#include "pages/page_store.h"

namespace kvasir::pages {

void PageStore::evict(PrefixIndex::BlockId block) noexcept {
  for (std::size_t group = 0; group < groups_.size(); ++group)
    release(group, index_.cells(block)[group].runs(), Holder::kSoft);
  index_.erase(block);
}

void PageStore::evict(CheckpointId id) noexcept {
  for (Table& table : tables_) {
    const auto found = std::ranges::find(table.checkpoints, id);
    if (found == table.checkpoints.end()) continue;
    table.checkpoints.erase(found);
    disown_checkpoint(id);
  }
  ++checkpoints_evicted_;
}

// Whether the first cell of a group, which conversations let go of first, or a state can go with it. What
// lies in a tier takes no room in the pool.
bool PageStore::yields(const Checkpoint& checkpoint) const noexcept {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const PageTable& cells = checkpoint.cells[group];
    if (cells.empty()) continue;
    const CellAt first = cells.cell_at(cells.start());
    if (!in_tier(first.page) && groups_[group].firm_holders(first.page, first.cell) == 0) return true;
  }
  return false;
}

std::optional<CheckpointId> PageStore::oldest_checkpoint(bool yielding) const noexcept {
  std::optional<CheckpointId> oldest;
  checkpoints_.visit([&](CheckpointId id, const Checkpoint& checkpoint) {
    if (oldest && checkpoints_.at(*oldest).used <= checkpoint.used) return;
    if (!yielding || yields(checkpoint)) oldest = id;
  });
  return oldest;
}

// False where there is nothing left to give up.
bool PageStore::evict_one() noexcept {
  const auto block = index_.oldest();
  auto checkpoint = oldest_checkpoint(true);
  if (!block && !checkpoint) checkpoint = oldest_checkpoint(false);
  if (!block && !checkpoint) return false;
  if (block && (!checkpoint || index_.used(*block) < checkpoints_.at(*checkpoint).used)) {
    evict(*block);
  } else {
    evict(*checkpoint);
  }
  return true;
}

void PageStore::forget() noexcept {
  while (const auto oldest = index_.oldest()) evict(*oldest);
}

}  // namespace kvasir::pages
