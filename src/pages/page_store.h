// Who holds which cells and states: page tables, the frames that all groups share, tickets, edits, rewinds,
// and the prefix index.
//
// A ticket is one atomic step. begin() computes the need over every group and reserves all of it, or answers
// kNoSpace with the exact shortage having changed nothing. commit() installs the new cells and cannot fail; a
// ticket destroyed without commit gives everything back. An edit is a ticket of the same kind over one
// conversation's spans.
//
// A window group of width W keeps a conversation's cells from its release line on, which follows the length
// W + R behind (R = kReleaseSlack) and moves back in a rewind to a checkpoint alone. A token sees, of the
// cells before it, those less than W behind by ordinal and by position, from the conversation's floor on: at
// first 0, raised to length - W by each edit that moves or removes what is not the end, and carried along by
// it.
//
// A recurrent group keeps one state for each conversation, at its length; none stands for the state before
// any token. A state is a page of one cell: it is held, shared and evicted as cells are.
//
// A conversation is behind where a rewind, or a step accepted in part, has ended at an earlier moment than
// was asked for. Its next tokens are those that it is behind by; their room is promised to it. Until it has
// caught up only open tickets, begin(), promise(), rewind(), fork() and close() are for it.
//
// Cells of idle conversations may lie in a tier instead of the pool: their owner brings the bytes away, then
// spill() lets all who hold them find them there. A table that names such cells is edited, rewound, forked
// and closed as any other; what reads or adds cells waits until begin_return() has brought them back.
//
// Invariants (docs/invariants.md)
//   S1  Free frames and the frames of used pages are all frames, each once.
//   S2  A table's spans are in order of ordinals and cover [start, length) without a gap: the start is 0 in a
//       full group and the release line in a window group, the length the same in all of them.
//   S3  A cell's firm holders are the tables whose spans contain it, the snapshots that do, and the open
//       tickets that reserved it; its soft holders are the blocks of the index, the checkpoints, and an open
//       compaction that copies it.
//   S4  A ticket's cells belong to it alone until commit.
//   S5  commit() and the end of a ticket allocate nothing and cannot fail.
//   S6  What is promised fits: frames for all promised cells are free or evictable.
//   S7  In a window group of width W the release line is at least length - W - R and at most
//       max(length - W, floor), or 0.
//   S8  In a recurrent group a conversation has a state of its length, or at length 0 none.
//   S9  A conversation is in at most one open ticket.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"
#include "pages/checkpoints.h"
#include "pages/encode.h"
#include "pages/group_cells.h"
#include "pages/holder_index.h"
#include "pages/layout.h"
#include "pages/page_table.h"
#include "pages/prefix_index.h"
#include "pages/restore.h"
#include "pages/snapshot.h"
#include "pages/ticket.h"
#include "pages/tier_return.h"
#include "pages/tier_runs.h"
#include "pages/types.h"

namespace kvasir::pages {

class Compaction;

// Where a compaction looks first: its predecessor has just gathered there, or made room to.
struct CompactionCursor {
  std::uint32_t group = 0;
  std::size_t table = 0;
  std::uint64_t ordinal = 0;
};

// How many spans the tables of a group had when a compaction emptied a page of it, and what had changed until
// then or was changed by compactions since.
struct EmptiedPage {
  std::uint64_t spans = 0;
  std::optional<std::uint64_t> changes = std::nullopt;
};

// Space as one consistent snapshot, in tokens (cells that every group needs together).
struct SpaceReport {
  std::uint64_t free = 0;      // the longest prompt that a new conversation could take now as one unit
  std::uint64_t promised = 0;  // reserved for conversations and not yet used
  std::uint64_t frames = 0;    // of the arena
  std::uint64_t frames_free = 0;
  std::uint64_t held_cells = 0;       // over all groups
  std::uint64_t evictable_cells = 0;  // of them held by the index, checkpoints or an open compaction alone
  std::uint64_t hole_cells = 0;       // free cells of used pages
  std::uint64_t tier_cells = 0;       // that lie in tiers instead
  std::uint64_t checkpoints = 0;      // kept
  double fragmentation =
      0;  // 0: every conversation lies in as few spans as its length allows; towards 1: in many
};

// What one conversation holds, in cells over all groups; a state is one cell.
struct Holdings {
  std::uint64_t own = 0;      // of which it is the only firm holder
  std::uint64_t shared = 0;   // with others
  std::uint64_t spilled = 0;  // more, which lie in tiers
  std::uint64_t spans = 0;
  std::uint64_t promised = 0;  // tokens, those it is behind by included
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

