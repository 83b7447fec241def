#include "engine/open_step.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/try.h"

namespace kvasir::engine {
namespace {

// What a step will take from each conversation, pass by pass: found on numbers alone, before anything is
// reserved.
struct StepPlan {
  std::vector<std::vector<std::uint32_t>> passes;  // [pass][conversation]: tokens
  std::vector<std::uint64_t> totals;               // [conversation]: tokens
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

}  // namespace

// Plans, reserves and allocates all that the step needs (E3). Answers whether there is anything to do.
Result<bool> Engine::begin_step(const StepOptions& options) {
  std::vector<Demand> demands;
  for (const Conversation& conversation : conversations_) {
    const bool every = std::ranges::find(conversation.every, std::uint8_t{1}) != conversation.every.end();
    demands.push_back({conversation.queue.size(), every});
  }
  const PassBounds bounds{options_.pass_tokens, options_.logit_rows};
  const StepPlan plan = plan_step(std::move(demands), bounds, rotation_, options.whole_queue);
  if (plan.passes.empty()) return false;
  std::vector<pages::Growth> growths;
  std::vector<ConversationId> ids;
  for (std::size_t i = 0; i < plan.totals.size(); ++i) {
    if (plan.totals[i] == 0) continue;
    growths.push_back({conversations_[i].table, plan.totals[i]});
    ids.push_back(ConversationId{static_cast<std::uint32_t>(i)});
  }
  KVASIR_ASSIGN(pages::Ticket ticket, store_->begin(growths));
  auto step = std::make_unique<OpenStep>(std::move(ticket));
  std::vector<std::size_t> line_of(conversations_.size());
  for (std::size_t line = 0; line < ids.size(); ++line) {
    line_of[static_cast<std::size_t>(ids[line])] = line;
    step->lines.push_back({.id = ids[line], .tokens = growths[line].count});
    step->accepted.push_back(growths[line].count);
  }
  std::vector<std::uint64_t> taken(ids.size());
  for (const std::vector<std::uint32_t>& shares : plan.passes) {
    step->passes.emplace_back();
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] == 0) continue;
      step->passes.back().push_back({line_of[i], taken[line_of[i]], shares[i]});
      taken[line_of[i]] += shares[i];
    }
  }
  prepare_deliveries(*step);
  open_step_ = std::move(step);
  for (const OpenStep::Line& line : open_step_->lines)
    conversations_[static_cast<std::size_t>(line.id)].in_step = true;
  return true;
}

void Engine::prepare_deliveries(OpenStep& step) {
  const std::size_t vocabulary = model_->sizes().vocabulary;
  for (OpenStep::Line& line : step.lines) {
    Conversation& conversation = conversations_[static_cast<std::size_t>(line.id)];
    conversation.tokens.reserve(conversation.tokens.size() + line.tokens);
    line.ends_queue = line.tokens == conversation.queue.size();
    if (line.ends_queue) line.last_logits = std::make_shared<Row>(vocabulary);
    const auto taken = std::span(conversation.every).first(line.tokens);
    const auto rows = static_cast<std::size_t>(std::ranges::count(taken, std::uint8_t{1}));
    line.every_logit.resize(rows * vocabulary);
    conversation.every_logit.reserve(conversation.every_logit.size() + line.every_logit.size());
  }
}

model::Pass Engine::build_pass(const OpenStep& step) const {
  model::Pass pass;
  const std::size_t groups = store_->group_count();
  pass.places.resize(groups);
  for (const OpenStep::Piece& piece : step.passes[step.pass]) {
    const OpenStep::Line& line = step.lines[piece.line];
    const Conversation& conversation = conversations_[static_cast<std::size_t>(line.id)];
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
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const std::uint64_t in_line = piece.first + i;
      const bool last = line.ends_queue && in_line + 1 == line.tokens;
      const bool wanted = last || conversation.every[in_line] != 0;
      pass.rows.push_back({conversation.queue[in_line], index, begin + i,
                           store_->next_position(conversation.table) + static_cast<std::int64_t>(in_line),
                           wanted ? pass.logit_rows++ : model::PassRow::kNoLogits});
    }
    pass.sequences.push_back(std::move(sequence));
  }
  return pass;
}

// Copies the finished pass's logits to where the commit will find them.
void Engine::collect_logits(OpenStep& step) noexcept {
  const std::size_t vocabulary = model_->sizes().vocabulary;
  const model::Pass& pass = forward_->pass();
  for (std::size_t sequence = 0; sequence < pass.sequences.size(); ++sequence) {
    const OpenStep::Piece& piece = step.passes[step.pass][sequence];
    OpenStep::Line& line = step.lines[piece.line];
    const Conversation& conversation = conversations_[static_cast<std::size_t>(line.id)];
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const model::PassRow& row = pass.rows[pass.sequences[sequence].first_row + i];
      if (row.logits_row == model::PassRow::kNoLogits) continue;
      const std::span<const float> logits = forward_->logits(row.logits_row);
      const std::uint64_t in_line = piece.first + i;
      if (conversation.every[in_line] != 0) {
        const auto at = static_cast<std::ptrdiff_t>(line.rows_gathered++ * vocabulary);
        std::ranges::copy(logits, line.every_logit.begin() + at);
      }
      if (line.ends_queue && in_line + 1 == line.tokens) std::ranges::copy(logits, line.last_logits->begin());
    }
  }
}

// Everything it needs was allocated by begin_step(): the inserts stay within reserved capacity (E3).
void Engine::commit_step(StepReport& report) noexcept {
  OpenStep& step = *open_step_;
  step.ticket.commit(step.accepted);
  for (OpenStep::Line& line : step.lines) {
    Conversation& conversation = conversations_[static_cast<std::size_t>(line.id)];
    const auto count = static_cast<std::ptrdiff_t>(line.tokens);
    conversation.tokens.insert(conversation.tokens.end(), conversation.queue.begin(),
                               conversation.queue.begin() + count);
    conversation.queue.erase(conversation.queue.begin(), conversation.queue.begin() + count);
    conversation.every.erase(conversation.every.begin(), conversation.every.begin() + count);
    conversation.last_logits = std::move(line.last_logits);
    conversation.every_logit.insert(conversation.every_logit.end(), line.every_logit.begin(),
                                    line.every_logit.end());
    if (options_.share_prefixes) store_->remember(conversation.table, conversation.tokens, kNoSalt);
    conversation.in_step = false;
    report.tokens += line.tokens;
  }
  rotation_ += step.passes.size();
  open_step_.reset();
  report.outcome = Outcome::kDone;
}

}  // namespace kvasir::engine
