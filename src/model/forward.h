// One pass: a ragged batch of tokens of many conversations, taken through the layers job by job.
//
// A pass goes through the stages of its model (stages.h), which are listed once; a job is a range of a
// stage's items, done on all threads of the pool. Between two jobs a pass may be left, resumed or dropped:
// its only traces are the reserved cells and states it wrote and its workspace.
//
// Invariants (docs/invariants.md)
//   F1  Which items share a job, and which rows share a pass, never shows in a bit.
//   F2  All K and V of a layer are stored before any query of the pass attends in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/stages.h"
#include "model/workspace.h"
#include "pages/page_store.h"
#include "parallel/thread_pool.h"

namespace kvasir::model {

// Not thread-safe. Model, arena, store, pool and workspace must outlive it; the store's tables and the
// reserved cells must stay as they are from start() until the pass is done or dropped.
class Forward {
 public:
  // May throw std::bad_alloc.
  Forward(const Model& model, kv::Arena& arena, const pages::PageStore& store, parallel::ThreadPool& pool,
          Workspace& workspace);

  // Begins a pass; one that was not finished is dropped. kInvalidArgument where it is larger than the
  // workspace, names a token outside the vocabulary or a position beyond those that were learned, or its
  // parts do not fit together; kOutOfMemory. On error there is no pass.
  [[nodiscard]] Status start(Pass pass);

  // Does the next job. May be called while !done(). kOutOfMemory ends the pass: it can only be dropped or
  // started anew.
  [[nodiscard]] Status advance();

  // The pass of before, for its memory; there is none then. Not while one is under way.
  [[nodiscard]] Pass take_pass() noexcept { return std::move(open_.pass); }

  [[nodiscard]] bool done() const noexcept { return stage_ == end_; }
  [[nodiscard]] PassProgress progress() const noexcept;

  // The logits of a finished pass's logits row, vocabulary floats. Valid until the next start().
  [[nodiscard]] std::span<const float> logits(std::uint32_t logits_row) const noexcept {
    return workspace_->logits.row(logits_row);
  }
  [[nodiscard]] const Pass& pass() const noexcept { return open_.pass; }

 private:
  void list_stages();
  void add_part(const Part& part, const Part* before);
  void add_output(const Part& last);
  [[nodiscard]] Status check(const Pass& pass) const;
  [[nodiscard]] Status check_row(const PassRow& row) const;
  [[nodiscard]] Status check_states(const Pass& pass, const PassSequence& sequence) const;
  void number_variants();
  [[nodiscard]] std::int64_t own_shift(const PassSequence& sequence) const noexcept;
  // Enters the stage, or the next one that has items.
  void enter(std::size_t stage);

  const Model* model_;
  parallel::ThreadPool* pool_;
  Workspace* workspace_;
  StageList stages_;
  std::size_t output_ = 0;             // stages before those of the output
  parallel::RangeFunction run_range_;  // items of a job; made once, so that a job allocates nothing

  OpenPass open_;
  StageItems items_;
  std::size_t stage_ = 0;
  std::size_t end_ = 0;  // of the stages that this pass goes through
  std::uint64_t jobs_ = 0;
  bool attended_ = false;  // in the last job
  std::size_t next_item_ = 0;
  std::size_t first_item_ = 0;  // of the job at hand
};

}  // namespace kvasir::model