  // Gives all of a conversation's cells back and ends its id. kDone, or kBusy while a ticket is open for it,
  // with nothing changed.
  Outcome close(TableId id) noexcept;

  // A new conversation that shares every committed cell of `table`, its states and checkpoints: counts are
  // raised, nothing is copied. It is behind as its parent is, but nothing is promised to it. kNoSpace where
  // what is promised to the parent counts on cells that only the parent holds; kOutOfMemory.
  [[nodiscard]] Result<TableId> fork(TableId id);

  // A new conversation without tokens that attends to the same encoder's output as `table`, if it does to
  // one. Errors as fork().
  [[nodiscard]] Result<TableId> fork_source(TableId id);

  // Reserves all that `plan` needs, evicting as much as that takes. kNoSpace names what is wanted and
  // available, in cells of the group that needs most: tokens, where there is a full group. kInvalidArgument
  // for a table that is not open or named twice, a count of 0 or below the fewest accepted, or a position
  // beyond kPositionMax; kBusy for one in another open ticket; kOutOfMemory. On error nothing has changed
  // but, for kOutOfMemory, what the index and checkpoints hold.
  [[nodiscard]] Result<Ticket> begin(std::span<const Growth> plan);

  // Plans an edit: the operations apply one after another to the conversation as the one before left it, all
  // at once at commit; one that leaves every token and position as it was changes nothing. kInvalidArgument
  // for a range outside the conversation, a divisor of 0, or a position that would leave [0, kPositionMax];
  // kNoSpace where keys must be rewritten and there is no room, or where what is promised needs more
  // afterwards; kUnsupported where positions or tokens would move that cannot in this store; kWrongState
  // while the conversation is behind, and for the removal of an end that only rewind() can do; kBusy while a
  // ticket is open for it; kOutOfMemory. On error nothing has changed.
  [[nodiscard]] Result<EditTicket> begin_edit(TableId id, std::span<const EditOperation> operations);

  // Reserves `count` cells in every cross-attention group for an encoder's output, which takes the place of
  // what there was. kWrongState while the conversation has tokens, which were computed from what there was;
  // kUnsupported without such a group; else as begin().
  [[nodiscard]] Result<EncodeTicket> begin_encode(TableId id, std::uint64_t count);

  // What conversations hold at this moment, described and held until the snapshot ends; also while tickets
  // are open for them: they are what is committed. kNoSpace where what is promised counts on cells that the
  // snapshot would keep; kOutOfMemory; with nothing changed.
  [[nodiscard]] Result<std::unique_ptr<Snapshot>> snapshot(std::span<const TableId> ids);

  // Reserves all that the conversations of a layout hold, in the order of `into`: tables that are open and
  // hold nothing. What several of them hold is reserved once. Checkpoints beyond what this store keeps, and
  // those for which there is no room, are left out, the least recently used first. kCorrupt for a layout that
  // check_layout() refuses; kInvalidArgument for another number of tables, or one that is not open or named
  // twice; kWrongState for one that holds something or has something promised; kBusy, kNoSpace and
  // kOutOfMemory as begin(). On error nothing has changed but what the index and checkpoints hold.
  [[nodiscard]] Result<RestoreTicket> begin_restore(const Layout& layout, std::span<const TableId> into);

  // Ends a conversation at `length` tokens, of those it has and those it is behind by. Where all that the
  // next token needs is still held, nothing more happens; else the nearest checkpoint before is restored, the
  // cells from there on go back in every group, and their room is promised to the conversation. Answers how
  // many tokens it is behind by then: they must be computed again. kInvalidArgument for more than there are,
  // kBusy while a ticket is open for it, kNoSpace where what goes back is shared and there is no room to
  // compute it again, kOutOfMemory; with nothing changed.
  [[nodiscard]] Result<std::uint64_t> rewind(TableId id, std::uint64_t length);

