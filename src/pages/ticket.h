// Reservations: of a step's new cells, and of an edit of one conversation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pages/page_table.h"
#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// One line of a plan: this conversation is to grow by `count` cells in every group. A table appears once in a
// plan.
struct Growth {
  TableId table{};
  std::uint64_t count = 0;
};

// The reservation of one step. Move-only; must not outlive its store. Its conversations must not be edited or
// closed while it is open.
class Ticket {
 public:
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&&) = delete;
  ~Ticket();

  // The plan it was made for.
  [[nodiscard]] std::span<const Growth> plan() const noexcept { return plan_; }

  // The new cells of plan line `line` in group `group`, in order; ordinals go on from the committed length.
  [[nodiscard]] std::span<const Run> new_runs(std::size_t line, std::size_t group) const noexcept;

  // Takes plan line `line` out: its cells go back now, the other lines are unchanged.
  void withdraw(std::size_t line) noexcept;

  // Installs, for each line, the first accepted[line] of its new cells (at most its count, 0 for a withdrawn
  // one); the rest go back. The ticket is then closed.
  void commit(std::span<const std::uint64_t> accepted) noexcept;

 private:
  friend class PageStore;
  explicit Ticket(PageStore& store) noexcept;
  void release_line(std::size_t line, std::uint64_t keep) noexcept;

  PageStore* store_;
  std::vector<Growth> plan_;
  std::vector<std::vector<Run>> runs_;  // [line * groups + group]
  std::vector<std::uint64_t> paid_;     // [line]: tokens of its conversation's promise that it used up
};

// A change of the spans of one conversation.
struct EditOperation {
  enum class Kind : std::uint8_t {
    kRemove,  // takes the ordinals out; those behind move left, positions stay
    kShift,   // adds `amount` to positions
    kDivide,  // divides positions by `amount`, rounding down; keys are rewritten into new cells
  };
  Kind kind = Kind::kRemove;
  std::uint64_t first = 0;  // ordinals [first, first + count)
  std::uint64_t count = 0;
  std::int64_t amount = 0;
};

// Two cells of a group change places.
struct SwapCells {
  std::uint32_t group = 0;
  CellAt a;
  CellAt b;
};

// The reservation of one edit. Move-only; must not outlive its store. Its conversation must be in no other
// ticket.
class EditTicket {
 public:
  EditTicket(EditTicket&& other) noexcept;
  EditTicket& operator=(EditTicket&&) = delete;
  ~EditTicket();

  // What must be done to bytes before commit, in this order.
  [[nodiscard]] std::span<const RotateCells> jobs() const noexcept { return jobs_; }

  // The first ordinal that the edit changes or removes; UINT64_MAX where it changes nothing.
  [[nodiscard]] std::uint64_t first_changed() const noexcept { return first_changed_; }

  void commit() noexcept;

 private:
  friend class PageStore;
  EditTicket(PageStore& store, TableId table) noexcept;
  void note_changes(std::span<const EditOperation> operations) noexcept;

  PageStore* store_;
  TableId table_;
  std::vector<PageTable> cells_;           // [group]: as they will be
  std::vector<std::vector<Run>> removed_;  // [group]: to be released at commit
  std::vector<std::vector<Run>> taken_;    // [group]: to be released without commit
  std::vector<RotateCells> jobs_;
  std::uint64_t first_changed_ = UINT64_MAX;
  std::uint64_t first_dirty_ = UINT64_MAX;
};

}  // namespace kvasir::pages
