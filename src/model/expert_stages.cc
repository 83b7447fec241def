// The stages of experts: scores, the choice, then as a feed-forward part for all assignments of each expert,
// and the weighted sums.

#include <algorithm>

#include "base/try.h"
#include "model/expert_routing.h"
#include "model/part_kinds.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

void choose(const Experts& part, Workspace& w, std::size_t rows) {
  ExpertScratch& scratch = w.experts;
  route(scratch, rows, part.experts.size(), part.routing);
  const std::size_t width = part.router.in();
  for (std::size_t i = 0; i < rows * part.routing.used; ++i) {
    std::ranges::copy(w.normed.row(scratch.assignments[i].row).first(width), scratch.input.row(i).begin());
    scratch.input.pack(i, width);
  }
}

void activate(const Experts& part, ExpertScratch& scratch, std::size_t assignment) {
  const FeedForward& any = part.experts.front();
  const std::size_t width = any.down.in();
  simd::activate_gate(any.activation, scratch.gate.row(assignment).first(width),
                      scratch.up.row(assignment).first(width));
  scratch.gate.pack(assignment, width);
}

// The weighted sum of a row's experts, in ascending order of experts.
void combine(const Experts& part, Workspace& w, std::size_t row) {
  const ExpertScratch& scratch = w.experts;
  const std::span<float> sum = w.product.row(row);
  std::ranges::fill(sum, 0.0F);
  for (std::size_t i = 0; i < part.routing.used; ++i) {
    const std::uint32_t assignment = scratch.of_row[row * part.routing.used + i];
    const float weight = scratch.assignments[assignment].weight;
    const std::span<const float> output = scratch.output.row(assignment);
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * output[d];
  }
}

}  // namespace

Status reserve(const Experts& part, Workspace& workspace) {
  ExpertScratch& scratch = workspace.experts;
  const std::size_t rows = workspace.limits.rows;
  const std::size_t assignments = rows * part.routing.used;
  const FeedForward& any = part.experts.front();
  KVASIR_TRY(grow(scratch.router, rows, part.experts.size()));
  KVASIR_TRY(grow(scratch.choice, rows, part.experts.size()));
  KVASIR_TRY(grow(scratch.input, assignments, part.router.in(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.gate, assignments, any.down.in(), workspace.as_bytes));
  KVASIR_TRY(grow(scratch.up, assignments, any.down.in()));
  KVASIR_TRY(grow(scratch.output, assignments, any.down.out()));
  scratch.assignments.resize(std::max(scratch.assignments.size(), assignments));
  scratch.of_row.resize(std::max(scratch.of_row.size(), assignments));
  scratch.chosen.resize(std::max(scratch.chosen.size(), assignments));
  scratch.loads.reserve(part.experts.size());
  return {};
}

void add_stages(const Experts& part, StageList& stages) {
  const std::size_t width = part.experts.front().down.in();
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.router, w.normed.columns(0, open.rows()), w.experts.router.output());
  });
  stages.add({.plan = [](OpenPass&, StageItems& items) { items.plan(1, 1); },
              .run = [&part](OpenPass& open, std::size_t) { choose(part, *open.workspace, open.rows()); }});
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    ExpertScratch& scratch = open.workspace->experts;
    for (const ExpertLoad& load : scratch.loads) {
      const FeedForward& expert = part.experts[load.expert];
      const ProductInput input = scratch.input.columns(load.first, load.count);
      items.add_product(*expert.gate, input, scratch.gate.output(load.first));
      items.add_product(expert.up, input, scratch.up.output(load.first));
    }
  });
  stages.add(
      {.plan = [&part, width](OpenPass& open,
                              StageItems& items) { items.plan(open.rows() * part.routing.used, width * 8); },
       .run = [&part](OpenPass& open, std::size_t item) { activate(part, open.workspace->experts, item); }});
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    ExpertScratch& scratch = open.workspace->experts;
    for (const ExpertLoad& load : scratch.loads) {
      items.add_product(part.experts[load.expert].down, scratch.gate.columns(load.first, load.count),
                        scratch.output.output(load.first));
    }
  });
  stages.add_rows(part.router.in() * 8,
                  [&part](OpenPass& open, std::size_t row) { combine(part, *open.workspace, row); });
}

}  // namespace kvasir::model
