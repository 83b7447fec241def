// Conversations over one model and one cache, advanced by atomic steps.
//
// A step is a ticket of the page store and one or more passes under it. It takes full effect at its end or
// none at all: if it fails or is cancelled, every conversation is what it was before and its tokens are still
// queued. A step that its caller suspends stays open; the next one continues it.
//
// What is queued is admitted first: its whole need is promised, before its first piece is computed. Who finds
// no room waits, and nobody else does.
//
// Invariants (docs/invariants.md)
//   E1  A conversation's cells are its committed tokens, no more, no fewer, but for borrowed ones (E6).
//   E2  Until commit a step shows nowhere: tokens, queues and logits are those from before it, and free cells
//       but for what is promised to those whom it admits.
//   E3  Everything that commit needs is allocated before the first pass.
//   E4  A conversation in an open step is admitted: the ticket takes no cell that was not promised to it.
//   E5  A conversation taken out of an open step keeps its cells of the ticket until the step ends, so that
//       no job writes a cell that another holds.
//   E6  A conversation whose queue begins with borrowed tokens holds their cells, is in the open step, and
//       gives them back where that does not commit it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "engine/conversation.h"
#include "engine/cost_model.h"
#include "engine/planner.h"
#include "engine/pool_shape.h"
#include "engine/row_pool.h"
#include "kv/arena.h"
#include "kvasir/report.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "model/forward.h"
#include "model/model.h"
#include "pages/page_store.h"
#include "parallel/thread_pool.h"
#include "tiers/tiers.h"

namespace kvasir::engine {

class BlocksRead;

using kvasir::ConversationId;

// Sizes of an engine, all in tokens.
struct EngineOptions {
  std::uint64_t context = 4096;     // longest that one conversation may get; at most as long as the model has
                                    // learned positions, if it has
  std::uint64_t pool = 4096;        // that the cache holds
  std::uint32_t states = 0;         // recurrent states that it holds beside them; 0: for those of full length
  std::uint32_t page_cells = 32;    // in a page
  std::uint32_t pass_tokens = 512;  // most in a pass
  std::uint32_t logit_rows = 64;    // most in a pass whose logits are wanted
  bool share_prefixes = false;      // empty conversations take beginnings that others computed
  kv::CacheTypes types;
  std::optional<std::uint64_t> memory;  // bytes that the pool may take; by default what is available
  tiers::TierSizes tiers;               // no bytes of memory: no tiers
  base::FileSystem* files = &base::system_files();  // where the disk tier's file is made
};

// The pool that they ask for.
[[nodiscard]] PoolWishes wishes_of(const EngineOptions& options);

// What a call for a move of cells has done.
enum class Moved : std::uint8_t {
  kNothing,  // there is nothing to move
  kSome,     // a run of cells
  kRoom,     // and now somebody may be planned who could not be before
  kWaits,    // nothing, before the disk has done its part
};

// What was moved between the pool and the tiers since the engine was made, and computed again instead.
struct MoveCounts {
  std::uint64_t runs_spilled = 0;
  std::uint64_t bytes_spilled = 0;
  std::uint64_t conversations_returned = 0;
  std::uint64_t bytes_returned = 0;
  std::uint64_t returns_failed = 0;
  std::uint64_t conversations_paused = 0;
  std::uint64_t tokens_recomputed = 0;  // of dropped conversations
};

// Where a conversation's cells are.
enum class Residence : std::uint8_t {
  kPool,
  kReturning,  // cells are reserved for those in tiers, and being filled
  kTier,       // at least some
  kDropped,    // nowhere: its tokens will be computed again
};

// Room is offered by priority, then by arrival. Whoever does not fit may be passed over by others that do,
// but not more than so many times.
inline constexpr std::uint64_t kPassedOverMax = 64;

// Of which queued tokens a prompt wants logits.
enum class LogitsWanted : std::uint8_t { kLast, kEvery };

// Tokens and, where they are kEmbedded, vectors of the model's embedding size, one behind the other.
struct PromptItems {
  std::span<const Token> tokens;
  std::span<const float> vectors;
};

// Asked between two jobs. It must not call step() or abandon_step(): kBusy and nothing happen.
enum class Verdict : std::uint8_t {
  kGoOn,
  kSuspend,  // leave the step open and return kSuspended
  kCancel,   // undo the step and return kCancelled
};

// Where an open step stands, for whoever decides about it.
struct JobView {
  std::uint32_t pass = 0;    // of this step, from 0
  std::uint32_t passes = 0;  // of this step
  model::PassProgress progress;
};

struct StepOptions {
  bool whole_queue = false;  // everything queued as one unit; else one pass
  std::function<Verdict(const JobView&)> between_jobs;
  std::uint64_t tokens = UINT64_MAX;    // most in a pass
  std::optional<std::int64_t> time_ns;  // for which the passes with generation are cut to size
  // How many of a conversation's tokens of this step are accepted, asked when their logits are there and
  // before anything is committed; the rest are dropped. Nothing accepts all. For speculative decoding.
  std::function<std::uint64_t(ConversationId, std::span<const KeptRow>)> accept;
};

// The first draw of a generation, from logits that are there.
struct FirstDraw {
  ConversationId id{};
  std::shared_ptr<Drawer> drawer;
  std::shared_ptr<const Row> row;
  std::uint64_t seed = 0;
  std::uint64_t accepted = 0;
  std::uint64_t room = 0;
};

// What a step did.
struct StepReport {
  Outcome outcome = Outcome::kIdle;  // kDone, kIdle, kSuspended or kCancelled
  std::uint32_t passes = 0;          // finished or, of a step that is not done, begun
  std::uint64_t tokens = 0;          // committed
  std::uint64_t layers_undone = 0;   // layers computed for nothing by a cancelled step
  // What the step cost beside computing, in nanoseconds.
  std::int64_t plan_ns = 0;      // planning and reserving
  std::int64_t commit_ns = 0;    // making it visible
  std::int64_t rollback_ns = 0;  // undoing a cancelled one
  // The conversations of each pass, for tests and reports of who shared one.
  std::vector<std::vector<ConversationId>> shared_passes;
  std::vector<ConversationReport> conversations;  // those of the step
};

// Not thread-safe but for run_job(), which may run beside any call that does not say otherwise.
class Engine {
 public:
  // kInvalidArgument names the option, kOutOfMemory the bytes; a pool that is larger than the memory at hand
  // is refused before any of it is touched.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> create(
      std::shared_ptr<const model::Model> model, parallel::ThreadPool& pool, const EngineOptions& options,
      const base::Clock& clock = base::system_clock());
  ~Engine();

