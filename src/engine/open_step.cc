#include "engine/open_step.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

// What a step will take from each conversation, pass by pass: found on numbers alone, before anything is
// reserved.
struct StepPlan {
  std::vector<std::vector<std::uint32_t>> passes;  // [pass][demand]: tokens
  std::vector<std::uint64_t> totals;               // [demand]: tokens
};

StepPlan plan_step(std::vector<Demand> demands, const PassBounds& bounds, std::size_t first,
                   bool whole_queue) {
  StepPlan plan;
  plan.totals.resize(demands.size());
  while (true) {
    std::vector<std::uint32_t> shares = plan_pass(demands, bounds, first + plan.passes.size());
    bool any = false;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      demands[i].queued -= shares[i];
      demands[i].waited = shares[i] > 0 ? 0 : demands[i].waited + 1;
      plan.totals[i] += shares[i];
      any = any || shares[i] > 0;
    }
    if (!any) return plan;
    plan.passes.push_back(std::move(shares));
    if (!whole_queue) return plan;
  }
}

// Appends the runs of `from` that lie below ordinal `end`, the last one cut there.
void append_runs_below(std::span<const pages::Run> from, std::uint64_t end, std::vector<pages::Run>& into) {
  for (pages::Run run : from) {
    if (run.ordinal >= end) return;
    run.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, end - run.ordinal));
    into.push_back(run);
  }
}

std::uint32_t as_bound(std::uint64_t tokens) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tokens, 1, UINT32_MAX));
}

// A pass of this many tokens never counts as too long beside generation.
constexpr std::uint64_t kShortestPiece = 16;

// The bounds of a pass in which `generating` conversations wait for one token each. Prompts are cut so that
// the pass takes about the time that the step has, or twice what generation alone takes.
PassBounds bounds_of(const EngineOptions& sizes, const StepOptions& options, const CostModel& cost,
                     std::uint64_t generating) {
  const std::uint32_t tokens = as_bound(std::min<std::uint64_t>(sizes.pass_tokens, options.tokens));
  PassBounds bounds{tokens, sizes.logit_rows, tokens};
  if (!options.time_ns || generating == 0) return bounds;
  const std::int64_t time = std::max(*options.time_ns, 2 * cost.predict(generating));
  const std::uint64_t all = cost.tokens_within(time, generating + kShortestPiece, tokens);
  bounds.prompt_tokens = as_bound(all - std::min(all - 1, generating));
  return bounds;
}

}  // namespace

// Plans, reserves and allocates all that the step needs (E3). Answers whether there is anything to do.
Result<bool> Engine::begin_step(const StepOptions& options) {
  return base::within_memory([&]() -> Result<bool> {
    admit_those_that_wait();
    std::vector<Demand> demands;
    std::vector<std::size_t> who;
    std::uint64_t generating = 0;
    for (std::size_t index = 0; index < conversations_.size(); ++index) {
      const Conversation& conversation = conversations_[index];
      if (!runs(conversation)) continue;
      const bool every =
          std::ranges::find(conversation.queue.every, std::uint8_t{1}) != conversation.queue.every.end();
      demands.push_back(
          {conversation.queue.size(), every, conversation.settings.priority, conversation.waited});
      who.push_back(index);
      if (conversation.queue.size() == 1) ++generating;
    }
    const PassBounds bounds = bounds_of(options_, options, cost_, generating);
    StepPlan plan = plan_step(std::move(demands), bounds, rotation_, options.whole_queue);
    if (plan.passes.empty()) {
      if (const Error* const shortage = first_shortage()) return fail(*shortage);
      return false;
    }
    std::vector<pages::Growth> growths;
    std::vector<std::size_t> line_of(who.size());
    for (std::size_t i = 0; i < who.size(); ++i) {
      if (plan.totals[i] == 0) continue;
      line_of[i] = growths.size();
      growths.push_back({conversations_[who[i]].table, plan.totals[i]});
    }
    KVASIR_ASSIGN(pages::Ticket ticket, store_->begin(growths));
    auto step = std::make_unique<OpenStep>(std::move(ticket));
    for (std::size_t i = 0; i < who.size(); ++i) {
      if (plan.totals[i] == 0) continue;
      OpenStep::Line line;
      line.index = who[i];
      line.id = id_of(conversations_[who[i]], who[i]);
      line.tokens = plan.totals[i];
      step->lines.push_back(std::move(line));
      step->accepted.push_back(plan.totals[i]);
    }
    std::vector<std::uint64_t> taken(step->lines.size());
    for (const std::vector<std::uint32_t>& shares : plan.passes) {
      step->passes.emplace_back();
      for (std::size_t i = 0; i < shares.size(); ++i) {
        if (shares[i] == 0) continue;
        step->passes.back().push_back({line_of[i], taken[line_of[i]], shares[i]});
        taken[line_of[i]] += shares[i];
      }
    }
    prepare_deliveries(*step);
    // Nothing fails from here on.
    for (std::size_t i = 0; i < who.size(); ++i) {
      Conversation& conversation = conversations_[who[i]];
      conversation.waited = plan.totals[i] > 0 ? 0 : conversation.waited + plan.passes.size();
      conversation.in_step = plan.totals[i] > 0;
      conversation.step_tokens = plan.totals[i];
    }
    open_step_ = std::move(step);
    return true;
  });
}

