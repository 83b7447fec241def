// An engine that any thread may use: one lock of microseconds around its metadata, none around its jobs.
//
// Steps are taken by whoever calls step(), one at a time, or by an own worker. The lock is released for each
// job and each draw; who copies cells meanwhile keeps the next job waiting.
//
// Invariants (docs/invariants.md)
//   X1  mutex_ is held whenever the engine is touched, but for run_job() and draw() of the one thread that
//       steps. A first draw touches its drawer and its row alone.
//   X2  No callback runs and no thread is joined with mutex_ held.
//   X3  Bytes of cells are touched by one thread at a time: the thread that steps, within a job and with
//       bytes_ held, or the holder of mutex_ and bytes_.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "archive/stream.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/saved.h"
#include "engine/texts.h"
#include "kvasir/archive.h"
#include "kvasir/report.h"
#include "kvasir/result.h"

namespace kvasir::archive {
class Reader;
class Writer;
}  // namespace kvasir::archive

namespace kvasir::engine {

class EncodeJob;
class LoadJob;
class SaveJob;

struct StepBudget {
  std::optional<std::int64_t> time_ns;
  std::uint64_t tokens = UINT64_MAX;  // most in a pass
  bool whole_queue = false;
  std::function<Verdict(const JobView&)> between_jobs;
};

struct ExecutorSettings {
  EngineOptions engine;
  std::uint64_t low_space_tokens = 0;
  std::function<void(const CacheInfo&)> on_low_space;
};

// `error` as a Status, without its sentence where there is no memory for it.
[[nodiscard]] Status failed(const Error& error) noexcept;

// Calls a user's function: what it throws ends here, for the host program's sake and everybody else's.
template <class Call>
void call_safely(const Call& call) noexcept {
  try {
    call();
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing is known of it, and nothing depends on it
  }
}

using ReadyCallback = std::function<void(const Status&)>;

// A conversation that its handle has let go, to be closed by the next call. Its memory was taken with the
// handle's.
struct PostedClose {
  ConversationId id{};
  PostedClose* next = nullptr;
};

// Where the conversations of an archive go.
struct LoadTarget {
  std::optional<ConversationId> into;  // its one conversation takes the place of this one; else all are new
  // Called with what will be there once nothing else can fail; with no lock held.
  std::function<Status(std::span<const SavedConversation>)> prepare;
  // Called with the new ones' ids, in the same order, under the lock: must neither fail nor call anything.
  std::function<void(std::span<const ConversationId>)> loaded;
};

// Any thread. Kept alive by its handles and by its worker.
class Executor : public std::enable_shared_from_this<Executor> {
 public:
  // As Engine::create(). `owner` is kept as long as the executor: what model and pool belong to.
  [[nodiscard]] static Result<std::shared_ptr<Executor>> create(
      std::shared_ptr<const model::Model> model, std::shared_ptr<parallel::ThreadPool> pool,
      ExecutorSettings settings, const base::Clock& clock = base::system_clock());
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs `call` on the engine with everyone kept out; then whoever waits looks again. kWrongState after
  // close().
  template <class Call>
  auto change(const Call& call) -> decltype(call(std::declval<Engine&>()));

  // The same for calls that change nothing.
  template <class Call>
  auto look(const Call& call) const -> decltype(call(std::declval<const Engine&>()));

  // Whether an edit rewrites keys: it then waits for the job that is under way, and cells that lie in tiers
  // are brought back first.
  enum class Keys : std::uint8_t { kStay, kRewritten };

  // As change(), for calls that need the conversation outside the open step. Waits for the step where a
  // worker runs; kBusy where none does, or from a callback. kWrongState while it generates.
  [[nodiscard]] Status edit(ConversationId id, const std::function<Status(Engine&)>& call,
                            Keys keys = Keys::kStay);

  // As cancel(), and nothing is left of its history. Waits, and kBusy, as edit().
  [[nodiscard]] Status clear(ConversationId id);

  // As Engine::bring_back() to its end; nothing to do where all cells are in the pool. Waits, and kBusy, as
  // edit().
  [[nodiscard]] Status bring_back(ConversationId id);

  // As Engine::reserve(); what lies in a tier is brought back first, where more than nothing is to be
  // reserved.
  [[nodiscard]] Status reserve(ConversationId id, std::uint64_t tokens);

