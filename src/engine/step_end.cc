// How a step ends: by its commit, which cannot fail, or without a trace.

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"
#include "engine/open_step.h"

namespace kvasir::engine {

// Tokens that a conversation can still get, beyond those it holds or has queued.
std::uint64_t Engine::room_of(const Conversation& conversation) const noexcept {
  const std::uint64_t limit = std::min({options_.context, conversation.settings.max_length, capacity_});
  const std::uint64_t room = limit - std::min(limit, conversation.length() + conversation.asked());
  // Edits may have left its positions ahead of its length.
  return std::min(room, positions() - std::min(positions(), position_of_next(conversation)));
}

// The conversations of each pass.
void Engine::describe_passes(StepReport& report) const {
  const OpenStep& step = *open_step_;
  for (std::size_t pass = 0; pass < step.passes(); ++pass) {
    std::vector<ConversationId>& shared = report.shared_passes.emplace_back();
    for (const OpenStep::Piece& piece : step.pieces_of(pass)) shared.push_back(step.lines[piece.line].id);
  }
}

void Engine::prepare_report(StepReport& report) const {
  const OpenStep& step = *open_step_;
  report.conversations.reserve(step.lines.size());
  for (const OpenStep::Line& line : step.lines) {
    report.conversations.push_back({.id = line.id, .outcome = Outcome::kSuspended});
  }
}

// Of the tokens that are accepted of a line, those that will be committed: in a recurrent group only up to
// where there is a state.
std::uint64_t Engine::committable(std::size_t index, std::uint64_t accepted) const noexcept {
  const OpenStep& step = *open_step_;
  const std::uint64_t length = store_->length(conversations_[step.lines[index].index].table);
  if (accepted == step.lines[index].tokens) return accepted;
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    if (states_[group].frames() == 0) continue;
    std::uint64_t most = 0;
    for (const pages::StateWrite& write : step.reservation().states(index, group)) {
      if (write.ordinal <= length + accepted) most = write.ordinal - length;
    }
    return most;
  }
  return accepted;
}

// A caller that accepts fewer than were computed. What is computed again is accepted already. What would have
// to be computed again for it must be tokens: vectors are not kept.
void Engine::accept_some(const StepOptions& options) noexcept {
  OpenStep& step = *open_step_;
  for (std::size_t index = 0; index < step.lines.size(); ++index) {
    OpenStep::Line& line = step.lines[index];
    if (line.withdrawn) {
      step.accepted[index] = 0;
      continue;
    }
    if (!options.accept) continue;
    const Conversation& conversation = conversations_[line.index];
    const std::uint64_t again = std::min(line.tokens, conversation.again);
    const std::uint64_t accepted = std::clamp(options.accept(line.id, line.kept), again, line.tokens);
    step.accepted[index] = accepted;
    if (line.embedded == 0 || accepted == line.tokens) continue;
    const std::uint64_t committed = committable(index, accepted);
    const auto tokens = std::span(conversation.queue.tokens).subspan(line.borrowed + committed);
    const auto rest = tokens.first(accepted - committed);
    if (std::ranges::find(rest, kEmbedded) == rest.end()) continue;
    line.withdrawn = true;
    line.failure = vectors_are_gone_;
    step.accepted[index] = 0;
  }
}

void Engine::commit_step(const StepOptions& options, StepReport& report) noexcept {
  OpenStep& step = *open_step_;
  for (OpenStep::Line& line : step.lines) line.withdrawn = line.withdrawn || line.failure != nullptr;
  accept_some(options);
  step.reservation().commit(step.accepted);
  for (std::size_t index = 0; index < step.lines.size(); ++index) {
    OpenStep::Line& line = step.lines[index];
    ConversationReport& about = report.conversations[index];
    about.outcome = Outcome::kCancelled;
    if (!line.withdrawn) {
      commit_line(index);
      about.outcome = conversations_[line.index].queue.empty() ? Outcome::kDone : Outcome::kSuspended;
      about.tokens = step.accepted[index];
      about.embeddings = line.embedded;
      about.generated = line.draw.has_value();
      report.tokens += about.tokens;
    } else if (line.failure != nullptr) {
      about.outcome = line.failure->code();
      end_generation(conversations_[line.index], &*line.failure);
      about.error = std::move(line.failure);
    }
    leave_step(index);
  }
  // Whom the step admitted and did not come to stays so, with no more than it needs.
  for (Conversation& conversation : conversations_) {
    if (conversation.open() && conversation.promised_before) renew_promise(conversation);
    conversation.promised_before.reset();
  }
  rotation_ += step.passes();
  report.passes = static_cast<std::uint32_t>(step.passes());
  report.outcome = Outcome::kDone;
  put_step_away();
}

