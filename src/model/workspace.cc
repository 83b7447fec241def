#include "model/workspace.h"

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::model {
namespace {

// The widest buffers that any layer needs.
struct Widths {
  std::size_t query = 0, key = 0, value = 0, attended = 0, feed_forward = 0;
  std::size_t experts = 0, experts_used = 0, expert_feed_forward = 0;
};

Widths widths_of(const Network& network) {
  Widths widths;
  for (const Layer& layer : network.layers) {
    widths.query = std::max(widths.query, layer.mixer.query.out());
    widths.key = std::max(widths.key, layer.mixer.key.out());
    widths.value = std::max(widths.value, layer.mixer.value.out());
    widths.attended = std::max(widths.attended, layer.mixer.output.in());
    if (const auto* dense = std::get_if<GatedFeedForward>(&layer.feed_forward)) {
      widths.feed_forward = std::max(widths.feed_forward, dense->gate.out());
    } else if (const auto* experts = std::get_if<Experts>(&layer.feed_forward)) {
      widths.experts = std::max(widths.experts, experts->experts.size());
      widths.experts_used = std::max<std::size_t>(widths.experts_used, experts->used);
      widths.expert_feed_forward = std::max(widths.expert_feed_forward, experts->experts.front().gate.out());
    }
  }
  return widths;
}

void add_form(const simd::Panels& weight, ByteForms& forms) {
  forms.of32 = forms.of32 || weight.activation_block() == 32;
  forms.of256 = forms.of256 || weight.activation_block() == 256;
}

void add_forms(const GatedFeedForward& part, ByteForms& forms) {
  for (const Linear* linear : {&part.gate, &part.up, &part.down}) add_form(linear->weight, forms);
}

ByteForms forms_of(const Network& network) {
  ByteForms forms;
  add_form(network.output_weight(), forms);
  for (const Layer& layer : network.layers) {
    for (const Linear* linear :
         {&layer.mixer.query, &layer.mixer.key, &layer.mixer.value, &layer.mixer.output})
      add_form(linear->weight, forms);
    if (const auto* dense = std::get_if<GatedFeedForward>(&layer.feed_forward)) {
      add_forms(*dense, forms);
    } else if (const auto* experts = std::get_if<Experts>(&layer.feed_forward)) {
      add_form(experts->router.weight, forms);
      for (const GatedFeedForward& expert : experts->experts) add_forms(expert, forms);
    }
  }
  return forms;
}

Status allocate_experts(ExpertScratch& scratch, const Widths& widths, std::size_t embedding, std::size_t rows,
                        const ByteForms& forms) {
  if (widths.experts == 0) return {};
  const std::size_t assignments = rows * widths.experts_used;
  KVASIR_ASSIGN(scratch.router, FloatRows::allocate(rows, widths.experts));
  KVASIR_ASSIGN(scratch.input, InputRows::allocate(assignments, embedding, forms));
  KVASIR_ASSIGN(scratch.gate, InputRows::allocate(assignments, widths.expert_feed_forward, forms));
  KVASIR_ASSIGN(scratch.up, FloatRows::allocate(assignments, widths.expert_feed_forward));
  KVASIR_ASSIGN(scratch.output, FloatRows::allocate(assignments, embedding));
  scratch.assignments.resize(assignments);
  scratch.of_row.resize(assignments);
  scratch.chosen.resize(assignments);
  scratch.loads.reserve(widths.experts);
  return {};
}

}  // namespace

Result<FloatRows> FloatRows::allocate(std::size_t rows, std::size_t width) {
  FloatRows out;
  out.width_ = width;
  out.stride_ = (width + simd::kPanelRows - 1) / simd::kPanelRows * simd::kPanelRows;
  const auto bytes = base::checked_product<std::size_t>(rows, out.stride_, sizeof(float));
  if (!bytes)
    return fail(Outcome::kInvalidArgument, "a pass is larger than memory can be", {.setting = "--pass"});
  KVASIR_ASSIGN(out.bytes_, base::Buffer::allocate(*bytes));
  return out;
}

void ProductInput::multiply(const simd::Panels& weight, std::size_t first_panel, std::size_t last_panel,
                            std::size_t from, std::size_t count,
                            const simd::ProductOutput& output) const noexcept {
  if (const std::size_t block = weight.activation_block(); block != 0) {
    const simd::ByteRows& bytes = block == 32 ? *bytes32 : *bytes256;
    return simd::multiply(weight, first_panel, last_panel,
                          bytes.columns(first + from, count, weight.columns()), output);
  }
  const simd::Activations some = {floats.column(from), count, weight.columns(), floats.stride};
  simd::multiply(weight, first_panel, last_panel, some, output);
}

Result<InputRows> InputRows::allocate(std::size_t rows, std::size_t width, const ByteForms& forms) {
  InputRows out;
  KVASIR_ASSIGN(out.floats_, FloatRows::allocate(rows, width));
  if (forms.of32) {
    KVASIR_ASSIGN(out.bytes32_, simd::ByteRows::allocate(rows, width, 32));
  }
  if (forms.of256) {
    KVASIR_ASSIGN(out.bytes256_, simd::ByteRows::allocate(rows, width, 256));
  }
  return out;
}

void InputRows::pack(std::size_t index, std::size_t width) noexcept {
  const std::span<const float> numbers = floats_.row(index).first(width);
  if (!bytes32_.empty()) bytes32_.pack(index, numbers);
  if (!bytes256_.empty()) bytes256_.pack(index, numbers);
}

Result<Workspace> Workspace::create(const Model& model, const PassLimits& limits) {
  const Network& network = model.network();
  const Widths widths = widths_of(network);
  const std::size_t embedding = model.sizes().embedding;
  const std::size_t rows = limits.rows;
  const ByteForms forms = forms_of(network);
  if (rows == 0 || limits.logit_rows == 0) {
    return fail(Outcome::kInvalidArgument, "a pass needs room for at least one token",
                {.limit = 1, .setting = "--pass"});
  }
  try {
    Workspace workspace;
    workspace.limits = limits;
    KVASIR_ASSIGN(workspace.hidden, FloatRows::allocate(rows, embedding));
    KVASIR_ASSIGN(workspace.normed, InputRows::allocate(rows, embedding, forms));
    KVASIR_ASSIGN(workspace.query, FloatRows::allocate(rows, widths.query));
    KVASIR_ASSIGN(workspace.key, FloatRows::allocate(rows, widths.key));
    KVASIR_ASSIGN(workspace.value, FloatRows::allocate(rows, widths.value));
    KVASIR_ASSIGN(workspace.attended, InputRows::allocate(rows, widths.attended, forms));
    KVASIR_ASSIGN(workspace.gate, InputRows::allocate(rows, widths.feed_forward, forms));
    KVASIR_ASSIGN(workspace.up, FloatRows::allocate(rows, widths.feed_forward));
    KVASIR_ASSIGN(workspace.product, FloatRows::allocate(rows, embedding));
    KVASIR_ASSIGN(workspace.logits, FloatRows::allocate(limits.logit_rows, model.sizes().vocabulary));
    KVASIR_TRY(workspace.reserve_variants(model, 2 * rows));
    workspace.resolved.resize(rows);
    KVASIR_TRY(allocate_experts(workspace.experts, widths, embedding, rows, forms));
    return workspace;
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory for a pass of " + std::to_string(rows) + " tokens",
                {.wanted = rows, .setting = "--pass"});
  }
}

Status Workspace::reserve_variants(const Model& model, std::size_t variants) {
  if (variants <= turned.rows()) return {};
  KVASIR_ASSIGN(FloatRows more_turned, FloatRows::allocate(variants, query.width()));
  std::vector<FloatRows> more_cosines;
  std::vector<FloatRows> more_sines;
  for (const simd::RotaryTable& table : model.network().rotary) {
    KVASIR_ASSIGN(FloatRows of_cosines, FloatRows::allocate(variants, table.dims() / 2));
    KVASIR_ASSIGN(FloatRows of_sines, FloatRows::allocate(variants, table.dims() / 2));
    more_cosines.push_back(std::move(of_cosines));
    more_sines.push_back(std::move(of_sines));
  }
  turned = std::move(more_turned);
  cosines = std::move(more_cosines);
  sines = std::move(more_sines);
  return {};
}

}  // namespace kvasir::model
