// One conversation's spans in one group, in order of ordinals: edits of the list alone, with no cell counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pages/types.h"

namespace kvasir::pages {

// Always covers [0, length) without a gap, with no span that could be joined to its predecessor.
class PageTable {
 public:
  [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }
  [[nodiscard]] std::uint64_t length() const noexcept { return runs_.empty() ? 0 : runs_.back().end(); }
  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }

  // The span that holds an ordinal below length().
  [[nodiscard]] const Run& at(std::uint64_t ordinal) const noexcept;
  [[nodiscard]] CellAt cell_at(std::uint64_t ordinal) const noexcept;

  // Room for `more` spans, so that as many calls of append() allocate nothing.
  void reserve(std::size_t more);

  // Adds cells behind the last; the run's ordinal is set here.
  void append(Run run);

  // Takes the ordinals [first, first + count) out and adds the spans that held them to `removed`; those
  // behind move left.
  void remove(std::uint64_t first, std::uint64_t count, std::vector<Run>& removed);

  // Adds `delta` to the logical positions of [first, first + count).
  void shift(std::uint64_t first, std::uint64_t count, std::int64_t delta);

  // Puts other cells in the place of [first, first + count): as many, with their own shifts. What they
  // replace is added to `replaced`.
  void replace(std::uint64_t first, std::span<const Run> with, std::vector<Run>& replaced);

  // The same table with the cells [from, from + count) of a page found at `to` instead.
  [[nodiscard]] PageTable moved(CellAt from, CellAt to, std::uint32_t count) const;

  // The same table with two cells exchanged.
  [[nodiscard]] PageTable exchanged(CellAt a, CellAt b) const;

  // Whether a span holds one of the cells [from, from + count).
  [[nodiscard]] bool names_any(CellAt from, std::uint32_t count) const noexcept;

  void clear() noexcept { runs_.clear(); }

  friend bool operator==(const PageTable&, const PageTable&) = default;

 private:
  // The index of the span that begins at `ordinal`, split there if need be; runs_.size() at length().
  std::size_t split(std::uint64_t ordinal);
  void rebuild();  // renumbers and joins

  std::vector<Run> runs_;
};

}  // namespace kvasir::pages
