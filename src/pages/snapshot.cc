// Takes a snapshot: numbers the cells that conversations and their checkpoints hold, each once, and holds
// them.

#include "pages/snapshot.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {

// The numbers of the cells of one group that were met so far.
class Snapshot::Numbering {
 public:
  Numbering(const PageStore& store, std::size_t group, std::vector<CellStretch>& stretches, PageTable& cells)
      : store_(&store), group_(group), stretches_(&stretches), cells_(&cells) {}

  // The spans of a table as pieces.
  [[nodiscard]] std::vector<CellPiece> pieces(std::span<const Run> runs) {
    std::vector<CellPiece> pieces;
    for (const Run& run : runs) add(run, pieces);
    return pieces;
  }

 private:
  static constexpr std::uint64_t kNone = UINT64_MAX;

  void add(const Run& run, std::vector<CellPiece>& pieces) {
    std::vector<std::uint64_t>& numbers = pages_[static_cast<std::uint32_t>(run.page)];
    if (numbers.empty()) numbers.resize(store_->page_cells(), kNone);
    for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
      if (numbers[cell] == kNone) number(run.page, cell, numbers);
      const std::uint64_t mine = numbers[cell];
      const bool goes_on = !pieces.empty() && pieces.back().shift == run.shift &&
                           pieces.back().first + pieces.back().count == mine;
      if (goes_on) {
        ++pieces.back().count;
      } else {
        pieces.push_back({mine, 1, run.shift});
      }
    }
  }

  void number(PageId page, std::uint32_t cell, std::vector<std::uint64_t>& numbers) {
    numbers[cell] = cells_->length();
    cells_->append({.page = page, .cell = cell, .count = 1});
    const std::uint64_t position = store_->position(group_, page, cell);
    if (!stretches_->empty() && stretches_->back().position + stretches_->back().count == position) {
      ++stretches_->back().count;
    } else {
      stretches_->push_back({1, position});
    }
  }

  const PageStore* store_;
  std::size_t group_;
  std::vector<CellStretch>* stretches_;
  PageTable* cells_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> pages_;  // [page][cell]
};

Snapshot::~Snapshot() {
  if (!holds_) return;
  for (std::size_t group = 0; group < cells_.size(); ++group) {
    store_->release(group, cells_[group].runs(), Holder::kFirm);
  }
  std::erase(store_->snapshots_, this);
  ++store_->handovers_;
}

// The layout of conversations, and in `cells` where what it numbers lies.
Layout PageStore::describe(std::span<const TableId> ids, std::vector<PageTable>& cells) const {
  Layout layout;
  layout.cells.resize(groups_.size());
  cells.resize(groups_.size());
  std::vector<Snapshot::Numbering> numbering;
  numbering.reserve(groups_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group)
    numbering.emplace_back(*this, group, layout.cells[group], cells[group]);
  std::vector<CheckpointId> checkpoints;
  std::vector<std::uint64_t> encoded;
  for (const TableId id : ids) {
    const Table& table = entry(id);
    ConversationLayout& conversation = layout.conversations.emplace_back();
    conversation.length = table.length;
    conversation.behind = table.behind;
    conversation.clean = std::min(table.first_edited, table.length);
    conversation.floors = table.floors;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      conversation.cells.push_back(numbering[group].pieces(table.cells[group].runs()));
    }
    if (table.encoded != 0) {
      const auto known = std::ranges::find(encoded, table.encoded);
      conversation.encoded = static_cast<std::uint64_t>(known - encoded.begin()) + 1;
      if (known == encoded.end()) encoded.push_back(table.encoded);
    }
    checkpoints.insert(checkpoints.end(), table.checkpoints.begin(), table.checkpoints.end());
  }
  std::ranges::sort(checkpoints, {}, [&](CheckpointId id) { return checkpoints_.at(id).used; });
  const auto rest = std::ranges::unique(checkpoints);
  checkpoints.erase(rest.begin(), rest.end());
  for (const CheckpointId id : checkpoints) {
    const Checkpoint& kept = checkpoints_.at(id);
    CheckpointLayout& checkpoint = layout.checkpoints.emplace_back();
    checkpoint.ordinal = kept.ordinal;
    checkpoint.floors = kept.floors;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      checkpoint.cells.push_back(numbering[group].pieces(kept.cells[group].runs()));
      if (kind(group) != GroupKind::kWindow) checkpoint.floors[group] = 0;
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (const CheckpointId id : entry(ids[i]).checkpoints) {
      const auto at = std::ranges::find(checkpoints, id) - checkpoints.begin();
      layout.conversations[i].checkpoints.push_back(static_cast<std::uint32_t>(at));
    }
  }
  return layout;
}

Result<std::unique_ptr<Snapshot>> PageStore::snapshot(std::span<const TableId> ids) {
  return base::within_memory([&]() -> Result<std::unique_ptr<Snapshot>> {
    std::unique_ptr<Snapshot> snapshot(new Snapshot(*this));
    snapshot->layout_ = describe(ids, snapshot->cells_);
    snapshots_.reserve(snapshots_.size() + 1);
    snapshots_.push_back(snapshot.get());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      hold(group, snapshot->cells_[group].runs(), Holder::kFirm);
    }
    snapshot->holds_ = true;
    // Where only full groups are, no promise counts on what conversations give back.
    if (only_full_ || promises_fit()) return snapshot;
    return fail(Outcome::kNoSpace,
                "what is promised counts on cells that would be kept meanwhile; a larger pool helps",
                {.setting = "--pool"});
  });
}

}  // namespace kvasir::pages