  // A new conversation that holds nothing. kOutOfMemory.
  [[nodiscard]] Result<ConversationId> open(const ConversationSettings& settings = {});

  // Ends a conversation and gives its cells back; where it is part of an open step, at the step's end (E5).
  // kNotFound.
  [[nodiscard]] Status close(ConversationId id);

  // Queues tokens and vectors; answers how many of them an empty conversation took from the prefix index,
  // which are committed at once. kNotFound; kInvalidArgument names a token outside the vocabulary, a number
  // that is not finite, or too few or too many vectors; kNoSpace where the conversation would outgrow the
  // context or the pool, with the numbers; kOutOfMemory. On error nothing is queued.
  Result<std::uint64_t> prompt(ConversationId id, std::span<const Token> tokens, LogitsWanted wanted);
  Result<std::uint64_t> prompt_mixed(ConversationId id, const PromptItems& items, LogitsWanted wanted);

  // Makes the conversation hold exactly `tokens`: rewinds to the longest common beginning, queues the rest
  // (at least the last token, so that its logits come), and answers how many were kept. Errors as prompt()
  // and edit(); on error nothing has changed.
  Result<std::uint64_t> prompt_to(ConversationId id, std::span<const Token> tokens);

  // Queues the last token again where its logits are missing. kNotFound; kNeedsPrompt where there is no
  // token, kUnsupported where it is a vector; errors as edit().
  [[nodiscard]] Status refresh(ConversationId id);

  // Takes back everything queued, ends its generation, and takes the conversation out of an open step.
  // kNotFound.
  [[nodiscard]] Status cancel(ConversationId id);

