#include "engine/engine.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/clock.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/open_step.h"

namespace kvasir::engine {
namespace {

Status check(const EngineOptions& options) {
  const auto refuse = [](const char* what, const char* setting) {
    return fail(Outcome::kInvalidArgument, std::string(what) + " must be at least 1",
                {.limit = 1, .setting = setting});
  };
  if (options.context == 0) return refuse("the context", "--ctx");
  if (options.pool == 0) return refuse("the pool", "--pool");
  if (options.pass_tokens == 0) return refuse("the tokens in a pass", "--pass");
  if (options.logit_rows == 0) return refuse("the rows of logits in a pass", "");
  return {};
}

// Frames for `tokens` tokens in whole pages of every group.
Result<std::uint32_t> frames_for(const model::Network& network, std::uint64_t tokens,
                                 std::uint32_t page_cells) {
  std::uint64_t layers = 0;
  for (const model::CacheGroup& group : network.groups) layers += group.layers.size();
  if (page_cells == 0) return 0;  // the page store refuses it with its own sentence
  const auto frames = base::checked_mul(base::div_up<std::uint64_t>(tokens, page_cells), layers);
  if (!frames || *frames > UINT32_MAX) {
    return fail(Outcome::kInvalidArgument,
                "a pool of " + std::to_string(tokens) + " tokens is larger than can be managed",
                {.wanted = tokens, .setting = "--pool"});
  }
  return static_cast<std::uint32_t>(*frames);
}

}  // namespace

Engine::Engine(std::shared_ptr<const model::Model> model, parallel::ThreadPool& pool,
               const EngineOptions& options)
    : model_(std::move(model)), pool_(&pool), options_(options) {}

Engine::~Engine() {
  abandon_step();
}

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const model::Model> model,
                                               parallel::ThreadPool& pool, const EngineOptions& options) {
  return base::within_memory([&]() -> Result<std::unique_ptr<Engine>> {
    KVASIR_TRY(check(options));
    std::unique_ptr<Engine> engine(new Engine(std::move(model), pool, options));
    const model::Network& network = engine->model_->network();
    KVASIR_ASSIGN(const std::uint32_t frames, frames_for(network, options.pool, options.page_cells));
    pages::StoreSpec spec{options.page_cells, frames, {}};
    std::vector<kv::LayerGeometry> layers;
    for (const model::CacheGroup& group : network.groups) {
      spec.groups.push_back({static_cast<std::uint32_t>(group.layers.size())});
      layers.insert(layers.end(), group.layers.begin(), group.layers.end());
    }
    KVASIR_ASSIGN(engine->store_, pages::PageStore::create(spec));
    KVASIR_ASSIGN(engine->arena_, kv::Arena::create(layers, options.types, options.page_cells, frames));
    const model::PassLimits limits{options.pass_tokens, std::min(options.logit_rows, options.pass_tokens)};
    engine->options_.logit_rows = limits.logit_rows;
    KVASIR_ASSIGN(engine->workspace_, model::Workspace::create(*engine->model_, limits));
    engine->forward_.emplace(*engine->model_, engine->arena_, *engine->store_, pool, engine->workspace_);
    return engine;
  });
}

Result<const Engine::Conversation*> Engine::find(ConversationId id) const {
  const auto index = static_cast<std::size_t>(id);
  if (index >= conversations_.size() || !conversations_[index].open) {
    return fail(Outcome::kNotFound, "there is no conversation " + std::to_string(index));
  }
  return &conversations_[index];
}

Result<Engine::Conversation*> Engine::find(ConversationId id) {
  KVASIR_ASSIGN(const Conversation* const found, std::as_const(*this).find(id));
  return const_cast<Conversation*>(found);
}

Result<Engine::Conversation*> Engine::find_idle(ConversationId id) {
  KVASIR_ASSIGN(Conversation* const found, find(id));
  if (found->in_step) {
    return fail(Outcome::kBusy, "conversation " + std::to_string(static_cast<std::size_t>(id)) +
                                    " is part of an open step; finish or abandon the step first");
  }
  return found;
}

std::size_t Engine::new_slot() {
  const auto free = std::ranges::find(conversations_, false, &Conversation::open);
  const auto index = static_cast<std::size_t>(free - conversations_.begin());
  if (free == conversations_.end()) conversations_.emplace_back();
  return index;
}

