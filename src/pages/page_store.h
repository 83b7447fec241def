// Who holds which cells: page tables, the frames that all groups share, tickets, edits, and the prefix index.
//
// A ticket is one atomic step. begin() computes the need over every group and reserves all of it, or answers
// kNoSpace with the exact shortage having changed nothing. commit() installs the new cells and cannot fail; a
// ticket destroyed without commit gives everything back. An edit is a ticket of the same kind over one
// conversation's spans.
//
// Invariants (docs/invariants.md)
//   S1  Free frames and the frames of used pages are all frames, each once.
//   S2  A table's spans are in order of ordinals and cover [0, length) without a gap, the same length in
//       every group.
//   S3  A cell's firm holders are the tables whose spans contain it and the open tickets that reserved it;
//       its soft holders are the blocks of the index and an open compaction that copies it.
//   S4  A ticket's cells belong to it alone until commit.
//   S5  commit() and the end of a ticket allocate nothing and cannot fail.
//   S6  What is promised fits: frames for all promised cells are free or evictable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"
#include "pages/group_cells.h"
#include "pages/page_table.h"
#include "pages/prefix_index.h"
#include "pages/ticket.h"
#include "pages/types.h"

namespace kvasir::pages {

class Compaction;

// Space as one consistent snapshot, in tokens (cells that every group needs together).
struct SpaceReport {
  std::uint64_t free = 0;      // the longest prompt that a new conversation could take now as one unit
  std::uint64_t promised = 0;  // reserved for conversations and not yet used
  std::uint64_t frames = 0;    // of the arena
  std::uint64_t frames_free = 0;
  std::uint64_t held_cells = 0;       // over all groups
  std::uint64_t evictable_cells = 0;  // of them held by the index or an open compaction alone
  std::uint64_t hole_cells = 0;       // free cells of used pages
  double fragmentation =
      0;  // 0: every conversation lies in as few spans as its length allows; towards 1: in many
};

// What one conversation holds, in cells over all groups.
struct Holdings {
  std::uint64_t own = 0;     // of which it is the only firm holder
  std::uint64_t shared = 0;  // with others
  std::uint64_t spans = 0;
  std::uint64_t promised = 0;  // tokens
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

  // A new conversation that shares every committed cell of `table`: counts are raised, nothing is copied.
  // kOutOfMemory.
  [[nodiscard]] Result<TableId> fork(TableId table);

  // Reserves all that `plan` needs, evicting from the index as much as that takes. kNoSpace names what is
  // wanted and available, in tokens; kInvalidArgument for a table that is not open or named twice, a count of
  // 0, or a position beyond kPositionMax; kOutOfMemory. On error nothing has changed but, for kOutOfMemory,
  // what the index holds.
  [[nodiscard]] Result<Ticket> begin(std::span<const Growth> plan);

  // Plans an edit: the operations apply one after another to the conversation as the one before left it, all
  // at once at commit. kInvalidArgument for a range outside the conversation, a divisor of 0, or a position
  // that would leave [0, kPositionMax]; kNoSpace where keys must be rewritten and there is no room;
  // kOutOfMemory.
  [[nodiscard]] Result<EditTicket> begin_edit(TableId table, std::span<const EditOperation> operations);

  // Lets two committed cells of a conversation change places in the pool, in every group; all who hold them
  // follow. Answers the exchanges of bytes that the caller must do before anything else. kInvalidArgument for
  // an ordinal outside the conversation, kBusy while a ticket is open, kOutOfMemory; with nothing changed.
  [[nodiscard]] Result<std::vector<SwapCells>> swap(TableId table, std::uint64_t a, std::uint64_t b);

  // Promises that `count` more tokens of this conversation will fit, in place of what was promised before.
  // kNoSpace as begin(). Its own growth uses the promise up: that of a ticket from begin() on, and what is
  // not accepted in the end is promised again.
  [[nodiscard]] Status promise(TableId table, std::uint64_t count);

