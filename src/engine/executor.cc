#include "engine/executor.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

// How long whoever waits for the disk sleeps before it looks again by itself.
constexpr std::chrono::nanoseconds kDiskPatience = std::chrono::milliseconds(100);

// So many nanoseconds from now, at most as far as the clock goes.
std::chrono::steady_clock::time_point wake_time(std::int64_t ns) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds left = std::chrono::steady_clock::time_point::max() - now;
  return now + std::clamp(std::chrono::nanoseconds(ns), std::chrono::nanoseconds(0), left);
}

}  // namespace

Status failed(const Error& error) noexcept {
  try {
    return fail(error);
  } catch (const std::bad_alloc&) {
    return fail(error.code(), std::string(), error.numbers());
  }
}

Result<std::shared_ptr<Executor>> Executor::create(std::shared_ptr<const model::Model> model,
                                                   std::shared_ptr<parallel::ThreadPool> pool,
                                                   ExecutorSettings settings, const base::Clock& clock) {
  return base::within_memory([&]() -> Result<std::shared_ptr<Executor>> {
    parallel::ThreadPool& threads = *pool;
    std::shared_ptr<Executor> executor(new Executor(std::move(pool), std::move(settings), clock));
    KVASIR_ASSIGN(executor->engine_,
                  Engine::create(std::move(model), threads, executor->settings_.engine, clock));
    executor->unlocked().when_disk_moved([mine = executor.get()] { mine->disk_moved(); });
    return executor;
  });
}

// The worker holds the executor, so it has ended.
Executor::~Executor() {
  if (engine_ != nullptr) close();
}

void Executor::changed() noexcept {
  ++changes_;
  stalled_ = false;
  vain_ = engine_->step_is_vain();
  change_.notify_all();
}

// Closed from the moment when close() begins: whoever stepped on would keep it waiting.
Status Executor::check_open() const {
  if (!closed_ && !closing_.load()) return {};
  return fail(Outcome::kWrongState, "the executor is closed");
}