  // What rewind() would answer, if it succeeds.
  [[nodiscard]] std::uint64_t rewind_cost(TableId id, std::uint64_t length) const noexcept;

  // Lets two committed cells of a conversation change places in the pool, in every group that holds both; all
  // who hold them follow. Answers the exchanges of bytes that the caller must do before anything else.
  // kInvalidArgument for an ordinal outside the conversation, kWrongState while it is behind, kBusy while a
  // ticket is open, kOutOfMemory; with nothing changed.
  [[nodiscard]] Result<std::vector<SwapCells>> swap(TableId table, std::uint64_t a, std::uint64_t b);

  // Promises that `count` more tokens of this conversation will fit, beyond those it is behind by, in place
  // of what was promised before: computed in steps of at most StoreSpec::pass_tokens, between which a window
  // group gives back what it has passed. kNoSpace as begin(). Its own growth uses the promise up: that of a
  // ticket from begin() on, and what is not accepted in the end is promised again.
  [[nodiscard]] Status promise(TableId id, std::uint64_t count);

  // Whether `count` more tokens of a conversation fit now: what is promised to others stays so.
  [[nodiscard]] bool fits(TableId id, std::uint64_t count) const noexcept;

  // Enters all complete blocks of a conversation's clean cells into the index, each with what its groups
  // still hold of it. `tokens` are all its committed ones. Where memory is short some stay out.
  void remember(TableId id, std::span<const Token> tokens, std::uint64_t salt) noexcept;

  // The next run of a conversation's cells that may go to a tier: side by side in one page, held firmly by
  // conversations alone that let go of them, which those are that are set in `idle` (by their id) and in no
  // open ticket. Nothing where there is none.
  [[nodiscard]] std::optional<CellRun> next_to_spill(TableId id,
                                                     std::span<const std::uint8_t> idle) const noexcept;

  // What could be had if all cells that may go were gone and all that yields were given up: in holes, and as
  // frames. Throws std::bad_alloc.
  struct Supply {
    Need holes{};
    std::uint64_t frames = 0;
  };
  [[nodiscard]] Supply supply_beside_idle(std::span<const std::uint8_t> idle) const;

  // Whether `count` more tokens of a conversation, and its own cells that lie in tiers, would fit into that.
  [[nodiscard]] bool could_fit(TableId id, std::uint64_t count, const Supply& supply) const noexcept;

  // Lets all who hold the cells of a run find them in a tier, where their bytes are safe as `block`; the
  // cells are free then. The index lets go of them first. kWrongState where somebody holds one firmly who
  // does not let go of it, kOutOfMemory; with nothing changed.
  [[nodiscard]] Result<TierRunId> spill(const CellRun& run, TierBlock block,
                                        std::span<const std::uint8_t> idle);

  // Reserves cells for all that a conversation has in tiers, and promises it `count` more tokens beside (or
  // what it was promised before, if that is more). Errors and eviction as begin().
  [[nodiscard]] Result<ReturnTicket> begin_return(TableId id, std::uint64_t count);

  // Cells of a conversation that lie in tiers.
  [[nodiscard]] std::uint64_t cells_in_tiers(TableId table) const noexcept {
    return entry(table).tiered ? cells_in_tiers(entry(table)) : 0;
  }
  [[nodiscard]] const TierRuns& tier_runs() const noexcept { return tier_runs_; }
  void forget_gone_blocks() noexcept { tier_runs_.forget_gone(); }

  // Whether computing the same tokens again gives the same cells: none was removed, moved or divided but from
  // the end.
  [[nodiscard]] bool clean(TableId table) const noexcept { return entry(table).first_dirty == kAllClean; }

  // Whether an edit may begin among the tokens [first, end): computed again behind those before them, they
  // would be others.
  [[nodiscard]] bool edited_between(TableId table, std::uint64_t first, std::uint64_t end) const noexcept {
    return entry(table).first_edited < end && entry(table).last_edited >= first;
  }