  // From the next draw on `drawer` draws a token whenever nothing else is queued, and the conversation goes
  // on with it. The first is drawn at once where the logits are there. kNotFound; kNeedsPrompt where there is
  // nothing to go on from; kWrongState while another generation goes on; kOutOfMemory, and what draw()
  // answers.
  [[nodiscard]] Status generate(ConversationId id, const std::shared_ptr<Drawer>& drawer);

  // The same in parts, for whoever lets others in while it draws: begin_generation() answers what is to be
  // drawn first, where the logits are there; draw_first() does so, beside any other call; end_first_draw()
  // goes on with what it brought, unless the generation has ended meanwhile. It ends where that is an error.
  [[nodiscard]] Result<std::optional<FirstDraw>> begin_generation(ConversationId id,
                                                                  std::shared_ptr<Drawer> drawer);
  [[nodiscard]] static Result<Draw> draw_first(const FirstDraw& first);
  void end_first_draw(const FirstDraw& first, const Result<Draw>& drawn) noexcept;
  // Of a generation that began while its conversation's last token was computed: the step's commit leaves it
  // to whoever steps. Nothing where there is none.
  [[nodiscard]] std::optional<FirstDraw> take_first_draw() noexcept;

  // Ends the generation by `drawer` alone, with nothing for its being cancelled: what is queued stays so.
  // Nothing where it has ended, or where another goes on.
  void stop_generation(ConversationId id, Drawer* drawer, const Error* error) noexcept;

  // A new conversation with the same committed tokens, whose cells both hold from now on, the same queue and
  // the same last logits. Nothing is copied in the cache. Also while the parent is part of an open step: the
  // child is what is committed. Its seed is its own. kNotFound, kOutOfMemory.
  [[nodiscard]] Result<ConversationId> fork(ConversationId id, bool keep_seed = false);

  // Applies the operations one after another, all or none. Afterwards the conversation has no last logits, if
  // anything changed. kNotFound; kBusy while it is part of an open step; kInvalidArgument, kUnsupported,
  // kNoSpace, kOutOfMemory as pages::PageStore::begin_edit. On error nothing has changed. Must not run beside
  // a job where it divides.
  [[nodiscard]] Status edit(ConversationId id, std::span<const pages::EditOperation> operations);

  // Keeps the first `length` tokens. Where a recurrent state or a window of that moment is gone, the nearest
  // checkpoint before is restored: the conversation is then behind, and the tokens from there on are computed
  // again before whatever is queued next. Until then only prompts, rewind(), fork(), cancel(), close() and
  // saves are for it; the rest answers kWrongState. kNotFound, kBusy, kNoSpace, kOutOfMemory as
  // pages::PageStore::rewind(); kInvalidArgument beyond what it holds; kUnsupported where a vector, which is
  // not kept, would have to be computed again. On error nothing has changed.
  [[nodiscard]] Status rewind(ConversationId id, std::uint64_t length);

  // A short form of edit(): drops `count` tokens after the first `keep` and moves the positions of the rest
  // left by as many.
  [[nodiscard]] Status shift_left(ConversationId id, std::uint64_t keep, std::uint64_t count);

  // Tokens that would have to be computed again after a rewind to `length`. kNotFound; kInvalidArgument
  // beyond what the conversation holds.
  [[nodiscard]] Result<std::uint64_t> rewind_cost(ConversationId id, std::uint64_t length) const;

  // Reads a source with the encoder, as one unit: all of it or nothing. What is prompted from then on attends
  // to it, in this conversation and its forks. `between_jobs` may cancel: kCancelled; suspending means to go
  // on. Errors as EncodeJob::begin().
  [[nodiscard]] Status encode(ConversationId id, std::span<const Token> source,
                              const std::function<Verdict(const JobView&)>& between_jobs = {});

  // Lets two committed cells change places in the pool; no bit of any logits changes. kNotFound,
  // kInvalidArgument, kOutOfMemory; kBusy while a step is open; kWrongState while it is behind; kUnsupported
  // in a model that keeps no cells of tokens.
  [[nodiscard]] Status swap_cells(ConversationId id, std::uint64_t a, std::uint64_t b);

