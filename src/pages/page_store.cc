// Tables: opening, closing and forking them, and the counts of holders behind each.

#include "pages/page_store.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::pages {
namespace {

constexpr std::uint32_t kLayersMax = 4096;

}  // namespace

Result<std::unique_ptr<PageStore>> PageStore::create(const StoreSpec& spec) {
  return base::within_memory([&] { return make(spec); });
}

Result<std::unique_ptr<PageStore>> PageStore::make(const StoreSpec& spec) {
  if (spec.page_cells == 0 || spec.page_cells % kCellsStep != 0 || spec.page_cells > kPageCellsMax) {
    return fail(Outcome::kInvalidArgument,
                "a page must have a multiple of " + std::to_string(kCellsStep) + " cells, at most " +
                    std::to_string(kPageCellsMax) + ", not " + std::to_string(spec.page_cells),
                {.wanted = spec.page_cells, .limit = kPageCellsMax, .setting = "--page"});
  }
  if (spec.groups.empty()) return fail(Outcome::kInvalidArgument, "a page store needs at least one group");
  for (const GroupSpec& group : spec.groups) {
    if (group.layers == 0 || group.layers > kLayersMax) {
      return fail(Outcome::kInvalidArgument, "a group of " + std::to_string(group.layers) + " layers",
                  {.wanted = group.layers, .limit = kLayersMax});
    }
  }
  std::unique_ptr<PageStore> store(new PageStore(spec));
  store->free_frames_.reserve(spec.frames);
  for (std::uint32_t frame = spec.frames; frame-- > 0;) store->free_frames_.push_back(FrameId{frame});
  for (const GroupSpec& group : spec.groups) {
    KVASIR_ASSIGN(GroupCells cells, GroupCells::create(group, spec.page_cells, spec.frames / group.layers));
    store->groups_.push_back(std::move(cells));
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

void PageStore::close(TableId table) noexcept {
  Table& closing = entry(table);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    release(group, closing.cells[group].runs(), Holder::kFirm);
    closing.cells[group].clear();
  }
  promised_ -= closing.promised;
  std::vector<PageTable> emptied = std::move(closing.cells);
  closing = Table{};
  closing.cells = std::move(emptied);
  closed_.push_back(table);
}

Result<TableId> PageStore::fork(TableId table) {
  KVASIR_ASSIGN(const TableId child, open());
  try {
    entry(child).cells = entry(table).cells;
  } catch (const std::bad_alloc&) {
    for (PageTable& cells : entry(child).cells) cells.clear();
    close(child);
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  entry(child).length = entry(table).length;
  entry(child).first_dirty = entry(table).first_dirty;
  entry(child).remembered = entry(table).remembered;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    hold(group, entry(child).cells[group].runs(), Holder::kFirm);
  }
  return child;
}

std::int64_t PageStore::next_position(TableId table) const noexcept {
  const PageTable& cells = entry(table).cells.front();
  if (cells.empty()) return 0;
  const Run& last = cells.runs().back();
  return static_cast<std::int64_t>(groups_.front().position(last.page, last.cell + last.count - 1)) +
         last.shift + 1;
}

void PageStore::release(std::size_t group, PageId page, CellRange cells, Holder holder) noexcept {
  if (groups_[group].release(page, cells, holder)) give_frames_back(group, page);
}

void PageStore::release(std::size_t group, std::span<const Run> runs, Holder holder) noexcept {
  for (const Run& run : runs) release(group, run.page, {run.cell, run.count}, holder);
}

void PageStore::hold(std::size_t group, std::span<const Run> runs, Holder holder) noexcept {
  for (const Run& run : runs) groups_[group].hold(run.page, {run.cell, run.count}, holder);
}

// Within capacity: the list was made with room for every frame.
void PageStore::give_frames_back(std::size_t group, PageId page) noexcept {
  for (const FrameId frame : groups_[group].frames(page)) free_frames_.push_back(frame);
}

}  // namespace kvasir::pages