  // Gives an empty conversation the longest beginning of `tokens` that the index can serve in every group, at
  // most `limit` tokens: a window group needs the cells that the next token sees, a recurrent one the state
  // at its end. Answers how many. What this turns from evictable into held must fit, else fewer. kWrongState
  // for a conversation that is not empty or is behind, kBusy while a ticket is open for it, kOutOfMemory;
  // with nothing changed.
  [[nodiscard]] Result<std::uint64_t> adopt(TableId id, std::span<const Token> tokens, std::uint64_t limit,
                                            std::uint64_t salt);

  // Undoes an adopt() that gave something, before anything else is done to the conversation: it is empty
  // again but for an encoder's output, and the counters are as if the index had not been asked.
  void return_beginning(TableId id) noexcept;

  // Takes the memory that `count` more tokens of a conversation in whole pages need, so that tickets find it
  // there. kOutOfMemory.
  [[nodiscard]] Status make_places(TableId id, std::uint64_t count);

  // Takes the memory that the index needs for all blocks that the pool can hold, so that remember() takes
  // none where their cells lie together. kOutOfMemory.
  [[nodiscard]] Status make_index_room();

  // Empties the index; checkpoints stay.
  void forget() noexcept;

  // Tokens promised to a conversation, beyond those it is behind by.
  [[nodiscard]] std::uint64_t promised(TableId table) const noexcept {
    return entry(table).promised - std::min(entry(table).promised, entry(table).behind);
  }

  // Tokens that a conversation holds, and those that must be computed again before others.
  [[nodiscard]] std::uint64_t length(TableId table) const noexcept { return entry(table).length; }
  [[nodiscard]] std::uint64_t behind(TableId table) const noexcept { return entry(table).behind; }

  // Its spans in a group, in order of ordinals. Valid until the next call that is not const.
  [[nodiscard]] std::span<const Run> runs(TableId table, std::size_t group) const noexcept {
    return entry(table).cells[group].runs();
  }

  // Spans that its table has memory for: what copies them may take as much at once.
  [[nodiscard]] std::size_t places(TableId table, std::size_t group) const noexcept {
    return entry(table).cells[group].places();
  }

  // The state of a conversation in a recurrent group; none before its first token.
  [[nodiscard]] std::optional<PageId> state(TableId table, std::size_t group) const noexcept;

  // Of a window group: the ordinal from which on cells are held, the conversation's floor, and the first
  // ordinal that the token `ordinal` sees, if its position is not further behind.
  [[nodiscard]] std::uint64_t release_line(TableId table, std::size_t group) const noexcept {
    return entry(table).cells[group].start();
  }
  [[nodiscard]] std::uint64_t floor(TableId table, std::size_t group) const noexcept {
    return entry(table).floors[group];
  }
  [[nodiscard]] std::uint64_t first_visible(TableId table, std::size_t group,
                                            std::uint64_t ordinal) const noexcept;

  // The ordinals that a conversation can return to at no cost beside 0, ascending.
  [[nodiscard]] std::size_t checkpoint_count(TableId table) const noexcept {
    return entry(table).checkpoints.size();
  }
  [[nodiscard]] std::uint64_t checkpoint(TableId table, std::size_t index) const noexcept {
    return checkpoints_.at(entry(table).checkpoints[index]).ordinal;
  }
  // Checkpoints given up for space since the store was made.
  [[nodiscard]] std::uint64_t checkpoints_evicted() const noexcept { return checkpoints_evicted_; }

  // The logical position that the next token of a conversation gets.
  [[nodiscard]] std::int64_t next_position(TableId id) const noexcept;

  // The one behind the first `length` tokens, where their cells say so; else `length`.
  [[nodiscard]] std::int64_t position_behind(TableId id, std::uint64_t length) const noexcept;

  // The frame of a page for the group's layer number `layer`; the storage position of a cell.
  [[nodiscard]] FrameId frame(std::size_t group, PageId page, std::uint32_t layer) const noexcept {
    return groups_[group].frames(page)[layer];
  }
  [[nodiscard]] std::uint64_t position(std::size_t group, PageId page, std::uint32_t cell) const noexcept {
    return in_tier(page) ? tier_runs_.cell(tier_run(page), cell).position
                         : groups_[group].position(page, cell);
  }