Result<ConversationId> Engine::open() {
  return base::within_memory([&]() -> Result<ConversationId> {
    const std::size_t index = new_slot();
    KVASIR_ASSIGN(const pages::TableId table, store_->open());
    conversations_[index] = Conversation{.table = table, .open = true};
    return ConversationId{static_cast<std::uint32_t>(index)};
  });
}

Status Engine::close(ConversationId id) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    store_->close(conversation->table);
    *conversation = Conversation{};
    return {};
  });
}

Result<StepReport> Engine::step(const StepOptions& options) {
  StepReport report;
  try {
    if (!step_open()) {
      const std::int64_t start = base::system_clock().now_ns();
      KVASIR_ASSIGN(const bool any, begin_step(options));
      report.plan_ns = base::system_clock().now_ns() - start;
      if (!any) return report;
    }
    if (const Status ran = run_passes(options, report); !ran) {
      abandon_step();
      return fail(ran.error());
    }
    return report;
  } catch (const std::bad_alloc&) {
    abandon_step();
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

void Engine::abandon_step() noexcept {
  if (!step_open()) return;
  for (const OpenStep::Line& line : open_step_->lines)
    conversations_[static_cast<std::size_t>(line.id)].in_step = false;
  open_step_.reset();
}

Status Engine::run_passes(const StepOptions& options, StepReport& report) {
  OpenStep& step = *open_step_;
  // Of the whole step, also where it is continued here.
  for (const std::vector<OpenStep::Piece>& pieces : step.passes) {
    report.shared_passes.emplace_back();
    for (const OpenStep::Piece& piece : pieces)
      report.shared_passes.back().push_back(step.lines[piece.line].id);
  }
  while (step.pass < step.passes.size()) {
    if (!step.pass_started) {
      KVASIR_TRY(forward_->start(build_pass(step)));
      step.pass_started = true;
    }
    KVASIR_TRY(run_jobs(options, report));
    if (report.outcome != Outcome::kDone) return {};
    collect_logits(step);
    ++step.pass;
    step.pass_started = false;
  }
  report.passes = static_cast<std::uint32_t>(step.passes.size());
  const std::int64_t start = base::system_clock().now_ns();
  commit_step(report);
  report.commit_ns = base::system_clock().now_ns() - start;
  return {};
}

// Runs the pass at hand to its end (report.outcome is then kDone) or until the caller suspends or cancels the
// step.
Status Engine::run_jobs(const StepOptions& options, StepReport& report) {
  OpenStep& step = *open_step_;
  while (!forward_->done()) {
    KVASIR_TRY(forward_->advance());
    if (!options.between_jobs || forward_->done()) continue;
    const model::PassProgress progress = forward_->progress();
    const JobView view{static_cast<std::uint32_t>(step.pass), static_cast<std::uint32_t>(step.passes.size()),
                       progress};
    const Verdict verdict = options.between_jobs(view);
    if (verdict == Verdict::kGoOn) continue;
    report.passes = static_cast<std::uint32_t>(step.pass + 1);
    report.outcome = Outcome::kSuspended;
    if (verdict == Verdict::kCancel) {
      report.layers_undone = step.pass * std::uint64_t{progress.layers} + progress.layer;
      report.outcome = Outcome::kCancelled;
      const std::int64_t start = base::system_clock().now_ns();
      abandon_step();
      report.rollback_ns = base::system_clock().now_ns() - start;
    }
    return {};
  }
  report.outcome = Outcome::kDone;
  return {};
}

Result<std::span<const Token>> Engine::tokens(ConversationId id) const {
  return base::within_memory([&]() -> Result<std::span<const Token>> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    return std::span<const Token>(conversation->tokens);
  });
}

Result<std::uint64_t> Engine::queued(ConversationId id) const {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    return conversation->queue.size();
  });
}

Result<std::span<const float>> Engine::last_logits(ConversationId id) const {
  return base::within_memory([&]() -> Result<std::span<const float>> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    if (conversation->last_logits == nullptr || !conversation->queue.empty()) {
      return fail(Outcome::kNeedsPrompt,
                  "there are no logits for the last token; prompt the conversation and step");
    }
    return std::span<const float>(*conversation->last_logits);
  });
}

Result<std::vector<float>> Engine::take_logits(ConversationId id) {
  return base::within_memory([&]() -> Result<std::vector<float>> {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    return std::exchange(conversation->every_logit, {});
  });
}

}  // namespace kvasir::engine
