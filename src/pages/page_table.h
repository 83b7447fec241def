// One conversation's spans in one group, in order of ordinals: edits of the list alone, with no cell counted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pages/moves.h"
#include "pages/types.h"

namespace kvasir::pages {

// Where an ordinal lies once [first, first + count) are taken out; one of theirs, where they were.
[[nodiscard]] constexpr std::uint64_t carried(std::uint64_t ordinal, std::uint64_t first,
                                              std::uint64_t count) noexcept {
  if (ordinal <= first) return ordinal;
  return ordinal - std::min(ordinal - first, count);
}

// Always covers [start, length) without a gap, with no span that could be joined to its predecessor.
class PageTable {
 public:
  [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }
  [[nodiscard]] std::uint64_t start() const noexcept { return start_; }
  [[nodiscard]] std::uint64_t length() const noexcept { return runs_.empty() ? start_ : runs_.back().end(); }
  [[nodiscard]] std::uint64_t cells() const noexcept { return length() - start_; }
  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }

  // The span that holds an ordinal of [start(), length()).
  [[nodiscard]] const Run& at(std::uint64_t ordinal) const noexcept;
  [[nodiscard]] CellAt cell_at(std::uint64_t ordinal) const noexcept;

  // Room for `more` spans, so that as many calls of append() allocate nothing.
  void reserve(std::size_t more);

  // Spans that there is memory for.
  [[nodiscard]] std::size_t places() const noexcept { return runs_.capacity(); }

  // Adds cells behind the last; the run's ordinal is set here.
  void append(Run run);

  // Where an empty table is to start.
  void start_at(std::uint64_t ordinal) noexcept { start_ = ordinal; }

  // Takes all cells below `ordinal`, which is at most length(), out: the table starts there. `visit` sees the
  // spans. Allocates nothing.
  template <class Visit>
  void drop_below(std::uint64_t ordinal, const Visit& visit) noexcept {
    if (ordinal <= start_) return;
    std::size_t whole = 0;
    while (whole < runs_.size() && runs_[whole].end() <= ordinal) visit(runs_[whole++]);
    runs_.erase(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(whole));
    start_ = ordinal;
    if (runs_.empty() || runs_.front().ordinal >= ordinal) return;
    Run& first = runs_.front();
    Run cut = first;
    cut.count = static_cast<std::uint32_t>(ordinal - first.ordinal);
    visit(cut);
    first.cell += cut.count;
    first.count -= cut.count;
    first.ordinal = ordinal;
  }

  // The spans of [first, end), which are held, as a table that starts at `start`.
  [[nodiscard]] PageTable part(std::uint64_t first, std::uint64_t end, std::uint64_t start) const;
  // The same into a table, whose memory is used again. Throws std::bad_alloc.
  void part(std::uint64_t first, std::uint64_t end, std::uint64_t start, PageTable& into) const;

  // Takes the ordinals [first, first + count) out and adds the spans that held them to `removed`; those
  // behind move left. Here and in shift() not all of them need be held.
  void remove(std::uint64_t first, std::uint64_t count, std::vector<Run>& removed);

  // Adds `delta` to the logical positions of [first, first + count).
  void shift(std::uint64_t first, std::uint64_t count, std::int64_t delta);

  // Puts other cells in the place of [first, first + count): as many, all held, with their own shifts. What
  // they replace is added to `replaced`.
  void replace(std::uint64_t first, std::span<const Run> with, std::vector<Run>& replaced);

  // Spans [first, last) of this table as other spans. Both cover the same ordinals.
  struct Patch {
    std::size_t first = 0;
    std::size_t last = 0;
    std::vector<Run> runs;

    // Spans that the table gains; negative where it loses some.
    [[nodiscard]] std::int64_t growth() const noexcept {
      return static_cast<std::int64_t>(runs.size()) - static_cast<std::int64_t>(last - first);
    }
  };

  // What lets the ordinals [first, end), which are held, be found where cells have moved; with the spans
  // beside them, which they may join.
  [[nodiscard]] Patch patch_for(const Moves& moves, std::uint64_t first, std::uint64_t end) const;

  // Allocates nothing after reserve(growth()).
  void apply(const Patch& patch) noexcept;

  // The same table with cells found where they have moved. Throws std::bad_alloc.
  [[nodiscard]] PageTable relocated(const Moves& moves) const;

  // The same table with two cells exchanged.
  [[nodiscard]] PageTable exchanged(CellAt a, CellAt b) const;

  // Whether a span holds one of the cells [from, from + count).
  [[nodiscard]] bool names_any(CellAt from, std::uint32_t count) const noexcept;

  // Whether a span holds a cell that moves.
  [[nodiscard]] bool names_any(const Moves& moves) const noexcept;

  // Cells that lie in tiers.
  [[nodiscard]] std::uint64_t cells_in_tiers() const noexcept;

  void clear() noexcept {
    runs_.clear();
    start_ = 0;
  }

  friend bool operator==(const PageTable&, const PageTable&) = default;

 private:
  // The index of the span that begins at `ordinal`, split there if need be; runs_.size() at length() and
  // beyond, 0 below start().
  std::size_t split(std::uint64_t ordinal);
  void rebuild();  // renumbers and joins

  std::vector<Run> runs_;
  std::uint64_t start_ = 0;
};

}  // namespace kvasir::pages