  // Of a new conversation: the most that a step can take now, and the most that can be promised to it now,
  // which is less where a state for its next step is missing.
  [[nodiscard]] std::uint64_t tokens_free() const noexcept;
  [[nodiscard]] std::uint64_t tokens_for_new() const noexcept;
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
  [[nodiscard]] const StoreSpec& spec() const noexcept { return spec_; }

  // Whether a ticket of any kind or a compaction is open.
  [[nodiscard]] bool tickets_open() const noexcept { return open_tickets_ > 0 || compaction_ != nullptr; }

  // Every invariant, for tests; while a ticket is open its cells have one holder more than S3 finds, so not
  // then. kInternal names the broken one, kOutOfMemory.
  [[nodiscard]] Status check() const;

 private:
  friend class Ticket;
  friend class EditTicket;
  friend class EncodeTicket;
  friend class RestoreTicket;
  friend class Snapshot;
  friend class ReturnTicket;
  friend class Compaction;

  static constexpr std::uint64_t kAllClean = UINT64_MAX;

  struct Table {
    std::vector<PageTable> cells;           // [group]
    std::vector<CheckpointId> checkpoints;  // ascending ordinals
    std::array<std::uint64_t, kGroupsMax> floors{};
    std::uint64_t length = 0;
    std::uint64_t behind = 0;               // tokens
    std::uint64_t promised = 0;             // tokens, those it is behind by first
    std::uint64_t first_dirty = kAllClean;  // no cell from this ordinal on may enter the index
    // Where the first and, at most, the last of its edits begin: tokens behind one are no longer what they
    // would be computed again to.
    std::uint64_t first_edited = kAllClean;
    std::uint64_t last_edited = 0;
    std::uint64_t remembered = 0;  // tokens offered to the index
    std::uint64_t encoded = 0;     // which encoder's output it attends to; 0: none
    LineInTicket line;             // of the open ticket of a step
    bool tiered = false;           // some of its cells may lie in tiers
    bool busy = false;             // in an open ticket of any kind
    bool edited = false;           // of an edit
    bool returns = false;          // of a return
    bool open = false;
  };

  explicit PageStore(StoreSpec spec) : spec_(std::move(spec)) {}
  [[nodiscard]] static Result<std::unique_ptr<PageStore>> make(StoreSpec spec);
  // Forgets edits that began at the table's length or behind it, but for what they have put out of sight of
  // the tokens that come there.
  void forget_edits_behind(Table& table) const noexcept;
  [[nodiscard]] const Table& entry(TableId table) const noexcept {
    return tables_[static_cast<std::size_t>(table)];
  }
  [[nodiscard]] Table& entry(TableId table) noexcept { return tables_[static_cast<std::size_t>(table)]; }
  [[nodiscard]] GroupKind kind(std::size_t group) const noexcept { return spec_.groups[group].kind; }
  [[nodiscard]] bool has(GroupKind wanted) const noexcept;
  // Cells of a window group that a conversation keeps behind its length.
  [[nodiscard]] std::uint64_t kept_behind(std::size_t group) const noexcept {
    return spec_.groups[group].width + kReleaseSlack;
  }
  [[nodiscard]] Status check_idle(TableId table) const;
  [[nodiscard]] Status check_in_pool(TableId table) const;
  [[nodiscard]] std::uint32_t firm_holders(std::size_t group, PageId page,
                                           std::uint32_t cell) const noexcept {
    return in_tier(page) ? tier_runs_.cell(tier_run(page), cell).firm
                         : groups_[group].firm_holders(page, cell);
  }
  [[nodiscard]] Status check_plan(std::span<const Growth> plan) const;
  [[nodiscard]] Status check_positions(std::span<const Growth> plan) const;

  // Cells to be taken in each group, and all that must fit: they and what is promised besides.
  struct Demand {
    Need cells{};
    Need total{};
  };

