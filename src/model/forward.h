// One pass: a ragged batch of tokens of many conversations, taken through the layers job by job.
//
// A pass is a sequence of stages; a stage is a number of items that do not depend on one another; a job is a
// range of items, done on all threads of the pool. Between two jobs a pass may be left, resumed or dropped:
// its only traces are the reserved cells it wrote and its workspace.
//
// Invariants (docs/invariants.md)
//   F1  Which items share a job, and which rows share a pass, never shows in a bit.
//   F2  All K and V of a layer are stored before any query of the pass attends in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kv/arena.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "model/model.h"
#include "model/workspace.h"
#include "pages/page_store.h"
#include "parallel/thread_pool.h"

namespace kvasir::model {

// Where a token's cell lies in one group.
struct CellPlace {
  pages::PageId page{};
  std::uint32_t cell = 0;
};

// One token of a pass.
struct PassRow {
  static constexpr std::uint32_t kNoLogits = UINT32_MAX;

  Token token = 0;
  const float* vector = nullptr;  // embedding floats in the place of the token's; they outlive the pass
  std::uint32_t sequence = 0;     // index into Pass::sequences
  std::uint64_t ordinal = 0;      // in its conversation
  std::int64_t position = 0;      // logical: what windows and biases use; rotation takes the shift off
  std::uint32_t logits_row = kNoLogits;  // where its logits go in the workspace
};

// The rows [first_row, first_row + rows) of one conversation, of ascending ordinals, and all cells they may
// see.
struct PassSequence {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  // [group], in order of ordinals, up to and with the rows' own cells. What is made of them has as much
  // memory as they have: who expects more than there are reserves it here.
  std::vector<std::vector<pages::Run>> runs;
};

struct Pass {
  std::vector<PassRow> rows;
  std::vector<PassSequence> sequences;
  std::vector<std::vector<CellPlace>> places;  // [group][row]: reserved cells
  std::uint32_t logit_rows = 0;
};

// Where a pass stands.
struct PassProgress {
  std::uint32_t layer = 0;  // layers finished; the embedding and the output count for none
  std::uint32_t layers = 0;
  std::uint64_t jobs = 0;  // done so far
  bool attended = false;   // whether the last of them was one of attention
};

// Not thread-safe. Model, arena, store, pool and workspace must outlive it; the store's tables and the
// reserved cells must stay as they are from start() until the pass is done or dropped.
class Forward {
 public:
  Forward(const Model& model, kv::Arena& arena, const pages::PageStore& store, parallel::ThreadPool& pool,
          Workspace& workspace);

  // Begins a pass; one that was not finished is dropped. kInvalidArgument where it is larger than the
  // workspace, names a token outside the vocabulary, or its parts do not fit together; kOutOfMemory. On error
  // there is no pass.
  [[nodiscard]] Status start(Pass pass);

  // Does the next job. May be called while !done(). kOutOfMemory ends the pass: it can only be dropped or
  // started anew.
  [[nodiscard]] Status advance();

  // The pass of before, for its memory; there is none then. Not while one is under way.
  [[nodiscard]] Pass take_pass() noexcept { return std::move(pass_); }

  [[nodiscard]] bool done() const noexcept { return stage_ == Stage::kDone; }
  [[nodiscard]] PassProgress progress() const noexcept;

  // The logits of a finished pass's logits row, vocabulary floats. Valid until the next start().
  [[nodiscard]] std::span<const float> logits(std::uint32_t logits_row) const noexcept {
    return workspace_->logits.row(logits_row);
  }
  [[nodiscard]] const Pass& pass() const noexcept { return pass_; }

 private:
  // In the order of a pass. Dense layers take kGateUp to kDown, layers of experts kRouter to kCombine.
  enum class Stage : std::uint8_t {
    kEmbed,
    kMixerNorm,
    kQueryKeyValue,
    kStore,
    kAttend,
    kPackAttended,
    kMixerOutput,
    kFeedForwardNorm,
    kGateUp,
    kActivate,
    kDown,
    kRouter,
    kRoute,
    kExpertGateUp,
    kExpertActivate,
    kExpertDown,
    kCombine,
    kOutputNorm,
    kOutput,
    kDone,
  };

