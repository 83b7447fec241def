#include "pages/group_cells.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/try.h"

namespace kvasir::pages {

Result<GroupCells> GroupCells::create(const GroupSpec& spec, std::uint32_t page_cells, std::uint32_t pages) {
  GroupCells group;
  group.layers_ = spec.layers;
  group.page_cells_ = page_cells;
  group.by_hole_.fill(kNone);
  const std::size_t cells = std::size_t{pages} * page_cells;
  try {
    group.pages_.resize(pages);
    group.frames_.resize(std::size_t{pages} * spec.layers);
    group.holders_.resize(cells);
    group.soft_.resize(cells);
    group.positions_.resize(cells);
    group.unused_.reserve(pages);
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory", {.wanted = cells * 16, .setting = "--pool"});
  }
  for (std::uint32_t page = pages; page-- > 0;) group.unused_.push_back(page);
  return group;
}

void GroupCells::before_change(const Page& page) noexcept {
  if (page.held == 0) return;
  const std::uint32_t free = page_cells_ - page.held;
  free_cells_ -= free;
  evictable_cells_ -= page.evictable;
  if (page.held == page.evictable) {
    --evictable_pages_;
  } else {
    holes_ -= free + page.evictable;
    free_holes_ -= free;
  }
}

void GroupCells::after_change(std::uint32_t index) noexcept {
  const Page& page = pages_[index];
  if (page.held == 0) return;
  const std::uint32_t free = page_cells_ - page.held;
  free_cells_ += free;
  evictable_cells_ += page.evictable;
  if (page.held == page.evictable) {
    ++evictable_pages_;
  } else {
    holes_ += free + page.evictable;
    free_holes_ += free;
  }
  relist(index);
}

PageId GroupCells::open_page(std::span<const FrameId> frames) noexcept {
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  std::ranges::copy(frames, frames_.begin() + static_cast<std::ptrdiff_t>(std::size_t{index} * layers_));
  pages_[index].free = CellMask::all(page_cells_);
  return PageId{index};
}

// Cells that nobody held have one holder afterwards: whose ticket took them (S4).
void GroupCells::take(PageId page, CellRange cells, std::uint64_t position) noexcept {
  const auto index = static_cast<std::uint32_t>(page);
  ++changes_;
  before_change(pages_[index]);
  for (std::uint32_t i = 0; i < cells.count; ++i) {
    pages_[index].free.erase(cells.first + i);
    holders_[at(page, cells.first + i)] = 1;
    positions_[at(page, cells.first + i)] = position + i;
  }
  pages_[index].held += cells.count;
  after_change(index);
}

void GroupCells::hold(PageId page, CellRange cells, Holder holder) noexcept {
  Page& entry = pages_[static_cast<std::uint32_t>(page)];
  const std::size_t first = at(page, cells.first);
  ++changes_;
  std::uint32_t no_longer = 0;  // evictable
  if (holder == Holder::kFirm && entry.evictable > 0) {
    for (std::size_t i = first; i < first + cells.count; ++i) no_longer += evictable(i) ? 1 : 0;
  }
  for (std::uint32_t& count : std::span(holders_).subspan(first, cells.count)) ++count;
  if (holder == Holder::kSoft) {
    for (std::uint32_t& count : std::span(soft_).subspan(first, cells.count)) ++count;
  }
  // Mostly no count changes but the cells' own.
  if (no_longer == 0) return;
  before_change(entry);
  entry.evictable -= no_longer;
  after_change(static_cast<std::uint32_t>(page));
}

bool GroupCells::release(PageId page, CellRange cells, Holder holder) noexcept {
  const auto index = static_cast<std::uint32_t>(page);
  Page& entry = pages_[index];
  ++changes_;
  std::uint32_t freed = 0;
  std::uint32_t yielding = 0;     // newly evictable
  std::uint32_t not_anymore = 0;  // evictable cells that are free now
  for (std::uint32_t cell = cells.first; cell < cells.first + cells.count; ++cell) {
    const std::size_t place = at(page, cell);
    not_anymore += evictable(place) ? 1 : 0;
    if (holder == Holder::kSoft) --soft_[at(page, cell)];
    if (--holders_[place] == 0) {
      entry.free.insert(cell);
      ++freed;
    }
    yielding += evictable(place) ? 1 : 0;
  }
  if (freed == 0 && yielding == not_anymore) return false;
  before_change(entry);
  entry.held -= freed;
  entry.evictable += yielding - not_anymore;
  after_change(index);
  return close_if_unheld(index);
}

bool GroupCells::release_all(PageId page, CellRange cells) noexcept {
  const auto index = static_cast<std::uint32_t>(page);
  Page& entry = pages_[index];
  ++changes_;
  before_change(entry);
  for (std::uint32_t cell = cells.first; cell < cells.first + cells.count; ++cell) {
    entry.evictable -= evictable(at(page, cell)) ? 1 : 0;
    if (holders_[at(page, cell)] == 0) continue;
    holders_[at(page, cell)] = 0;
    soft_[at(page, cell)] = 0;
    entry.free.insert(cell);
    --entry.held;
  }
  after_change(index);
  return close_if_unheld(index);
}

void GroupCells::set_holders(CellAt at_cell, std::uint32_t firm, std::uint32_t soft) noexcept {
  const auto index = static_cast<std::uint32_t>(at_cell.page);
  ++changes_;
  before_change(pages_[index]);
  holders_[at(at_cell.page, at_cell.cell)] = firm + soft;
  soft_[at(at_cell.page, at_cell.cell)] = soft;
  pages_[index].evictable += firm == 0 ? 1 : 0;
  after_change(index);
}

bool GroupCells::close_if_unheld(std::uint32_t index) noexcept {
  if (pages_[index].held != 0) return false;
  unlink(index);
  unused_.push_back(index);
  return true;
}

void GroupCells::swap(CellAt a, CellAt b) noexcept {
  exchange(a, b, 1);
}

// The two ranges do not overlap. A position goes where its contents go (C5).
void GroupCells::exchange(CellAt a, CellAt b, std::uint32_t count) noexcept {
  const std::size_t first = at(a.page, a.cell);
  const std::size_t second = at(b.page, b.cell);
  const auto pages = {static_cast<std::uint32_t>(a.page), static_cast<std::uint32_t>(b.page)};
  const bool one_page = a.page == b.page;
  ++changes_;
  for (const std::uint32_t page : pages) {
    before_change(pages_[page]);
    if (one_page) break;
  }
  std::uint32_t to_first = 0;  // evictable cells that come there, those that go counted against them
  for (std::uint32_t i = 0; i < count; ++i) {
    to_first += (evictable(second + i) ? 1U : 0U) - (evictable(first + i) ? 1U : 0U);
    std::swap(holders_[first + i], holders_[second + i]);
    std::swap(soft_[first + i], soft_[second + i]);
    std::swap(positions_[first + i], positions_[second + i]);
  }
  pages_[static_cast<std::uint32_t>(a.page)].evictable += to_first;
  pages_[static_cast<std::uint32_t>(b.page)].evictable -= to_first;
  for (const std::uint32_t page : pages) {
    after_change(page);
    if (one_page) break;
  }
}

bool GroupCells::move(CellAt from, CellAt to, std::uint32_t count) noexcept {
  // Those of `to` were free when they were taken. A cell that was taken has one firm holder and none that is
  // soft, so an exchange and the release of that holder is the move.
  exchange(from, to, count);
  return release(from.page, {from.cell, count}, Holder::kFirm);
}

std::uint32_t GroupCells::free_run_at(PageId page, std::uint32_t cell, std::uint32_t limit) const noexcept {
  const std::uint32_t end = std::min(page_cells_, cell + std::min(limit, page_cells_));
  return cell >= end ? 0 : pages_[static_cast<std::uint32_t>(page)].free.run_at(cell, end);
}

std::optional<GroupCells::Hole> GroupCells::longest_hole(std::optional<PageId> except) const noexcept {
  for (std::uint32_t length = page_cells_; length > 0; --length) {
    if (const auto hole = listed_hole(length, except)) return hole;
  }
  return std::nullopt;
}

std::optional<GroupCells::Hole> GroupCells::fitting_hole(std::uint32_t count, PageId except) const noexcept {
  for (std::uint32_t length = count; length <= page_cells_; ++length) {
    if (const auto hole = listed_hole(length, except)) return hole;
  }
  return longest_hole(except);
}

// The longest hole of a page whose longest hole has this length.
std::optional<GroupCells::Hole> GroupCells::listed_hole(std::uint32_t length,
                                                        std::optional<PageId> except) const noexcept {
  std::uint32_t index = by_hole_[length];
  if (index != kNone && except && PageId{index} == *except) index = pages_[index].next;
  if (index == kNone) return std::nullopt;
  return Hole{PageId{index}, pages_[index].free.longest_run(page_cells_)};
}

// A page that goes with the holders of its cells lends none of them: as a whole it is worth a frame of any
// group.
std::uint32_t GroupCells::hole_to_list(const Page& page) const noexcept {
  return page.held == page.evictable ? 0 : page.free.longest_run(page_cells_).count;
}

// Puts a used page under the length of its longest hole (C4).
void GroupCells::relist(std::uint32_t index) noexcept {
  Page& page = pages_[index];
  const std::uint32_t length = hole_to_list(page);
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
  std::uint64_t free = 0;
  std::uint64_t holes = 0;
  std::uint64_t free_holes = 0;
  std::uint64_t evictable = 0;
  std::uint32_t evictable_pages = 0;
  for (std::uint32_t index = 0; index < pages_.size(); ++index) {
    KVASIR_TRY(check_page(index));
    const Page& page = pages_[index];
    if (page.held == 0) continue;
    const bool goes = page.held == page.evictable;
    free += page.free.size();
    evictable += page.evictable;
    evictable_pages += goes ? 1 : 0;
    holes += goes ? 0 : page.free.size() + page.evictable;
    free_holes += goes ? 0 : page.free.size();
  }
  if (free != free_cells_) return fail(Outcome::kInternal, "C3: the holes are counted wrongly");
  if (holes != holes_ || free_holes != free_holes_ || evictable != evictable_cells_ ||
      evictable_pages != evictable_pages_) {
    return fail(Outcome::kInternal, "C6: what can be evicted is counted wrongly");
  }
  return {};
}

Status GroupCells::check_page(std::uint32_t index) const {
  const Page& page = pages_[index];
  const auto broken = [&](const char* which) {
    return fail(Outcome::kInternal, std::string(which) + " is broken in page " + std::to_string(index));
  };
  std::uint32_t held = 0;
  std::uint32_t soft_only = 0;
  for (std::uint32_t cell = 0; cell < page_cells_; ++cell) {
    const std::size_t place = at(PageId{index}, cell);
    const bool is_held = holders_[place] != 0;
    held += is_held ? 1 : 0;
    soft_only += evictable(place) ? 1 : 0;
    if (soft_[place] > holders_[place]) return broken("C6");
    if (page.held != 0 && is_held == page.free.contains(cell)) return broken("C1");
  }
  if (held != page.held) return broken("C2");
  if (soft_only != page.evictable) return broken("C6");
  return hole_to_list(page) == page.longest_hole ? Status() : broken("C4");
}

}  // namespace kvasir::pages
