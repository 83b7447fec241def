// The reservation of conversations that come back from a layout: all their cells and states, over all groups.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pages/checkpoints.h"
#include "pages/page_table.h"
#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// Move-only; must not outlive its store. Destroyed without commit it gives everything back, and its
// conversations stay empty. They can be neither edited nor closed while it is open.
class RestoreTicket {
 public:
  RestoreTicket(RestoreTicket&& other) noexcept;
  RestoreTicket& operator=(RestoreTicket&&) = delete;
  ~RestoreTicket();

  // Where the cells of a group are to be written before commit: spans whose ordinals are the layout's
  // numbers, ascending. Numbers between them are wanted by nobody: they belong to checkpoints that are left
  // out.
  [[nodiscard]] std::span<const Run> places(std::size_t group) const noexcept { return places_[group]; }

  // Lets every conversation be what the layout describes. Allocates nothing and cannot fail.
  void commit() noexcept;

 private:
  friend class PageStore;
  explicit RestoreTicket(PageStore& store) noexcept;
  void close() noexcept;

  // A conversation as it will be.
  struct Returning {
    TableId table{};
    std::uint64_t length = 0;
    std::uint64_t behind = 0;
    std::uint64_t clean = 0;
    bool foreign = false;
    std::uint64_t encoded = 0;  // number among the ticket's
    std::array<std::uint64_t, kGroupsMax> floors{};
    std::vector<PageTable> cells;           // [group]
    std::vector<CheckpointId> checkpoints;  // prepared ones
  };

  PageStore* store_;
  std::vector<std::vector<Run>> places_;  // [group]
  std::vector<Returning> returning_;
  std::vector<CheckpointId> prepared_;  // without owners
};

}  // namespace kvasir::pages