  // Whether `count` more tokens of a conversation fit now: what is promised to others stays so.
  [[nodiscard]] bool fits(TableId table, std::uint64_t count) const noexcept;

  // Enters all complete blocks of a conversation's clean cells into the index. `tokens` are all its committed
  // ones. Where memory is short some stay out.
  void remember(TableId id, std::span<const Token> tokens, std::uint64_t salt) noexcept;

  // Gives an empty conversation the longest beginning of `tokens` that the index holds, at most `limit`
  // tokens; answers how many. What this turns from evictable into held must fit, else fewer. kOutOfMemory,
  // with nothing changed.
  [[nodiscard]] Result<std::uint64_t> adopt(TableId id, std::span<const Token> tokens, std::uint64_t limit,
                                            std::uint64_t salt);

  // Empties the index.
  void forget() noexcept;

  // Cells that a conversation holds.
  [[nodiscard]] std::uint64_t length(TableId table) const noexcept { return entry(table).length; }

  // Its spans in a group, in order of ordinals. Valid until the next call that is not const.
  [[nodiscard]] std::span<const Run> runs(TableId table, std::size_t group) const noexcept {
    return entry(table).cells[group].runs();
  }

  // The logical position that the next token of a conversation gets.
  [[nodiscard]] std::int64_t next_position(TableId table) const noexcept;

  // The frame of a page for the group's layer number `layer`; the storage position of a cell.
  [[nodiscard]] FrameId frame(std::size_t group, PageId page, std::uint32_t layer) const noexcept {
    return groups_[group].frames(page)[layer];
  }
  [[nodiscard]] std::uint64_t position(std::size_t group, PageId page, std::uint32_t cell) const noexcept {
    return groups_[group].position(page, cell);
  }

  [[nodiscard]] std::uint64_t tokens_free() const noexcept;
  [[nodiscard]] SpaceReport space() const noexcept;
  [[nodiscard]] Holdings holdings(TableId table) const noexcept;
  [[nodiscard]] const PrefixCounters& prefix_counters() const noexcept { return index_.counters(); }
  [[nodiscard]] std::size_t prefix_blocks() const noexcept { return index_.size(); }

  [[nodiscard]] std::uint32_t page_cells() const noexcept { return spec_.page_cells; }
  [[nodiscard]] std::size_t group_count() const noexcept { return groups_.size(); }
  [[nodiscard]] std::uint32_t frames_free() const noexcept {
    return static_cast<std::uint32_t>(free_frames_.size());
  }
  [[nodiscard]] const GroupCells& group(std::size_t index) const noexcept { return groups_[index]; }

  // Every invariant, for tests; while a ticket is open its cells have one holder more than S3 finds, so not
  // then. kInternal names the broken one, kOutOfMemory.
  [[nodiscard]] Status check() const;

 private:
  friend class Ticket;
  friend class EditTicket;
  friend class Compaction;

  static constexpr std::uint64_t kAllClean = UINT64_MAX;

  struct Table {
    std::vector<PageTable> cells;  // [group]
    std::uint64_t length = 0;
    std::uint64_t promised = 0;             // tokens
    std::uint64_t first_dirty = kAllClean;  // no cell from this ordinal on may enter the index
    std::uint64_t remembered = 0;           // tokens offered to the index
    bool open = false;
  };

  explicit PageStore(StoreSpec spec) : spec_(std::move(spec)) {}
  [[nodiscard]] static Result<std::unique_ptr<PageStore>> make(const StoreSpec& spec);
  [[nodiscard]] const Table& entry(TableId table) const noexcept {
    return tables_[static_cast<std::size_t>(table)];
  }
  [[nodiscard]] Table& entry(TableId table) noexcept { return tables_[static_cast<std::size_t>(table)]; }
  [[nodiscard]] Status check_plan(std::span<const Growth> plan) const;
  [[nodiscard]] Status check_positions(std::span<const Growth> plan) const;

  // Cells to be taken in every group, and all that must fit: they and what is promised besides.
  struct Demand {
    std::uint64_t cells = 0;
    std::uint64_t total = 0;
  };