// Whether the caller is the thread that steps, that is: whether this is called from a callback.
bool Executor::steps_here() const noexcept {
  return stepper_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

// Conversations whose handles were destroyed.
void Executor::close_posted() const noexcept {
  PostedClose* node = posted_.exchange(nullptr, std::memory_order_acquire);
  if (node == nullptr) return;
  auto& self = const_cast<Executor&>(*this);  // NOLINT(cppcoreguidelines-pro-type-const-cast): under its lock
  self.mutex_.assert_held();
  while (node != nullptr) {
    const std::unique_ptr<PostedClose> owned(node);
    node = owned->next;
    static_cast<void>(self.engine_->close(owned->id));
  }
  self.changed();
}

void Executor::post_close(std::unique_ptr<PostedClose> node) noexcept {
  PostedClose* const mine = node.release();
  mine->next = posted_.load(std::memory_order_relaxed);
  while (!posted_.compare_exchange_weak(mine->next, mine, std::memory_order_release)) {
  }
  // A worker with nothing else to do closes it now; whoever calls next does so otherwise. Who was about to
  // sleep has either seen the node or sleeps by now, and is woken.
  {
    const base::Lock about_to_sleep(mutex_);
  }
  change_.notify_all();
}

// Until the conversation is no part of the open step, where a worker will end that.
Status Executor::leave_step(ConversationId id) {
  bool waited = false;
  const auto is_over = [&]() -> Result<bool> {
    mutex_.assert_held();
    KVASIR_TRY(check_open());
    KVASIR_ASSIGN(const Conversation* const conversation, engine_->look(id));
    // One that generates has a next step with every step.
    return !conversation->in_step || !worker_runs_ || steps_here() || conversation->drawer != nullptr;
  };
  Result<bool> over = is_over();
  while (over && !*over) {
    // The worker begins no step before this one has been let in.
    if (!std::exchange(waited, true)) ++edits_waiting_;
    change_.wait(mutex_);
    close_posted();
    over = is_over();
  }
  // Once, and not at each look: two that wait would wake each other for ever.
  if (waited) {
    --edits_waiting_;
    change_.notify_all();
  }
  if (!over) return fail(over.error());
  return {};
}

Status Executor::edit(ConversationId id, const std::function<Status(Engine&)>& call, Keys keys) {
  const Entered held(*this);
  KVASIR_TRY(leave_step(id));
  if (engine_->peek(id)->drawer != nullptr)
    return fail(Outcome::kWrongState, "the conversation generates; read it to its end, or cancel it");
  if (keys == Keys::kRewritten) {
    KVASIR_TRY(move_to_end(id, [&] {
      mutex_.assert_held();
      return engine_->bring_back(id);
    }));
  }
  const Status done = base::within_memory([&] {
    mutex_.assert_held();
    if (keys == Keys::kStay) return call(*engine_);
    const Copying bytes(*this);
    return call(*engine_);
  });
  changed();
  collect_due();
  call_due();
  return done;
}

// Moves a conversation's cells, a part at a time, with everybody let in between; until `move` finds nothing.
template <class Move>
Status Executor::move_to_end(ConversationId id, const Move& move) {
  while (true) {
    const std::uint64_t disk = disk_moves_;
    Result<Moved> moved = Moved::kNothing;
    {
      const Copying bytes(*this);
      moved = move();
    }
    if (!moved) return fail(std::move(moved).error());
    if (*moved == Moved::kNothing) return {};
    if (*moved == Moved::kWaits) {
      const auto until = wake_time(kDiskPatience.count());
      while (disk_moves_ == disk && !closed_ && change_.wait_until(mutex_, until)) {
      }
    } else {
      const base::Unlock let_others_in(mutex_);
    }
    KVASIR_TRY(check_open());
    KVASIR_TRY(leave_step(id));
  }
}

Status Executor::spill(ConversationId id) {
  return base::within_memory([&]() -> Status {
    const Entered held(*this);
    KVASIR_TRY(leave_step(id));
    const Status spilled = move_to_end(id, [&] {
      mutex_.assert_held();
      return engine_->spill(id);
    });
    changed();
    collect_due();
    call_due();
    return spilled;
  });
}

Status Executor::bring_back_held(ConversationId id, std::optional<std::uint64_t> reserved) {
  KVASIR_TRY(check_open());
  KVASIR_ASSIGN(const Conversation* const conversation, std::as_const(*engine_).look(id));
  const Residence residence = engine_->residence(*conversation);
  if (residence != Residence::kTier && residence != Residence::kReturning) return {};
  KVASIR_TRY(leave_step(id));
  return move_to_end(id, [&] {
    mutex_.assert_held();
    return engine_->bring_back(id, reserved);
  });
}

Status Executor::bring_back(ConversationId id) {
  return base::within_memory([&]() -> Status {
    const Entered held(*this);
    const Status moved = bring_back_held(id, std::nullopt);
    changed();
    return moved;
  });
}

Status Executor::reserve(ConversationId id, std::uint64_t tokens) {
  return base::within_memory([&]() -> Status {
    const Entered held(*this);
    KVASIR_TRY(check_open());
    Status reserved = engine_->reserve(id, tokens);
    if (!reserved && reserved.error().code() == Outcome::kWrongState) {
      reserved = bring_back_held(id, tokens);
      if (reserved) reserved = engine_->reserve(id, tokens);
    }
    changed();
    return reserved;
  });
}

Status Executor::drop(ConversationId id) {
  return edit(id, [&](Engine& engine) { return engine.drop(id); });
}

// Called by the thread of the disk.
void Executor::disk_moved() noexcept {
  const base::Lock held(mutex_);
  ++disk_moves_;
  change_.notify_all();
}

Status Executor::clear(ConversationId id) {
  const Entered held(*this);
  KVASIR_TRY(check_open());
  KVASIR_TRY(cancel_and_leave(id));
  const Status rewound = engine_->rewind(id, 0);
  changed();
  collect_due();
  call_due();
  return rewound;
}

// Cancels it until it is part of no step and has nothing to do: while this waits, another thread may have it
// prompted or generate anew.
Status Executor::cancel_and_leave(ConversationId id) {
  while (true) {
    KVASIR_ASSIGN(const Conversation* const before, std::as_const(*engine_).look(id));
    if (before->in_step && (!worker_runs_ || steps_here()))
      return fail(Outcome::kBusy, "the conversation is part of an open step; finish or abandon that first");
    KVASIR_TRY(cancel_held(id));
    KVASIR_TRY(leave_step(id));
    const Conversation* const after = engine_->peek(id);
    if (!after->in_step && after->drawer == nullptr && after->queue.empty()) return {};
  }
}

Status Executor::cancel(ConversationId id) {
  const Entered held(*this);
  KVASIR_TRY(check_open());
  KVASIR_TRY(cancel_held(id));
  call_due();
  return {};
}

Status Executor::cancel_held(ConversationId id) {
  KVASIR_TRY(engine_->cancel(id));
  ++metrics_.cancelled;
  if (const auto watch = watches_.find(static_cast<std::uint64_t>(id)); watch != watches_.end())
    ++watch->second.mishaps.cancels;
  changed();
  collect_due();
  return {};
}

void Executor::close_conversation(ConversationId id) noexcept {
  const Entered held(*this);
  if (closed_) return;
  static_cast<void>(engine_->close(id));
  changed();
  collect_due();
  call_due();
}

// Whether waiting for `id` is over; `before` is what had happened to it when that began.
Result<bool> Executor::ready(ConversationId id, const Mishaps& before) const {
  const Conversation* const conversation = engine_->peek(id);
  if (closed_ || conversation == nullptr) return fail(Outcome::kWrongState, "the conversation is closed");
  const Watch& watch = watches_.at(static_cast<std::uint64_t>(id));
  if (watch.mishaps.cancels != before.cancels)
    return fail(Outcome::kCancelled, "the conversation was cancelled");
  if (watch.mishaps.failures != before.failures && watch.failure) return fail(*watch.failure);
  if (conversation->return_error) return fail(*conversation->return_error);
  return conversation->queue.empty() && !conversation->in_step;
}

// Why waiting for room is in vain: the latest step found none for anybody.
const Error* Executor::hopeless(ConversationId id) const {
  if (!stalled_) return nullptr;
  const Conversation* const conversation = engine_->peek(id);
  return conversation != nullptr ? conversation->shortage.get() : nullptr;
}

// Brings a waiting thread one step further: by stepping, or by waiting for whoever steps.
Status Executor::go_on(ConversationId id) {
  if (const Error* const shortage = hopeless(id)) return fail(*shortage);
  if (steps_here()) return fail(Outcome::kWrongState, "a callback must not wait for the step that called it");
  if (closed_) return check_open();
  if (worker_runs_ || stepping_ || closing_.load()) {
    change_.wait(mutex_);
    close_posted();
    return {};
  }
  KVASIR_ASSIGN(const kvasir::StepReport report, step_held({}));
  if (report.outcome != Outcome::kIdle) return {};
  const Conversation* const conversation = engine_->peek(id);
  if (conversation == nullptr || conversation->return_error) return {};
  return fail(Outcome::kWrongState, "a generation waits for its text to be read; read it, or cancel it");
}

Status Executor::wait(ConversationId id) {
  return base::within_memory([&]() -> Status {
    const Entered held(*this);
    KVASIR_TRY(check_open());
    KVASIR_TRY(engine_->look(id));
    const Mishaps before = watches_[static_cast<std::uint64_t>(id)].mishaps;
    if (stalled_) changed();  // what was in vain is tried once more: a disk may have room again
    while (true) {
      KVASIR_ASSIGN(const bool done, ready(id, before));
      if (done) return {};
      KVASIR_TRY(go_on(id));
    }
  });
}

Result<bool> Executor::wait_for(ConversationId id, std::int64_t ns) {
  return base::within_memory([&]() -> Result<bool> {
    const auto until = wake_time(ns);
    const Entered held(*this);
    KVASIR_TRY(check_open());
    KVASIR_TRY(engine_->look(id));
    const Mishaps before = watches_[static_cast<std::uint64_t>(id)].mishaps;
    while (true) {
      KVASIR_ASSIGN(const bool done, ready(id, before));
      if (done) return true;
      if (const Error* const shortage = hopeless(id)) return fail(*shortage);
      if (steps_here())
        return fail(Outcome::kWrongState, "a callback must not wait for the step that called it");
      if (!change_.wait_until(mutex_, until)) return ready(id, before);
      close_posted();
    }
  });
}

Status Executor::when_ready(ConversationId id, ReadyCallback callback) {
  return base::within_memory([&]() -> Status {
    const Entered held(*this);
    KVASIR_TRY(check_open());
    KVASIR_TRY(engine_->look(id));
    Watch& watch = watches_[static_cast<std::uint64_t>(id)];
    due_.reserve(due_.size() + callbacks_ + 1);
    watch.callers.push_back({std::move(callback), watch.mishaps});
    ++callbacks_;
    collect_due();
    call_due();
    return {};
  });
}

// Moves the callbacks of conversations that are ready, cancelled, failed or closed to due_.
void Executor::collect_due() noexcept {
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    Watch& watch = entry->second;
    const Conversation* const conversation = engine_->peek(ConversationId{entry->first});
    const bool gone = closed_ || conversation == nullptr;
    const bool idle = !gone && conversation->queue.empty() && !conversation->in_step;
    std::erase_if(watch.callers, [&](Watch::Caller& caller) {
      mutex_.assert_held();
      std::optional<Status> status;
      if (gone) {
        status = failed({Outcome::kCancelled, "closed"});
      } else if (caller.before.cancels != watch.mishaps.cancels) {
        status = failed({Outcome::kCancelled, "cancelled"});
      } else if (caller.before.failures != watch.mishaps.failures) {
        status = failed(*watch.failure);
      } else if (conversation->return_error) {
        status = failed(*conversation->return_error);
      } else if (idle) {
        status.emplace();
      }
      if (!status) return false;
      due_.push_back({std::move(caller.callback), *std::move(status)});  // within what when_ready() reserved
      --callbacks_;
      return true;
    });
    entry = gone ? watches_.erase(entry) : std::next(entry);
  }
}

