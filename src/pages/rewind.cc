// Returns to an earlier length: free where the next token finds all that it needs, else to the nearest
// checkpoint.

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {

// A conversation as a rewind leaves it, beside as it is.
struct PageStore::Return {
  std::vector<PageTable> cells;          // [group]: as they will be
  std::vector<std::vector<Run>> gained;  // [group]: held then and not before
  std::vector<std::vector<Run>> lost;    // [group]
  std::array<std::uint64_t, kGroupsMax> floors{};
  std::uint64_t length = 0;
  std::uint64_t behind = 0;
  std::optional<CheckpointId> restored;
};

// Whether a window group that holds the cells from `start` on has what the token `length` sees.
bool PageStore::still_seen(std::size_t group, std::uint64_t length, std::uint64_t floor,
                           std::uint64_t start) const noexcept {
  const std::uint64_t width = spec_.groups[group].width;
  return length > floor && std::max(floor, length - std::min(length, width)) >= start;
}

// Whether all that the token `length` sees, and a state where one is kept, is at hand.
bool PageStore::rewinds_freely(const Table& table, std::uint64_t length) const noexcept {
  if (length == table.length) return true;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kRecurrent) return false;
    if (kind(group) != GroupKind::kWindow) continue;
    if (!still_seen(group, length, table.floors[group], table.cells[group].start())) return false;
  }
  return true;
}

// The last at or before an ordinal; none stands for the beginning.
std::optional<CheckpointId> PageStore::nearest_checkpoint(const Table& table,
                                                          std::uint64_t ordinal) const noexcept {
  std::optional<CheckpointId> nearest;
  for (const CheckpointId id : table.checkpoints) {
    if (checkpoints_.at(id).ordinal <= ordinal) nearest = id;
  }
  return nearest;
}

std::uint64_t PageStore::rewind_cost(TableId id, std::uint64_t length) const noexcept {
  const Table& table = entry(id);
  if (length >= table.length) return std::min(length - table.length, table.behind);
  if (rewinds_freely(table, length)) return 0;
  const auto checkpoint = nearest_checkpoint(table, length);
  return length - (checkpoint ? checkpoints_.at(*checkpoint).ordinal : 0);
}

PageStore::Return PageStore::plan_return(const Table& table, std::uint64_t length) const {
  Return planned{.cells = table.cells, .gained = {}, .lost = {}, .floors = table.floors, .length = length};
  planned.gained.resize(groups_.size());
  planned.lost.resize(groups_.size());
  const bool freely = rewinds_freely(table, length);
  static const Checkpoint beginning;
  const Checkpoint* checkpoint = nullptr;
  if (!freely) {
    planned.restored = nearest_checkpoint(table, length);
    checkpoint = planned.restored ? &checkpoints_.at(*planned.restored) : &beginning;
    planned.length = checkpoint->ordinal;
    planned.floors = checkpoint->floors;
  }
  planned.behind = length - planned.length;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    PageTable& cells = planned.cells[group];
    if (kind(group) == GroupKind::kCross) continue;
    if (freely || kind(group) == GroupKind::kFull) {
      const std::uint64_t from = std::max(planned.length, cells.start());
      if (kind(group) != GroupKind::kRecurrent) {
        cells.remove(from, table.length - from, planned.lost[group]);
      }
      continue;
    }
    planned.lost[group].assign(cells.runs().begin(), cells.runs().end());
    cells = checkpoint->cells.empty() ? PageTable() : checkpoint->cells[group];
    planned.gained[group].assign(cells.runs().begin(), cells.runs().end());
  }
  return planned;
}

// Exchanges what is with what was planned. What is lost is held softly until it is known that the promise
// fits: that counts as free, and can be taken back.
Status PageStore::perform_return(Table& table, Return& planned) {
  const std::uint64_t promised_before = table.promised;
  const std::uint64_t promised = table.promised - std::min(table.promised, table.behind) + planned.behind;
  const auto exchange = [&](std::uint64_t promise) {
    table.cells.swap(planned.cells);
    std::swap(table.floors, planned.floors);
    std::swap(table.length, planned.length);
    std::swap(table.behind, planned.behind);
    promised_ = promised_ - table.promised + promise;
    table.promised = promise;
  };
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    hold(group, planned.gained[group], Holder::kFirm);
    hold(group, planned.lost[group], Holder::kSoft);
    release(group, planned.lost[group], Holder::kFirm);
  }
  exchange(promised);
  Status fits;
  if (!promises_fit()) {
    try {
      fits = admit(promise_need(table, promised), promised_but(table));
    } catch (const std::bad_alloc&) {
      fits = fail(Outcome::kOutOfMemory, "out of memory");
    }
    exchange(promised_before);
    for (std::size_t group = 0; group < groups_.size(); ++group)
      hold(group, planned.lost[group], Holder::kFirm);
    for (std::size_t group = 0; group < groups_.size(); ++group)
      release(group, planned.gained[group], Holder::kFirm);
  }
  for (std::size_t group = 0; group < groups_.size(); ++group)
    release(group, planned.lost[group], Holder::kSoft);
  return fits;
}

void PageStore::forget_edits_behind(Table& table) const noexcept {
  const std::uint64_t length = table.length;
  bool sees_less = false;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kWindow)
      sees_less = sees_less || table.floors[group] > length - std::min(length, spec_.groups[group].width);
  }
  const std::uint64_t next = sees_less ? length : kAllClean;
  if (table.first_dirty >= length) table.first_dirty = next;
  if (table.first_edited >= length) table.first_edited = next;
  table.last_edited = std::min(table.last_edited, length - std::min<std::uint64_t>(length, 1));
  if (sees_less) table.last_edited = length;
}

Result<std::uint64_t> PageStore::rewind(TableId id, std::uint64_t length) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_TRY(check_idle(id));
    Table& table = entry(id);
    const std::uint64_t all = table.length + table.behind;
    if (length > all) {
      return fail(Outcome::kInvalidArgument,
                  "a conversation of " + std::to_string(all) + " tokens cannot be rewound to " +
                      std::to_string(length),
                  {.wanted = length, .limit = all});
    }
    if (length >= table.length) {
      // Only some of what it is behind by is no longer wanted.
      const std::uint64_t dropped = all - length;
      const std::uint64_t unpromised = std::min(dropped, table.promised);
      table.behind -= dropped;
      table.promised -= unpromised;
      promised_ -= unpromised;
      return table.behind;
    }
    Return planned = plan_return(table, length);
    KVASIR_TRY(perform_return(table, planned));
    table.tiered = cells_in_tiers(table) > 0;
    if (planned.restored) checkpoints_.at(*planned.restored).used = index_.tick();
    drop_checkpoints_above(table, table.length);
    forget_edits_behind(table);
    table.remembered = std::min(table.remembered, table.length);
    return table.behind;
  });
}

}  // namespace kvasir::pages
