// Reservations: of a step's new cells, and of an edit of one conversation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pages/checkpoints.h"
#include "pages/page_table.h"
#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// One line of a plan: this conversation is to grow by `count` tokens in every group. A table appears once in
// a plan.
struct Growth {
  TableId table{};
  std::uint64_t count = 0;
  std::uint64_t fewest =
      0;  // commit() accepts at least so many, or none; the more, the fewer cells are needed
  std::uint64_t prompt = 0;  // tokens left of the prompt that this line goes on with; 0: none
};

// What a ticket has reserved for a conversation.
struct LineInTicket {
  std::uint64_t count = 0;
  std::uint64_t fewest = 0;
  std::uint64_t paid = 0;  // tokens of the conversation's promise that it used up
};

// A state that the scan of a line must have when it has read all tokens below `ordinal`.
struct StateWrite {
  std::uint64_t ordinal = 0;
  PageId state{};

  friend bool operator==(const StateWrite&, const StateWrite&) = default;
};

// The reservation of one step. Move-only; must not outlive its store. Its conversations can be neither edited
// nor closed while it is open. Once it is committed nothing of it may be called.
//
// A window group needs fewer cells than tokens for a line that is longer than its window and a pass: what the
// line itself wrote and no later token sees is written again. Such a line is computed in passes of at most
// StoreSpec::pass_tokens, each announced by open_pass().
class Ticket {
 public:
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&&) = delete;
  ~Ticket();

  // The plan it was made for.
  [[nodiscard]] std::span<const Growth> plan() const noexcept { return memory_->plan; }

  // The new cells of plan line `line` in group `group`, in order; ordinals go on from the committed length.
  // In a window group those that the pass opened last can see or writes, at first the first. None in
  // recurrent and cross-attention groups.
  [[nodiscard]] std::span<const Run> new_runs(std::size_t line, std::size_t group) const noexcept;

  // The states that a line's scan must write in passing, in order of ordinals. The last is that behind the
  // line's end; between two passes the scan keeps its state there.
  [[nodiscard]] std::span<const StateWrite> states(std::size_t line, std::size_t group) const noexcept;

  // The next pass of a line computes its tokens up to `end`, counted from its first. What no token from there
  // on sees gives its cells to the new ones.
  void open_pass(std::size_t line, std::uint64_t end) noexcept;

  // Takes plan line `line` out: its cells go back now, the other lines are unchanged.
  void withdraw(std::size_t line) noexcept;

  // Installs, for each line, the first accepted[line] of its new tokens (at most its count, at least its
  // fewest or 0, and 0 for a withdrawn one); the rest go back. The ticket is then closed. Where a recurrent
  // group has no state of that end, all go back behind the last ordinal of which it has one, and the
  // conversation is behind by those that were accepted.
  void commit(std::span<const std::uint64_t> accepted) noexcept;

 private:
  friend class PageStore;

  struct Progress {
    std::uint64_t opened = 0;  // tokens whose cells have been written to
    bool ended = false;        // withdrawn or installed
  };

  // What a ticket knows. Its store keeps it from ticket to ticket, so that a step in steady state takes no
  // memory for it. Lists may be longer than this ticket's lines.
  struct Memory {
    // Empty for so many lines but for `plan`, which is set last: it says how many lines there are.
    void reset(std::size_t lines, std::size_t groups, bool only_full);

    std::vector<Growth> plan;
    std::vector<Progress> progress;      // [line]
    std::vector<std::vector<Run>> runs;  // [line, group]
    // Empty in a store of full groups alone.
    std::vector<std::vector<Run>> rings;              // [line, group]: all cells, where they are fewer
    std::vector<std::vector<StateWrite>> states;      // [line, group]
    std::vector<std::vector<std::uint64_t>> due;      // [line]: where checkpoints are kept, ascending
    std::vector<std::vector<CheckpointId>> prepared;  // [line]: they, without owners
  };

  explicit Ticket(PageStore& store);
  void close() noexcept;
  void repay(std::size_t line, std::uint64_t accepted) noexcept;
  void release_cells(std::size_t line, std::uint64_t keep) noexcept;
  void show_ring(std::size_t line, std::size_t group, std::uint64_t end) noexcept;
  void append_final(std::size_t line, std::size_t group, PageTable& cells) const;
  void end_line(std::size_t line) noexcept;
  [[nodiscard]] std::uint64_t installable(std::size_t line, std::uint64_t accepted) const noexcept;
  void install_line(std::size_t line, std::uint64_t accepted) noexcept;
  void install_cells(std::size_t line, std::size_t group) noexcept;
  void install_state(std::size_t line, std::size_t group, std::uint64_t ordinal) noexcept;
  void keep_checkpoints(std::size_t line, std::uint64_t end) noexcept;
  [[nodiscard]] std::size_t at(std::size_t line, std::size_t group) const noexcept {
    return line * groups_ + group;
  }

  PageStore* store_;
  std::size_t groups_ = 0;
  std::unique_ptr<Memory> memory_;  // from begin() to the ticket's end
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

// What an edit does to a conversation, found on numbers alone.
struct EditOutline {
  std::uint64_t length = 0;
  std::array<std::uint64_t, kGroupsMax> floors{};
  std::array<std::uint64_t, kGroupsMax> starts{};  // of the tables
  Need rewritten{};                                // cells
  std::uint64_t first_changed = UINT64_MAX;
  std::uint64_t first_dirty = UINT64_MAX;
  std::uint64_t last_dirty = 0;  // where the last of all its edits begins
};

// The reservation of one edit. Move-only; must not outlive its store.
class EditTicket {
 public:
  EditTicket(EditTicket&& other) noexcept;
  EditTicket& operator=(EditTicket&&) = delete;
  ~EditTicket();

  // What must be done to bytes before commit, in this order.
  [[nodiscard]] std::span<const RotateCells> jobs() const noexcept { return jobs_; }

  // The first ordinal that the edit changes or removes; UINT64_MAX where it changes nothing.
  [[nodiscard]] std::uint64_t first_changed() const noexcept { return outline_.first_changed; }

  void commit() noexcept;

 private:
  friend class PageStore;
  EditTicket(PageStore& store, TableId table, const EditOutline& outline, const Need& more) noexcept;
  void close() noexcept;

  PageStore* store_;
  TableId table_;
  std::vector<PageTable> cells_;           // [group]: as they will be
  std::vector<std::vector<Run>> removed_;  // [group]: to be released at commit
  std::vector<std::vector<Run>> taken_;    // [group]: to be released without commit
  std::vector<RotateCells> jobs_;
  EditOutline outline_;
  Need more_{};  // what the promise needs more afterwards
};

}  // namespace kvasir::pages
