// A long random history of one page store, compared with its naive twin at every step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_arena.h"
#include "kv/arena.h"
#include "pages/compaction.h"
#include "pages/page_store.h"
#include "random.h"
#include "recount.h"
#include "twin.h"

namespace kvasir::pages::test {

// States that a history must reach, or it has tried nothing.
enum class HardState : std::uint8_t {
  kAppendIntoSharedPage,       // a new cell in a page where another conversation holds one
  kSplitSpan,                  // an edit cuts a span in two
  kShortage,                   // kNoSpace
  kAbortAfterPassTwo,          // a ticket ends without commit after two passes or more
  kWithdrawal,                 // one line of an open ticket goes back
  kPartialCommit,              // fewer cells are accepted than were computed
  kCompactionWithoutFreePage,  // begins while no group could open a page
  kCompactionDestroyed,        // by a reservation that fell short, or that needs its cells
  kEviction,                   // the index gives up a block
  kBeginningReturned,          // what adopt() found is given back, and found again
  kHitHoldsEvictable,          // adopt() turns evictable cells into held ones
  kCallInsideTicket,           // any call while a ticket is open
  kForkInsideTicket,           // of a conversation of the ticket
  kTightReservation,           // of exactly what is free
  kDivision,                   // an edit that rewrites keys
  kPromiseUsed,                // a commit that a promise paid for
  kWindowRelease,              // a commit gives back what a window group has passed
  kRingReused,                 // a line writes over cells of its own
  kFloorRaised,                // an edit raises the floor of a window
  kFreeRewind,                 // across a window that is still held
  kCheckpointRestored,         // not the beginning
  kBehindCaughtUp,             // the last of the missing tokens is computed
  kBehindForked,               // a conversation that is behind is forked
  kCheckpointKept,             // by a commit
  kCheckpointEvicted,          // for space
  kStateKept,                  // a line accepted in part ends where a state was reserved
  kStateMissed,                // or leaves its conversation behind
  kHybridHit,                  // a beginning found with its window or state
  kCrossReplaced,              // an encoder's output takes the place of another
  kRefusedBusy,                // a call for a conversation in an open ticket
  kRefusedBehind,              // a call that must wait until a conversation has caught up
  kRefusedMove,                // positions or tokens that cannot move
  kRestored,                   // conversations come back from a layout
  kRestoredShared,             // of which several hold the same cells
  kRestoreAborted,             // or do not, after all was reserved
  kSpill,                      // a run of cells goes to a tier
  kSpillShared,                // that several conversations hold
  kSpillUnindexed,             // the index lets go of it
  kReturn,                     // all that a conversation has in tiers comes back
  kReturnShared,               // and with it what others hold
  kReturnRefused,              // for want of space
  kReturnDropped,              // on the way
  kReturnBusy,                 // while an edit of one who shares the cells is open
  kTierRunEnded,               // nobody holds a tier run any more
  kRefusedSpilled,             // a step or an edit of a conversation that lies in a tier
  kCount
};
inline constexpr std::size_t kHardStates = static_cast<std::size_t>(HardState::kCount);
[[nodiscard]] std::string_view name_of(HardState state);

using HardStateCounts = std::array<std::uint64_t, kHardStates>;

// The store and its twin disagree.
class Disagreement : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What stands behind the cells of a store.
struct Ground {
  bool real_bytes = false;  // kv::Arena, or numbers that stand for bytes
  // The groups of a model, and what a layer of each keeps of a token; random ones where there are none.
  std::vector<GroupSpec> groups;
  std::vector<kv::LayerGeometry> geometry;  // [group]; of a recurrent one nothing
  bool positions_can_move = true;
};

class StoreRun {
 public:
  // A store of random sizes. `counts` outlives the run.
  StoreRun(std::uint64_t seed, HardStateCounts& counts, const Ground& ground);

  // One random operation, and the comparisons behind it. Throws Disagreement.
  void step();

  // Everything compared. Throws Disagreement.
  void check_all();

  // Closes all that is open: nothing may be left behind. Throws Disagreement.
  void end();

  // The geometry and the latest operations, one a line.
  [[nodiscard]] std::string story() const;