void Engine::prepare_deliveries(OpenStep& step) {
  const std::size_t width = model_->sizes().embedding;
  for (OpenStep::Line& line : step.lines) {
    Conversation& conversation = conversations_[line.index];
    const auto queued = std::span(conversation.queue.tokens).first(line.tokens);
    line.embedded = static_cast<std::uint64_t>(std::ranges::count(queued, kEmbedded));
    const auto floats = std::span(conversation.queue.vectors).first(line.embedded * width);
    line.vectors.assign(floats.begin(), floats.end());
    line.ends_queue = line.tokens == conversation.queue.size();
    if (line.ends_queue) line.last_row = rows_.take();
    for (std::uint64_t i = 0; i < line.tokens; ++i) {
      if (conversation.queue.every[i] == 0) continue;
      line.kept_rows.push_back(rows_.take());
      line.kept.push_back({conversation.tokens.size() + i, line.kept_rows.back()});
    }
    conversation.tokens.reserve(conversation.tokens.size() + line.tokens);
    conversation.kept.reserve(conversation.kept.size() + line.kept.size());
    // For what is drawn at the end.
    conversation.queue.tokens.reserve(conversation.queue.size() + 1);
    conversation.queue.every.reserve(conversation.queue.size() + 1);
  }
}

bool Engine::pass_open() const noexcept {
  return step_open() && open_step_->pass_started;
}

bool Engine::passes_done() const noexcept {
  return step_open() && open_step_->pass == open_step_->passes.size();
}

bool Engine::step_is_vain() const noexcept {
  return step_open() && std::ranges::all_of(open_step_->lines, &OpenStep::Line::withdrawn);
}

JobView Engine::view() const noexcept {
  return {static_cast<std::uint32_t>(open_step_->pass), static_cast<std::uint32_t>(open_step_->passes.size()),
          forward_->progress()};
}

Result<bool> Engine::start_pass() {
  return base::within_memory([&]() -> Result<bool> {
    OpenStep& step = *open_step_;
    step.at_work.clear();
    for (const OpenStep::Piece& piece : step.passes[step.pass]) {
      if (!step.lines[piece.line].withdrawn) step.at_work.push_back(piece);
    }
    if (step.at_work.empty()) {
      ++step.pass;
      if (step.pass == step.passes.size()) prepare_draws();
      return false;
    }
    KVASIR_TRY(forward_->start(build_pass(step)));
    step.pass_started = true;
    step.pass_ns = 0;
    return true;
  });
}

