// The reservation of an encoder's output: cells of the cross-attention groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// Move-only; must not outlive its store. Destroyed without commit it gives everything back, and the
// conversation attends to what it did before.
class EncodeTicket {
 public:
  EncodeTicket(EncodeTicket&& other) noexcept;
  EncodeTicket& operator=(EncodeTicket&&) = delete;
  ~EncodeTicket();

  // The new cells in a group, in order; none in groups of other kinds.
  [[nodiscard]] std::span<const Run> new_runs(std::size_t group) const noexcept { return runs_[group]; }

  // Lets the conversation attend to them; what there was goes back. Allocates nothing and cannot fail.
  void commit() noexcept;

 private:
  friend class PageStore;
  EncodeTicket(PageStore& store, TableId table) noexcept;
  void close() noexcept;

  PageStore* store_;
  TableId table_;
  std::vector<std::vector<Run>> runs_;  // [group]
};

}  // namespace kvasir::pages
