#include "engine/engine.h"

#include <algorithm>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/open_step.h"

namespace kvasir::engine {
namespace {

Status check_options(const EngineOptions& options) {
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

// The arena touches all memory it takes: a system that is out of it ends the process instead of saying so.
Status check_memory(const PoolShape& shape, const EngineOptions& options) {
  const std::uint64_t available = options.memory ? *options.memory : base::available_memory();
  const bool unknown = !options.memory && available == 0;
  if (unknown || shape.bytes <= available) return {};
  return fail(Outcome::kOutOfMemory,
              "a pool of " + std::to_string(options.pool) + " tokens takes " + std::to_string(shape.bytes) +
                  " bytes, " + std::to_string(available) +
                  " are available; a smaller pool or cache type helps",
              {.wanted = shape.bytes, .available = available, .setting = "--pool"});
}

}  // namespace

PoolWishes wishes_of(const EngineOptions& options) {
  return {.tokens = options.pool,
          .context = options.context,
          .states = options.states,
          .page_cells = options.page_cells,
          .pass_tokens = options.pass_tokens,
          .types = options.types};
}

Engine::Engine(std::shared_ptr<const model::Model> model, parallel::ThreadPool& pool, EngineOptions options,
               const base::Clock& clock)
    : model_(std::move(model)),
      pool_(&pool),
      options_(std::move(options)),
      clock_(&clock),
      rows_(model_->sizes().vocabulary) {}

Engine::~Engine() {
  abandon_step();
}

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const model::Model> model,
                                               parallel::ThreadPool& pool, const EngineOptions& options,
                                               const base::Clock& clock) {
  return base::within_memory([&]() -> Result<std::unique_ptr<Engine>> {
    KVASIR_TRY(check_options(options));
    std::unique_ptr<Engine> engine(new Engine(std::move(model), pool, options, clock));
    const model::Network& network = engine->model_->network();
    if (network.position_embedding)
      engine->options_.context = std::min<std::uint64_t>(options.context, network.position_embedding->rows());
    KVASIR_ASSIGN(PoolShape shape, pool_shape(network, wishes_of(options)));
    KVASIR_TRY(check_memory(shape, options));
    KVASIR_ASSIGN(engine->store_, pages::PageStore::create(shape.spec));
    KVASIR_ASSIGN(engine->arena_, kv::Arena::create(shape.geometry, options.types, options.page_cells,
                                                    shape.spec.frames, shape.frame_bytes));
    engine->arena_.touch(pool);
    engine->states_ = std::move(shape.states);
    const model::PassLimits limits{options.pass_tokens, std::min(options.logit_rows, options.pass_tokens)};
    engine->options_.logit_rows = limits.logit_rows;
    KVASIR_ASSIGN(engine->workspace_, model::Workspace::create(*engine->model_, limits));
    if (network.decodes()) {
      engine->forward_ = std::make_unique<model::Forward>(*engine->model_, engine->arena_, *engine->store_,
                                                          pool, engine->workspace_);
    }
    if (options.share_prefixes) KVASIR_TRY(engine->store_->make_index_room());
    engine->capacity_ = engine->store_->tokens_free();
    engine->out_of_memory_ = std::make_shared<const Error>(Outcome::kOutOfMemory, "out of memory");
    engine->vectors_are_gone_ = std::make_shared<const Error>(
        Outcome::kUnsupported,
        "embedding vectors, which are not kept, would have to be computed again; accept all or none of them");
    KVASIR_TRY(engine->create_tiers());
    base::log(LogLevel::kInfo, [&] {
      return "made a cache of " + std::to_string(engine->capacity_) + " tokens, " +
             std::to_string(shape.bytes) + " bytes, pages of " + std::to_string(options.page_cells) +
             " cells; tiers of " + std::to_string(options.tiers.memory_bytes) + " bytes in memory and " +
             std::to_string(options.tiers.disk_bytes) + " on disk";
    });
    return engine;
  });
}

// The memory tier takes a whole page of any group, or nothing could ever be spilled.
Status Engine::create_tiers() {
  const tiers::TierSizes& sizes = options_.tiers;
  if ((sizes.memory_bytes == 0 && sizes.disk_bytes == 0) || !model_->network().decodes()) return {};
  std::uint64_t largest = 0;
  for (std::uint32_t group = 0; group < store_->group_count(); ++group)
    largest = std::max(largest, cell_bytes(group) * store_->group(group).page_cells());
  if (sizes.memory_bytes > 0 && sizes.memory_bytes < largest) {
    return fail(Outcome::kInvalidArgument,
                "a page of cells has " + std::to_string(largest) + " bytes, the memory tier only " +
                    std::to_string(sizes.memory_bytes),
                {.wanted = largest, .limit = sizes.memory_bytes, .setting = "memory_tier_bytes"});
  }
  auto made = tiers::Tiers::create(sizes, *options_.files);
  if (!made && made.error().code() == Outcome::kNotFound) {
    return fail(Outcome::kInvalidArgument, std::move(made).error().message(), {.setting = "spill_directory"});
  }
  KVASIR_ASSIGN(tiers_, std::move(made));
  return {};
}

const Conversation* Engine::peek(ConversationId id) const noexcept {
  const auto number = static_cast<std::uint64_t>(id);
  const std::uint64_t index = number & UINT32_MAX;
  if (index >= conversations_.size()) return nullptr;
  const Conversation& conversation = conversations_[index];
  return conversation.open() && conversation.generation == number >> 32 ? &conversation : nullptr;
}

Result<std::size_t> Engine::index_of(ConversationId id) const {
  if (const Conversation* const found = peek(id))
    return static_cast<std::size_t>(found - conversations_.data());
  return fail(Outcome::kNotFound,
              "there is no conversation " + std::to_string(static_cast<std::uint64_t>(id)));
}

Result<const Conversation*> Engine::find(ConversationId id) const {
  KVASIR_ASSIGN(const std::size_t index, index_of(id));
  return &conversations_[index];
}

Result<Conversation*> Engine::find(ConversationId id) {
  KVASIR_ASSIGN(const std::size_t index, index_of(id));
  return &conversations_[index];
}

Result<Conversation*> Engine::find_idle(ConversationId id) {
  KVASIR_ASSIGN(Conversation* const found, find(id));
  if (found->in_step) {
    return fail(Outcome::kBusy, "conversation " + std::to_string(static_cast<std::uint64_t>(id)) +
                                    " is part of an open step; finish or abandon the step first");
  }
  if (found->reads_source)
    return fail(Outcome::kBusy, "the conversation's source is being read; cancel it, or wait for that");
  return found;
}

std::size_t Engine::new_slot() {
  const auto free = std::ranges::find(conversations_, Conversation::Life::kFree, &Conversation::life);
  const auto index = static_cast<std::size_t>(free - conversations_.begin());
  if (free == conversations_.end()) conversations_.emplace_back();
  return index;
}

// The slot's next conversation has another id.
void Engine::free_slot(Conversation& conversation) noexcept {
  const std::uint32_t next = conversation.generation + 1;
  conversation = Conversation();
  conversation.generation = next;
}

Result<ConversationId> Engine::open(const ConversationSettings& settings) {
  return base::within_memory([&]() -> Result<ConversationId> {
    if (!model_->network().decodes()) {
      return fail(Outcome::kUnsupported, "a model of architecture '" + model_->sizes().architecture +
                                             "' makes vectors of texts and holds no conversations; embed()");
    }
    const std::size_t index = new_slot();
    KVASIR_ASSIGN(const pages::TableId table, store_->open());
    Conversation& conversation = conversations_[index];
    conversation.life = Conversation::Life::kOpen;
    conversation.table = table;
    conversation.settings = settings;
    return id_of(conversation, index);
  });
}

Status Engine::close(ConversationId id) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    end_generation(*conversation, nullptr);
    stop_return(*conversation);
    if (conversation->in_step) withdraw(*conversation);
    if (conversation->in_step || conversation->reads_source) {
      conversation->life = Conversation::Life::kClosing;
      return {};
    }
    store_->close(conversation->table);
    free_slot(*conversation);
    drop_gone_blocks();
    return {};
  });
}