  // What conversations need (need.cc).
  [[nodiscard]] std::uint64_t cells_of_line(std::size_t group, const LineInTicket& line) const noexcept;
  [[nodiscard]] std::uint64_t exclusive_below(std::size_t group, const PageTable& cells,
                                              std::uint64_t ordinal, bool returns) const noexcept;
  [[nodiscard]] std::uint64_t passed_by(std::size_t group, const PageTable& cells,
                                        std::uint64_t tokens) const noexcept;
  [[nodiscard]] std::uint64_t window_need(std::size_t group, const PageTable& cells, std::uint64_t tokens,
                                          bool returns) const noexcept;
  [[nodiscard]] std::uint64_t promise_need(const Table& table, const LineInTicket& line, std::size_t group,
                                           std::uint64_t promised, bool comes_back = false) const noexcept;
  [[nodiscard]] Need promise_need(const Table& table, std::uint64_t promised,
                                  bool comes_back = false) const noexcept;
  [[nodiscard]] Need promised_need() const noexcept;
  [[nodiscard]] Need promised_but(const Table& table) const noexcept;
  [[nodiscard]] Need need_of_unit(std::uint64_t tokens) const noexcept;
  [[nodiscard]] Need need_of_new(std::uint64_t tokens) const noexcept;

  // Space: frames that more cells of each group need, holes used first; and those to be had.
  [[nodiscard]] std::uint64_t frames_needed(const Need& cells) const noexcept;
  [[nodiscard]] std::uint64_t frames_to_be_had() const noexcept;
  [[nodiscard]] bool fit(const Need& beside, const Need& need) const noexcept;
  [[nodiscard]] bool promises_fit() const noexcept;
  [[nodiscard]] std::uint64_t pages_now(std::size_t group, std::uint64_t cells) const noexcept;
  [[nodiscard]] std::uint64_t pages_in_the_end(std::size_t group, std::uint64_t cells) const noexcept;
  [[nodiscard]] std::uint64_t frames_beyond_need(std::size_t group, const Demand& demand) const noexcept;
  [[nodiscard]] bool has_room_now(const Demand& demand) const noexcept;
  template <class Fits>
  [[nodiscard]] std::uint64_t largest(const Fits& fits) const noexcept;
  [[nodiscard]] Status admit(const Need& need, const Need& beside) const;
  void make_room(const Demand& demand) noexcept;
  void drop_compaction_of(TableId table) noexcept;

  // The index.
  [[nodiscard]] PrefixIndex::Origin origin_of(const Table& table, std::uint64_t salt) const noexcept {
    return {salt, table.encoded};
  }
  [[nodiscard]] std::vector<PrefixIndex::BlockId> known_blocks(std::span<const Token> tokens,
                                                               std::uint64_t limit,
                                                               const PrefixIndex::Origin& origin) const;
  void cells_for_block(const Table& table, std::size_t group, std::uint64_t first, PageTable& into) const;
  void complete_block(PrefixIndex::BlockId block, const Table& table, std::uint64_t first);
  [[nodiscard]] bool serve_tail(Table& table, std::span<const PrefixIndex::BlockId> blocks) noexcept;
  void return_tail(Table& table) noexcept;
  [[nodiscard]] std::size_t hold_beginning(Table& table,
                                           std::span<const PrefixIndex::BlockId> blocks) noexcept;

  // Eviction (eviction.cc).
  void evict(PrefixIndex::BlockId block) noexcept;
  void evict(CheckpointId id) noexcept;
  [[nodiscard]] bool evict_one() noexcept;
  [[nodiscard]] bool yields(const Checkpoint& checkpoint) const noexcept;
  [[nodiscard]] std::optional<CheckpointId> oldest_checkpoint(bool yielding) const noexcept;