  // As Engine::spill() to its end, and Engine::drop(); waiting, and kBusy, as edit().
  [[nodiscard]] Status spill(ConversationId id);
  [[nodiscard]] Status drop(ConversationId id);

  // As Engine::cancel() and close(); who waits for the conversation is told.
  [[nodiscard]] Status cancel(ConversationId id);
  void close_conversation(ConversationId id) noexcept;
  // Without changing anything, and without taking memory: for destructors.
  void post_close(std::unique_ptr<PostedClose> node) noexcept;

  // Waits until nothing of the conversation is queued, by stepping where no worker runs. kNoSpace where it
  // lacks room that nobody will give back; kCancelled; kWrongState from a callback and after close(); what
  // the step answered that failed.
  [[nodiscard]] Status wait(ConversationId id);
  // The same for a limited time and without stepping: false where it was not enough.
  [[nodiscard]] Result<bool> wait_for(ConversationId id, std::int64_t ns);
  [[nodiscard]] Status when_ready(ConversationId id, ReadyCallback callback);

  // As Engine::generate(); draws without the lock.
  [[nodiscard]] Status generate(ConversationId id, const std::shared_ptr<Drawer>& drawer);

  // Adds the next piece of a generation to `into`, waiting as wait() does; false at its end. On error nothing
  // was added and no piece is lost.
  [[nodiscard]] Result<bool> next_piece(ConversationId id, TextGeneration& generation, GeneratedPiece& into);
  // The same without waiting: false where none is there.
  [[nodiscard]] Result<bool> poll_piece(TextGeneration& generation, GeneratedPiece& into);
  // Ends it: nothing more is drawn. Nothing where it has ended or another goes on.
  void end_generation(ConversationId id, TextGeneration& generation) noexcept;

  // Steps (executor_step.cc), as kvasir::Executor documents.
  [[nodiscard]] Result<kvasir::StepReport> step(const StepBudget& budget);
  [[nodiscard]] Result<kvasir::StepReport> run_until_idle(const StepBudget& budget);
  [[nodiscard]] Status abandon_step();
  [[nodiscard]] Status start();
  [[nodiscard]] Status stop();
  [[nodiscard]] Result<std::uint64_t> compact(std::uint64_t budget);
  [[nodiscard]] CacheInfo cache() const;
  [[nodiscard]] Metrics metrics() const;
  void close() noexcept;
  [[nodiscard]] bool closed() const {
    const Entered held(*this);
    return closed_;
  }

  // Texts (executor_texts.cc). As Engine::encode(), beside the steps of others; `progress` is asked between
  // two jobs, and false ends it. kWrongState once the executor is closed.
  [[nodiscard]] Status encode(ConversationId id, std::span<const Token> source,
                              const std::function<bool(double)>& progress);
  // As engine::embed().
  [[nodiscard]] Result<std::vector<std::vector<float>>> embed(std::span<const std::span<const Token>> texts,
                                                              EmbedWishes wishes);

  // Archives (executor_archives.cc). One conversation or all of them, as they are committed at the moment of
  // the call. kNotFound; kInvalidArgument for a compression that is not there; kNoSpace where what is
  // promised counts on cells that would be kept meanwhile; kCancelled; kWrongState once the executor is
  // closed; kOutOfMemory; errors of the sink.
  [[nodiscard]] Result<ArchiveReport> save(std::optional<ConversationId> only, archive::Sink& sink,
                                           const SaveOptions& options);
  // Nothing shows before all has been read and agrees with its checksums. kCorrupt; kUnsupported for another
  // model, version, or kind of cache; kNoSpace; kInvalidArgument; kBusy for a target in an open step that no
  // worker ends; kCancelled; kWrongState once the executor is closed; kOutOfMemory; errors of the source.
  [[nodiscard]] Result<ArchiveReport> load(archive::Source& source, const LoadTarget& target,
                                           const LoadOptions& options);

  [[nodiscard]] const EngineOptions& options() const noexcept { return unlocked().options(); }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return unlocked().capacity(); }

  // Under the caller's lock: a thing that may let someone go on has happened.
  void changed() noexcept KVASIR_REQUIRES(mutex_);