  // What no cache may ever do: hands two conversations the bytes of each other's first `count` cells and
  // tells nobody. For tests of what notices. kNotFound; kBusy while a step is open; kInvalidArgument where
  // either has fewer cells, or has them in a tier; kOutOfMemory.
  [[nodiscard]] Status mix_up_cells(ConversationId a, ConversationId b, std::uint64_t count);

  // Moves cells so that conversations lie in fewer spans, until nothing is worth moving or about `budget`
  // cells have moved; answers how many. Conversations of an open step stay where they are. kOutOfMemory, with
  // what has moved moved; kUnsupported in a model that keeps no cells of tokens. Must not run beside a job.
  [[nodiscard]] Result<std::uint64_t> compact(std::uint64_t budget);
  // The same, at most a page of cells.
  [[nodiscard]] Result<std::uint64_t> compact_once(std::uint64_t budget);

  // Commits `tokens` whose cells hold no meaning, without computing: to measure at a depth, or to fill a
  // pool. Errors as prompt() and step().
  [[nodiscard]] Status fill(ConversationId id, std::span<const Token> tokens);

  // Promises that so many more tokens will fit, in place of what was reserved before. They come behind what
  // is queued. From then on its cells make no room for others. kNotFound; kNoSpace with the numbers;
  // kWrongState where some lie in a tier, but for 0 tokens of one that nothing is queued for; kOutOfMemory.
  [[nodiscard]] Status reserve(ConversationId id, std::uint64_t tokens);
  [[nodiscard]] bool fits(ConversationId id, std::uint64_t tokens) const noexcept;

  // Takes a conversation's cells out of the pool, a run at a time: kNothing when none is left that nobody
  // else uses, kWaits as move(). kNotFound; kUnsupported without tiers; kBusy while it is part of an open
  // step, kWrongState while something is queued or it generates; kNoSpace where the tiers are full, kIo where
  // the disk refuses; kOutOfMemory. What is in a tier stays there. What was reserved is given back.
  [[nodiscard]] Result<Moved> spill(ConversationId id);

  // Brings all its cells back, a part at a time: kRoom when they are back, kNothing where there are none in
  // tiers. Room for what is queued and `reserved` tokens behind it comes with them; by default for what was
  // reserved before. kNotFound; kBusy while another conversation returns; kNoSpace, kIo, kCorrupt,
  // kOutOfMemory, and everything is where it was.
  [[nodiscard]] Result<Moved> bring_back(ConversationId id,
                                         std::optional<std::uint64_t> reserved = std::nullopt);

  // Gives up a conversation's cells and keeps its tokens: what is prompted next computes them again first, to
  // the same bits. Rows of logits stay. kNotFound; kBusy, kWrongState as spill(); kUnsupported where the same
  // tokens would not give the same cells, because some were removed, moved or divided, or are vectors;
  // kOutOfMemory. What was reserved is given back.
  [[nodiscard]] Status drop(ConversationId id);

  // Whether cells should move before somebody who waits can be planned, and one part of that: at most a page.
  // Between two jobs of a pass, or at once where none runs; never beside one. What fails concerns one
  // conversation, and is in its return_error.
  [[nodiscard]] bool moves_pending() const noexcept;
  // What was found to be in vain is tried again: something else may have changed.
  void retry_moves() noexcept {
    moves_are_vain_ = false;
    vain_because_.reset();
  }
  [[nodiscard]] Moved move() noexcept;
  // Waits for the disk; false where it has nothing to do. May run beside other calls.
  bool wait_for_disk() { return tiers_ != nullptr && tiers_->wait(); }
  void when_disk_moved(std::function<void()> listener);

  [[nodiscard]] Residence residence(const Conversation& conversation) const noexcept;
  [[nodiscard]] const MoveCounts& moves() const noexcept { return moves_; }
  [[nodiscard]] tiers::TierUsage tier_usage() const noexcept {
    return tiers_ != nullptr ? tiers_->usage() : tiers::TierUsage{};
  }