  // Checkpoints (checkpoints.cc).
  void due_checkpoints(const Growth& growth, std::vector<std::uint64_t>& due) const;
  void plan_checkpoints(Ticket& ticket, Demand& demand) const;
  void reserve_states(Ticket& ticket, std::size_t line, std::size_t group);
  void prepare_checkpoints(Ticket& ticket, std::size_t line);
  [[nodiscard]] std::size_t first_to_go(const Table& table) const noexcept;
  void keep_checkpoint(Table& table, CheckpointId id) noexcept;
  [[nodiscard]] Result<TableId> keep_fork(TableId child);
  void own_checkpoint(CheckpointId id) noexcept;
  void disown_checkpoint(CheckpointId id) noexcept;
  void drop_checkpoints_above(Table& table, std::uint64_t ordinal) noexcept;

  // Taking and giving back (reserve.cc).
  [[nodiscard]] std::unique_ptr<Ticket::Memory> take_ticket_memory();
  [[nodiscard]] LineInTicket line_of(const Growth& growth) const noexcept;
  [[nodiscard]] Demand demand_of(std::span<const Growth> plan, Need& others) const noexcept;
  void reserve(Ticket& ticket, const Demand& demand);
  void reserve_line(Ticket& ticket, std::size_t line, std::size_t group, std::uint64_t& fresh_pages);
  [[nodiscard]] std::uint64_t fresh_pages(std::size_t group, const Demand& demand) const noexcept;
  [[nodiscard]] Run take_some(std::size_t group, const Run* predecessor, std::uint64_t position,
                              std::uint64_t wanted, std::uint64_t& fresh_pages) noexcept;
  [[nodiscard]] PageId open_page(std::size_t group) noexcept;
  void take_all(std::size_t group, std::uint64_t count, std::vector<Run>& taken, Table& table,
                std::uint64_t& fresh_pages);
  void release(std::size_t group, PageId page, CellRange cells, Holder holder) noexcept;
  void release(std::size_t group, std::span<const Run> runs, Holder holder) noexcept;
  void hold(std::size_t group, std::span<const Run> runs, Holder holder) noexcept;
  void give_frames_back(std::size_t group, PageId page) noexcept;
  void release_passed(Table& table) noexcept;

  // Layouts (snapshot.cc, restore.cc).
  struct Wanted;
  [[nodiscard]] Layout describe(std::span<const TableId> ids, std::vector<PageTable>& cells) const;
  [[nodiscard]] Status check_targets(const Layout& layout, std::span<const TableId> into) const;
  [[nodiscard]] Wanted wanted_of(const Layout& layout, std::size_t without) const;
  [[nodiscard]] Result<Wanted> admit_restore(const Layout& layout) const;
  void take_wanted(std::size_t group, const Layout& layout, const Wanted& wanted, std::vector<Run>& places,
                   std::uint64_t& fresh_pages);
  void prepare_return(RestoreTicket& ticket, const Layout& layout, const Wanted& wanted,
                      std::span<const TableId> into);

  // Rewinds (rewind.cc).
  struct Return;
  [[nodiscard]] bool still_seen(std::size_t group, std::uint64_t length, std::uint64_t floor,
                                std::uint64_t start) const noexcept;
  [[nodiscard]] bool rewinds_freely(const Table& table, std::uint64_t length) const noexcept;
  [[nodiscard]] std::optional<CheckpointId> nearest_checkpoint(const Table& table,
                                                               std::uint64_t ordinal) const noexcept;
  [[nodiscard]] Return plan_return(const Table& table, std::uint64_t length) const;
  [[nodiscard]] Status perform_return(Table& table, Return& planned);

  // Edits.
  [[nodiscard]] std::vector<std::int64_t> positions_of(TableId id, std::uint64_t& from) const;
  [[nodiscard]] Result<EditOutline> check_edit(TableId id, std::span<const EditOperation> operations) const;
  [[nodiscard]] Status check_operation(const EditOutline& outline, const EditOperation& operation) const;
  void outline_operation(EditOutline& outline, const EditOperation& operation) const noexcept;
  [[nodiscard]] Need promise_grows(const Table& table, std::span<const EditOperation> operations) const;
  void plan_operation(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                      std::uint64_t& fresh_pages);
  void plan_divide(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                   std::uint64_t& fresh_pages);