 private:
  // How often something has happened to a conversation that ends waiting for it.
  struct Mishaps {
    std::uint64_t cancels = 0;
    std::uint64_t failures = 0;  // of steps it was meant for
  };
  // What those that wait for a conversation go by.
  struct Watch {
    struct Caller {
      ReadyCallback callback;
      Mishaps before;
    };
    Mishaps mishaps;
    std::optional<Error> failure;  // the latest
    std::vector<Caller> callers;
  };
  // A callback that is due, called when no lock is held.
  struct Due {
    ReadyCallback callback;
    Status status;
  };

  Executor(std::shared_ptr<parallel::ThreadPool> pool, ExecutorSettings settings, const base::Clock& clock)
      : pool_(std::move(pool)), settings_(std::move(settings)), clock_(&clock) {}

  // Holds mutex_, with those closed whose handles were destroyed.
  class KVASIR_SCOPED_CAPABILITY Entered {
   public:
    explicit Entered(const Executor& executor) KVASIR_ACQUIRE(executor.mutex_) : executor_(&executor) {
      executor.mutex_.lock();
      executor.close_posted();
    }
    ~Entered() KVASIR_RELEASE() { executor_->mutex_.unlock(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    const Executor* executor_;
  };
  // Holds bytes_ (X3): whoever steps lets it through between two jobs.
  class KVASIR_SCOPED_CAPABILITY Copying {
   public:
    explicit Copying(Executor& executor) KVASIR_ACQUIRE(executor.bytes_) : executor_(&executor) {
      executor.copying_.fetch_add(1);
      executor.bytes_.lock();
      executor.copying_.fetch_sub(1);
    }
    ~Copying() KVASIR_RELEASE() { executor_->bytes_.unlock(); }
    Copying(const Copying&) = delete;
    Copying& operator=(const Copying&) = delete;

   private:
    Executor* executor_;
  };

  // The engine without mutex_ (X1), which lint otherwise finds held: its jobs and draws for the thread that
  // steps, and what never changes.
  [[nodiscard]] Engine& unlocked() const noexcept KVASIR_UNCHECKED { return *engine_; }

  void close_posted() const noexcept KVASIR_REQUIRES(mutex_);
  [[nodiscard]] bool steps_here() const noexcept;
  [[nodiscard]] Status check_open() const KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status leave_step(ConversationId id) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status cancel_and_leave(ConversationId id) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status bring_back_held(ConversationId id, std::optional<std::uint64_t> reserved)
      KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status cancel_held(ConversationId id) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Result<bool> ready(ConversationId id, const Mishaps& before) const KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status go_on(ConversationId id) KVASIR_REQUIRES(mutex_);
  Result<Draw> draw_first(const FirstDraw& first) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] const Error* hopeless(ConversationId id) const KVASIR_REQUIRES(mutex_);

  [[nodiscard]] Result<kvasir::StepReport> step_held(const StepBudget& budget) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status run_passes(const StepBudget& budget, std::int64_t deadline, kvasir::StepReport& report)
      KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Result<Verdict> run_jobs(const StepBudget& budget, std::int64_t deadline)
      KVASIR_EXCLUDES(mutex_);
  [[nodiscard]] Verdict after_job(const StepBudget& budget, std::int64_t deadline, std::int64_t started)
      KVASIR_EXCLUDES(mutex_);
  void note_job(std::int64_t ns) noexcept;
  [[nodiscard]] Result<bool> begin_step(const StepOptions& options, std::int64_t deadline,
                                        kvasir::StepReport& report) KVASIR_REQUIRES(mutex_);
  Moved move_held() KVASIR_REQUIRES(mutex_);
  template <class Move>
  [[nodiscard]] Status move_to_end(ConversationId id, const Move& move) KVASIR_REQUIRES(mutex_);
  void wait_for_disk(std::int64_t deadline) KVASIR_REQUIRES(mutex_);
  [[nodiscard]] Status tell_of_failed_returns(kvasir::StepReport& report) const KVASIR_REQUIRES(mutex_);
  void disk_moved() noexcept KVASIR_EXCLUDES(mutex_);
  [[nodiscard]] Status without_room(const Error& shortage, kvasir::StepReport& report)
      KVASIR_REQUIRES(mutex_);
  void finish_step(StepReport&& committed, kvasir::StepReport& report) KVASIR_REQUIRES(mutex_);
  bool add_waiting(kvasir::StepReport& report) const noexcept KVASIR_REQUIRES(mutex_);
  void fail_step(const Error& error) noexcept KVASIR_REQUIRES(mutex_);
  void end_step(bool stalled) noexcept KVASIR_REQUIRES(mutex_);
  void end_all() noexcept KVASIR_REQUIRES(mutex_);
  [[nodiscard]] CacheInfo cache_held() const KVASIR_REQUIRES(mutex_);
  void collect_due() noexcept KVASIR_REQUIRES(mutex_);
  void call_due() noexcept KVASIR_REQUIRES(mutex_);
  void work();
  [[nodiscard]] bool has_work() const noexcept KVASIR_REQUIRES(mutex_);