Result<ConversationSettings*> Engine::settings(ConversationId id) {
  return base::within_memory([&]() -> Result<ConversationSettings*> {
    KVASIR_ASSIGN(Conversation* const conversation, find(id));
    return &conversation->settings;
  });
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
  KVASIR_ASSIGN(const std::shared_ptr<const Row> row, this->row(id, 0));
  return std::span<const float>(*row);  // the conversation holds it too
}

Result<std::shared_ptr<const Row>> Engine::row(ConversationId id, std::uint64_t back) const {
  return base::within_memory([&]() -> Result<std::shared_ptr<const Row>> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    const auto none = [](const std::string& what) { return fail(Outcome::kNeedsPrompt, what); };
    if (!conversation->queue.empty())
      return none("there are no logits for the last token yet; step, or cancel what is queued");
    const std::uint64_t length = conversation->length();
    if (length > 0 && back >= length) {
      return fail(Outcome::kInvalidArgument,
                  "the conversation has " + std::to_string(length) + " tokens, none is " +
                      std::to_string(back) + " before the last",
                  {.wanted = back, .limit = length - 1});
    }
    if (back == 0 && conversation->last_logits != nullptr) return conversation->last_logits;
    if (back >= length || back == 0)
      return none("there are no logits for the last token; prompt the conversation and step");
    const std::uint64_t ordinal = length - 1 - back;
    const auto kept = std::ranges::find(conversation->kept, ordinal, &KeptRow::ordinal);
    if (kept == conversation->kept.end())
      return none("the logits of that token were not kept; prompt it with every logit wanted");
    return kept->row;
  });
}

Result<std::vector<float>> Engine::take_logits(ConversationId id) {
  return base::within_memory([&]() -> Result<std::vector<float>> {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    std::vector<float> all;
    all.reserve(conversation->kept.size() * model_->sizes().vocabulary);
    for (const KeptRow& kept : conversation->kept) all.insert(all.end(), kept.row->begin(), kept.row->end());
    conversation->kept.clear();
    return all;
  });
}

Result<pages::Holdings> Engine::holdings(ConversationId id) const {
  return base::within_memory([&]() -> Result<pages::Holdings> {
    KVASIR_ASSIGN(const Conversation* const conversation, find(id));
    pages::Holdings holdings = store_->holdings(conversation->table);
    if (conversation->borrowed > 0) holdings = {.promised = holdings.promised};
    return holdings;
  });
}

}  // namespace kvasir::engine