  // Tiers (spilling.cc, tier_return.cc).
  // Spans as they will be, for a holder of cells that move.
  struct Patch {
    Table* table = nullptr;  // nothing for a snapshot or a checkpoint
    PageTable* cells = nullptr;
    PageTable after;
  };
  [[nodiscard]] bool lets_go(std::size_t table, std::span<const std::uint8_t> idle) const noexcept;
  [[nodiscard]] CellMask kept_cells(std::uint32_t group, const Run& run,
                                    std::span<const std::uint8_t> idle) const noexcept;
  [[nodiscard]] bool may_spill(const CellRun& run, std::span<const std::uint8_t> idle) const noexcept;
  [[nodiscard]] std::vector<Patch> patches_of(std::size_t group, const Moves& moves);
  void install(std::span<Patch> patches) noexcept;
  void hold_in_tier(TierRunId id, std::uint32_t cell, std::uint32_t firm, std::uint32_t soft) noexcept;
  void take_places(ReturnTicket& ticket, std::uint32_t group, const Run& span, Run& before,
                   std::uint64_t& pages);
  [[nodiscard]] std::uint64_t cells_in_tiers(const Table& table) const noexcept;

  // Every list of spans that names cells of a group: tables, snapshots, index blocks and checkpoints.
  template <class Visit>
  void visit_holders(std::size_t group, const Visit& visit) {
    for (Table& table : tables_) {
      if (table.open) visit(table.cells[group]);
    }
    for (Snapshot* const snapshot : snapshots_) visit(snapshot->cells_[group]);
    for (const PrefixIndex::BlockId block : index_.blocks()) visit(index_.cells(block)[group]);
    checkpoints_.visit([&](CheckpointId, Checkpoint& checkpoint) { visit(checkpoint.cells[group]); });
  }

  // The index of a group's holders, made anew unless it is current. Throws std::bad_alloc.
  [[nodiscard]] HolderIndex& holder_index(std::size_t group);
  void fill_index(HolderIndex& index, std::size_t group) const;
  [[nodiscard]] std::uint64_t changes(std::size_t group) const noexcept {
    return handovers_ + groups_[group].changes();
  }
  void follow_moves(HolderIndex& index, std::size_t group, const Moves& moves) noexcept;
  [[nodiscard]] std::span<PageTable> cells_of(const HolderIndex::Holder& holder) noexcept;

  [[nodiscard]] Status check_invariants() const;
  [[nodiscard]] Status check_index(std::size_t group) const;
  [[nodiscard]] Status check_holders(std::size_t group) const;
  [[nodiscard]] Status check_table(const Table& table, std::size_t group) const;
  [[nodiscard]] Status check_checkpoints() const;
  [[nodiscard]] Status check_tier_runs() const;
  [[nodiscard]] std::uint64_t count_spans(std::uint64_t& fewest) const noexcept;

  StoreSpec spec_;
  std::vector<GroupCells> groups_;
  std::vector<FrameId> free_frames_;  // a stack
  std::vector<Table> tables_;
  std::vector<TableId> closed_;  // ids to use again
  std::vector<Snapshot*> snapshots_;
  PrefixIndex index_;
  std::vector<PageTable> block_cells_;  // of the block that remember() is about to enter
  Checkpoints checkpoints_;
  TierRuns tier_runs_;
  std::uint64_t checkpoints_evicted_ = 0;
  std::uint64_t encodes_ = 0;         // encoder outputs so far
  std::uint64_t promised_ = 0;        // over all tables
  Need edits_need_{};                 // what the promises of edited conversations will need more
  bool only_full_ = true;             // no group of another kind
  std::uint64_t handovers_ = 0;       // of cells from one holder to another with no count changed
  Compaction* compaction_ = nullptr;  // an open one
  std::vector<HolderIndex> indexes_;  // [group]; for compactions
  CompactionCursor cursor_;
  std::vector<EmptiedPage> emptied_;  // [group]
  std::uint32_t open_tickets_ = 0;    // of steps and edits: they hold cells that no table names yet
  std::vector<std::unique_ptr<Ticket::Memory>> ticket_memories_;  // of tickets that have ended
  std::size_t ticket_memories_made_ = 0;                          // for which there is room above
};

}  // namespace kvasir::pages