// Everything it needs was allocated by begin_step(): the inserts stay within reserved capacity (E3).
void Engine::commit_line(std::size_t index) noexcept {
  OpenStep& step = *open_step_;
  OpenStep::Line& line = step.lines[index];
  Conversation& conversation = conversations_[line.index];
  show_beginning(conversation);
  conversation.promised_before.reset();
  const std::uint64_t before = conversation.tokens.size();
  const std::uint64_t accepted = step.accepted[index];
  const std::uint64_t committed = store_->length(conversation.table) - before;
  const auto first = conversation.queue.tokens.begin();
  const auto behind = first + static_cast<std::ptrdiff_t>(committed);
  conversation.tokens.insert(conversation.tokens.end(), first, behind);
  conversation.dropped.assign(behind, first + static_cast<std::ptrdiff_t>(accepted));
  if (line.embedded > 0 && conversation.first_embedded == UINT64_MAX) {
    const auto vector = std::find(conversation.tokens.begin() + static_cast<std::ptrdiff_t>(before),
                                  conversation.tokens.end(), kEmbedded);
    if (vector != conversation.tokens.end())
      conversation.first_embedded = static_cast<std::uint64_t>(vector - conversation.tokens.begin());
  }
  const std::uint64_t again = std::min(accepted, conversation.again);
  conversation.again -= std::min(line.tokens, conversation.again);
  moves_.tokens_recomputed += again;
  conversation.accepted += accepted - again;
  conversation.used = ++uses_;
  if (accepted > again) {
    drawn_.committed += conversation.drawn_queued ? 1 : 0;
    conversation.drawn_queued = false;
  }
  conversation.reserved -= std::min(conversation.reserved, committed);
  conversation.queue.pop(line.tokens, model_->sizes().embedding);
  if (!conversation.queue.empty()) wake(conversation);  // in the place of what was popped
  for (KeptRow& kept : line.kept) {
    if (kept.ordinal < before + accepted) conversation.kept.push_back(std::move(kept));
  }
  if (accepted == line.tokens) {
    conversation.last_logits = std::move(line.last_row);
  } else if (accepted > 0) {
    const bool kept = !conversation.kept.empty() && conversation.kept.back().ordinal + 1 == before + accepted;
    conversation.last_logits = kept ? conversation.kept.back().row : nullptr;
  }
  if (options_.share_prefixes) {
    const std::uint64_t clean =
        std::min<std::uint64_t>(conversation.first_embedded, conversation.tokens.size());
    store_->remember(conversation.table, std::span(conversation.tokens).first(clean),
                     conversation.settings.salt);
  }
}

void Engine::put_step_away() noexcept {
  open_step_->reset();
  spare_step_ = std::move(open_step_);
}

// Takes a conversation out of the step that ends: committed, withdrawn or undone.
void Engine::leave_step(std::size_t index) noexcept {
  OpenStep::Line& line = open_step_->lines[index];
  Conversation& conversation = conversations_[line.index];
  conversation.in_step = false;
  conversation.step_tokens = 0;
  if (conversation.life == Conversation::Life::kClosing) {
    store_->close(conversation.table);
    free_slot(conversation);
    return;
  }
  if (line.draw && !line.withdrawn && conversation.drawer == line.drawer) {
    line.drawer->publish();
    go_on_with(conversation, *line.draw);
  } else if (conversation.drawer != nullptr && conversation.queue.empty() && !conversation.drawing) {
    conversation.draw_due = conversation.last_logits != nullptr;
  }
  undo_admission(conversation);  // where it was not committed
  renew_promise(conversation);
}

