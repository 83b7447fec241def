// What the public handles hold, and how their calls reach the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "archive/store.h"
#include "engine/executor.h"
#include "engine/generation.h"
#include "kvasir/archive.h"
#include "kvasir/conversation.h"
#include "kvasir/executor.h"
#include "kvasir/generation.h"
#include "kvasir/model.h"
#include "kvasir/result.h"
#include "model/model.h"
#include "parallel/thread_pool.h"
#include "text/tokenizer.h"

namespace kvasir {

namespace api {

struct ModelParts {
  std::shared_ptr<parallel::ThreadPool> pool;  // shared by all executors of the model
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const model::Model> model;
};

// What an executor and its conversations share.
class Core {
 public:
  Core(std::shared_ptr<const ModelParts> its_model, std::shared_ptr<engine::Executor> its_executor)
      : model(std::move(its_model)), executor(std::move(its_executor)) {}

  const std::shared_ptr<const ModelParts> model;
  const std::shared_ptr<engine::Executor> executor;
};

// What is behind handles: for calls across them, and for tests that ask whether a call has changed anything.
struct Inside {
  [[nodiscard]] static const std::shared_ptr<Core>& core(const Executor& executor) noexcept {
    return executor.core_;
  }
  // kWrongState for one that was moved away.
  [[nodiscard]] static Result<archive::Store*> store(const ArchiveStore& store);
};

// A conversation for as long as a call on it lasts: a callback may destroy the handle meanwhile.
struct Used {
  std::shared_ptr<Core> core;
  ConversationId id{};

  [[nodiscard]] engine::Executor& executor() const noexcept { return *core->executor; }
};

// The ids of a text, behind `begin` where the options want that; kAuto: where it is usual. A text that spells
// it does not get it twice. As Model::tokenize.
[[nodiscard]] Result<std::vector<Token>> tokens_of(const text::Tokenizer& tokenizer, std::string_view text,
                                                   const TextOptions& options, std::optional<Token> begin,
                                                   bool usual);

// An error of the engine in the words of this API: whose conversation is not there any more was closed, and
// settings have the names of the options here.
[[nodiscard]] Error in_public_words(Error error);
[[nodiscard]] StepReport in_public_words(StepReport report);

template <class T>
[[nodiscard]] Result<T> in_public_words(Result<T> result) {
  if (!result) return fail(in_public_words(std::move(result).error()));
  if constexpr (std::is_same_v<T, StepReport>) {
    return in_public_words(*std::move(result));
  } else {
    return result;
  }
}

}  // namespace api

struct Conversation::Handle {
  explicit Handle(std::shared_ptr<api::Core> its_core) noexcept : core(std::move(its_core)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // Closes the conversation where close() has not.
  ~Handle();

  // What the destructor posts; nothing from the first call on.
  [[nodiscard]] std::unique_ptr<engine::PostedClose> take_node() noexcept {
    return std::unique_ptr<engine::PostedClose>(node.exchange(nullptr));
  }

  // Nothing, or kWrongState, where close() was called, or where the conversation was moved away.
  [[nodiscard]] static std::optional<api::Used> find(const std::unique_ptr<Handle>& handle) noexcept;
  [[nodiscard]] static Result<api::Used> use(const std::unique_ptr<Handle>& handle);

  // A handle that names nothing yet, with all memory that it will need; and what it is once named. Throws
  // std::bad_alloc.
  struct Unnamed {
    explicit Unnamed(const std::shared_ptr<api::Core>& core)
        : handle(std::make_unique<Handle>(core)), node(std::make_unique<engine::PostedClose>()) {}
    [[nodiscard]] Conversation named(ConversationId id) && noexcept;
    std::unique_ptr<Handle> handle;
    std::unique_ptr<engine::PostedClose> node;
  };

  // A conversation that `open` makes in the engine.
  template <class Open>
  [[nodiscard]] static Result<Conversation> make(const std::shared_ptr<api::Core>& core, const Open& open);

  const std::shared_ptr<api::Core> core;
  ConversationId id{};
  std::atomic<engine::PostedClose*> node = nullptr;  // nothing before it is open and once it is closed
};

// All memory is taken before the engine changes. Throws std::bad_alloc.
template <class Open>
Result<Conversation> Conversation::Handle::make(const std::shared_ptr<api::Core>& core, const Open& open) {
  Unnamed unnamed(core);
  const Result<ConversationId> id = api::in_public_words(core->executor->change(open));
  if (!id) return fail(id.error());
  return std::move(unnamed).named(*id);
}

inline Conversation Conversation::Handle::Unnamed::named(ConversationId its_id) && noexcept {
  handle->id = its_id;
  node->id = its_id;
  handle->node = node.release();
  return Conversation(std::move(handle));
}

struct Generation::State {
  std::shared_ptr<api::Core> core;
  std::shared_ptr<engine::TextGeneration> generation;
  ConversationId id{};
};

}  // namespace kvasir
