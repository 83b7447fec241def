#include "engine/encode_job.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {

Result<std::unique_ptr<EncodeJob>> EncodeJob::begin(Engine& engine, ConversationId id,
                                                    std::span<const Token> source) {
  return base::within_memory([&]() -> Result<std::unique_ptr<EncodeJob>> {
    if (!engine.model_->network().reads_source()) {
      return fail(Outcome::kUnsupported, "a model of architecture '" + engine.model_->sizes().architecture +
                                             "' reads no source; prompt it");
    }
    KVASIR_ASSIGN(Conversation* const conversation, engine.find_idle(id));
    KVASIR_TRY(engine.check_length(*conversation, 0, source.size()));
    if (!conversation->queue.empty() || !conversation->dropped.empty() || conversation->drawer != nullptr) {
      return fail(Outcome::kWrongState,
                  "what is queued was meant for another source; clear() the conversation first");
    }
    engine.stop_return(*conversation);
    KVASIR_ASSIGN(pages::EncodeTicket ticket,
                  engine.store_->begin_encode(conversation->table, source.size()));
    const auto index = static_cast<std::size_t>(conversation - engine.conversations_.data());
    std::unique_ptr<EncodeJob> job(new EncodeJob(
        engine, std::move(ticket), std::make_shared<const std::vector<Token>>(source.begin(), source.end())));
    job->index_ = index;
    conversation->reads_source = true;
    conversation->reading_ended = false;
    KVASIR_TRY(job->begin_reading());
    return job;
  });
}

Result<std::unique_ptr<EncodeJob>> EncodeJob::begin_loading(Engine& engine, const Conversation& coming) {
  return base::within_memory([&]() -> Result<std::unique_ptr<EncodeJob>> {
    KVASIR_TRY(engine.check_length(coming, 0, coming.source->size()));
    KVASIR_ASSIGN(pages::EncodeTicket ticket,
                  engine.store_->begin_encode(coming.table, coming.source->size()));
    std::unique_ptr<EncodeJob> job(new EncodeJob(engine, std::move(ticket), coming.source));
    KVASIR_TRY(job->begin_reading());
    return job;
  });
}

Status EncodeJob::begin_reading() {
  const std::span<const Token> text = *source_;
  KVASIR_ASSIGN(encoder_, model::Encoder::begin(*engine_->model_, *engine_->pool_, {&text, 1},
                                                engine_->options_.pass_tokens, cross_cells()));
  return {};
}

// Where the cells that the ticket reserved lie in each layer.
model::CrossCells EncodeJob::cross_cells() const {
  model::CrossCells cells{.arena = &engine_->arena_, .layers = {}};
  const std::vector<model::CacheGroup>& groups = engine_->model_->network().groups;
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    if (groups[group].kind != pages::GroupKind::kCross) continue;
    for (std::uint32_t layer = 0; layer < groups[group].layers.size(); ++layer) {
      std::vector<kv::FrameRun>& runs = cells.layers.emplace_back();
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): there from begin() until commit()
      for (const pages::Run& run : ticket_->new_runs(group)) {
        runs.push_back({.frame = engine_->store_->frame(group, run.page, layer),
                        .cell = run.cell,
                        .count = run.count,
                        .ordinal = run.ordinal});
      }
    }
  }
  return cells;
}

EncodeJob::~EncodeJob() {
  end();
}

Status EncodeJob::check() const {
  if (!index_) return {};
  const Conversation& conversation = engine_->conversations_[*index_];
  if (conversation.open() && !conversation.reading_ended) return {};
  return fail(Outcome::kCancelled, "the conversation was cancelled while its source was read");
}

Result<bool> EncodeJob::advance() {
  KVASIR_TRY(encoder_->advance());
  return encoder_->done();
}

void EncodeJob::commit() noexcept {
  ticket_->commit();  // NOLINT(bugprone-unchecked-optional-access): there from begin() until here
  ticket_.reset();
  if (!index_) return;
  Conversation& conversation = engine_->conversations_[*index_];
  conversation.source = source_;
  conversation.asked_index = false;
  conversation.used = ++engine_->uses_;
  end();
  engine_->drop_gone_blocks();
}

// Gives back what was reserved, where it was not committed, and lets go of the conversation.
void EncodeJob::end() noexcept {
  ticket_.reset();
  if (!index_) return;
  Conversation& conversation = engine_->conversations_[*index_];
  if (!conversation.reads_source) return;
  conversation.reads_source = false;
  if (conversation.life != Conversation::Life::kClosing) return;
  engine_->store_->close(conversation.table);
  engine_->free_slot(conversation);
}

Status Engine::encode(ConversationId id, std::span<const Token> source,
                      const std::function<Verdict(const JobView&)>& between_jobs) {
  KVASIR_ASSIGN(const std::unique_ptr<EncodeJob> job, EncodeJob::begin(*this, id, source));
  while (true) {
    KVASIR_TRY(job->check());
    KVASIR_ASSIGN(const bool done, job->advance());
    if (done) break;
    if (between_jobs && between_jobs(job->view()) == Verdict::kCancel)
      return fail(Outcome::kCancelled, "reading the source was cancelled");
  }
  KVASIR_TRY(job->check());
  job->commit();
  return {};
}

std::span<const pages::Run> Engine::source_of(const Conversation& conversation) const noexcept {
  const std::vector<model::CacheGroup>& groups = model_->network().groups;
  const auto cross = std::ranges::find(groups, pages::GroupKind::kCross, &model::CacheGroup::kind);
  if (cross == groups.end()) return {};
  return store_->runs(conversation.table, static_cast<std::size_t>(cross - groups.begin()));
}

// Whether what is prompted has a source to attend to.
Status Engine::check_source(const Conversation& conversation) const {
  if (conversation.reads_source) {
    return fail(Outcome::kBusy, "the conversation's source is being read; prompt it when that is done");
  }
  if (!model_->network().reads_source() || !source_of(conversation).empty()) return {};
  return fail(Outcome::kWrongState, "this model reads a source before it writes; encode() one first");
}

}  // namespace kvasir::engine