  // Rows of one sequence that attend together, with `heads` of the query heads of each KV head.
  struct AttentionBlock {
    std::uint32_t sequence = 0;
    std::uint32_t first_row = 0;
    std::uint32_t rows = 0;
    std::uint32_t first_head = 0;
    std::uint32_t heads = 0;
  };

  // A product of a stage. Its items are blocks of panels times blocks of columns.
  struct Product {
    const simd::Panels* weight = nullptr;
    std::span<const float> bias;
    ProductInput input;
    simd::ProductOutput output;

    [[nodiscard]] std::size_t panel_blocks() const noexcept;
    [[nodiscard]] std::size_t items() const noexcept;
  };

  // A key is stored turned by its storage position, and a span's shift is what its logical positions are
  // beyond that. So a row's query is turned once for each shift among the spans it sees: a variant. Variants
  // of all rows are numbered one behind the other; the row's own key is turned like the variant of its own
  // span.
  struct RowVariants {
    std::uint32_t first = 0;
    std::uint32_t own = 0;
  };

  [[nodiscard]] Status check(const Pass& pass) const;
  void number_variants();
  [[nodiscard]] const Layer& layer() const noexcept { return model_->network().layers[layer_]; }
  [[nodiscard]] const GatedFeedForward* dense() const noexcept {
    return std::get_if<GatedFeedForward>(&layer().feed_forward);
  }
  [[nodiscard]] const Experts& experts() const noexcept {
    return *std::get_if<Experts>(&layer().feed_forward);
  }
  [[nodiscard]] std::size_t row_count() const noexcept { return pass_.rows.size(); }

  // The stage after this one, entering the next layer where it ends one.
  [[nodiscard]] Stage following() noexcept;
  [[nodiscard]] Stage end_of_layer() noexcept;
  void enter(Stage stage);

  // What enter() prepares: the number of items and how many of them make a job.
  void plan_items(std::size_t items, std::size_t cost_of_item) noexcept;
  void plan_stage_products();
  void plan_expert_products();
  void plan_attention();
  void add_product(const simd::Panels& weight, std::span<const float> bias, const ProductInput& input,
                   simd::ProductOutput output);
  void add_product(const Linear& linear, const ProductInput& input, simd::ProductOutput output) {
    add_product(linear.weight, linear.bias, input, output);
  }

  // What a job does to one item of this stage.
  void run_item(std::size_t item) noexcept;
  void run_product_item(std::size_t item) noexcept;
  void run_row(std::size_t row) noexcept;
  void embed(std::size_t row) noexcept;
  void norm_row(const Norm& norm, std::size_t row, std::size_t into) noexcept;
  void store(std::size_t row) noexcept;
  void norm_heads(std::span<float> heads, const std::optional<Norm>& norm) const noexcept;
  void turn_heads(std::span<float> heads, std::size_t variant) const noexcept;
  void attend(std::size_t item) noexcept;
  void combine(std::size_t row) noexcept;

  const Model* model_;
  kv::Arena* arena_;
  const pages::PageStore* store_;
  parallel::ThreadPool* pool_;
  Workspace* workspace_;
  parallel::RangeFunction run_range_;  // run_item over a range; made once, so that a job allocates nothing

  Pass pass_;
  std::vector<std::uint32_t> logits_source_;       // [logits row]: its row
  std::vector<std::vector<std::int64_t>> shifts_;  // [sequence]: the different shifts of its spans
  std::vector<RowVariants> variants_;              // [row]
  Stage stage_ = Stage::kDone;
  std::uint32_t layer_ = 0;
  std::uint64_t jobs_ = 0;
  bool attended_ = false;  // in the last job
  std::size_t items_ = 0;  // of this stage
  std::size_t next_item_ = 0;
  std::size_t job_items_ = 1;
  std::size_t first_item_ = 0;  // of the job at hand
  std::vector<AttentionBlock> blocks_;
  std::vector<Product> products_;
};

}  // namespace kvasir::model
