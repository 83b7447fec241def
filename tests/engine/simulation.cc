#include "simulation.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sample/sampler.h"
#include "support/allocations.h"
#include "support/engine_run.h"

namespace kvasir::engine::test {
namespace {

constexpr std::int64_t kTick = 1'000;
// Looks at the clock of a job, and of what a step does beside its jobs.
constexpr std::int64_t kJobTicks = 4;
constexpr std::int64_t kStepTicks = 12;
// From one recount of all invariants to the next.
constexpr std::uint64_t kStepsUnchecked = 8;

}  // namespace

Simulation::Simulation(const kvasir::test::LoadedModel& model, const text::Tokenizer& tokenizer,
                       std::uint64_t seed, SimulationCounts& counts)
    : model_(&model), tokenizer_(&tokenizer), random_(seed), counts_(&counts), clock_(kTick) {
  pool_ = *parallel::ThreadPool::create(1);
  ExecutorSettings settings;
  settings.engine.pool = 48 + below(5) * 48;
  settings.engine.context = 40 + below(200);
  settings.engine.page_cells = below(2) == 0 ? 16 : 32;
  settings.engine.pass_tokens = static_cast<std::uint32_t>(2 + below(30));
  settings.engine.logit_rows = static_cast<std::uint32_t>(12 + below(8));
  settings.engine.share_prefixes = below(2) == 0;
  settings.engine.states = static_cast<std::uint32_t>(2 + below(20));
  executor_ = *Executor::create(model.model, pool_, settings, clock_);
  // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): drawn after what comes before
  most_ = 1 + below(10);
}

void Simulation::require(bool holds, const std::string& what) {
  if (!holds && wrong_.empty()) wrong_ = what;
}

std::string Simulation::run() {
  for (int i = 0; i < 30 && wrong_.empty(); ++i) {
    if (below(3) != 0) act(false);
    step();
  }
  finish();
  return wrong_;
}

// Half of all prompts begin with one of two texts, so that beginnings are shared.
std::vector<Token> Simulation::random_prompt() {
  const std::uint64_t text = below(4);
  const auto count = static_cast<std::size_t>(text < 2 ? 1 + below(60) : 1 + below(below(3) == 0 ? 40 : 6));
  return kvasir::test::random_tokens(model_->vocabulary(), count, text < 2 ? text : random_());
}

Simulation::Twin* Simulation::any() {
  return twins_.empty() ? nullptr : &twins_[below(twins_.size())];
}

// One thing that some thread does now.
void Simulation::act(bool in_step) {
  before_.reset();
  if (twins_.empty() || (twins_.size() < most_ && below(3) == 0)) return open();
  Twin& twin = *any();
  switch (below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return prompt(twin, in_step);
    case 4:
      return fork(twin, in_step);
    case 5:
      return cancel(twin, in_step);
    case 6:
      return below(2) == 0 ? close(twin, in_step) : read(twin);
    case 7:
      return rewind(twin);
    case 8:
    case 9:
      return generate(twin);
    default:
      return read(twin);
  }
}

void Simulation::open() {
  const ConversationSettings settings{.priority = static_cast<int>(below(2)), .seed = random_()};
  const auto id = executor_->change([&](Engine& engine) { return engine.open(settings); });
  require(id.has_value(), "a conversation cannot be opened");
  Twin& twin = twins_.emplace_back();
  twin.id = *id;
  prompt(twin, false);
}

void Simulation::prompt(Twin& twin, bool in_step) {
  follow(twin);
  if (twin.generation != nullptr) return;
  const std::vector<Token> tokens = random_prompt();
  const auto wanted = below(4) == 0 ? LogitsWanted::kEvery : LogitsWanted::kLast;
  const auto queued =
      executor_->change([&](Engine& engine) { return engine.prompt(twin.id, tokens, wanted); });
  if (!queued) return require(queued.error().code() == Outcome::kNoSpace, queued.error().message());
  counts_->prompted_in_step += in_step ? 1 : 0;
  counts_->reused += *queued;
  twin.prompted.insert(twin.prompted.end(), tokens.begin(), tokens.end());
}

void Simulation::fork(const Twin& twin, bool in_step) {
  if (twins_.size() >= most_ || twin.generation != nullptr) return;
  Twin child = twin;
  const auto id = executor_->change([&](Engine& engine) { return engine.fork(twin.id); });
  if (!id) return require(id.error().code() == Outcome::kNoSpace, "a fork failed");
  child.id = *id;
  twins_.push_back(std::move(child));
  counts_->forked_in_step += in_step ? 1 : 0;
}

// What it holds now is what was committed.
void Simulation::cancel(Twin& twin, bool in_step) {
  require(executor_->cancel(twin.id).has_value(), "a cancel failed");
  twin.generation.reset();
  executor_->look([&](const Engine& engine) { twin.prompted = *engine.history(twin.id); });
  counts_->cancelled_in_step += in_step ? 1 : 0;
}

void Simulation::close(Twin& twin, bool in_step) {
  executor_->close_conversation(twin.id);
  counts_->closed_in_step += in_step ? 1 : 0;
  twins_.erase(twins_.begin() + (&twin - twins_.data()));
}

void Simulation::rewind(Twin& twin) {
  follow(twin);
  const auto state = executor_->look([&](const Engine& engine) { return *engine.look(twin.id); });
  if (twin.generation != nullptr || !state->queue.empty()) return;
  const std::uint64_t length = below(twin.prompted.size() + 1);
  const Status done =
      executor_->edit(twin.id, [&](Engine& engine) { return engine.rewind(twin.id, length); });
  if (!done) {
    // What goes back may be shared, or promised to others by then.
    const Outcome code = done.error().code();
    return require(code == Outcome::kBusy || code == Outcome::kNoSpace, done.error().message());
  }
  counts_->behind += executor_->look([&](const Engine& engine) {
    return engine.tokens(twin.id)->size() < length ? std::uint64_t{1} : std::uint64_t{0};
  });
  twin.prompted.resize(length);
}

void Simulation::generate(Twin& twin) {
  follow(twin);
  if (twin.generation != nullptr || twin.prompted.empty()) return;
  const GenerateOptions options{.max_tokens = 1 + below(12),
                                .sampler = Sampler::greedy(),
                                .ignore_end = true,
                                .outbox = static_cast<std::uint32_t>(1 + below(3)),
                                .reserve = below(2) == 0};
  auto generation = *TextGeneration::create(*tokenizer_, options);
  const Status begun = executor_->generate(twin.id, generation);
  if (!begun) return require(begun.error().code() == Outcome::kNeedsPrompt, begun.error().message());
  twin.generation = std::move(generation);
}

void Simulation::read(Twin& twin) {
  if (twin.generation == nullptr) return;
  GeneratedPiece piece;
  require(executor_->poll_piece(*twin.generation, piece).has_value(), "a generation failed");
  counts_->generated += piece.tokens.size();
  twin.prompted.insert(twin.prompted.end(), piece.tokens.begin(), piece.tokens.end());
  if (twin.generation->ended() && !twin.generation->has_piece()) twin.generation.reset();
}

// Reads all that is there; a generation that has ended is done with.
void Simulation::follow(Twin& twin) {
  while (twin.generation != nullptr && twin.generation->has_piece()) read(twin);
  if (twin.generation != nullptr && twin.generation->ended()) twin.generation.reset();
}

std::uint64_t Simulation::digest() const {
  return executor_->look([](const Engine& engine) {
    std::uint64_t digest = *engine.digest();
    for (const Conversation& conversation : engine.conversations())
      digest = digest * 31 + conversation.accepted;
    return digest;
  });
}

// In a quiet step nobody does anything meanwhile.
StepBudget Simulation::random_budget(bool quiet) {
  StepBudget budget;
  budget.whole_queue = below(5) == 0;
  if (below(2) == 0) budget.time_ns = kTick * static_cast<std::int64_t>(1 + below(80));
  if (below(4) == 0) budget.tokens = 2 + below(10);
  budget.between_jobs = [this, quiet](const JobView&) {
    if (!quiet && below(12) == 0) act(true);
    return below(quiet ? 60 : 200) == 0 ? Verdict::kCancel : Verdict::kGoOn;
  };
  return budget;
}

// Now and then without memory. Not while one generates: that may lose its generation and nothing else.
Result<kvasir::StepReport> Simulation::take_step(const StepBudget& budget, bool quiet) {
  const bool generating =
      std::ranges::any_of(twins_, [](const Twin& twin) { return twin.generation != nullptr; });
  if (!quiet || generating || below(4) != 0) return executor_->step(budget);
  using Lasting = kvasir::test::AllocationFault::Lasting;
  const std::uint64_t number = below(20);
  const Lasting lasting = below(2) == 0 ? Lasting::kOnce : Lasting::kFromThenOn;
  const kvasir::test::AllocationFault fault(number, lasting);
  return executor_->step(budget);
}

// P1: a step that is cancelled, refused, fails or finds nothing to do leaves everything as it was.
void Simulation::check_undone(const Result<kvasir::StepReport>& report) {
  const bool failed = !report;
  require(!failed || report.error().code() == Outcome::kOutOfMemory, "a step failed");
  if (!failed && report->outcome == Outcome::kSuspended) return;
  const std::optional<std::uint64_t> before = std::exchange(before_, std::nullopt);
  if (!before || (!failed && report->outcome == Outcome::kDone)) return;
  require(digest() == *before, failed
                                   ? "a step without memory has changed something"
                                   : "a step with the outcome " + std::string(outcome_name(report->outcome)) +
                                         " has changed something");
  counts_->lacked_memory += failed ? 1 : 0;
  counts_->undone += !failed && report->outcome != Outcome::kIdle ? 1 : 0;
}

void Simulation::check_time(const StepBudget& budget, const kvasir::StepReport& report,
                            std::int64_t elapsed) {
  if (!budget.time_ns || report.outcome != Outcome::kSuspended) return;
  require(elapsed <= *budget.time_ns + (2 * kJobTicks + kStepTicks) * kTick,
          "a step of " + std::to_string(*budget.time_ns) + " ns took " + std::to_string(elapsed));
}

void Simulation::step() {
  const bool quiet = below(2) == 0;
  const StepBudget budget = random_budget(quiet);
  const bool continues = executor_->look([](const Engine& engine) { return engine.step_open(); });
  if (!continues) before_ = digest();
  if (counts_->steps % kStepsUnchecked == 0) {
    const Status sound = executor_->look([](const Engine& engine) { return engine.check(); });  // E1, E6
    require(sound.has_value(), sound ? std::string() : sound.error().message());
  }
  const std::int64_t start = clock_.now_ns();
  const auto report = take_step(budget, quiet);
  const std::int64_t elapsed = clock_.now_ns() - start;
  check_undone(report);
  if (!report) return;
  ++counts_->steps;
  counts_->units += budget.whole_queue && report->passes > 1 ? 1 : 0;
  counts_->suspended += report->outcome == Outcome::kSuspended ? 1 : 0;
  check_time(budget, *report, elapsed);
  for (const ConversationReport& about : report->conversations) {
    if (about.outcome != Outcome::kNoSpace) continue;
    ++counts_->waited_for_room;
    require(about.error && about.error->numbers().wanted > about.error->numbers().available,
            "one waits for room that is there");
  }
  if (!budget.whole_queue) check_fairness();
  if (report->outcome == Outcome::kStalled) make_room(*report);
}

void Simulation::check_fairness() {
  executor_->look([&](const Engine& engine) {
    for (const Conversation& conversation : engine.conversations()) {
      require(conversation.waited < std::max<std::uint64_t>(8, most_),
              "one got nothing in " + std::to_string(conversation.waited) + " passes");
    }
  });
}

// Somebody must give way; whoever the report names would do.
void Simulation::make_room(const kvasir::StepReport& report) {
  ++counts_->stalled;
  require(!report.message.empty(), "a stalled step says nothing");
  require(!twins_.empty(), "an empty executor stalls");
  if (twins_.empty()) return;
  if (below(2) == 0) return cancel(*any(), false);
  close(*any(), false);
}

// All that still can goes on to its end; who lacks room is closed, one after the other.
void Simulation::finish() {
  for (int turn = 0; turn < 2'000 && wrong_.empty(); ++turn) {
    for (Twin& twin : twins_) follow(twin);
    const auto report = executor_->step({});
    require(report.has_value(), "a last step failed");
    if (!report) return;
    if (report->outcome == Outcome::kStalled) {
      make_room(*report);
      continue;
    }
    if (report->outcome != Outcome::kIdle) continue;
    const bool reading =
        std::ranges::any_of(twins_, [](const Twin& twin) { return twin.generation != nullptr; });
    if (reading) continue;
    for (const Twin& twin : twins_) check_cold(twin);
    return;
  }
  require(false, "the end is never reached");
}

// Its tokens, its last logits and what was drawn are those of a run by itself.
void Simulation::check_cold(const Twin& twin) {
  const auto held = executor_->look([&](const Engine& engine) { return *engine.history(twin.id); });
  require(std::ranges::equal(held, twin.prompted), "a conversation holds other tokens than it was given");
  if (twin.prompted.empty() || below(3) != 0) return;
  const auto row = executor_->look([&](const Engine& engine) { return engine.row(twin.id, 0); });
  if (!row) return;  // rewound, and not gone on with
  const kvasir::test::EngineHost alone =
      kvasir::test::make_engine(*model_, {.pool = twin.prompted.size() + 32});
  const std::vector<float> cold = kvasir::test::say(alone, *alone->open(), twin.prompted);
  require(kvasir::test::same_bits(**row, cold), "a conversation's logits differ from those of a run alone");
}

}  // namespace kvasir::engine::test