 private:
  struct Line {
    TwinConversation* conversation = nullptr;
    std::vector<TwinCell> planned;
    std::uint64_t fewest = 0;
    std::vector<std::uint64_t> due;  // checkpoints
    bool withdrawn = false;
  };
  // What a conversation holds in each group, from the ordinal `starts` on.
  struct Shape {
    std::vector<std::uint64_t> starts;
    std::vector<std::vector<CellAt>> cells;
    bool returns = false;  // what lies in a tier has its place in the pool already
  };
  struct OpenTicket {
    Ticket ticket;
    std::vector<Line> lines;
    std::uint64_t written = 0;  // cells of each line, as far as it has them
    std::uint64_t passes = 0;
  };
  struct OpenEdit {
    EditTicket ticket;
    TwinConversation* conversation = nullptr;
    TwinConversation after;
    std::uint64_t first_changed = UINT64_MAX;
  };
  struct ForeseenEdit {
    TwinConversation after;
    Outcome outcome = Outcome::kDone;
    Need rewritten{};
    std::uint64_t first_changed = UINT64_MAX;
    std::vector<std::vector<std::uint64_t>> marks;  // [group]: of the cells held then, their ordinals now
  };
  struct OpenEncode {
    EncodeTicket ticket;
    TwinConversation* conversation = nullptr;
    std::uint64_t count = 0;
    std::uint64_t encoder = 0;  // what its cells are made of
  };
  // Conversations kept elsewhere: their layout, twins, and bytes by the layout's numbers.
  struct Kept {
    Layout layout;
    std::vector<TwinConversation> twins;
    std::vector<std::vector<std::vector<std::byte>>> bytes;  // [group][number]
  };
  struct OpenSnapshot {
    std::unique_ptr<Snapshot> snapshot;
    std::vector<std::vector<CellAt>> cells;  // [group]
    Kept kept;
  };
  struct OpenRestore {
    RestoreTicket ticket;
    Kept kept;
    std::vector<TableId> into;
    std::size_t without = 0;  // checkpoints
    bool as_loaded = false;
    std::map<std::pair<std::size_t, std::uint64_t>, CellAt> places;  // [group, number]
  };
  struct OpenReturn {
    ReturnTicket ticket;
    TwinConversation* conversation = nullptr;
    std::uint64_t promised_before = 0;
  };
  struct OpenCompaction {
    std::unique_ptr<Compaction> compaction;
    std::vector<CopyCells> copies;
    bool copied = false;
  };

  // Calls on tables.
  void open_conversation();
  void close_conversation();
  void fork_conversation();
  void promise();
  void swap_cells();
  void rewind();
  void return_and_catch_up();
  void speculate();
  void press();
  void refuse_behind(const TwinConversation& conversation);
  void expect_rewound(TwinConversation& conversation, std::uint64_t length);
  [[nodiscard]] Shape shape_after_rewind(const TwinConversation& conversation, std::uint64_t length,
                                         const TwinCheckpoint* checkpoint) const;
  // Steps.
  void begin_ticket();
  void shrink(std::vector<Growth>& plan, const std::vector<TwinConversation*>& who) const;
  void begin_impossible_ticket();
  void begin_busy();
  [[nodiscard]] static LineInTicket line_of(const Growth& growth, const TwinConversation& conversation);
  [[nodiscard]] Need need_of_plan(const Recount& counted, const std::vector<Growth>& plan,
                                  const std::vector<TwinConversation*>& who, Need& others) const;
  void begin(const std::vector<Growth>& plan, const std::vector<TwinConversation*>& who);
  void pass();
  void withdraw();
  void withdraw_line(Line& line, std::size_t index);
  void commit_ticket();
  void abort_ticket();
  void expect_states(const std::vector<Growth>& plan, const Recount& counted, Need need);
  [[nodiscard]] std::vector<std::uint64_t> due_checkpoints(const TwinConversation& conversation,
                                                           const Growth& growth) const;
  void write_new(const Line& line, std::size_t index, std::uint64_t from);
  void give_back(Line& line, std::uint64_t accepted);
  void install(Line& line, std::uint64_t accepted, const Shape& computed,
               const std::vector<std::vector<StateWrite>>& states);
  void keep_checkpoint(TwinConversation& conversation, std::uint64_t ordinal, const Shape& computed,
                       const std::vector<std::vector<StateWrite>>& states);
  [[nodiscard]] Shape computed_by(std::size_t index) const;
  // Edits.
  void begin_edit();
  void begin_impossible_edit();
  [[nodiscard]] ForeseenEdit foresee(const TwinConversation& conversation,
                                     const std::vector<EditOperation>& operations);
  [[nodiscard]] Need promise_grows(const TwinConversation& conversation, const ForeseenEdit& edit) const;
  void start_edit(TwinConversation& conversation, const std::vector<EditOperation>& operations);
  [[nodiscard]] std::vector<EditOperation> random_edit(std::uint64_t length);
  [[nodiscard]] EditOperation random_operation(std::uint64_t length);
  void commit_edit();
  void abort_edit();
  // An encoder's output.
  void begin_encode();
  void end_encode();
  // Tiers.
  void spill();
  void spill(const CellRun& run, const std::vector<std::uint8_t>& idle);
  void begin_return();
  void begin_return(TwinConversation& conversation, std::uint64_t wanted);
  void end_return();
  void return_beside_edit();
  void follow_gone();
  void follow_move(std::uint32_t group, const CopyCells& copy);
  [[nodiscard]] Outcome bring_back(const std::vector<TwinConversation*>& who);
  [[nodiscard]] std::uint64_t spilled(const TwinConversation& conversation) const;
  [[nodiscard]] bool may_go(const Recount& counted, std::size_t group, CellAt at,
                            const std::vector<std::uint8_t>& idle) const;
  // The index.
  void remember();
  void remember(TwinConversation& conversation);
  void forget();
  void adopt();
  void give_beginning_back(const TwinConversation& conversation, std::span<const Token> tokens,
                           std::uint64_t limit, std::uint64_t expected);
  [[nodiscard]] std::optional<Shape> shape_of_beginning(std::span<const TwinBlock* const> blocks) const;
  void follow_evictions();
  void follow_checkpoints();
  // Layouts.
  void take_snapshot();
  [[nodiscard]] const TwinConversation* relative_of(const TwinConversation& of,
                                                    const std::vector<const TwinConversation*>& but) const;
  [[nodiscard]] OpenSnapshot foresee_snapshot(const std::vector<const TwinConversation*>& who) const;
  void check_described(const OpenSnapshot& mine) const;
  void end_snapshot();
  [[nodiscard]] std::vector<std::set<std::uint64_t>> wanted_numbers(const Kept& kept,
                                                                    std::size_t without) const;
  void restore();
  void end_restore();
  // Compaction.
  template <class Job>
  void follow_holders(std::uint32_t group, const Job& job);
  void begin_compaction();
  void end_compaction();
  void notice_destruction();