void Executor::call_due() noexcept {
  while (!due_.empty()) {
    std::optional<Due> due = std::move(due_.front());
    due_.erase(due_.begin());
    const base::Unlock meanwhile(mutex_);  // X2
    call_safely([&] { due->callback(due->status); });
    due.reset();  // what it holds may be a handle, whose destructor calls
  }
}

// Draws with the lock released: it takes time that grows with the vocabulary. Meanwhile the conversation is
// in no step, and nothing but cancel() and close() is taken for it.
Result<Draw> Executor::draw_first(const FirstDraw& first) {
  Result<Draw> drawn = Draw{};
  {
    const base::Unlock meanwhile(mutex_);
    drawn = Engine::draw_first(first);
  }
  close_posted();
  engine_->end_first_draw(first, drawn);
  changed();
  return drawn;
}

Status Executor::generate(ConversationId id, const std::shared_ptr<Drawer>& drawer) {
  return base::within_memory([&]() -> Status {
    const Entered held(*this);
    KVASIR_TRY(check_open());
    KVASIR_ASSIGN(const std::optional<FirstDraw> first, engine_->begin_generation(id, drawer));
    changed();
    if (first) KVASIR_TRY(draw_first(*first));
    return {};
  });
}

Result<bool> Executor::next_piece(ConversationId id, TextGeneration& generation, GeneratedPiece& into) {
  return base::within_memory([&]() -> Result<bool> {
    const Entered held(*this);
    while (true) {
      if (generation.take(into)) {
        changed();  // its conversation may have waited for this place
        return true;
      }
      if (generation.error()) return fail(*generation.error());
      if (generation.ended()) return false;
      const Status gone_on = go_on(id);
      if (gone_on) continue;
      if (gone_on.error().code() != Outcome::kWrongState) {
        engine_->stop_generation(id, &generation, &gone_on.error());
        changed();
      }
      return fail(gone_on.error());
    }
  });
}