model::Pass Engine::build_pass(OpenStep& step) const {
  model::Pass pass;
  const std::size_t groups = store_->group_count();
  pass.places.resize(groups);
  for (const OpenStep::Piece& piece : step.at_work) {
    const OpenStep::Line& line = step.lines[piece.line];
    const Conversation& conversation = conversations_[line.index];
    const Queue& queue = conversation.queue;
    const std::uint64_t length = store_->length(conversation.table);
    const std::uint64_t begin = length + piece.first;
    const std::uint64_t end = begin + piece.count;
    model::PassSequence sequence{static_cast<std::uint32_t>(pass.rows.size()), piece.count, {}};
    sequence.runs.resize(groups);
    for (std::size_t group = 0; group < groups; ++group) {
      append_runs_below(store_->runs(conversation.table, group), end, sequence.runs[group]);
      append_runs_below(step.ticket.new_runs(piece.line, group), end, sequence.runs[group]);
      for (const pages::Run& run : sequence.runs[group]) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          if (run.ordinal + i >= begin) pass.places[group].push_back({run.page, run.cell + i});
        }
      }
    }
    const auto index = static_cast<std::uint32_t>(pass.sequences.size());
    const float* vector = line.vectors.data();
    if (line.embedded > 0) {
      const auto before = std::count(
          queue.tokens.begin(), queue.tokens.begin() + static_cast<std::ptrdiff_t>(piece.first), kEmbedded);
      vector += before * static_cast<std::ptrdiff_t>(model_->sizes().embedding);
    }
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const std::uint64_t in_line = piece.first + i;
      const bool last = line.ends_queue && in_line + 1 == line.tokens;
      const bool embedded = queue.tokens[in_line] == kEmbedded;
      pass.rows.push_back(
          {.token = queue.tokens[in_line],
           .vector = embedded ? vector : nullptr,
           .sequence = index,
           .ordinal = begin + i,
           .position = store_->next_position(conversation.table) + static_cast<std::int64_t>(in_line)});
      if (embedded) vector += model_->sizes().embedding;
      if (last || queue.every[in_line] != 0) pass.rows.back().logits_row = pass.logit_rows++;
    }
    pass.sequences.push_back(std::move(sequence));
  }
  return pass;
}

Result<bool> Engine::run_job() {
  const std::int64_t start = clock_->now_ns();
  KVASIR_TRY(forward_->advance());
  open_step_->pass_ns += clock_->now_ns() - start;
  return forward_->done();
}

// Copies the finished pass's logits to where the commit will find them.
void Engine::end_pass() noexcept {
  OpenStep& step = *open_step_;
  const model::Pass& pass = forward_->pass();
  cost_.observe(pass.rows.size(), step.pass_ns);
  for (std::size_t sequence = 0; sequence < pass.sequences.size(); ++sequence) {
    const OpenStep::Piece& piece = step.at_work[sequence];
    OpenStep::Line& line = step.lines[piece.line];
    const std::uint64_t length = store_->length(conversations_[line.index].table);
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const model::PassRow& row = pass.rows[pass.sequences[sequence].first_row + i];
      if (row.logits_row == model::PassRow::kNoLogits) continue;
      const std::span<const float> logits = forward_->logits(row.logits_row);
      const std::uint64_t in_line = piece.first + i;
      if (line.kept_written < line.kept.size() && line.kept[line.kept_written].ordinal == length + in_line)
        std::ranges::copy(logits, line.kept_rows[line.kept_written++]->begin());
      if (line.ends_queue && in_line + 1 == line.tokens) std::ranges::copy(logits, line.last_row->begin());
    }
  }
  ++step.pass;
  step.pass_started = false;
  if (step.pass == step.passes.size()) prepare_draws();
}

// Whoever generates and has its last row draws from it, with what it is now.
void Engine::prepare_draws() noexcept {
  for (OpenStep::Line& line : open_step_->lines) {
    const Conversation& conversation = conversations_[line.index];
    if (line.withdrawn || !line.ends_queue || conversation.queue.size() != line.tokens) continue;
    line.drawer = conversation.drawer;
    line.seed = conversation.settings.seed;
    line.accepted = conversation.accepted + line.tokens;
    line.room = room_of(conversation);
  }
}

void Engine::draw() noexcept {
  for (OpenStep::Line& line : open_step_->lines) {
    if (line.drawer == nullptr) continue;
    auto drawn = base::within_memory([&]() -> Result<Draw> {
      return line.drawer->draw(*line.last_row, line.seed, line.accepted, line.room);
    });
    if (drawn) {
      line.draw = *drawn;
    } else {
      line.failure = std::move(drawn).error();
    }
  }
}

}  // namespace kvasir::engine