  // One step, or the continuation of an open one, from its plan to its end. kNoSpace where something is
  // queued and none of it finds room, with the numbers of the first; kBusy from within between_jobs;
  // kOutOfMemory. All leave everything as it was. A report says what happened otherwise.
  [[nodiscard]] Result<StepReport> step(const StepOptions& options = {});

  // The same in parts, for whoever lets others in between them: begin_step(), then start_pass(), run_job()
  // until it answers true and end_pass() for each pass, then draw() and commit_step(); all but run_job() and
  // draw() with others kept out.
  //
  // Plans and reserves; false where nothing is to be done. kNoSpace and kOutOfMemory as step().
  [[nodiscard]] Result<bool> begin_step(const StepOptions& options);
  [[nodiscard]] bool step_open() const noexcept { return open_step_ != nullptr; }
  // Whether a pass is under way, and whether all passes are done.
  [[nodiscard]] bool pass_open() const noexcept;
  [[nodiscard]] bool passes_done() const noexcept;
  // Whether all its conversations were taken out.
  [[nodiscard]] bool step_is_vain() const noexcept;
  // False where nothing of the pass is wanted any more: it is then skipped.
  [[nodiscard]] Result<bool> start_pass();
  // Whether the pass is finished. kOutOfMemory: the step must be abandoned. May run beside other calls.
  [[nodiscard]] Result<bool> run_job();
  void end_pass() noexcept;
  // Draws for those that generate; what fails takes its conversation out. May run beside other calls.
  void draw() noexcept;
  void commit_step(const StepOptions& options, StepReport& report) noexcept;
  [[nodiscard]] JobView view() const noexcept;
  // Places in `report` for what becomes of whom, which commit_step() fills in. Throws std::bad_alloc.
  void prepare_report(StepReport& report) const;

  // Undoes an open step, if there is one.
  void abandon_step() noexcept;

  // Committed state. kNotFound. Spans are valid until the next call that is not const. tokens() are those
  // that are computed; history() also those that were and are dropped.
  [[nodiscard]] Result<std::span<const Token>> tokens(ConversationId id) const;
  [[nodiscard]] Result<std::vector<Token>> history(ConversationId id) const;
  [[nodiscard]] Result<std::uint64_t> queued(ConversationId id) const;
  // As it is. kNotFound.
  [[nodiscard]] Result<const Conversation*> look(ConversationId id) const { return find(id); }
  // The same, nullptr where there is none.
  [[nodiscard]] const Conversation* peek(ConversationId id) const noexcept;
  [[nodiscard]] Result<ConversationSettings*> settings(ConversationId id);
  // All of them, those that are not open too.
  [[nodiscard]] std::span<const Conversation> conversations() const noexcept { return conversations_; }
  [[nodiscard]] static ConversationId id_of(const Conversation& conversation, std::size_t index) noexcept {
    return ConversationId{(std::uint64_t{conversation.generation} << 32) | index};
  }

  // The logits of the last committed token. kNeedsPrompt where there are none.
  [[nodiscard]] Result<std::span<const float>> last_logits(ConversationId id) const;

  // The row of the last token but `back`. kNeedsPrompt where there is none, or something is queued.
  [[nodiscard]] Result<std::shared_ptr<const Row>> row(ConversationId id, std::uint64_t back) const;

  // Rows that prompts with LogitsWanted::kEvery have gathered since the last take, one behind the other.
  // kNotFound; kBusy while it is part of an open step.
  [[nodiscard]] Result<std::vector<float>> take_logits(ConversationId id);

