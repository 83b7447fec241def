// The stages that a pass goes through, as a list made once for a model.
//
// A stage is a number of items that do not depend on one another. It is entered when all items of the stages
// before are done: `plan` then says, on the calling thread, how many items there are and what one costs. The
// items are done on all threads of the pool, some of them a job; between two jobs a pass may be left, resumed
// or dropped. So a stage's only traces are the workspace, the reserved cells and states, and what a stage
// behind it reads there.
//
// To add a mixer: describe it as data in layers.h, as one more alternative of PartBody; write its two
// functions (part_kinds.h) in a file of its own, with the rows it computes in as a struct of its own in
// Workspace; and let architecture files (arch/) make it. Its first stage reads workspace.normed, one row for
// each token of the pass, its last leaves workspace.product. What it keeps from token to token lies in the
// cells or states that the pass names (pass.h), never in the stages. Rules, all of them tested from outside
// by comparing bits:
//   - an item's result depends on its own rows and on what its conversation's cells or state hold, in one
//     order of sums, whatever rows share the pass (F1);
//   - an item writes what no other item of its stage reads or writes;
//   - `plan` may take memory, but none in a pass that is no larger than one before; items take none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "kv/arena.h"
#include "model/pass.h"
#include "model/sights.h"
#include "model/workspace.h"
#include "pages/page_store.h"

namespace kvasir::model {

// The pass under way, as its stages see it. Constant while there are jobs of it, but for the workspace.
struct OpenPass {
  // A key is stored turned by its storage position, and a span's shift is what its logical positions are
  // beyond that. So a row's query is turned once for each shift among the spans it sees: a variant. Variants
  // of all rows are numbered one behind the other; the row's own key is turned like the variant of its own
  // span.
  struct RowVariants {
    std::uint32_t first = 0;
    std::uint32_t own = 0;
  };

  const Network* network = nullptr;
  kv::Arena* arena = nullptr;
  const pages::PageStore* store = nullptr;  // null where pages are named as their frames are
  std::vector<kv::StateLayout> states;      // [group]: of recurrent ones, else empty
  Workspace* workspace = nullptr;

  Pass pass;
  std::vector<std::uint32_t> logits_source;       // [logits row]: its row
  std::vector<std::vector<std::int64_t>> shifts;  // [sequence]: the different shifts of its spans
  std::vector<RowVariants> variants;              // [row]
  Sights sights;                                  // what each row may see of each group

  // The frame of a page of a group's layer.
  [[nodiscard]] pages::FrameId frame(const CellAttention& cells, pages::PageId page) const noexcept {
    if (store == nullptr) return pages::FrameId{static_cast<std::uint32_t>(page)};
    return store->frame(cells.group, page, cells.layer_in_group);
  }
  // The logical position of a run's cell. Without a store positions are ordinals.
  [[nodiscard]] std::int64_t position(std::size_t group, const pages::Run& run,
                                      std::uint32_t i) const noexcept {
    if (store == nullptr) return static_cast<std::int64_t>(run.ordinal + i);
    return static_cast<std::int64_t>(store->position(group, run.page, run.cell + i)) + run.shift;
  }

  [[nodiscard]] std::size_t rows() const noexcept { return pass.rows.size(); }
  [[nodiscard]] const std::vector<std::int64_t>& shifts_of(std::size_t row) const noexcept {
    return shifts[pass.rows[row].sequence];
  }
};

// How many multiply-adds of bytes cost as much as one of floats.
inline constexpr std::size_t kByteGain = 4;

// The items of the stage at hand, as its plan() adds them.
class StageItems {
 public:
  explicit StageItems(std::size_t threads) : threads_(threads) {}

  // So many items, of about so many multiply-adds each.
  void plan(std::size_t items, std::size_t cost_of_item) noexcept;

  // A product, all of its rows. Several may be added; their blocks of panels times blocks of columns are the
  // items.
  void add_product(const simd::Panels& weight, std::span<const float> bias, const ProductInput& input,
                   simd::ProductOutput output);
  void add_product(const Linear& linear, const ProductInput& input, simd::ProductOutput output) {
    add_product(linear.weight, linear.bias, input, output);
  }

  // Threads that do them.
  [[nodiscard]] std::size_t threads() const noexcept { return threads_; }

  void clear() noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return items_; }
  [[nodiscard]] std::size_t of_job() const noexcept { return job_items_; }
  [[nodiscard]] bool are_products() const noexcept { return !products_.empty(); }
  void multiply(std::size_t item) const noexcept;

 private:
  struct Product {
    const simd::Panels* weight = nullptr;
    std::span<const float> bias;
    ProductInput input;
    simd::ProductOutput output;

    [[nodiscard]] std::size_t items() const noexcept;
  };

  std::vector<Product> products_;
  std::size_t threads_;
  std::size_t items_ = 0;
  std::size_t job_items_ = 1;
};

struct Stage {
  std::function<void(OpenPass&, StageItems&)> plan;
  std::function<void(OpenPass&, std::size_t item)> run;  // one item, on any thread; not of products
  std::uint32_t layer = 0;                               // layers that are finished before it
  bool attends = false;                                  // reads the cells of attention
};

class StageList {
 public:
  // One item for each row of the pass, of about so many multiply-adds.
  void add_rows(std::size_t cost, std::function<void(OpenPass&, std::size_t row)> run);

  // Products.
  void add_products(std::function<void(OpenPass&, StageItems&)> plan) { add({std::move(plan), {}}); }

  void add(Stage stage) {
    stage.layer = layer_;
    stages_.push_back(std::move(stage));
  }

  // Stages added from here on come when so many layers are finished.
  void begin_layer(std::uint32_t layer) noexcept { layer_ = layer; }

  [[nodiscard]] std::size_t size() const noexcept { return stages_.size(); }
  [[nodiscard]] const Stage& operator[](std::size_t index) const noexcept { return stages_[index]; }

 private:
  std::vector<Stage> stages_;
  std::uint32_t layer_ = 0;
};

}  // namespace kvasir::model
