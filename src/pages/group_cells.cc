#include "pages/group_cells.h"

#include <new>
#include <string>

#include "base/try.h"

namespace kvasir::pages {

Result<GroupCells> GroupCells::create(const GroupSpec& spec, std::uint32_t page_cells, std::uint32_t pages) {
  GroupCells group;
  group.layers_ = spec.layers;
  group.page_cells_ = page_cells;
  group.by_hole_.fill(kNone);
  try {
    group.pages_.resize(pages);
    group.frames_.resize(std::size_t{pages} * spec.layers);
    group.holders_.resize(std::size_t{pages} * page_cells);
    group.positions_.resize(std::size_t{pages} * page_cells);
    group.unused_.reserve(pages);
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory for the metadata of " + std::to_string(pages) + " pages",
                {.wanted = std::uint64_t{pages} * page_cells * 12, .setting = "--pool"});
  }
  for (std::uint32_t page = pages; page-- > 0;) group.unused_.push_back(page);
  return group;
}

PageId GroupCells::open_page(std::span<const FrameId> frames) noexcept {
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  std::copy(frames.begin(), frames.end(),
            frames_.begin() + static_cast<std::ptrdiff_t>(std::size_t{index} * layers_));
  pages_[index].free = CellMask::all(page_cells_);
  free_cells_ += page_cells_;
  relist(index);
  return PageId{index};
}

void GroupCells::take(PageId page, CellRange cells, std::uint64_t position) noexcept {
  const auto index = static_cast<std::uint32_t>(page);
  for (std::uint32_t i = 0; i < cells.count; ++i) {
    pages_[index].free.erase(cells.first + i);
    holders_[at(page, cells.first + i)] = 1;
    positions_[at(page, cells.first + i)] = position + i;
  }
  pages_[index].held += cells.count;
  free_cells_ -= cells.count;
  relist(index);
}

void GroupCells::hold(PageId page, CellRange cells) noexcept {
  for (std::uint32_t i = 0; i < cells.count; ++i) ++holders_[at(page, cells.first + i)];
}

bool GroupCells::release(PageId page, CellRange cells) noexcept {
  const auto index = static_cast<std::uint32_t>(page);
  Page& entry = pages_[index];
  for (std::uint32_t cell = cells.first; cell < cells.first + cells.count; ++cell) {
    if (--holders_[at(page, cell)] != 0) continue;
    entry.free.insert(cell);
    --entry.held;
    ++free_cells_;
  }
  if (entry.held != 0) {
    relist(index);
    return false;
  }
  unlink(index);
  free_cells_ -= page_cells_;
  unused_.push_back(index);
  return true;
}

std::uint32_t GroupCells::free_run_at(PageId page, std::uint32_t cell, std::uint32_t limit) const noexcept {
  const std::uint32_t end = std::min(page_cells_, cell + std::min(limit, page_cells_));
  return cell >= end ? 0 : pages_[static_cast<std::uint32_t>(page)].free.run_at(cell, end);
}

std::optional<GroupCells::Hole> GroupCells::longest_hole() const noexcept {
  for (std::uint32_t length = page_cells_; length > 0; --length) {
    if (by_hole_[length] == kNone) continue;
    return Hole{PageId{by_hole_[length]}, pages_[by_hole_[length]].free.longest_run(page_cells_)};
  }
  return std::nullopt;
}

// Puts a used page under the length of its longest hole (C4).
void GroupCells::relist(std::uint32_t index) noexcept {
  Page& page = pages_[index];
  const std::uint32_t length = page.free.longest_run(page_cells_).count;
  if (length == page.longest_hole) return;
  unlink(index);
  page.longest_hole = length;
  if (length == 0) return;
  page.next = by_hole_[length];
  if (page.next != kNone) pages_[page.next].previous = index;
  by_hole_[length] = index;
}

void GroupCells::unlink(std::uint32_t index) noexcept {
  Page& page = pages_[index];
  if (page.longest_hole == 0) return;
  if (page.next != kNone) pages_[page.next].previous = page.previous;
  if (page.previous != kNone) {
    pages_[page.previous].next = page.next;
  } else {
    by_hole_[page.longest_hole] = page.next;
  }
  page.next = page.previous = kNone;
  page.longest_hole = 0;
}

Status GroupCells::check() const {
  std::uint64_t holes = 0;
  for (std::uint32_t index = 0; index < pages_.size(); ++index) KVASIR_TRY(check_page(index, holes));
  if (holes != free_cells_) {
    return fail(Outcome::kInternal,
                "C3: " + std::to_string(holes) + " holes, counted " + std::to_string(free_cells_));
  }
  return {};
}

Status GroupCells::check_page(std::uint32_t index, std::uint64_t& holes) const {
  const Page& page = pages_[index];
  const auto broken = [&](const char* which) {
    return fail(Outcome::kInternal, std::string(which) + " is broken in page " + std::to_string(index));
  };
  std::uint32_t held = 0;
  for (std::uint32_t cell = 0; cell < page_cells_; ++cell) {
    const bool is_held = holders_[at(PageId{index}, cell)] != 0;
    held += is_held ? 1 : 0;
    if (page.held != 0 && is_held == page.free.contains(cell)) return broken("C1");
  }
  if (held != page.held) return broken("C2");
  if (held == 0) return page.longest_hole == 0 ? Status() : broken("C4");
  holes += page.free.size();
  if (page.longest_hole != page.free.longest_run(page_cells_).count) return broken("C4");
  return {};
}

}  // namespace kvasir::pages