// The token that was drawn is computed next; one place in the queue was kept free for it.
void Engine::go_on_with(Conversation& conversation, const Draw& draw) noexcept {
  if (!draw.goes_on) conversation.drawer.reset();
  if (!draw.token) return;
  wake(conversation);  // within what was reserved when it began
  conversation.queue.tokens.push_back(*draw.token);
  conversation.queue.every.push_back(0);
  conversation.drawn_queued = true;
  ++drawn_.tokens;
  conversation.arrival = arrivals_++;
}

// A conversation that is taken out of the step keeps its cells until the step ends (E5); its queue has lost
// what the step took.
void Engine::withdraw(Conversation& conversation) noexcept {
  for (OpenStep::Line& line : open_step_->lines) {
    if (&conversations_[line.index] == &conversation) line.withdrawn = true;
  }
  conversation.step_tokens = 0;
}

void Engine::abandon_step() noexcept {
  if (!step_open() || in_job_) return;
  for (OpenStep::Line& line : open_step_->lines) line.withdrawn = true;
  // The cells go back before closed conversations do.
  std::ranges::fill(open_step_->accepted, 0);
  open_step_->reservation().commit(open_step_->accepted);
  for (std::size_t index = 0; index < open_step_->lines.size(); ++index) leave_step(index);
  undo_admissions();
  put_step_away();
}

Result<StepReport> Engine::step(const StepOptions& options) {
  if (in_job_) return fail(Outcome::kBusy, "a step cannot be taken from within another");
  StepReport report;
  const Status ran = base::within_memory([&]() -> Status {
    retry_moves();
    while (!step_open()) {
      const std::int64_t start = clock_->now_ns();
      KVASIR_ASSIGN(const bool any, begin_step(options));
      report.plan_ns += clock_->now_ns() - start;
      if (any) break;
      if (!moves_pending()) return {};
      move_until_room();
    }
    describe_passes(report);
    prepare_report(report);
    return run_passes(options, report);
  });
  if (ran && report.outcome == Outcome::kIdle) return report;
  if (ran) {
    base::log(LogLevel::kDebug, [&] {
      return "a step is " + std::string(outcome_name(report.outcome)) + ": " + std::to_string(report.tokens) +
             " tokens committed in " + std::to_string(report.passes) + " passes, " +
             std::to_string(report.plan_ns / 1000) + " us to plan, " +
             std::to_string(report.commit_ns / 1000) + " us to commit";
    });
    return report;
  }
  abandon_step();
  return fail(ran.error());
}

// Nothing can be computed before cells have moved.
void Engine::move_until_room() {
  while (moves_pending()) {
    const Moved moved = move();
    if (moved == Moved::kRoom || moved == Moved::kNothing) return;
    if (moved == Moved::kWaits) wait_for_disk();
  }
}

Status Engine::run_passes(const StepOptions& options, StepReport& report) {
  while (!passes_done()) {
    if (!pass_open()) {
      KVASIR_ASSIGN(const bool wanted, start_pass());
      if (!wanted) continue;
    }
    KVASIR_TRY(run_jobs(options, report));
    if (report.outcome != Outcome::kDone) return {};
    end_pass();
  }
  draw();
  const std::int64_t start = clock_->now_ns();
  commit_step(options, report);
  report.commit_ns = clock_->now_ns() - start;
  while (const auto first = take_first_draw()) end_first_draw(*first, draw_first(*first));
  return {};
}

// Runs the pass at hand to its end (report.outcome is then kDone) or until the caller suspends or cancels the
// step.
Status Engine::run_jobs(const StepOptions& options, StepReport& report) {
  while (true) {
    KVASIR_ASSIGN(const bool done, run_job());
    if (done) break;
    if (moves_pending()) static_cast<void>(move());
    if (!options.between_jobs) continue;
    const JobView at = view();
    in_job_ = true;
    const Verdict verdict = options.between_jobs(at);
    in_job_ = false;
    if (verdict == Verdict::kGoOn) continue;
    report.passes = at.pass + 1;
    report.outcome = Outcome::kSuspended;
    if (verdict == Verdict::kCancel) {
      report.layers_undone = at.pass * std::uint64_t{at.progress.layers} + at.progress.layer;
      report.outcome = Outcome::kCancelled;
      const std::int64_t start = clock_->now_ns();
      abandon_step();
      report.rollback_ns = clock_->now_ns() - start;
    }
    return {};
  }
  report.outcome = Outcome::kDone;
  return {};
}

}  // namespace kvasir::engine
