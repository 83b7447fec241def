// What the public handles hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/executor.h"
#include "engine/generation.h"
#include "kvasir/conversation.h"
#include "kvasir/generation.h"
#include "kvasir/model.h"
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

}  // namespace api

struct Conversation::Handle {
  std::shared_ptr<api::Core> core;
  std::unique_ptr<engine::PostedClose> node;  // what the destructor posts; nothing once closed
  ConversationId id{};

  [[nodiscard]] bool open() const noexcept { return node != nullptr; }
};

struct Generation::State {
  std::shared_ptr<api::Core> core;
  std::shared_ptr<engine::TextGeneration> generation;
  ConversationId id{};
};

}  // namespace kvasir
