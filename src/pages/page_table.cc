#include "pages/page_table.h"

#include <algorithm>
#include <utility>

namespace kvasir::pages {
namespace {

bool joins(const Run& left, const Run& right) {
  return left.page == right.page && left.cell + left.count == right.cell && left.shift == right.shift;
}

}  // namespace

const Run& PageTable::at(std::uint64_t ordinal) const noexcept {
  const auto behind = std::ranges::upper_bound(runs_, ordinal, {}, &Run::ordinal);
  return *(behind - 1);
}

CellAt PageTable::cell_at(std::uint64_t ordinal) const noexcept {
  const Run& run = at(ordinal);
  return {run.page, run.cell + static_cast<std::uint32_t>(ordinal - run.ordinal)};
}

void PageTable::reserve(std::size_t more) {
  const std::size_t wanted = runs_.size() + more;
  // Geometric, so that a long generation does not move the table at every page.
  if (wanted > runs_.capacity()) runs_.reserve(std::max(wanted, runs_.capacity() * 2));
}

void PageTable::append(Run run) {
  run.ordinal = length();
  if (!runs_.empty() && joins(runs_.back(), run)) {
    runs_.back().count += run.count;
  } else {
    runs_.push_back(run);
  }
}

void PageTable::remove(std::uint64_t first, std::uint64_t count, std::vector<Run>& removed) {
  if (count == 0) return;
  const std::size_t begin = split(first);
  const std::size_t end = split(first + count);
  const auto from = runs_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto to = runs_.begin() + static_cast<std::ptrdiff_t>(end);
  removed.insert(removed.end(), from, to);
  runs_.erase(from, to);
  start_ = carried(start_, first, count);
  rebuild();
}

void PageTable::shift(std::uint64_t first, std::uint64_t count, std::int64_t delta) {
  if (count == 0) return;
  const std::size_t begin = split(first);
  const std::size_t end = split(first + count);
  for (std::size_t i = begin; i < end; ++i) runs_[i].shift += delta;
  rebuild();
}

void PageTable::replace(std::uint64_t first, std::span<const Run> with, std::vector<Run>& replaced) {
  std::uint64_t count = 0;
  for (const Run& run : with) count += run.count;
  if (count == 0) return;
  const std::size_t begin = split(first);
  const std::size_t end = split(first + count);
  const auto from = runs_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto to = runs_.begin() + static_cast<std::ptrdiff_t>(end);
  replaced.insert(replaced.end(), from, to);
  const auto at = runs_.erase(from, to);
  runs_.insert(at, with.begin(), with.end());
  rebuild();
}

PageTable PageTable::part(std::uint64_t first, std::uint64_t end, std::uint64_t start) const {
  PageTable result;
  part(first, end, start, result);
  return result;
}

void PageTable::part(std::uint64_t first, std::uint64_t end, std::uint64_t start, PageTable& into) const {
  into.clear();
  into.start_ = start;
  for (Run run : runs_) {
    const std::uint64_t begin = std::max(run.ordinal, first);
    const std::uint64_t behind = std::min(run.end(), end);
    if (begin >= behind) continue;
    run.cell += static_cast<std::uint32_t>(begin - run.ordinal);
    run.count = static_cast<std::uint32_t>(behind - begin);
    into.append(run);
  }
}

bool PageTable::names_any(CellAt from, std::uint32_t count) const noexcept {
  return std::ranges::any_of(runs_, [&](const Run& run) {
    return run.page == from.page && run.cell < from.cell + count && from.cell < run.cell + run.count;
  });
}

PageTable::Patch PageTable::patch_for(const Moves& moves, std::uint64_t first, std::uint64_t end) const {
  const auto index_of = [this](std::uint64_t ordinal) {
    return static_cast<std::size_t>(&at(ordinal) - runs_.data());
  };
  Patch patch{.first = index_of(first), .last = index_of(end - 1) + 1, .runs = {}};
  if (patch.first > 0) --patch.first;
  if (patch.last < runs_.size()) ++patch.last;
  PageTable spans;
  spans.start_at(runs_[patch.first].ordinal);
  for (const Run& run : std::span(runs_).subspan(patch.first, patch.last - patch.first)) {
    moves.visit({run.page, run.cell}, run.count, [&](CellAt, CellAt after, std::uint32_t count) {
      spans.append({after.page, after.cell, count, 0, run.shift});
    });
  }
  patch.runs = std::move(spans.runs_);
  return patch;
}

void PageTable::apply(const Patch& patch) noexcept {
  const auto first = runs_.begin() + static_cast<std::ptrdiff_t>(patch.first);
  const auto last = runs_.begin() + static_cast<std::ptrdiff_t>(patch.last);
  const std::size_t same = std::min(patch.runs.size(), patch.last - patch.first);
  const auto behind = std::copy_n(patch.runs.begin(), same, first);
  if (patch.growth() <= 0) {
    runs_.erase(behind, last);
  } else {
    runs_.insert(last, patch.runs.begin() + static_cast<std::ptrdiff_t>(same), patch.runs.end());
  }
}

PageTable PageTable::relocated(const Moves& moves) const {
  PageTable result;
  result.start_ = start_;
  result.runs_.reserve(runs_.size() + 2);
  for (const Run& run : runs_) {
    moves.visit({run.page, run.cell}, run.count, [&](CellAt, CellAt after, std::uint32_t count) {
      result.append({after.page, after.cell, count, 0, run.shift});
    });
  }
  return result;
}

bool PageTable::names_any(const Moves& moves) const noexcept {
  return std::ranges::any_of(runs_,
                             [&](const Run& run) { return moves.any({run.page, run.cell}, run.count); });
}

std::uint64_t PageTable::cells_in_tiers() const noexcept {
  std::uint64_t cells = 0;
  for (const Run& run : runs_) cells += in_tier(run.page) ? run.count : 0;
  return cells;
}

PageTable PageTable::exchanged(CellAt a, CellAt b) const {
  PageTable result;
  result.start_ = start_;
  for (const Run& run : runs_) {
    for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
      CellAt at{run.page, cell};
      if (at == a) {
        at = b;
      } else if (at == b) {
        at = a;
      }
      result.append({at.page, at.cell, 1, 0, run.shift});
    }
  }
  return result;
}

std::size_t PageTable::split(std::uint64_t ordinal) {
  if (ordinal >= length()) return runs_.size();
  if (ordinal <= start_) return 0;
  const auto index = static_cast<std::size_t>(&at(ordinal) - runs_.data());
  if (runs_[index].ordinal == ordinal) return index;
  Run right = runs_[index];
  const auto left_count = static_cast<std::uint32_t>(ordinal - right.ordinal);
  right.cell += left_count;
  right.count -= left_count;
  right.ordinal = ordinal;
  runs_[index].count = left_count;
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(index + 1), right);
  return index + 1;
}

void PageTable::rebuild() {
  std::size_t kept = 0;
  std::uint64_t ordinal = start_;
  for (Run run : runs_) {
    run.ordinal = ordinal;
    ordinal += run.count;
    if (kept > 0 && joins(runs_[kept - 1], run)) {
      runs_[kept - 1].count += run.count;
    } else {
      runs_[kept++] = run;
    }
  }
  runs_.resize(kept);
}

}  // namespace kvasir::pages