  // The longest prompt that a new conversation could take now as one unit, and that an empty pool could.
  [[nodiscard]] std::uint64_t tokens_free() const noexcept { return store_->tokens_free(); }
  [[nodiscard]] std::uint64_t tokens_for_new() const noexcept { return store_->tokens_for_new(); }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  // Tokens that generations drew since the engine was made, and those of them that were computed.
  struct Drawn {
    std::uint64_t tokens = 0;
    std::uint64_t committed = 0;
  };
  [[nodiscard]] const Drawn& drawn() const noexcept { return drawn_; }
  // Bytes of K and V that copy jobs have moved since the engine was made; passes store theirs uncounted.
  [[nodiscard]] std::uint64_t bytes_moved() const noexcept { return bytes_moved_; }
  // Nanoseconds that compactions have spent copying, without planning what to copy.
  [[nodiscard]] std::int64_t compaction_copy_ns() const noexcept { return compaction_copy_ns_; }
  [[nodiscard]] pages::SpaceReport space() const noexcept { return store_->space(); }
  [[nodiscard]] const pages::PrefixCounters& prefix_counters() const noexcept {
    return store_->prefix_counters();
  }
  [[nodiscard]] Result<pages::Holdings> holdings(ConversationId id) const;
  [[nodiscard]] std::int64_t next_position(const Conversation& conversation) const noexcept {
    return conversation.borrowed > 0 ? 0 : store_->next_position(conversation.table);
  }
  [[nodiscard]] const model::Model& model() const noexcept { return *model_; }
  [[nodiscard]] const EngineOptions& options() const noexcept { return options_; }

  // A hash of all that P1 protects: tokens, positions, cell contents, queues, logits, draws and free cells;
  // where cells lie does not enter.
  [[nodiscard]] Result<std::uint64_t> digest() const;

  // Every invariant that can be recounted: E1, E6 and, while no ticket is open, those of the page store.
  // kInternal names the broken one. For tests.
  [[nodiscard]] Status check() const;

 private:
  friend class EncodeJob;
  friend class LoadJob;
  friend class SaveJob;
  struct OpenStep;

  Engine(std::shared_ptr<const model::Model> model, parallel::ThreadPool& pool, EngineOptions options,
         const base::Clock& clock);

  [[nodiscard]] Result<std::size_t> index_of(ConversationId id) const;
  [[nodiscard]] Result<Conversation*> find(ConversationId id);
  [[nodiscard]] Result<const Conversation*> find(ConversationId id) const;
  [[nodiscard]] Result<Conversation*> find_idle(ConversationId id);
  [[nodiscard]] std::size_t new_slot();
  void free_slot(Conversation& conversation) noexcept;

  // Prompts.
  [[nodiscard]] Status check_items(const PromptItems& items) const;
  [[nodiscard]] Status check_length(const Conversation& conversation, std::uint64_t held,
                                    std::uint64_t more) const;
  [[nodiscard]] Status check_source(const Conversation& conversation) const;
  // The cells of the source that it attends to: the same for all that attend to the same.
  [[nodiscard]] std::span<const pages::Run> source_of(const Conversation& conversation) const noexcept;
  void end_generation(Conversation& conversation, const Error* error) noexcept;
  [[nodiscard]] Status make_places(Conversation& conversation, std::uint64_t more);
  void withdraw(Conversation& conversation) noexcept;
  void forget_rows_from(Conversation& conversation, std::uint64_t ordinal, std::uint64_t length) noexcept;
  [[nodiscard]] Status check_caught_up(const Conversation& conversation) const;
  [[nodiscard]] Status rewind_within_again(Conversation& conversation, std::uint64_t length);
  void take_back(Conversation& conversation, std::uint64_t kept, std::vector<Token>& again) noexcept;
  void asks(Conversation& conversation) noexcept;

