// Conversations over one model and one cache, advanced by atomic steps.
//
// A step is a ticket of the page store and one or more passes under it. It takes full effect at its end or
// none at all: if it fails or is cancelled, every conversation is what it was before and its tokens are still
// queued. A step that its caller suspends stays open; the next one continues it.
//
// Invariants (docs/invariants.md)
//   E1  A conversation's cells are its committed tokens, no more, no fewer.
//   E2  Until commit a step shows nowhere: tokens, queues, logits and free cells are those from before it.
//   E3  Everything that commit needs is allocated before the first pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/planner.h"
#include "kv/arena.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "model/forward.h"
#include "model/model.h"
#include "pages/page_store.h"
#include "parallel/thread_pool.h"

namespace kvasir::engine {

enum class ConversationId : std::uint32_t {};

// Sizes of an engine, all in tokens.
struct EngineOptions {
  std::uint64_t context = 4096;     // longest that one conversation may get
  std::uint64_t pool = 4096;        // that the cache holds
  std::uint32_t page_cells = 32;    // in a page
  std::uint32_t pass_tokens = 512;  // most in a pass
  std::uint32_t logit_rows = 64;    // most in a pass whose logits are wanted
  bool share_prefixes = false;      // empty conversations take beginnings that others computed
  kv::CacheTypes types;
};

// Of which queued tokens a prompt wants logits.
enum class LogitsWanted : std::uint8_t { kLast, kEvery };

// Asked between two jobs.
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
};