  void try_operation();
  [[nodiscard]] bool busy(const TwinConversation& conversation) const;
  [[nodiscard]] TwinConversation* any_conversation();
  [[nodiscard]] TwinConversation* idle_conversation();
  [[nodiscard]] TwinConversation* conversation_behind();
  [[nodiscard]] Token token_at(const TwinConversation& conversation, std::uint64_t ordinal);
  [[nodiscard]] std::uint64_t random_length(std::uint64_t room);
  [[nodiscard]] std::uint64_t random_growth(const TwinConversation& conversation, std::uint64_t room);
  [[nodiscard]] std::uint64_t promised() const;
  [[nodiscard]] Recount recount() const;
  // Space, in store_run_space.cc.
  [[nodiscard]] bool has(GroupKind kind) const;
  [[nodiscard]] bool only_full() const;
  [[nodiscard]] std::uint64_t kept_behind(std::size_t group) const;
  [[nodiscard]] Shape shape_of(const TwinConversation& conversation) const;
  [[nodiscard]] static bool given_back(const Recount& counted, const Shape& shape, std::size_t group,
                                       CellAt at);
  [[nodiscard]] Need cells_of(const LineInTicket& line) const;
  [[nodiscard]] std::uint64_t window_need(const Recount& counted, const Shape& shape, std::size_t group,
                                          std::uint64_t tokens) const;
  [[nodiscard]] Need need_of(const Recount& counted, const Shape& shape, const LineInTicket& line,
                             std::uint64_t promised) const;
  [[nodiscard]] Need promised_need(const Recount& counted, const TwinConversation* instead = nullptr,
                                   const Shape* shape = nullptr, std::uint64_t promised = 0) const;
  [[nodiscard]] Need promised_but(const Recount& counted, const TwinConversation& conversation) const;
  [[nodiscard]] std::uint64_t largest(const Recount& counted, const Need& beside) const;
  [[nodiscard]] std::uint64_t largest_for(const Recount& counted, const TwinConversation& conversation) const;
  void require_shortage(const Error& error, const Recount& counted, const Need& need,
                        const Need& beside) const;
  [[nodiscard]] std::uint64_t digest() const;
  void count(HardState state) { ++(*counts_)[static_cast<std::size_t>(state)]; }
  void tell(std::string what) { story_[steps_ % story_.size()] = std::move(what); }
  static void require(bool holds, const std::string& what);
  void require_failure(const Error& error, Outcome code, std::uint64_t digest_before);
  void check_conversation(const TwinConversation& conversation) const;
  void check_kinds(const TwinConversation& conversation) const;
  void check_spans(const TwinConversation& conversation, std::size_t group) const;
  void check_space(const Recount& counted) const;

  Random random_;
  HardStateCounts* counts_;
  StoreSpec spec_;
  std::unique_ptr<PageStore> store_;
  std::unique_ptr<CellBytes> arena_;
  std::vector<std::unique_ptr<TwinConversation>> conversations_;
  TwinIndex index_;
  Turns turns_;
  std::uint64_t evictions_seen_ = 0;
  std::uint64_t checkpoint_evictions_seen_ = 0;
  std::uint64_t encodes_ = 0;
  bool in_part_ = false;  // the next commit accepts less than all
  Need edit_more_{};      // what the promise of the conversation in the open edit will need more
  std::optional<OpenTicket> ticket_;
  std::optional<OpenEdit> edit_;
  std::optional<OpenEncode> encode_;
  std::optional<OpenReturn> return_;
  std::optional<OpenCompaction> compaction_;
  std::optional<OpenSnapshot> snapshot_;
  std::optional<OpenRestore> restore_;
  std::optional<Kept> kept_;
  std::size_t most_conversations_ = 1;
  std::uint64_t steps_ = 0;
  std::string geometry_;
  std::array<std::string, 40> story_;
};

// Runs `operations` operations over stores of changing sizes. Answers what went wrong and the story that led
// to it, nothing where all agreed.
[[nodiscard]] std::string run_stores(std::uint64_t seed, std::uint64_t operations, HardStateCounts& counts,
                                     const Ground& ground = {});

}  // namespace kvasir::pages::test
