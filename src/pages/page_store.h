// Who holds which cells: page tables, the frames that all groups share, and tickets.
//
// A ticket is one atomic step. begin() computes the need over every group and reserves all of it, or answers
// kNoSpace with the exact shortage having changed nothing. commit() installs the new cells and cannot fail; a
// ticket destroyed without commit gives everything back.
//
// Invariants (docs/invariants.md)
//   S1  Free frames and the frames of used pages are all frames, each once.
//   S2  A table's runs are in order of ordinals and cover [0, length) without a gap, the same length in every
//   group. S3  A cell's holders are the tables whose runs contain it and the open tickets that reserved it.
//   S4  A ticket's cells belong to it alone until commit.
//   S5  commit() and the end of a ticket allocate nothing and cannot fail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "pages/group_cells.h"
#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// One line of a plan: this conversation is to grow by `count` cells in every group. A table appears once in a
// plan.
struct Growth {
  TableId table{};
  std::uint64_t count = 0;
};

// The reservation of one step. Move-only; must not outlive its store.
class Ticket {
 public:
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&&) = delete;
  ~Ticket();

  // The plan it was made for.
  [[nodiscard]] std::span<const Growth> plan() const noexcept { return plan_; }

  // The new cells of plan line `line` in group `group`, in order of ordinals.
  [[nodiscard]] std::span<const Run> new_runs(std::size_t line, std::size_t group) const noexcept;

  // Takes plan line `line` out: its cells go back now, the other lines are unchanged. Its accepted count is 0
  // from here.
  void withdraw(std::size_t line) noexcept;

  // Installs, for each line, the first accepted[line] of its new cells (at most its count); the rest go back.
  // The ticket is then closed.
  void commit(std::span<const std::uint64_t> accepted) noexcept;

 private:
  friend class PageStore;
  explicit Ticket(PageStore& store) : store_(&store) {}

  void release_line(std::size_t line, std::uint64_t keep) noexcept;

  PageStore* store_;
  std::vector<Growth> plan_;
  std::vector<std::vector<Run>> runs_;  // [line * groups + group]
};

// Not thread-safe: its owner serializes every call, also those on its tickets.
class PageStore {
 public:
  // kInvalidArgument names the number that makes no sense; kOutOfMemory.
  [[nodiscard]] static Result<std::unique_ptr<PageStore>> create(const StoreSpec& spec);

  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  // A new conversation that holds nothing. kOutOfMemory.
  [[nodiscard]] Result<TableId> open();

  // Gives all of a conversation's cells back and ends its id. It must be in no open ticket.
  void close(TableId table) noexcept;

  // Reserves all that `plan` needs. kNoSpace names what is wanted and available, in tokens; kInvalidArgument
  // for a table twice or a count of 0; kOutOfMemory. On error nothing has changed.
  [[nodiscard]] Result<Ticket> begin(std::span<const Growth> plan);

  // Cells that a conversation holds.
  [[nodiscard]] std::uint64_t length(TableId table) const noexcept { return entry(table).length; }

  // Its runs in a group, in order of ordinals. Valid until the next call that is not const.
  [[nodiscard]] std::span<const Run> runs(TableId table, std::size_t group) const noexcept {
    return entry(table).runs[group];
  }

  // The frame of a page for the group's layer number `layer`.
  [[nodiscard]] FrameId frame(std::size_t group, PageId page, std::uint32_t layer) const noexcept {
    return groups_[group].frames(page)[layer];
  }
  [[nodiscard]] std::uint64_t position(std::size_t group, PageId page, std::uint32_t cell) const noexcept {
    return groups_[group].position(page, cell);
  }

  // The longest prompt that a new conversation could take now as one unit.
  [[nodiscard]] std::uint64_t tokens_free() const noexcept;

  [[nodiscard]] std::uint32_t page_cells() const noexcept { return spec_.page_cells; }
  [[nodiscard]] std::size_t group_count() const noexcept { return groups_.size(); }
  [[nodiscard]] std::uint32_t frames_free() const noexcept {
    return static_cast<std::uint32_t>(free_frames_.size());
  }

  // Every invariant, for tests; not while a ticket is open. kInternal names the broken one.
  [[nodiscard]] Status check() const;

 private:
  friend class Ticket;

  struct Table {
    std::vector<std::vector<Run>> runs;  // [group]
    std::uint64_t length = 0;
    bool open = false;
  };

  explicit PageStore(StoreSpec spec) : spec_(std::move(spec)) {}
  [[nodiscard]] const Table& entry(TableId table) const noexcept {
    return tables_[static_cast<std::size_t>(table)];
  }
  [[nodiscard]] Table& entry(TableId table) noexcept { return tables_[static_cast<std::size_t>(table)]; }

  [[nodiscard]] Status check_plan(std::span<const Growth> plan) const;
  // Frames that `cells` new cells in a group need at least, holes used first.
  [[nodiscard]] std::uint64_t frames_needed(const GroupCells& group, std::uint64_t cells) const noexcept;
  [[nodiscard]] std::uint64_t frames_needed(std::uint64_t cells) const noexcept;
  void reserve(Ticket& ticket);
  void reserve_line(Ticket& ticket, std::size_t line, std::size_t group, std::uint64_t& fresh_pages);
  [[nodiscard]] Run take_some(std::size_t group, const Run* predecessor, std::uint64_t ordinal,
                              std::uint64_t wanted, std::uint64_t& fresh_pages) noexcept;
  void release(std::size_t group, PageId page, CellRange cells) noexcept;
  void install(TableId table, std::size_t group, std::span<const Run> runs) noexcept;
  [[nodiscard]] Status check_tables(std::vector<std::vector<std::uint32_t>>& holders) const;

  StoreSpec spec_;
  std::vector<GroupCells> groups_;
  std::vector<FrameId> free_frames_;  // a stack
  std::vector<Table> tables_;
  std::vector<TableId> closed_;  // ids to use again
};

}  // namespace kvasir::pages