// Not thread-safe.
class Engine {
 public:
  // kInvalidArgument names the option, kOutOfMemory the bytes.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const model::Model> model,
                                                              parallel::ThreadPool& pool,
                                                              const EngineOptions& options);
  ~Engine();

  // A new conversation that holds nothing. kOutOfMemory.
  [[nodiscard]] Result<ConversationId> open();

  // Ends a conversation and gives its cells back. kNotFound; kBusy while it is part of an open step.
  [[nodiscard]] Status close(ConversationId id);

  // Queues tokens; answers how many of them an empty conversation took from the prefix index, which are
  // committed at once. kNotFound; kInvalidArgument names a token outside the vocabulary; kNoSpace where the
  // conversation would outgrow the context, with the numbers; kBusy while it is part of an open step;
  // kOutOfMemory. On error nothing is queued.
  Result<std::uint64_t> prompt(ConversationId id, std::span<const Token> tokens, LogitsWanted wanted);

  // Makes the conversation hold exactly `tokens`: rewinds to the longest common beginning, queues the rest
  // (at least the last token, so that its logits come), and answers how many were kept. Errors as prompt()
  // and edit(); on error nothing has changed.
  Result<std::uint64_t> prompt_to(ConversationId id, std::span<const Token> tokens);

  // Takes back everything queued. kNotFound; kBusy while it is part of an open step.
  [[nodiscard]] Status clear_queue(ConversationId id);

  // A new conversation with the same committed tokens, whose cells both hold from now on, the same queue and
  // the same last logits. Nothing is copied in the cache. Also while the parent is part of an open step: the
  // child is what is committed. kNotFound, kOutOfMemory.
  [[nodiscard]] Result<ConversationId> fork(ConversationId id);

  // Applies the operations one after another, all or none. Afterwards the conversation has no last logits, if
  // anything changed. kNotFound; kBusy while it is part of an open step; kInvalidArgument, kNoSpace,
  // kOutOfMemory as pages::PageStore::begin_edit. On error nothing has changed.
  [[nodiscard]] Status edit(ConversationId id, std::span<const pages::EditOperation> operations);

  // Short forms of edit(). Rewind keeps the first `length` tokens. Shift drops `count` tokens after the first
  // `keep` and moves the positions of the rest left by as many.
  [[nodiscard]] Status rewind(ConversationId id, std::uint64_t length);
  [[nodiscard]] Status shift_left(ConversationId id, std::uint64_t keep, std::uint64_t count);

  // Lets two committed cells change places in the pool; no bit of any logits changes. kNotFound,
  // kInvalidArgument, kOutOfMemory; kBusy while a step is open.
  [[nodiscard]] Status swap_cells(ConversationId id, std::uint64_t a, std::uint64_t b);

  // Moves cells so that conversations lie in fewer spans, until nothing is worth moving or about `budget`
  // cells have moved; answers how many. Conversations of an open step stay where they are. kOutOfMemory, with
  // what has moved moved.
  [[nodiscard]] Result<std::uint64_t> compact(std::uint64_t budget);

  // Commits `tokens` whose cells hold no meaning, without computing: to measure at a depth, or to fill a
  // pool. Errors as prompt() and step().
  [[nodiscard]] Status fill(ConversationId id, std::span<const Token> tokens);

  // One step, or the continuation of an open one. kNoSpace and kOutOfMemory leave everything as it was. A
  // report says what happened otherwise.
  [[nodiscard]] Result<StepReport> step(const StepOptions& options = {});

  // Undoes an open step, if there is one.
  void abandon_step() noexcept;
  [[nodiscard]] bool step_open() const noexcept { return open_step_ != nullptr; }

  // Committed state. kNotFound. Spans are valid until the next call that is not const.
  [[nodiscard]] Result<std::span<const Token>> tokens(ConversationId id) const;
  [[nodiscard]] Result<std::uint64_t> queued(ConversationId id) const;

  // The logits of the last committed token. kNeedsPrompt where there are none.
  [[nodiscard]] Result<std::span<const float>> last_logits(ConversationId id) const;

  // Rows that prompts with LogitsWanted::kEvery have gathered since the last take, one behind the other.
  [[nodiscard]] Result<std::vector<float>> take_logits(ConversationId id);

  [[nodiscard]] std::uint64_t tokens_free() const noexcept { return store_->tokens_free(); }
  // Bytes of K and V that copy jobs have moved since the engine was made; passes store theirs uncounted.
  [[nodiscard]] std::uint64_t bytes_moved() const noexcept { return bytes_moved_; }
  [[nodiscard]] pages::SpaceReport space() const noexcept { return store_->space(); }
  [[nodiscard]] Result<pages::Holdings> holdings(ConversationId id) const;
  [[nodiscard]] const model::Model& model() const noexcept { return *model_; }
  [[nodiscard]] const EngineOptions& options() const noexcept { return options_; }

  // A hash of all that P1 protects: tokens, positions, cell contents, queues, logits and free cells; where
  // cells lie does not enter.
  [[nodiscard]] Result<std::uint64_t> digest() const;

 private:
  using Row = std::vector<float>;
  static constexpr std::uint64_t kNoSalt = 0;  // beginnings are shared by all conversations

  struct Conversation {
    pages::TableId table{};
    std::vector<Token> tokens;
    std::vector<Token> queue;
    std::vector<std::uint8_t> every;  // [queue]: whether the token's logits are wanted wherever it stands
    std::shared_ptr<const Row> last_logits;  // immutable, shared by forks; null where there are none
    std::vector<float> every_logit;
    bool open = false;
    bool in_step = false;
  };
  struct OpenStep;

  Engine(std::shared_ptr<const model::Model> model, parallel::ThreadPool& pool, const EngineOptions& options);

  [[nodiscard]] Result<Conversation*> find(ConversationId id);
  [[nodiscard]] Result<const Conversation*> find(ConversationId id) const;
  [[nodiscard]] Result<Conversation*> find_idle(ConversationId id);

  [[nodiscard]] Result<bool> begin_step(const StepOptions& options);
  void prepare_deliveries(OpenStep& step);
  [[nodiscard]] Status check_prompt(const Conversation& conversation, std::span<const Token> tokens,
                                    std::uint64_t held) const;
  [[nodiscard]] std::size_t new_slot();
  [[nodiscard]] model::Pass build_pass(const OpenStep& step) const;
  [[nodiscard]] Status run_passes(const StepOptions& options, StepReport& report);
  [[nodiscard]] Status run_jobs(const StepOptions& options, StepReport& report);
  void collect_logits(OpenStep& step) noexcept;
  void commit_step(StepReport& report) noexcept;

  template <class Job>
  void for_layers(std::uint32_t group, const Job& job);
  [[nodiscard]] kv::FrameCell place(std::uint32_t group, pages::CellAt at, std::uint32_t layer) const;
  [[nodiscard]] std::uint32_t rotary_of(std::uint32_t group, std::uint32_t layer_in_group) const;
  void append_run(std::size_t group, const pages::Run& run, std::vector<std::byte>& out) const;
  void copy(const pages::CopyCells& job);
  void rotate(const pages::RotateCells& job);

  std::shared_ptr<const model::Model> model_;
  parallel::ThreadPool* pool_;
  EngineOptions options_;
  std::unique_ptr<pages::PageStore> store_;
  kv::Arena arena_;
  model::Workspace workspace_;
  std::optional<model::Forward> forward_;
  std::vector<Conversation> conversations_;
  std::unique_ptr<OpenStep> open_step_;
  std::uint64_t bytes_moved_ = 0;
  std::size_t rotation_ = 0;  // who comes first in the next pass
};

}  // namespace kvasir::engine
