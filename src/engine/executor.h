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
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "archive/stream.h"
#include "base/clock.h"
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
    const Lock held = lock();
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

  [[nodiscard]] const EngineOptions& options() const noexcept { return engine_->options(); }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return engine_->capacity(); }

  // Under the caller's lock: a thing that may let someone go on has happened.
  void changed() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

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

  [[nodiscard]] Lock lock() const;
  void close_posted() const noexcept;
  [[nodiscard]] bool steps_here() const noexcept;
  [[nodiscard]] Status check_open() const;
  [[nodiscard]] Status leave_step(Lock& held, ConversationId id);
  [[nodiscard]] Status cancel_held(ConversationId id);
  [[nodiscard]] Result<bool> ready(ConversationId id, const Mishaps& before) const;
  [[nodiscard]] Status go_on(Lock& held, ConversationId id);
  Result<Draw> draw_first(Lock& held, const FirstDraw& first);
  [[nodiscard]] const Error* hopeless(ConversationId id) const;

  [[nodiscard]] Result<kvasir::StepReport> step_held(Lock& held, const StepBudget& budget);
  [[nodiscard]] Status run_passes(Lock& held, const StepBudget& budget, std::int64_t deadline,
                                  kvasir::StepReport& report);
  [[nodiscard]] Result<Verdict> run_jobs(Lock& held, const StepBudget& budget, std::int64_t deadline);
  [[nodiscard]] Verdict after_job(const StepBudget& budget, std::int64_t deadline, std::int64_t started);
  [[nodiscard]] Result<bool> begin_step(Lock& held, const StepOptions& options, std::int64_t deadline,
                                        kvasir::StepReport& report);
  Moved move_held();
  template <class Move>
  [[nodiscard]] Status move_to_end(Lock& held, ConversationId id, const Move& move);
  void wait_for_disk(Lock& held, std::int64_t deadline);
  [[nodiscard]] Status tell_of_failed_returns(kvasir::StepReport& report) const;
  void disk_moved() noexcept;
  [[nodiscard]] Status without_room(const Error& shortage, kvasir::StepReport& report);
  void finish_step(StepReport&& committed, kvasir::StepReport& report);
  bool add_waiting(kvasir::StepReport& report) const noexcept;
  void fail_step(const Error& error) noexcept;
  void end_step(Lock& held, bool stalled) noexcept;
  void end_all() noexcept;
  [[nodiscard]] CacheInfo cache_held() const;
  void collect_due() noexcept;
  void call_due(Lock& held) noexcept;
  void work();
  [[nodiscard]] bool has_work() const noexcept;

  template <class Job>
  class Held;
  template <class Copy>
  auto copy_between_jobs(const Copy& copy) -> decltype(copy());
  [[nodiscard]] Result<bool> advance_encode(EncodeJob& job);
  void pause_after(std::chrono::nanoseconds spent, double share);
  [[nodiscard]] Status write_cells(SaveJob& job, archive::Writer& writer, const SaveOptions& options);
  [[nodiscard]] Status begin_load(Held<LoadJob>& job, const Saved& saved, const LoadTarget& target,
                                  bool recompute);
  [[nodiscard]] Status read_cells(LoadJob& job, archive::Reader& reader, const LoadOptions& options);
  [[nodiscard]] Status commit_load(Held<LoadJob>& job, const LoadTarget& target);

  std::shared_ptr<parallel::ThreadPool> pool_;
  ExecutorSettings settings_;
  const base::Clock* clock_;

  mutable std::mutex mutex_;
  mutable std::condition_variable change_;
  std::mutex bytes_;
  std::atomic<int> copying_{0};  // threads that hold or want bytes_ outside a job
  mutable std::atomic<PostedClose*> posted_{nullptr};

  std::unique_ptr<Engine> engine_;
  std::unordered_map<std::uint64_t, Watch> watches_;  // by id, of conversations that somebody waits for
  std::vector<Due> due_;                              // has places for the callbacks of all watches
  std::size_t callbacks_ = 0;                         // of all watches
  Metrics metrics_;
  std::int64_t longest_job_ns_ = 0;       // of late
  bool stepping_ = false;                 // a thread is in step()
  std::atomic<std::thread::id> stepper_;  // that thread, also while it is in a callback
  bool stalled_ = false;                  // the latest step found no room for anyone
  bool low_space_ = false;
  bool closed_ = false;
  std::atomic<bool> closing_{false};  // the step under way is to end
  std::atomic<bool> vain_{false};     // so is it where all its conversations are taken out

  std::thread worker_;
  bool worker_runs_ = false;
  bool worker_stops_ = false;
  int edits_waiting_ = 0;            // for the step that is open
  std::uint64_t disk_moves_ = 0;     // writes and reads that the disk has ended
  std::atomic<bool> moving_{false};  // cells are to be moved between two jobs
  std::uint64_t changes_ = 0;
};

template <class Call>
auto Executor::change(const Call& call) -> decltype(call(std::declval<Engine&>())) {
  const Lock held = lock();
  if (Status open = check_open(); !open) return fail(std::move(open).error());
  auto result = call(*engine_);
  changed();
  return result;
}

template <class Call>
auto Executor::look(const Call& call) const -> decltype(call(std::declval<const Engine&>())) {
  const Lock held = lock();
  return call(std::as_const(*engine_));
}

}  // namespace kvasir::engine
