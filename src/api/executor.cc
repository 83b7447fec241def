#include "kvasir/executor.h"

#include <algorithm>
#include <utility>

#include "api/parts.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "kv/arena.h"
#include "pages/types.h"

namespace kvasir {
namespace {

// Pools larger than this are made when they are asked for.
constexpr std::uint64_t kDefaultPoolMax = 32'768;

// Recurrent states are for as many conversations where nobody gives their number.
constexpr std::uint64_t kDefaultConversations = 24;

// A pass takes memory for all the tokens that it may have.
constexpr std::uint32_t kPassTokensMax = 1U << 16;

// Rows of logits in a pass: enough for many that generate, little beside the weights.
constexpr std::uint32_t kLogitRows = 64;

Result<kv::CacheElement> element(CacheType type) {
  switch (type) {
    case CacheType::kF32:
      return kv::CacheElement::kF32;
    case CacheType::kF16:
      return kv::CacheElement::kF16;
    case CacheType::kBf16:
      return kv::CacheElement::kBF16;
    case CacheType::kQ8_0:
      return kv::CacheElement::kQ8_0;
    case CacheType::kQ4_0:
      return kv::CacheElement::kQ4_0;
  }
  return fail(Outcome::kInvalidArgument,
              "there is no type of cache " + std::to_string(static_cast<int>(type)), {.setting = "keys"});
}

Result<engine::EngineOptions> sizes_of(const model::Model& model, const ExecutorOptions& options) {
  engine::EngineOptions sizes;
  sizes.page_cells = options.page_cells;
  sizes.pass_tokens = options.pass_tokens;
  sizes.states = options.states.value_or(0);
  sizes.logit_rows = kLogitRows;
  sizes.share_prefixes = options.share_prefixes;
  sizes.tiers = {options.memory_tier_bytes, options.disk_tier_bytes, options.spill_directory};
  KVASIR_ASSIGN(sizes.types.keys, element(options.keys));
  KVASIR_ASSIGN(sizes.types.values, element(options.values));
  if (options.pass_tokens > kPassTokensMax) {
    return fail(Outcome::kInvalidArgument, "a pass has at most " + std::to_string(kPassTokensMax) + " tokens",
                {.wanted = options.pass_tokens, .limit = kPassTokensMax, .setting = "pass_tokens"});
  }
  const bool usable_page = options.page_cells >= pages::kCellsStep &&
                           options.page_cells <= pages::kPageCellsMax &&
                           options.page_cells % pages::kCellsStep == 0;
  if (!usable_page) {
    return fail(Outcome::kInvalidArgument, "a page has 16, 32, ... or 256 cells",
                {.wanted = options.page_cells, .limit = pages::kPageCellsMax, .setting = "page_cells"});
  }
  if (const auto& positions = model.network().position_embedding;
      positions && options.context.value_or(0) > positions->rows()) {
    return fail(Outcome::kInvalidArgument,
                "the model has learned " + std::to_string(positions->rows()) +
                    " positions, which no conversation can go beyond",
                {.wanted = options.context, .limit = positions->rows(), .setting = "context"});
  }
  const std::uint64_t memory = base::available_memory();
  const std::uint64_t trained = std::max<std::uint64_t>(model.sizes().context, 1);
  sizes.context = options.context.value_or(trained);
  const auto within = [&](std::uint64_t bytes) -> Result<std::uint64_t> {
    if (memory == 0) return UINT64_MAX;
    return engine::tokens_within(bytes, model.network(), engine::wishes_of(sizes));
  };
  KVASIR_ASSIGN(const std::uint64_t in_half, within(memory / 2));
  KVASIR_ASSIGN(const std::uint64_t in_all, within(memory));
  sizes.pool =
      options.pool.value_or(std::max<std::uint64_t>(1, std::min({trained, kDefaultPoolMax, in_half})));
  if (sizes.pool > in_all) {
    return fail(Outcome::kNoSpace,
                "a pool of " + std::to_string(sizes.pool) + " tokens takes more than the free memory of " +
                    std::to_string(memory) + " bytes; " + std::to_string(in_all) + " would fit",
                {.wanted = sizes.pool, .available = in_all, .setting = "pool"});
  }
  sizes.context = options.context.value_or(std::max<std::uint64_t>(1, std::min(trained, sizes.pool)));
  if (!options.states) {
    KVASIR_ASSIGN(sizes.states, engine::states_within(memory == 0 ? UINT64_MAX : memory / 2, model.network(),
                                                      engine::wishes_of(sizes), kDefaultConversations));
  }
  return sizes;
}

engine::StepBudget budget_of(const Budget& budget) {
  engine::StepBudget mine;
  if (budget.time) mine.time_ns = std::max<std::int64_t>(0, budget.time->count());
  mine.tokens = std::max<std::uint64_t>(1, budget.tokens);
  mine.whole_queue = budget.whole_queue;
  if (budget.between_jobs) {
    mine.between_jobs = [&budget](const engine::JobView& view) {
      const Verdict verdict = budget.between_jobs({.pass = view.pass,
                                                   .passes = view.passes,
                                                   .layer = view.progress.layer,
                                                   .layers = view.progress.layers,
                                                   .job = view.progress.jobs});
      return static_cast<engine::Verdict>(verdict);
    };
  }
  return mine;
}
static_assert(static_cast<int>(Verdict::kCancel) == static_cast<int>(engine::Verdict::kCancel));
static_assert(static_cast<int>(Verdict::kSuspend) == static_cast<int>(engine::Verdict::kSuspend));

Result<std::uint64_t> new_seed() {
  std::uint64_t seed = 0;
  KVASIR_TRY(base::system_entropy().fill(std::as_writable_bytes(std::span(&seed, 1))));
  return seed >> 11;  // within what every reader of JSON keeps exactly
}

}  // namespace

Executor::Executor(std::shared_ptr<api::Core> core) noexcept : core_(std::move(core)) {}
Executor::Executor(Executor&&) noexcept = default;

Executor& Executor::operator=(Executor&& other) noexcept {
  if (this == &other) return *this;
  close();
  core_ = std::move(other.core_);
  return *this;
}

Executor::~Executor() {
  close();
}

// Kept through a call: a callback may destroy this handle meanwhile.
Result<std::shared_ptr<api::Core>> Executor::core() const {
  if (core_ != nullptr) return core_;
  return fail(Outcome::kWrongState, "this executor was moved away; call what it was moved to");
}

Result<Executor> Executor::create(const Model& model, const ExecutorOptions& options) {
  return base::within_memory([&]() -> Result<Executor> {
    const std::shared_ptr<const api::ModelParts>& parts = model.parts_;
    KVASIR_ASSIGN(const engine::EngineOptions sizes, sizes_of(*parts->model, options));
    KVASIR_ASSIGN(auto executor,
                  api::in_public_words(engine::Executor::create(
                      parts->model, parts->pool, {sizes, options.low_space_tokens, options.on_low_space})));
    return Executor(std::make_shared<api::Core>(parts, std::move(executor)));
  });
}

Result<Conversation> Executor::conversation(const ConversationOptions& options) {
  return base::within_memory([&]() -> Result<Conversation> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    engine::ConversationSettings settings{.priority = options.priority,
                                          .pinned = options.pinned,
                                          .salt = options.salt,
                                          .max_length = options.max_length.value_or(UINT64_MAX)};
    if (options.seed) {
      settings.seed = *options.seed;
    } else {
      KVASIR_ASSIGN(settings.seed, new_seed());
    }
    return Conversation::Handle::make(core, [&](engine::Engine& engine) { return engine.open(settings); });
  });
}

Result<StepReport> Executor::step(const Budget& budget) {
  return base::within_memory([&]() -> Result<StepReport> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return api::in_public_words(core->executor->step(budget_of(budget)));
  });
}

Result<StepReport> Executor::run_until_idle(const Budget& budget) {
  return base::within_memory([&]() -> Result<StepReport> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return api::in_public_words(core->executor->run_until_idle(budget_of(budget)));
  });
}

Status Executor::abandon_step() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return core->executor->abandon_step();
  });
}

Status Executor::start() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return core->executor->start();
  });
}

Status Executor::stop() {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return core->executor->stop();
  });
}

CacheInfo Executor::cache() const noexcept {
  return core_ != nullptr ? core_->executor->cache() : CacheInfo{};
}

Metrics Executor::metrics() const noexcept {
  return core_ != nullptr ? core_->executor->metrics() : Metrics{};
}

std::uint64_t Executor::context() const noexcept {
  return core_ != nullptr ? core_->executor->options().context : 0;
}

Result<std::uint64_t> Executor::compact(std::uint64_t budget) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return core->executor->compact(budget);
  });
}

void Executor::close() noexcept {
  if (const std::shared_ptr<api::Core> core = core_) core->executor->close();
}

}  // namespace kvasir