Result<bool> Executor::poll_piece(TextGeneration& generation, GeneratedPiece& into) {
  return base::within_memory([&]() -> Result<bool> {
    const Entered held(*this);
    const bool taken = generation.take(into);
    if (taken) changed();
    if (!taken && generation.error()) return fail(*generation.error());
    return taken;
  });
}

void Executor::end_generation(ConversationId id, TextGeneration& generation) noexcept {
  const Entered held(*this);
  if (closed_) return;
  engine_->stop_generation(id, &generation, nullptr);
  changed();
}

CacheInfo Executor::cache_held() const {
  const pages::SpaceReport space = engine_->space();
  const pages::PrefixCounters& prefix = engine_->prefix_counters();
  CacheInfo info;
  info.free = engine_->tokens_for_new();
  info.promised = space.promised;
  info.evictable = space.evictable_cells;
  info.held = space.held_cells - space.evictable_cells;
  info.pool = engine_->capacity();
  info.fragmentation = space.fragmentation;
  info.prefix_lookups = prefix.lookups;
  info.prefix_hits = prefix.hits;
  info.prefix_tokens = prefix.tokens_found;
  for (const Conversation& conversation : engine_->conversations()) {
    if (!conversation.open()) continue;
    info.queued += conversation.asked();
    switch (engine_->residence(conversation)) {
      case Residence::kPool:
        ++info.in_pool;
        break;
      case Residence::kReturning:
        ++info.returning;
        break;
      case Residence::kTier:
        ++info.spilled;
        break;
      case Residence::kDropped:
        ++info.dropped;
        break;
    }
  }
  const tiers::TierUsage tiers = engine_->tier_usage();
  info.memory_tier_bytes = tiers.memory_bytes;
  info.memory_tier_bytes_max = tiers.memory_bytes_max;
  info.disk_tier_bytes = tiers.disk_bytes;
  info.disk_tier_bytes_max = tiers.disk_bytes_max;
  return info;
}

