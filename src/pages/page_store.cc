// Tables: opening, closing and forking them, and the counts of holders behind each.

#include "pages/page_store.h"

#include <algorithm>
#include <new>
#include <ranges>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::pages {
namespace {

constexpr std::uint32_t kLayersMax = 4096;
constexpr std::uint64_t kWidthMax = std::uint64_t{kPositionMax} + 1;
constexpr std::uint32_t kCheckpointTokens = 64;

}  // namespace

Result<std::unique_ptr<PageStore>> PageStore::create(const StoreSpec& spec) {
  return base::within_memory([&] { return make(spec); });
}

bool PageStore::has(GroupKind wanted) const noexcept {
  return std::ranges::any_of(spec_.groups, [&](const GroupSpec& group) { return group.kind == wanted; });
}

Result<std::unique_ptr<PageStore>> PageStore::make(StoreSpec spec) {
  if (spec.page_cells == 0 || spec.page_cells % kCellsStep != 0 || spec.page_cells > kPageCellsMax) {
    return fail(Outcome::kInvalidArgument,
                "a page must have a multiple of " + std::to_string(kCellsStep) + " cells, at most " +
                    std::to_string(kPageCellsMax) + ", not " + std::to_string(spec.page_cells),
                {.wanted = spec.page_cells, .limit = kPageCellsMax, .setting = "--page"});
  }
  if (spec.groups.empty()) return fail(Outcome::kInvalidArgument, "a page store needs at least one group");
  if (spec.groups.size() > kGroupsMax) {
    return fail(Outcome::kInvalidArgument, std::to_string(spec.groups.size()) + " groups",
                {.wanted = spec.groups.size(), .limit = kGroupsMax});
  }
  if (spec.frames >= kFirstTierPage) {
    return fail(Outcome::kInvalidArgument, "a pool of " + std::to_string(spec.frames) + " frames",
                {.wanted = spec.frames, .limit = kFirstTierPage - 1, .setting = "--pool"});
  }
  for (const GroupSpec& group : spec.groups) {
    if (group.layers == 0 || group.layers > kLayersMax) {
      return fail(Outcome::kInvalidArgument, "a group of " + std::to_string(group.layers) + " layers",
                  {.wanted = group.layers, .limit = kLayersMax});
    }
    if (group.kind == GroupKind::kWindow && (group.width == 0 || group.width > kWidthMax)) {
      return fail(Outcome::kInvalidArgument, "a window of " + std::to_string(group.width) + " tokens",
                  {.wanted = group.width, .limit = kWidthMax});
    }
  }
  if (spec.checkpoint_tokens == 0)
    spec.checkpoint_tokens = base::div_up(kCheckpointTokens, spec.page_cells) * spec.page_cells;
  if (spec.checkpoint_tokens % spec.page_cells != 0) {
    return fail(
        Outcome::kInvalidArgument,
        "checkpoints every " + std::to_string(spec.checkpoint_tokens) + " tokens are not at page boundaries",
        {.wanted = spec.checkpoint_tokens, .limit = spec.page_cells});
  }
  if (spec.pass_tokens == 0) return fail(Outcome::kInvalidArgument, "a pass computes at least one token");
  std::unique_ptr<PageStore> store(new PageStore(spec));
  store->free_frames_.reserve(spec.frames);
  for (std::uint32_t frame = spec.frames; frame-- > 0;) store->free_frames_.push_back(FrameId{frame});
  for (const GroupSpec& group : spec.groups) {
    const std::uint32_t cells_of_page = group.kind == GroupKind::kRecurrent ? 1 : spec.page_cells;
    KVASIR_ASSIGN(GroupCells cells, GroupCells::create(group, cells_of_page, spec.frames / group.layers));
    store->groups_.push_back(std::move(cells));
    store->indexes_.emplace_back();
    store->emptied_.emplace_back();
    store->only_full_ = store->only_full_ && group.kind == GroupKind::kFull;
  }
  return store;
}

Result<TableId> PageStore::open() {
  return base::within_memory([&]() -> Result<TableId> {
    if (closed_.empty()) {
      // Room to close every table later without allocating (S5).
      closed_.reserve(tables_.size() + 1);
      tables_.emplace_back();
      closed_.push_back(TableId{static_cast<std::uint32_t>(tables_.size() - 1)});
    }
    const TableId table = closed_.back();
    entry(table).cells.resize(groups_.size());
    entry(table).open = true;
    closed_.pop_back();
    return table;
  });
}

Outcome PageStore::close(TableId id) noexcept {
  Table& closing = entry(id);
  if (closing.busy) return Outcome::kBusy;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    release(group, closing.cells[group].runs(), Holder::kFirm);
    closing.cells[group].clear();
  }
  drop_checkpoints_above(closing, 0);
  promised_ -= closing.promised;
  std::vector<PageTable> emptied = std::move(closing.cells);
  std::vector<CheckpointId> none = std::move(closing.checkpoints);
  closing = Table{};
  closing.cells = std::move(emptied);
  closing.checkpoints = std::move(none);
  closed_.push_back(id);
  return Outcome::kDone;
}

