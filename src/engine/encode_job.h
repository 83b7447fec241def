// A source on its way through the encoder, for one conversation: cells are reserved for what it becomes, and
// nothing of it shows before commit().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "model/encoder.h"
#include "pages/encode.h"

namespace kvasir::engine {

// Made, committed and ended under the lock of its engine, which it must not outlive.
class EncodeJob {
 public:
  // Reserves cells and begins to read. kNotFound; kUnsupported in a model that reads no source;
  // kInvalidArgument for no token, or one outside the vocabulary; kWrongState where the conversation has
  // tokens, or something queued, which belong to another source, or lies in a tier; kBusy while it is part of
  // an open step or reads already; kNoSpace with the numbers, also beyond the context; kOutOfMemory. On error
  // nothing has changed.
  [[nodiscard]] static Result<std::unique_ptr<EncodeJob>> begin(Engine& engine, ConversationId id,
                                                                std::span<const Token> source);

  // The same for a conversation that a load keeps and nobody sees yet. The load outlives it.
  [[nodiscard]] static Result<std::unique_ptr<EncodeJob>> begin_loading(Engine& engine,
                                                                        const Conversation& coming);
  EncodeJob(const EncodeJob&) = delete;
  EncodeJob& operator=(const EncodeJob&) = delete;
  // Where it was not committed the conversation is what it was.
  ~EncodeJob();

  // kCancelled where the conversation was cancelled or closed since it began.
  [[nodiscard]] Status check() const;

  // Does the next job; whether that was the last. Where it writes cells, nothing else may touch cells
  // meanwhile; else it may run beside any call. kOutOfMemory.
  [[nodiscard]] Result<bool> advance();
  [[nodiscard]] bool writes_cells() const noexcept { return encoder_->writes_cells(); }
  [[nodiscard]] JobView view() const noexcept { return {.passes = 1, .progress = encoder_->progress()}; }

  // The conversation attends to it from now on. Cannot fail.
  void commit() noexcept;

 private:
  using Source = std::shared_ptr<const std::vector<Token>>;
  EncodeJob(Engine& engine, pages::EncodeTicket ticket, Source source)
      : engine_(&engine), ticket_(std::move(ticket)), source_(std::move(source)) {}
  [[nodiscard]] Status begin_reading();
  [[nodiscard]] model::CrossCells cross_cells() const;
  void end() noexcept;

  Engine* engine_;
  std::optional<std::size_t> index_;  // of its conversation, unless that is being loaded
  std::optional<pages::EncodeTicket> ticket_;
  Source source_;
  std::unique_ptr<model::Encoder> encoder_;
};

}  // namespace kvasir::engine