  template <class Job>
  class Held;
  template <class Copy>
  auto copy_between_jobs(const Copy& copy) -> decltype(copy());
  [[nodiscard]] Result<bool> advance_encode(EncodeJob& job);
  void pause_after(std::chrono::nanoseconds spent, double share);
  [[nodiscard]] Status write_cells(SaveJob& job, archive::Writer& writer, const SaveOptions& options);
  [[nodiscard]] Status begin_load(Held<LoadJob>& job, const Saved& saved, const LoadTarget& target,
                                  bool recompute);
  [[nodiscard]] Status read_sources(LoadJob& job, const LoadOptions& options);
  [[nodiscard]] Status read_cells(LoadJob& job, archive::Reader& reader, const LoadOptions& options);
  [[nodiscard]] Status commit_load(Held<LoadJob>& job, const LoadTarget& target);

  std::shared_ptr<parallel::ThreadPool> pool_;
  ExecutorSettings settings_;
  const base::Clock* clock_;

  mutable base::Mutex mutex_;
  mutable base::Condition change_;
  base::Mutex bytes_;
  std::atomic<int> copying_{0};  // threads that hold or want bytes_ outside a job
  mutable std::atomic<PostedClose*> posted_{nullptr};

  std::unique_ptr<Engine> engine_ KVASIR_PT_GUARDED_BY(mutex_);
  // By id, of conversations that somebody waits for.
  std::unordered_map<std::uint64_t, Watch> watches_ KVASIR_GUARDED_BY(mutex_);
  std::vector<Due> due_ KVASIR_GUARDED_BY(mutex_);       // has places for the callbacks of all watches
  std::size_t callbacks_ KVASIR_GUARDED_BY(mutex_) = 0;  // of all watches
  Metrics metrics_ KVASIR_GUARDED_BY(mutex_);
  std::int64_t long_job_ns_ = 0;                     // the second longest
  std::int64_t longest_job_ns_ = 0;                  // of late; the stepping thread's
  bool stepping_ KVASIR_GUARDED_BY(mutex_) = false;  // a thread is in step()
  std::atomic<std::thread::id> stepper_;             // that thread, also while it is in a callback
  bool stalled_ KVASIR_GUARDED_BY(mutex_) = false;   // the latest step found no room for anyone
  bool low_space_ KVASIR_GUARDED_BY(mutex_) = false;
  bool closed_ KVASIR_GUARDED_BY(mutex_) = false;
  std::atomic<bool> closing_{false};  // close() has begun: the step under way ends, none begins
  std::atomic<bool> vain_{false};     // so is it where all its conversations are taken out

  std::thread worker_ KVASIR_GUARDED_BY(mutex_);
  bool worker_runs_ KVASIR_GUARDED_BY(mutex_) = false;
  bool worker_stops_ KVASIR_GUARDED_BY(mutex_) = false;
  int edits_waiting_ KVASIR_GUARDED_BY(mutex_) = 0;         // for the step that is open
  std::uint64_t disk_moves_ KVASIR_GUARDED_BY(mutex_) = 0;  // writes and reads that the disk has ended
  std::atomic<bool> moving_{false};                         // cells are to be moved between two jobs
  std::uint64_t changes_ KVASIR_GUARDED_BY(mutex_) = 0;
};

template <class Call>
auto Executor::change(const Call& call) -> decltype(call(std::declval<Engine&>())) {
  const Entered held(*this);
  if (Status open = check_open(); !open) return fail(std::move(open).error());
  auto result = call(*engine_);
  changed();
  return result;
}

template <class Call>
auto Executor::look(const Call& call) const -> decltype(call(std::declval<const Engine&>())) {
  const Entered held(*this);
  return call(std::as_const(*engine_));
}

}  // namespace kvasir::engine
