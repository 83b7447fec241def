// Conversations as they are at one moment, to be read while they go on: their layout, and their cells and
// states, held firmly until the snapshot ends.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "pages/layout.h"
#include "pages/page_table.h"
#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// Must not outlive its store, whose owner serializes every call.
class Snapshot {
 public:
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }

  // Where the cells of a group lie now, in the pool or in tiers: the ordinals of these spans are the layout's
  // numbers. Cells may change places from one call of the store to the next; what they hold does not change.
  [[nodiscard]] const PageTable& cells(std::size_t group) const noexcept { return cells_[group]; }

 private:
  friend class PageStore;
  class Numbering;
  explicit Snapshot(PageStore& store) noexcept : store_(&store) {}

  PageStore* store_;
  Layout layout_;
  std::vector<PageTable> cells_;  // [group]
  bool holds_ = false;
};

}  // namespace kvasir::pages