  // Space: frames that `cells` more cells of every group need, holes used first; and those to be had.
  [[nodiscard]] std::uint64_t frames_needed(std::uint64_t cells) const noexcept;
  [[nodiscard]] std::uint64_t frames_to_be_had() const noexcept;
  [[nodiscard]] bool promises_fit() const noexcept;
  [[nodiscard]] std::uint64_t pages_now(std::size_t group, std::uint64_t cells) const noexcept;
  [[nodiscard]] std::uint64_t pages_in_the_end(std::size_t group, std::uint64_t cells) const noexcept;
  [[nodiscard]] std::uint64_t frames_beyond_need(std::size_t group, const Demand& demand) const noexcept;
  [[nodiscard]] bool has_room_now(const Demand& demand) const noexcept;
  [[nodiscard]] std::uint64_t promised_but(TableId table) const noexcept;
  [[nodiscard]] std::uint64_t largest_fitting(std::uint64_t beside) const noexcept;
  [[nodiscard]] std::uint64_t need_of(std::span<const Growth> plan) const noexcept;
  [[nodiscard]] Status admit(std::uint64_t wanted, std::uint64_t beside) const;
  void make_room(const Demand& demand) noexcept;
  void drop_compaction_of(TableId table) noexcept;
  void evict(PrefixIndex::BlockId block) noexcept;

  // The index.
  [[nodiscard]] std::vector<PrefixIndex::BlockId> known_blocks(std::span<const Token> tokens,
                                                               std::uint64_t limit, std::uint64_t salt) const;
  [[nodiscard]] bool hold_block(PrefixIndex::BlockId block) noexcept;

  // Taking and giving back.
  void reserve(Ticket& ticket, const Demand& demand);
  void reserve_line(Ticket& ticket, std::size_t line, std::size_t group, std::uint64_t& fresh_pages);
  [[nodiscard]] std::uint64_t fresh_pages(std::size_t group, const Demand& demand) const noexcept;
  [[nodiscard]] Run take_some(std::size_t group, const Run* predecessor, std::uint64_t position,
                              std::uint64_t wanted, std::uint64_t& fresh_pages) noexcept;
  void release(std::size_t group, PageId page, CellRange cells, Holder holder) noexcept;
  void release(std::size_t group, std::span<const Run> runs, Holder holder) noexcept;
  void hold(std::size_t group, std::span<const Run> runs, Holder holder) noexcept;
  void give_frames_back(std::size_t group, PageId page) noexcept;

  [[nodiscard]] std::vector<std::int64_t> positions_of(TableId table) const;
  [[nodiscard]] Result<std::uint64_t> check_edit(TableId table,
                                                 std::span<const EditOperation> operations) const;
  void plan_operation(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                      std::uint64_t& fresh_pages);
  void plan_divide(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                   std::uint64_t& fresh_pages);

  // Every list of spans that names cells of a group: tables and index blocks.
  template <class Visit>
  void visit_holders(std::size_t group, const Visit& visit) {
    for (Table& table : tables_) {
      if (table.open) visit(table.cells[group]);
    }
    for (const PrefixIndex::BlockId block : index_.blocks()) visit(index_.cells(block)[group]);
  }

  [[nodiscard]] Status check_invariants() const;
  [[nodiscard]] Status check_holders(std::size_t group) const;
  [[nodiscard]] std::uint64_t count_spans(std::uint64_t& fewest) const noexcept;

  StoreSpec spec_;
  std::vector<GroupCells> groups_;
  std::vector<FrameId> free_frames_;  // a stack
  std::vector<Table> tables_;
  std::vector<TableId> closed_;  // ids to use again
  PrefixIndex index_;
  std::uint64_t promised_ = 0;        // over all tables
  Compaction* compaction_ = nullptr;  // an open one
  std::uint32_t emptied_group_ = 0;   // whose page a compaction emptied last
  std::uint32_t open_tickets_ = 0;    // of steps and edits: they hold cells that no table names yet
};

}  // namespace kvasir::pages
