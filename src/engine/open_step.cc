#include "engine/open_step.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

// Appends what the runs of `from` have of the ordinals [begin, end).
void append_runs_within(std::span<const pages::Run> from, std::uint64_t begin, std::uint64_t end,
                        std::vector<pages::Run>& into) {
  for (pages::Run run : from) {
    if (run.ordinal >= end) return;
    if (run.end() <= begin) continue;
    if (run.ordinal < begin) {
      const auto skipped = static_cast<std::uint32_t>(begin - run.ordinal);
      run.cell += skipped;
      run.count -= skipped;
      run.ordinal = begin;
    }
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

// Who takes part, with what it wants; answers how many of them generate.
std::uint64_t Engine::gather_demands(OpenStep& step) const {
  std::uint64_t generating = 0;
  step.demands.clear();
  step.who.clear();
  for (std::size_t index = 0; index < conversations_.size(); ++index) {
    const Conversation& conversation = conversations_[index];
    if (!runs(conversation)) continue;
    const std::vector<std::uint8_t>& every = conversation.queue.every;
    const std::uint64_t queued = conversation.queue.size() - conversation.borrowed;
    step.demands.push_back({queued, std::ranges::find(every, std::uint8_t{1}) != every.end(),
                            conversation.settings.priority, conversation.waited});
    step.who.push_back(index);
    if (queued == 1) ++generating;
  }
  return generating;
}

// What the step takes from each conversation, pass by pass: found on numbers alone, before anything is
// reserved. The pieces name demands; reserve_step() makes lines of them.
void Engine::plan_passes(OpenStep& step, const PassBounds& bounds, bool whole_queue) const {
  step.totals.assign(step.demands.size(), 0);
  do {
    plan_pass(step.demands, bounds, rotation_ + step.passes(), step.plan);
    const std::vector<std::uint32_t>& shares = step.plan.shares;
    const std::size_t before = step.pieces.size();
    for (std::size_t i = 0; i < shares.size(); ++i) {
      step.demands[i].waited = shares[i] > 0 ? 0 : step.demands[i].waited + 1;
      if (shares[i] == 0) continue;
      step.pieces.push_back({i, step.totals[i], shares[i]});
      step.demands[i].queued -= shares[i];
      step.totals[i] += shares[i];
    }
    if (step.pieces.size() == before) return;
    step.pass_ends.push_back(step.pieces.size());
  } while (whole_queue);
}

// A token that is drawn or comes by itself ends no prompt: a checkpoint at each would soon be all there are.
pages::Growth Engine::growth_of(const Conversation& conversation, std::uint64_t tokens, bool in_part) const {
  const std::uint64_t left = conversation.queue.size() - conversation.borrowed;
  return {conversation.table, tokens, in_part ? 0 : tokens, left > 1 ? left : 0};
}

Status Engine::reserve_step(OpenStep& step, bool in_part) {
  step.growths.clear();
  step.line_of.resize(step.who.size());
  for (std::size_t i = 0; i < step.who.size(); ++i) {
    if (step.totals[i] == 0) continue;
    const std::size_t index = step.who[i];
    step.line_of[i] = step.growths.size();
    step.growths.push_back(growth_of(conversations_[index], step.totals[i], in_part));
    OpenStep::Line& line = step.add_line();
    line.index = index;
    line.borrowed = conversations_[index].borrowed;
    line.id = id_of(conversations_[index], index);
    line.tokens = step.totals[i];
    step.accepted.push_back(step.totals[i]);
  }
  for (OpenStep::Piece& piece : step.pieces) piece.line = step.line_of[piece.line];
  KVASIR_ASSIGN(pages::Ticket ticket, store_->begin(step.growths));
  step.ticket.emplace(std::move(ticket));
  return {};
}

// Plans, reserves and allocates all that the step needs (E3). Answers whether there is anything to do.
Result<bool> Engine::begin_step(const StepOptions& options) {
  Result<bool> begun = base::within_memory([&]() -> Result<bool> {
    if (spare_step_ == nullptr) spare_step_ = std::make_unique<OpenStep>();
    OpenStep& step = *spare_step_;
    KVASIR_ASSIGN(const bool any, prepare_step(step, options));
    if (!any) return false;
    // Nothing fails from here on.
    for (std::size_t i = 0; i < step.who.size(); ++i) {
      Conversation& conversation = conversations_[step.who[i]];
      conversation.waited = step.totals[i] > 0 ? 0 : conversation.waited + step.passes();
      conversation.in_step = step.totals[i] > 0;
      if (conversation.in_step) {
        conversation.step_tokens = conversation.borrowed + step.totals[i];
      } else if (conversation.borrowed > 0) {
        undo_admission(conversation);  // E6; it is asked again before the next step
      }
    }
    open_step_ = std::move(spare_step_);
    return true;
  });
  if (begun && *begun) return true;
  if (spare_step_ != nullptr) spare_step_->reset();
  undo_admissions();
  return begun;
}

// All that may fail, where undo_admissions() undoes what happened.
Result<bool> Engine::prepare_step(OpenStep& step, const StepOptions& options) {
  KVASIR_TRY(admit_those_that_wait(step.waiting));
  const std::uint64_t generating = gather_demands(step);
  plan_passes(step, bounds_of(options_, options, cost_, generating), options.whole_queue);
  choose_moves(step.passes() == 0);
  if (step.passes() == 0) {
    if (moves_pending()) return false;
    if (const Error* const shortage = first_shortage()) return fail(*shortage);
    return false;
  }
  KVASIR_TRY(reserve_step(step, static_cast<bool>(options.accept)));
  prepare_deliveries(step, static_cast<bool>(options.accept));
  return true;
}

void Engine::prepare_deliveries(OpenStep& step, bool in_part) {
  const std::size_t width = model_->sizes().embedding;
  for (OpenStep::Line& line : step.lines) {
    Conversation& conversation = conversations_[line.index];
    const auto queued = std::span(conversation.queue.tokens).subspan(line.borrowed, line.tokens);
    line.embedded = static_cast<std::uint64_t>(std::ranges::count(queued, kEmbedded));
    const auto floats = std::span(conversation.queue.vectors).first(line.embedded * width);
    line.vectors.assign(floats.begin(), floats.end());
    const std::uint64_t taken = line.borrowed + line.tokens;
    line.ends_queue = taken == conversation.queue.size();
    if (line.ends_queue) line.last_row = rows_.take();
    for (std::uint64_t i = line.borrowed; i < taken; ++i) {
      if (conversation.queue.every[i] == 0) continue;
      line.kept_rows.push_back(rows_.take());
      line.kept.push_back({conversation.tokens.size() + i, line.kept_rows.back()});
    }
    make_room(conversation.tokens, conversation.tokens.size() + taken);
    make_room(conversation.kept, conversation.kept.size() + line.kept.size());
    if (in_part) conversation.dropped.reserve(line.tokens);
    // For what is drawn at the end.
    make_room(conversation.queue.tokens, conversation.queue.size() + 1);
    make_room(conversation.queue.every, conversation.queue.size() + 1);
  }
}

bool Engine::pass_open() const noexcept {
  return step_open() && open_step_->pass_started;
}

bool Engine::passes_done() const noexcept {
  return step_open() && open_step_->pass == open_step_->passes();
}

bool Engine::step_is_vain() const noexcept {
  return step_open() && std::ranges::all_of(open_step_->lines, &OpenStep::Line::withdrawn);
}

JobView Engine::view() const noexcept {
  return {static_cast<std::uint32_t>(open_step_->pass), static_cast<std::uint32_t>(open_step_->passes()),
          forward_->progress()};
}

Result<bool> Engine::start_pass() {
  return base::within_memory([&]() -> Result<bool> {
    OpenStep& step = *open_step_;
    step.at_work.clear();
    for (const OpenStep::Piece& piece : step.pieces_of(step.pass)) {
      if (!step.lines[piece.line].withdrawn) step.at_work.push_back(piece);
    }
    if (step.at_work.empty()) {
      ++step.pass;
      if (step.pass == step.passes()) prepare_draws();
      return false;
    }
    for (const OpenStep::Piece& piece : step.at_work)
      step.reservation().open_pass(piece.line, piece.first + piece.count);
    model::Pass pass = forward_->take_pass();
    build_pass(step, pass);
    KVASIR_TRY(forward_->start(std::move(pass)));
    step.pass_started = true;
    step.pass_ns = 0;
    return true;
  });
}

// The spans that a piece's rows may see, and the cells of the rows themselves; of a recurrent group the
// states.
void Engine::place_piece(const OpenStep& step, std::size_t at, model::Pass& pass) const {
  const OpenStep::Piece& piece = step.at_work[at];
  model::PassSequence& sequence = pass.sequences[at];
  const pages::TableId table = conversations_[step.lines[piece.line].index].table;
  const std::uint64_t begin = store_->length(table) + piece.first;
  const std::size_t groups = store_->group_count();
  sequence.runs.resize(groups);
  sequence.floors.resize(groups);
  sequence.states.resize(groups);
  for (std::size_t group = 0; group < groups; ++group) {
    std::vector<pages::Run>& runs = sequence.runs[group];
    runs.clear();
    sequence.floors[group] = store_->floor(table, group);
    const pages::GroupKind kind = store_->spec().groups[group].kind;
    if (kind == pages::GroupKind::kRecurrent) {
      place_states(step, at, group, sequence.states[group]);
      continue;
    }
    if (kind == pages::GroupKind::kCross) {
      const std::span<const pages::Run> source = store_->runs(table, group);
      runs.assign(source.begin(), source.end());
      continue;
    }
    // What is left out no row sees, and it may be written over.
    const std::uint64_t from =
        kind == pages::GroupKind::kWindow ? store_->first_visible(table, group, begin) : 0;
    runs.reserve(store_->places(table, group) + 1);  // a span may be cut in two
    append_runs_within(store_->runs(table, group), from, begin + piece.count, runs);
    append_runs_within(step.reservation().new_runs(piece.line, group), from, begin + piece.count, runs);
    for (const pages::Run& run : runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        if (run.ordinal + i >= begin) pass.places[group].push_back({run.page, run.cell + i});
      }
    }
  }
}

// The state before a piece, which is in the line's last one from its second pass on, and where the scan
// leaves those of the ordinals in it.
void Engine::place_states(const OpenStep& step, std::size_t at, std::size_t group,
                          model::PassStates& states) const {
  const OpenStep::Piece& piece = step.at_work[at];
  const pages::TableId table = conversations_[step.lines[piece.line].index].table;
  const std::uint64_t begin = store_->length(table) + piece.first;
  const std::uint64_t end = begin + piece.count;
  const std::span<const pages::StateWrite> reserved = step.reservation().states(piece.line, group);
  const pages::PageId last = reserved.back().state;
  states.from = piece.first > 0 ? std::optional(last) : store_->state(table, group);
  states.writes.clear();
  states.writes.reserve(reserved.size());
  for (const pages::StateWrite& write : reserved.first(reserved.size() - 1)) {
    if (write.ordinal > begin && write.ordinal <= end) states.writes.push_back(write);
  }
  states.writes.push_back({end, last});
}

// Fills `pass`, which may be an old one: its memory is used again.
void Engine::build_pass(const OpenStep& step, model::Pass& pass) const {
  pass.rows.clear();
  pass.logit_rows = 0;
  pass.places.resize(store_->group_count());
  for (std::vector<model::CellPlace>& places : pass.places) places.clear();
  pass.sequences.resize(step.at_work.size());
  for (std::size_t at = 0; at < step.at_work.size(); ++at) {
    const OpenStep::Piece& piece = step.at_work[at];
    const OpenStep::Line& line = step.lines[piece.line];
    const Conversation& conversation = conversations_[line.index];
    const Queue& queue = conversation.queue;
    pass.sequences[at].first_row = static_cast<std::uint32_t>(pass.rows.size());
    pass.sequences[at].rows = piece.count;
    place_piece(step, at, pass);
    const float* vector = line.vectors.data();
    if (line.embedded > 0) {
      const auto begin = queue.tokens.begin() + static_cast<std::ptrdiff_t>(line.borrowed);
      const auto before = std::count(begin, begin + static_cast<std::ptrdiff_t>(piece.first), kEmbedded);
      vector += before * static_cast<std::ptrdiff_t>(model_->sizes().embedding);
    }
    for (std::uint64_t in_line = piece.first; in_line < piece.first + piece.count; ++in_line) {
      const bool last = line.ends_queue && in_line + 1 == line.tokens;
      const std::uint64_t in_queue = line.borrowed + in_line;
      const bool embedded = queue.tokens[in_queue] == kEmbedded;
      pass.rows.push_back(
          {.token = queue.tokens[in_queue],
           .vector = embedded ? vector : nullptr,
           .sequence = static_cast<std::uint32_t>(at),
           .ordinal = store_->length(conversation.table) + in_line,
           .position = store_->next_position(conversation.table) + static_cast<std::int64_t>(in_line)});
      if (embedded) vector += model_->sizes().embedding;
      if (last || queue.every[in_queue] != 0) pass.rows.back().logits_row = pass.logit_rows++;
    }
  }
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
  if (step.pass == step.passes()) prepare_draws();
}

// Whoever generates and has its last row draws from it, with what it is now.
void Engine::prepare_draws() noexcept {
  for (OpenStep::Line& line : open_step_->lines) {
    const Conversation& conversation = conversations_[line.index];
    const std::uint64_t taken = line.borrowed + line.tokens;
    if (line.withdrawn || !line.ends_queue || conversation.queue.size() != taken) continue;
    line.drawer = conversation.drawer;
    line.seed = conversation.settings.seed;
    line.accepted = conversation.accepted + taken - std::min(taken, conversation.again);
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
      continue;
    }
    try {
      line.failure = std::make_shared<const Error>(std::move(drawn).error());
    } catch (const std::bad_alloc&) {
      line.failure = out_of_memory_;
    }
  }
}

}  // namespace kvasir::engine
