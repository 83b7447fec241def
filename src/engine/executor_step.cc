// How an executor takes a step: with its lock while it plans and commits, without while it computes.

#include <algorithm>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/executor.h"

namespace kvasir::engine {
namespace {

constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

}  // namespace

Result<kvasir::StepReport> Executor::step(const StepBudget& budget) {
  return base::within_memory([&]() -> Result<kvasir::StepReport> {
    const Entered held(*this);
    if (worker_runs_ && std::this_thread::get_id() != worker_.get_id())
      return fail(Outcome::kBusy, "a worker takes the steps; stop() it first");
    return step_held(budget);
  });
}

// As step(), with the lock held before and after, and released meanwhile.
Result<kvasir::StepReport> Executor::step_held(const StepBudget& budget) {
  KVASIR_TRY(check_open());
  if (stepping_) return fail(Outcome::kBusy, "another thread, or the caller of this callback, takes a step");
  stepping_ = true;
  stepper_ = std::this_thread::get_id();
  const std::int64_t start = clock_->now_ns();
  const std::int64_t deadline =
      budget.time_ns ? start + std::min(*budget.time_ns, kNoDeadline - start) : kNoDeadline;
  kvasir::StepReport report;
  const Status ran = base::within_memory([&] {
    mutex_.assert_held();
    return run_passes(budget, deadline, report);
  });
  if (!ran) fail_step(ran.error());
  report.elapsed_ns = clock_->now_ns() - start;
  end_step(report.outcome == Outcome::kStalled);
  if (!ran) return fail(ran.error());
  return report;
}

// Tells everyone, calls what is due, and lets others step.
void Executor::end_step(bool stalled) noexcept {
  changed();
  stalled_ = stalled;
  collect_due();
  const bool low = settings_.low_space_tokens > 0 && engine_->tokens_for_new() < settings_.low_space_tokens;
  const bool call = low && !low_space_ && settings_.on_low_space;
  low_space_ = low;
  if (call) {
    const CacheInfo info = cache_held();
    const base::Unlock meanwhile(mutex_);  // X2
    call_safely([&] { settings_.on_low_space(info); });
  }
  call_due();
  stepping_ = false;
  stepper_ = std::thread::id();
  if (closed_) {  // by one of them
    end_all();
    collect_due();
    call_due();
  }
  change_.notify_all();
}

// A step that failed as a whole is undone; those that wait for it are told.
void Executor::fail_step(const Error& error) noexcept {
  engine_->abandon_step();
  for (auto& [id, watch] : watches_) {
    const Conversation* const conversation = engine_->peek(ConversationId{id});
    if (conversation == nullptr || conversation->queue.empty()) continue;
    ++watch.mishaps.failures;
    try {
      watch.failure = error;
    } catch (const std::bad_alloc&) {
      watch.failure.emplace(error.code(), std::string(), error.numbers());
    }
  }
}

Status Executor::run_passes(const StepBudget& budget, std::int64_t deadline, kvasir::StepReport& report) {
  const StepOptions options{
      .whole_queue = budget.whole_queue, .tokens = budget.tokens, .time_ns = budget.time_ns};
  if (!engine_->step_open()) {
    const auto begun = begin_step(options, deadline, report);
    if (!begun && begun.error().code() == Outcome::kNoSpace) return without_room(begun.error(), report);
    KVASIR_ASSIGN(const bool any, begun);
    if (!any) return tell_of_failed_returns(report);
  }
  StepReport committed;
  engine_->prepare_report(committed);
  const auto waiting = std::ranges::count_if(engine_->conversations(), [](const Conversation& conversation) {
    return conversation.open() && (conversation.shortage != nullptr || conversation.return_error != nullptr);
  });
  committed.conversations.reserve(committed.conversations.size() + static_cast<std::size_t>(waiting));
  while (!engine_->passes_done() && !engine_->step_is_vain()) {
    if (!engine_->pass_open()) {
      KVASIR_ASSIGN(const bool wanted, engine_->start_pass());
      if (!wanted) continue;
    }
    Result<Verdict> verdict = Verdict::kGoOn;
    {
      const base::Unlock computing(mutex_);
      verdict = run_jobs(budget, deadline);
    }
    close_posted();
    if (!verdict) return fail(std::move(verdict).error());
    if (engine_->step_is_vain()) break;
    const JobView at = engine_->view();
    if (*verdict == Verdict::kGoOn) {
      engine_->end_pass();
      continue;
    }
    report.passes = at.pass;
    report.outcome = Outcome::kSuspended;
    if (*verdict == Verdict::kCancel) {
      report.layers_undone = at.pass * std::uint64_t{at.progress.layers} + at.progress.layer;
      report.outcome = Outcome::kCancelled;
      ++metrics_.cancelled;
      engine_->abandon_step();
    }
    return {};
  }
  if (engine_->passes_done()) {
    {
      const base::Unlock meanwhile(mutex_);
      unlocked().draw();
    }
    close_posted();
    engine_->commit_step(options, committed);
    while (const auto first = engine_->take_first_draw()) static_cast<void>(draw_first(*first));
  } else {
    engine_->abandon_step();
    committed.outcome = Outcome::kDone;
    for (ConversationReport& about : committed.conversations) about.outcome = Outcome::kCancelled;
  }
  finish_step(std::move(committed), report);
  return {};
}

// Plans a step. Where nobody can be planned before cells have moved they are moved, with everybody let in
// between, until somebody can or the time is up: the report is then that of a suspended step.
Result<bool> Executor::begin_step(const StepOptions& options, std::int64_t deadline,
                                  kvasir::StepReport& report) {
  engine_->retry_moves();
  while (true) {
    KVASIR_ASSIGN(const bool any, engine_->begin_step(options));
    moving_ = engine_->moves_pending();
    if (any || !moving_.load()) return any;
    while (engine_->moves_pending()) {
      const std::uint64_t disk = disk_moves_;
      const Moved moved = move_held();
      if (moved == Moved::kRoom || moved == Moved::kNothing) break;
      if (closing_.load()) return false;
      if (clock_->now_ns() >= deadline) {
        report.outcome = Outcome::kSuspended;
        return false;
      }
      if (moved == Moved::kWaits && disk == disk_moves_) {
        wait_for_disk(deadline);
      } else {
        const base::Unlock let_others_in(mutex_);
      }
      close_posted();
    }
  }
}

Moved Executor::move_held() {
  const base::Lock bytes(bytes_);
  const Moved moved = engine_->move();
  moving_ = engine_->moves_pending();
  return moved;
}

void Executor::wait_for_disk(std::int64_t deadline) {
  constexpr std::int64_t kPatienceNs = 100'000'000;
  const std::int64_t left = std::clamp<std::int64_t>(deadline - clock_->now_ns(), 0, kPatienceNs);
  change_.wait_for(mutex_, std::chrono::nanoseconds(left));
}

// What did not come back from a tier, when nothing else is to be told.
Status Executor::tell_of_failed_returns(kvasir::StepReport& report) const {
  report.conversations.reserve(engine_->conversations().size());
  static_cast<void>(add_waiting(report));
  return {};
}

// The jobs of one pass: kGoOn where it is finished.
Result<Verdict> Executor::run_jobs(const StepBudget& budget, std::int64_t deadline) {
  Result<Verdict> verdict = Verdict::kGoOn;
  while (true) {
    // Who copies cells holds the lock until that is done. Who destroyed a handle wants it closed.
    if (copying_.load() > 0 || posted_.load(std::memory_order_relaxed) != nullptr) {
      const Entered held(*this);
    }
    if (moving_.load()) {
      const base::Lock held(mutex_);
      static_cast<void>(move_held());
    }
    const std::int64_t started = clock_->now_ns();
    Result<bool> done = false;
    {
      const base::Lock bytes(bytes_);
      done = unlocked().run_job();
    }
    if (!done) {
      verdict = fail(std::move(done).error());
      break;
    }
    if (*done || vain_.load()) break;
    verdict = after_job(budget, deadline, started);
    if (*verdict != Verdict::kGoOn) break;
  }
  return verdict;
}

Verdict Executor::after_job(const StepBudget& budget, std::int64_t deadline, std::int64_t started) {
  if (closing_.load()) return Verdict::kCancel;
  const std::int64_t now = clock_->now_ns();
  note_job(now - started);
  if (budget.between_jobs) {
    Verdict verdict = Verdict::kCancel;  // also where it throws, or answers what is no verdict
    call_safely([&] { verdict = budget.between_jobs(unlocked().view()); });
    if (verdict != Verdict::kGoOn) return verdict == Verdict::kSuspend ? verdict : Verdict::kCancel;
  }
  if (deadline == kNoDeadline) return Verdict::kGoOn;
  // The next job may take as long as others did; but half of the budget is used in any case.
  const std::int64_t kept_free = std::min(long_job_ns_ / 2, budget.time_ns.value_or(0) / 2);
  return now > deadline - kept_free ? Verdict::kSuspend : Verdict::kGoOn;
}

// The second longest job of late, both slowly forgotten: a single one that was held up by something else says
// nothing of the next.
void Executor::note_job(std::int64_t ns) noexcept {
  longest_job_ns_ -= longest_job_ns_ / 64;
  long_job_ns_ -= long_job_ns_ / 64;
  if (ns > longest_job_ns_) std::swap(ns, longest_job_ns_);
  long_job_ns_ = std::max(long_job_ns_, ns);
}

// Something is queued and nobody has room for it.
Status Executor::without_room(const Error& shortage, kvasir::StepReport& report) {
  report.outcome = Outcome::kStalled;
  report.message = shortage.message();
  // The cheapest remedy: whose end would free enough, at the loss of the fewest tokens.
  const Conversation* cheapest = nullptr;
  std::uint64_t id = 0;
  const std::span<const Conversation> all = engine_->conversations();
  for (std::size_t index = 0; index < all.size(); ++index) {
    const Conversation& conversation = all[index];
    if (!conversation.open() || conversation.settings.pinned || conversation.tokens.empty()) continue;
    const ConversationId its_id = Engine::id_of(conversation, index);
    KVASIR_ASSIGN(const pages::Holdings holdings, engine_->holdings(its_id));
    const std::uint64_t gained = shortage.numbers().available.value_or(0) + holdings.own + holdings.promised;
    if (gained < shortage.numbers().wanted.value_or(1)) continue;
    if (cheapest != nullptr && cheapest->tokens.size() <= conversation.tokens.size()) continue;
    cheapest = &conversation;
    id = static_cast<std::uint64_t>(its_id);
  }
  if (cheapest != nullptr) {
    report.message += "; the least is lost by ending conversation " + std::to_string(id) + " of " +
                      std::to_string(cheapest->tokens.size()) + " tokens";
  }
  report.conversations.reserve(all.size());
  static_cast<void>(add_waiting(report));
  return {};
}

// Those that wait for room, with the numbers; whether there are any. Its caller reserved the places.
bool Executor::add_waiting(kvasir::StepReport& report) const noexcept {
  bool any = false;
  const std::span<const Conversation> all = engine_->conversations();
  for (std::size_t index = 0; index < all.size(); ++index) {
    const Conversation& conversation = all[index];
    const std::shared_ptr<const Error>& error =
        conversation.return_error != nullptr ? conversation.return_error : conversation.shortage;
    if (!conversation.open() || error == nullptr) continue;
    any = any || conversation.shortage != nullptr;
    if (report.conversations.size() == report.conversations.capacity()) continue;
    report.conversations.push_back(
        {.id = Engine::id_of(conversation, index), .error = error, .outcome = error->code()});
  }
  return any;
}

void Executor::finish_step(StepReport&& committed, kvasir::StepReport& report) {
  report.outcome = committed.outcome;
  report.passes = committed.passes;
  report.tokens = committed.tokens;
  report.conversations = std::move(committed.conversations);
  ++metrics_.steps;
  metrics_.passes += committed.passes;
  metrics_.prompted += report.tokens;
  if (add_waiting(report)) ++metrics_.refused;
}

namespace {

// One line for each conversation of any of the steps: the sum of its tokens, and what became of it last.
void merge(std::vector<ConversationReport>& more, std::vector<ConversationReport>& sum) {
  for (ConversationReport& about : more) {
    const auto known = std::ranges::find(sum, about.id, &ConversationReport::id);
    if (known == sum.end()) {
      sum.push_back(std::move(about));
      continue;
    }
    about.tokens += known->tokens;
    about.embeddings += known->embeddings;
    about.generated = about.generated || known->generated;
    *known = std::move(about);
  }
}

}  // namespace

Result<kvasir::StepReport> Executor::run_until_idle(const StepBudget& budget) {
  return base::within_memory([&]() -> Result<kvasir::StepReport> {
    const std::int64_t start = clock_->now_ns();
    kvasir::StepReport sum;
    while (true) {
      StepBudget rest = budget;
      if (budget.time_ns)
        rest.time_ns = std::max<std::int64_t>(0, *budget.time_ns - (clock_->now_ns() - start));
      KVASIR_ASSIGN(kvasir::StepReport report, step(rest));
      sum.passes += report.passes;
      sum.tokens += report.tokens;
      sum.layers_undone += report.layers_undone;
      sum.outcome = report.outcome;
      sum.message = std::move(report.message);
      merge(report.conversations, sum.conversations);
      sum.elapsed_ns = clock_->now_ns() - start;
      if (report.outcome != Outcome::kDone) return sum;
      if (budget.time_ns && sum.elapsed_ns >= *budget.time_ns) {
        sum.outcome = Outcome::kSuspended;
        return sum;
      }
    }
  });
}

Status Executor::abandon_step() {
  const Entered held(*this);
  KVASIR_TRY(check_open());
  if (stepping_) return fail(Outcome::kBusy, "a thread is taking this step; cancel it from between_jobs");
  engine_->abandon_step();
  changed();
  return {};
}

Status Executor::start() {
  const Entered held(*this);
  KVASIR_TRY(check_open());
  // One that stop() waits for is a worker until it has ended.
  if (worker_.joinable() || worker_runs_) return fail(Outcome::kWrongState, "there is a worker already");
  worker_stops_ = false;
  try {
    worker_ = std::thread([self = shared_from_this()] { self->work(); });
  } catch (const std::system_error&) {
    return fail(Outcome::kOutOfMemory, "the system starts no more threads");
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  worker_runs_ = true;
  return {};
}

Status Executor::stop() {
  const Entered held(*this);
  if (!worker_.joinable()) return {};
  if (worker_.get_id() == std::this_thread::get_id())
    return fail(Outcome::kWrongState, "the worker cannot wait for its own end; stop it from another thread");
  worker_stops_ = true;
  changed();
  std::thread worker = std::move(worker_);
  const base::Unlock meanwhile(mutex_);  // X2
  worker.join();
  return {};
}

// Whether a step would find something to do.
bool Executor::has_work() const noexcept {
  if (engine_->step_open()) return true;
  return std::ranges::any_of(engine_->conversations(), [](const Conversation& conversation) {
    return conversation.open() && !conversation.queue.empty() && conversation.return_error == nullptr &&
           (conversation.drawer == nullptr || conversation.drawer->has_place());
  });
}

void Executor::work() {
  const base::Lock held(mutex_);
  std::uint64_t seen = changes_ - 1;  // of the changes after which a step found nothing to do
  while (!worker_stops_ && !closed_) {
    close_posted();
    const bool others_first = edits_waiting_ > 0 && !engine_->step_open();
    if (seen == changes_ || !has_work() || stepping_ || others_first) {
      change_.wait(mutex_);
      continue;
    }
    const std::uint64_t before = changes_;
    const auto report = base::within_memory([&] {
      mutex_.assert_held();
      return step_held({});
    });
    // What failed, or found no room, is tried again when something else than the step itself has changed.
    if ((!report || report->outcome != Outcome::kDone) && changes_ == before + 1) seen = changes_;
  }
  worker_runs_ = false;
  change_.notify_all();
}

// Nothing is left of any conversation.
void Executor::end_all() noexcept {
  engine_->abandon_step();
  const std::span<const Conversation> all = engine_->conversations();
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (all[index].open()) static_cast<void>(engine_->close(Engine::id_of(all[index], index)));
  }
}

void Executor::close() noexcept {
  const Entered held(*this);
  if (closed_) return;
  closing_ = true;
  worker_stops_ = true;
  changed();
  std::thread worker = std::move(worker_);
  if (worker.joinable()) {
    if (worker.get_id() == std::this_thread::get_id()) {
      worker.detach();  // it holds the executor until it has returned from this very call
    } else {
      const base::Unlock meanwhile(mutex_);  // X2
      worker.join();
    }
  }
  // From a callback, the step that called it ends first.
  while (stepping_ && !steps_here()) change_.wait(mutex_);
  closed_ = true;
  if (!stepping_) end_all();
  change_.notify_all();
  collect_due();
  call_due();
}

}  // namespace kvasir::engine