  // Tiers (moves.cc, dropping.cc).
  [[nodiscard]] Status create_tiers();
  struct Returning {
    ConversationId id{};
    pages::ReturnTicket ticket;
    std::size_t done = 0;  // of its jobs
  };
  [[nodiscard]] std::vector<std::uint8_t> idle_tables(const Conversation* more = nullptr) const;
  [[nodiscard]] bool idle(const Conversation& conversation) const noexcept;
  [[nodiscard]] static bool stays(const Conversation& conversation) noexcept;
  void give_reservation_back(Conversation& conversation) noexcept;
  [[nodiscard]] Status begin_return(Conversation& conversation, std::uint64_t need);
  [[nodiscard]] Result<Moved> return_some();
  [[nodiscard]] bool ask_ahead(Returning& returning);
  void import_job(const pages::FetchCells& job, std::span<const std::byte> bytes) noexcept;
  void finish_return() noexcept;
  void stop_return(const Conversation& conversation) noexcept;
  void drop_return() noexcept;
  void fail_return(const Error& error) noexcept;
  [[nodiscard]] Result<Moved> spill_run(const pages::CellRun& run, std::span<const std::uint8_t> idle);
  [[nodiscard]] Result<Moved> spill_oldest(const Conversation* but);
  [[nodiscard]] Error shortage_with_reason(const Error& shortage) const;
  [[nodiscard]] Result<Moved> make_room_for_one();
  void choose_moves(bool nobody_runs);
  [[nodiscard]] bool waits_before(const Conversation& a, const Conversation& b) const noexcept;
  [[nodiscard]] std::vector<std::size_t> waiting_in_order() const;
  [[nodiscard]] bool pause_for(const Conversation& target);
  void drop_gone_blocks() noexcept;
  void wake(Conversation& conversation);
  void settle_again(Conversation& conversation);
  [[nodiscard]] Status check_away(const Conversation& conversation) const;

  // Admission (admission.cc).
  [[nodiscard]] bool wants_room(const Conversation& conversation) const noexcept;
  [[nodiscard]] bool runs(const Conversation& conversation) const noexcept;
  [[nodiscard]] std::uint64_t need_of(const Conversation& conversation) const noexcept;
  [[nodiscard]] std::uint64_t need_of(const Conversation& conversation,
                                      std::uint64_t reserved) const noexcept;
  [[nodiscard]] std::uint64_t need_to_reserve(const Conversation& conversation,
                                              std::uint64_t tokens) const noexcept;
  [[nodiscard]] bool twin_is_computed(const Conversation& conversation) const;
  [[nodiscard]] Status borrow_beginning(Conversation& conversation);
  std::uint64_t show_beginning(Conversation& conversation) noexcept;
  void return_beginning(Conversation& conversation) noexcept;
  [[nodiscard]] static bool comes_before(const Conversation& a, const Conversation& b) noexcept;
  [[nodiscard]] Status promise_all(Conversation& conversation, std::uint64_t at_least);
  [[nodiscard]] Status admit(Conversation& conversation, std::uint64_t at_least);
  std::uint64_t admit_if_possible(Conversation& conversation) noexcept;
  [[nodiscard]] bool stays_refused(const Conversation& conversation, std::uint64_t free) const noexcept;
  [[nodiscard]] Status admit_those_that_wait(std::vector<std::size_t>& waiting);
  void undo_admission(Conversation& conversation) noexcept;
  void undo_admissions() noexcept;
  void renew_promise(Conversation& conversation) noexcept;
  [[nodiscard]] const Error* first_shortage() const noexcept;

  // Steps (open_step.cc).
  [[nodiscard]] std::uint64_t gather_demands(OpenStep& step) const;
  void plan_passes(OpenStep& step, const PassBounds& bounds, bool whole_queue) const;
  [[nodiscard]] Result<bool> prepare_step(OpenStep& step, const StepOptions& options);
  [[nodiscard]] pages::Growth growth_of(const Conversation& conversation, std::uint64_t tokens,
                                        bool in_part) const;
  [[nodiscard]] Status reserve_step(OpenStep& step, bool in_part);
  void prepare_deliveries(OpenStep& step, bool in_part);
  void place_piece(const OpenStep& step, std::size_t at, model::Pass& pass) const;
  void place_states(const OpenStep& step, std::size_t at, std::size_t group, model::PassStates& states) const;
  void build_pass(const OpenStep& step, model::Pass& pass) const;
  void describe_passes(StepReport& report) const;
  void move_until_room();
  [[nodiscard]] Status run_passes(const StepOptions& options, StepReport& report);
  [[nodiscard]] Status run_jobs(const StepOptions& options, StepReport& report);
  void prepare_draws() noexcept;
  [[nodiscard]] std::uint64_t room_of(const Conversation& conversation) const noexcept;
  [[nodiscard]] std::uint64_t positions() const noexcept;
  [[nodiscard]] Status check_positions(std::uint64_t next, std::uint64_t more) const;
  [[nodiscard]] std::uint64_t position_of_next(const Conversation& conversation) const noexcept;
  [[nodiscard]] std::uint64_t committable(std::size_t index, std::uint64_t accepted) const noexcept;
  void accept_some(const StepOptions& options) noexcept;
  void commit_line(std::size_t index) noexcept;
  void go_on_with(Conversation& conversation, const Draw& draw) noexcept;
  [[nodiscard]] FirstDraw first_draw_of(Conversation& conversation) noexcept;
  void leave_step(std::size_t index) noexcept;
  void put_step_away() noexcept;