CacheInfo Executor::cache() const {
  const Entered held(*this);
  return cache_held();
}

Metrics Executor::metrics() const {
  const Entered held(*this);
  Metrics metrics = metrics_;
  metrics.prompted -= engine_->drawn().committed;
  metrics.generated = engine_->drawn().tokens;
  metrics.reused = engine_->prefix_counters().tokens_found;
  const MoveCounts& moves = engine_->moves();
  metrics.prompted -= moves.tokens_recomputed;
  metrics.recomputed = moves.tokens_recomputed;
  metrics.bytes_spilled = moves.bytes_spilled;
  metrics.bytes_returned = moves.bytes_returned;
  metrics.returns = moves.conversations_returned;
  metrics.failed_returns = moves.returns_failed;
  metrics.paused = moves.conversations_paused;
  const tiers::TierUsage tiers = engine_->tier_usage();
  metrics.disk_bytes_written = tiers.bytes_written;
  metrics.disk_bytes_read = tiers.bytes_read;
  metrics.disk_failures = tiers.failures;
  return metrics;
}

// A page at a time, so that nobody waits long for the lock.
Result<std::uint64_t> Executor::compact(std::uint64_t budget) {
  std::uint64_t moved = 0;
  while (moved < budget) {
    const Entered held(*this);
    KVASIR_TRY(check_open());
    const Copying bytes(*this);
    KVASIR_ASSIGN(const std::uint64_t some, engine_->compact_once(budget - moved));
    if (some == 0) break;
    moved += some;
  }
  return moved;
}

}  // namespace kvasir::engine