Result<TableId> PageStore::fork_source(TableId id) {
  KVASIR_ASSIGN(const TableId child, open());
  Table& copy = entry(child);
  const Table& parent = entry(id);
  try {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kCross) copy.cells[group] = parent.cells[group];
    }
  } catch (const std::bad_alloc&) {
    for (PageTable& cells : copy.cells) cells.clear();
    static_cast<void>(close(child));
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  copy.encoded = parent.encoded;
  return keep_fork(child);
}

Result<TableId> PageStore::fork(TableId id) {
  KVASIR_ASSIGN(const TableId child, open());
  Table& copy = entry(child);
  const Table& parent = entry(id);
  try {
    copy.cells = parent.cells;
    copy.checkpoints.reserve(parent.checkpoints.size());
  } catch (const std::bad_alloc&) {
    for (PageTable& cells : copy.cells) cells.clear();
    static_cast<void>(close(child));
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  copy.checkpoints = parent.checkpoints;
  copy.floors = parent.floors;
  copy.length = parent.length;
  copy.behind = parent.behind;
  copy.first_dirty = parent.first_dirty;
  copy.first_edited = parent.first_edited;
  copy.last_edited = parent.last_edited;
  copy.remembered = parent.remembered;
  copy.encoded = parent.encoded;
  copy.tiered = parent.tiered;
  for (const CheckpointId checkpoint : copy.checkpoints) own_checkpoint(checkpoint);
  return keep_fork(child);
}

// Counts a fork among the holders of what it names, or ends it.
Result<TableId> PageStore::keep_fork(TableId child) {
  const Table& copy = entry(child);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    hold(group, copy.cells[group].runs(), Holder::kFirm);
  }
  // Where only full groups are, no promise counts on what the parent gives back.
  if (only_full_ || promises_fit()) return child;
  static_cast<void>(close(child));
  return fail(
      Outcome::kNoSpace,
      "what is promised to the conversation counts on cells that a fork would keep; a larger pool helps",
      {.setting = "--pool"});
}

std::optional<PageId> PageStore::state(TableId table, std::size_t group) const noexcept {
  const std::span<const Run> runs = entry(table).cells[group].runs();
  if (runs.empty()) return std::nullopt;
  return runs.front().page;
}

std::uint64_t PageStore::first_visible(TableId table, std::size_t group,
                                       std::uint64_t ordinal) const noexcept {
  const std::uint64_t width = spec_.groups[group].width;
  return std::max(floor(table, group), ordinal + 1 - std::min(ordinal + 1, width));
}

// Gives back the cells of windows below the release line.
void PageStore::release_passed(Table& table) noexcept {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) != GroupKind::kWindow) continue;
    const std::uint64_t kept = std::min(table.length, kept_behind(group));
    table.cells[group].drop_below(table.length - kept, [&](const Run& run) {
      release(group, run.page, {run.cell, run.count}, Holder::kFirm);
    });
  }
}

std::int64_t PageStore::next_position(TableId id) const noexcept {
  return position_behind(id, entry(id).length);
}

std::int64_t PageStore::position_behind(TableId id, std::uint64_t length) const noexcept {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kRecurrent || kind(group) == GroupKind::kCross) continue;
    for (const Run& run : std::views::reverse(entry(id).cells[group].runs())) {
      if (run.ordinal >= length || length > run.ordinal + run.count) continue;
      const auto cell = static_cast<std::uint32_t>(run.cell + (length - 1 - run.ordinal));
      return static_cast<std::int64_t>(position(group, run.page, cell)) + run.shift + 1;
    }
  }
  return static_cast<std::int64_t>(length);  // nothing moves where there are states alone
}

void PageStore::release(std::size_t group, PageId page, CellRange cells, Holder holder) noexcept {
  if (in_tier(page)) {
    ++handovers_;  // no cell of the pool changes, but ordinals behind these may
    return tier_runs_.release(tier_run(page), cells, holder);
  }
  if (groups_[group].release(page, cells, holder)) give_frames_back(group, page);
}

void PageStore::release(std::size_t group, std::span<const Run> runs, Holder holder) noexcept {
  for (const Run& run : runs) release(group, run.page, {run.cell, run.count}, holder);
}

void PageStore::hold(std::size_t group, std::span<const Run> runs, Holder holder) noexcept {
  for (const Run& run : runs) {
    const CellRange cells{run.cell, run.count};
    if (in_tier(run.page)) {
      ++handovers_;
      tier_runs_.hold(tier_run(run.page), cells, holder);
    } else {
      groups_[group].hold(run.page, cells, holder);
    }
  }
}

// Within capacity: the list was made with room for every frame.
void PageStore::give_frames_back(std::size_t group, PageId page) noexcept {
  for (const FrameId frame : groups_[group].frames(page)) free_frames_.push_back(frame);
}

}  // namespace kvasir::pages