  // Bytes (cell_jobs.cc, cell_parts.cc).
  template <class Job>
  void for_layers(std::uint32_t group, const Job& job);
  [[nodiscard]] kv::FrameCell place(std::uint32_t group, pages::CellAt at, std::uint32_t layer) const;
  // A cell has parts: what each layer keeps of it, or the entries of a state.
  struct CellPart {
    std::uint32_t group = 0;
    std::uint32_t part = 0;
    pages::CellAt at;           // cells side by side
    std::uint32_t count = 1;    // of a state 1
    std::uint64_t skipped = 0;  // bytes before those that are meant; 0 but of a state
  };
  [[nodiscard]] std::uint32_t part_count(std::size_t group) const noexcept;
  [[nodiscard]] std::uint64_t part_bytes(std::size_t group, std::uint32_t part) const noexcept;
  [[nodiscard]] std::uint64_t cell_bytes(std::size_t group) const noexcept;  // of all its parts
  void read_part(const CellPart& part, std::span<std::byte> out) const noexcept;
  void write_part(const CellPart& part, std::span<const std::byte> in) noexcept;
  [[nodiscard]] Status export_part(const CellPart& part, BlocksRead& read, std::span<std::byte> out) const;
  [[nodiscard]] Result<std::vector<pages::CellAt>> first_cells(const Conversation& conversation,
                                                               std::uint32_t group,
                                                               std::uint64_t count) const;
  [[nodiscard]] Status append_run(std::size_t group, const pages::Run& run,
                                  std::vector<std::byte>& out) const;
  void copy(std::uint32_t group, std::span<const pages::CopyCells> jobs);
  void rotate(const pages::RotateCells& job);

  std::shared_ptr<const model::Model> model_;
  parallel::ThreadPool* pool_;
  EngineOptions options_;
  const base::Clock* clock_;
  std::unique_ptr<tiers::Tiers> tiers_;  // nothing where there are none
  std::unique_ptr<pages::PageStore> store_;
  kv::Arena arena_;
  std::vector<kv::StateLayout> states_;  // [group]: of recurrent ones
  model::Workspace workspace_;
  std::unique_ptr<model::Forward> forward_;
  RowPool rows_;
  std::shared_ptr<const Error> out_of_memory_;  // for whoever has no memory to say more
  std::shared_ptr<const Error> vectors_are_gone_;
  CostModel cost_;
  std::uint64_t capacity_ = 0;
  std::vector<Conversation> conversations_;
  std::unique_ptr<OpenStep> open_step_;
  std::unique_ptr<OpenStep> spare_step_;  // its memory is used again
  std::uint64_t arrivals_ = 0;
  std::uint64_t uses_ = 0;
  std::optional<Returning> returning_;
  std::optional<ConversationId> room_for_;     // for whom idle conversations are spilled
  std::shared_ptr<const Error> vain_because_;  // of the tiers, where they said why
  bool moves_are_vain_ = false;                // there was nothing to spill, or no room to spill to
  MoveCounts moves_;
  Drawn drawn_;
  std::uint64_t bytes_moved_ = 0;
  std::int64_t compaction_copy_ns_ = 0;
  std::size_t rotation_ = 0;  // who comes first in the next pass
  bool in_job_ = false;       // a verdict is asked for
};

template <class Job>
void Engine::for_layers(std::uint32_t group, const Job& job) {
  const std::vector<kv::LayerGeometry>& layers = model_->network().groups[group].layers;
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer) job(layers[layer], layer);
}

}  // namespace kvasir::engine
