#include "model/forward.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "model/expert_routing.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// Multiply-adds of a job: well under a millisecond on two cores, and long beside what starting a job costs.
constexpr std::size_t kJobWork = 30'000'000;

// How many multiply-adds of bytes cost as much as one of floats.
constexpr std::size_t kByteGain = 3;

// Columns that one product item takes: enough to pay for decoding its weights, few enough for small jobs.
constexpr std::size_t kColumnBlock = 128;

std::unexpected<Error> bad_pass(const std::string& what) {
  return fail(Outcome::kInvalidArgument, "a pass " + what);
}

void add_to(std::span<float> sum, std::span<const float> more) noexcept {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

}  // namespace

std::size_t Forward::Product::panel_blocks() const noexcept {
  return base::div_up(weight->panel_count(), simd::kPanelGroup);
}

std::size_t Forward::Product::items() const noexcept {
  return panel_blocks() * base::div_up(input.floats.count, kColumnBlock);
}

Forward::Forward(const Model& model, kv::Arena& arena, const pages::PageStore& store,
                 parallel::ThreadPool& pool, Workspace& workspace)
    : model_(&model),
      arena_(&arena),
      store_(&store),
      pool_(&pool),
      workspace_(&workspace),
      run_range_([this](std::size_t begin, std::size_t end) {
        for (std::size_t item = begin; item < end; ++item) run_item(first_item_ + item);
      }) {}

Status Forward::check(const Pass& pass) const {
  const std::size_t groups = model_->network().groups.size();
  if (pass.rows.empty() || pass.rows.size() > workspace_->limits.rows) {
    return bad_pass("has " + std::to_string(pass.rows.size()) + " tokens, it must have 1 to " +
                    std::to_string(workspace_->limits.rows));
  }
  if (pass.logit_rows > workspace_->limits.logit_rows) return bad_pass("wants too many rows of logits");
  std::uint32_t logit_rows = 0;
  for (const PassRow& row : pass.rows) {
    if (row.vector == nullptr &&
        (row.token < 0 || static_cast<std::uint32_t>(row.token) >= model_->sizes().vocabulary)) {
      return bad_pass("names the token " + std::to_string(row.token) + ", the vocabulary has " +
                      std::to_string(model_->sizes().vocabulary));
    }
    if (row.sequence >= pass.sequences.size()) return bad_pass("names a sequence that it does not have");
    if (row.logits_row != PassRow::kNoLogits && row.logits_row != logit_rows++) {
      return bad_pass("numbers its rows of logits out of order");
    }
  }
  if (logit_rows != pass.logit_rows) return bad_pass("counts its rows of logits wrongly");
  std::size_t next = 0;
  for (const PassSequence& sequence : pass.sequences) {
    if (sequence.first_row != next || sequence.rows == 0 || sequence.runs.size() != groups) {
      return bad_pass("has sequences that do not follow one another");
    }
    next += sequence.rows;
  }
  if (next != pass.rows.size() || pass.places.size() != groups)
    return bad_pass("has rows outside its sequences");
  for (const std::vector<CellPlace>& places : pass.places) {
    if (places.size() != pass.rows.size()) return bad_pass("has rows without cells");
  }
  return {};
}

Status Forward::start(Pass pass) {
  stage_ = Stage::kDone;
  if (Status sound = check(pass); !sound) return sound;
  try {
    pass_ = std::move(pass);
    logits_source_.resize(pass_.logit_rows);
    for (std::uint32_t row = 0; row < pass_.rows.size(); ++row) {
      if (pass_.rows[row].logits_row != PassRow::kNoLogits) logits_source_[pass_.rows[row].logits_row] = row;
    }
    number_variants();
    KVASIR_TRY(workspace_->reserve_variants(*model_, variants_.back().first + shifts_.back().size()));
    layer_ = 0;
    jobs_ = 0;
    enter(Stage::kEmbed);
  } catch (const std::bad_alloc&) {
    stage_ = Stage::kDone;
    return fail(Outcome::kOutOfMemory, "no memory for a pass");
  }
  return {};
}

void Forward::number_variants() {
  shifts_.resize(pass_.sequences.size());
  variants_.resize(pass_.rows.size());
  std::uint32_t next = 0;
  for (std::size_t index = 0; index < pass_.sequences.size(); ++index) {
    const PassSequence& sequence = pass_.sequences[index];
    std::vector<std::int64_t>& shifts = shifts_[index];
    shifts.clear();
    for (const std::vector<pages::Run>& runs : sequence.runs) {
      for (const pages::Run& run : runs) {
        if (std::ranges::find(shifts, run.shift) == shifts.end()) shifts.push_back(run.shift);
      }
    }
    // New cells all have the shift of the last span (a storage position goes on from its predecessor's).
    const auto own = std::ranges::find(shifts, sequence.runs.front().back().shift);
    for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row) {
      variants_[row] = {next, next + static_cast<std::uint32_t>(own - shifts.begin())};
      next += static_cast<std::uint32_t>(shifts.size());
    }
  }
}

PassProgress Forward::progress() const noexcept {
  const auto layers = static_cast<std::uint32_t>(model_->network().layers.size());
  const bool past_layers = stage_ >= Stage::kOutputNorm;
  return {.layer = past_layers ? layers : layer_, .layers = layers, .jobs = jobs_, .attended = attended_};
}

Status Forward::advance() {
  attended_ = stage_ == Stage::kAttend;
  first_item_ = next_item_;
  const std::size_t count = std::min(job_items_, items_ - next_item_);
  const auto threads = static_cast<std::size_t>(pool_->threads());
  pool_->run(count, std::max<std::size_t>(1, count / (threads * 4)), run_range_);
  next_item_ += count;
  ++jobs_;
  if (next_item_ < items_) return {};
  try {
    enter(following());
  } catch (const std::bad_alloc&) {
    stage_ = Stage::kDone;
    return fail(Outcome::kOutOfMemory, "no memory for a stage of a pass");
  }
  return {};
}

Forward::Stage Forward::following() noexcept {
  switch (stage_) {
    case Stage::kEmbed:
      return Stage::kMixerNorm;
    case Stage::kMixerNorm:
      return Stage::kQueryKeyValue;
    case Stage::kQueryKeyValue:
      return Stage::kStore;
    case Stage::kStore:
      return Stage::kAttend;
    case Stage::kAttend:
      return Stage::kPackAttended;
    case Stage::kPackAttended:
      return Stage::kMixerOutput;
    case Stage::kMixerOutput:
      return Stage::kFeedForwardNorm;
    case Stage::kFeedForwardNorm:
      return dense() != nullptr ? Stage::kGateUp : Stage::kRouter;
    case Stage::kGateUp:
      return Stage::kActivate;
    case Stage::kActivate:
      return Stage::kDown;
    case Stage::kRouter:
      return Stage::kRoute;
    case Stage::kRoute:
      return Stage::kExpertGateUp;
    case Stage::kExpertGateUp:
      return Stage::kExpertActivate;
    case Stage::kExpertActivate:
      return Stage::kExpertDown;
    case Stage::kExpertDown:
      return Stage::kCombine;
    case Stage::kDown:
    case Stage::kCombine:
      return end_of_layer();
    case Stage::kOutputNorm:
      return Stage::kOutput;
    case Stage::kOutput:
    case Stage::kDone:
      return Stage::kDone;
  }
  return Stage::kDone;
}

Forward::Stage Forward::end_of_layer() noexcept {
  if (layer_ + 1 < model_->network().layers.size()) {
    ++layer_;
    return Stage::kMixerNorm;
  }
  return pass_.logit_rows > 0 ? Stage::kOutputNorm : Stage::kDone;
}

void Forward::enter(Stage stage) {
  stage_ = stage;
  next_item_ = 0;
  items_ = 0;
  products_.clear();
  switch (stage) {
    case Stage::kQueryKeyValue:
    case Stage::kMixerOutput:
    case Stage::kGateUp:
    case Stage::kDown:
    case Stage::kRouter:
    case Stage::kOutput:
      return plan_stage_products();
    case Stage::kExpertGateUp:
    case Stage::kExpertDown:
      return plan_expert_products();
    case Stage::kAttend:
      return plan_attention();
    case Stage::kRoute:
      return plan_items(1, 1);
    case Stage::kExpertActivate:
      return plan_items(row_count() * experts().used, experts().experts[0].gate.out() * 8);
    case Stage::kActivate:
      return plan_items(row_count(), dense()->gate.out() * 8);
    case Stage::kOutputNorm:
      return plan_items(pass_.logit_rows, model_->sizes().embedding * 4);
    case Stage::kDone:
      return;
    default:
      return plan_items(row_count(), std::size_t{model_->sizes().embedding} * 8);
  }
}

void Forward::plan_items(std::size_t items, std::size_t cost_of_item) noexcept {
  items_ = items;
  job_items_ =
      std::max<std::size_t>(static_cast<std::size_t>(pool_->threads()), kJobWork / (cost_of_item + 1));
}

void Forward::add_product(const simd::Panels& weight, std::span<const float> bias, const ProductInput& input,
                          simd::ProductOutput output) {
  products_.push_back({&weight, bias, input, output});
  const std::size_t cost =
      simd::kPanelGroup * simd::kPanelRows * weight.columns() * std::min(input.floats.count, kColumnBlock);
  plan_items(items_ + products_.back().items(), weight.activation_block() != 0 ? cost / kByteGain : cost);
}

void Forward::plan_stage_products() {
  Workspace& w = *workspace_;
  const std::size_t rows = row_count();
  const ProductInput normed = w.normed.columns(0, rows);
  switch (stage_) {
    case Stage::kQueryKeyValue:
      add_product(layer().mixer.query, normed, w.query.output());
      add_product(layer().mixer.key, normed, w.key.output());
      add_product(layer().mixer.value, normed, w.value.output());
      break;
    case Stage::kMixerOutput:
      add_product(layer().mixer.output, w.attended.columns(0, rows), w.product.output());
      break;
    case Stage::kGateUp:
      add_product(dense()->gate, normed, w.gate.output());
      add_product(dense()->up, normed, w.up.output());
      break;
    case Stage::kDown:
      add_product(dense()->down, w.gate.columns(0, rows), w.product.output());
      break;
    case Stage::kRouter:
      add_product(experts().router, normed, w.experts.router.output());
      break;
    default: {
      const Network& network = model_->network();
      const std::span<const float> bias =
          network.output ? std::span<const float>(network.output->bias) : std::span<const float>();
      add_product(network.output_weight(), bias, w.normed.columns(0, pass_.logit_rows), w.logits.output());
      break;
    }
  }
}

void Forward::plan_expert_products() {
  ExpertScratch& e = workspace_->experts;
  for (const ExpertLoad& load : e.loads) {
    const GatedFeedForward& expert = experts().experts[load.expert];
    if (stage_ == Stage::kExpertDown) {
      add_product(expert.down, e.gate.columns(load.first, load.count), e.output.output(load.first));
    } else {
      add_product(expert.gate, e.input.columns(load.first, load.count), e.gate.output(load.first));
      add_product(expert.up, e.input.columns(load.first, load.count), e.up.output(load.first));
    }
  }
}

void Forward::plan_attention() {
  const Attention& mixer = layer().mixer;
  Workspace& w = *workspace_;
  const std::uint32_t heads_at_once = std::min<std::uint32_t>(mixer.heads_per_kv(), simd::kQueriesAtOnce);
  const std::uint32_t rows_at_once = simd::kQueriesAtOnce / heads_at_once;
  std::uint64_t visible = 1;
  blocks_.clear();
  for (std::uint32_t index = 0; index < pass_.sequences.size(); ++index) {
    const PassSequence& sequence = pass_.sequences[index];
    w.frame_runs.clear();
    w.frame_runs.reserve(sequence.runs[mixer.group].capacity());
    w.resolved[index].reserve(sequence.runs[mixer.group].capacity());
    for (const pages::Run& run : sequence.runs[mixer.group]) {
      const auto variant = std::ranges::find(shifts_[index], run.shift) - shifts_[index].begin();
      w.frame_runs.push_back({store_->frame(mixer.group, run.page, mixer.layer_in_group), run.cell, run.count,
                              run.ordinal, static_cast<std::uint32_t>(variant)});
    }
    arena_->resolve(mixer.geometry, w.frame_runs, w.resolved[index]);
    for (std::uint32_t row = 0; row < sequence.rows; row += rows_at_once) {
      for (std::uint32_t head = 0; head < mixer.heads_per_kv(); head += heads_at_once) {
        blocks_.push_back({index, sequence.first_row + row, std::min(rows_at_once, sequence.rows - row), head,
                           std::min(heads_at_once, mixer.heads_per_kv() - head)});
      }
    }
    visible = std::max(visible, pass_.rows[sequence.first_row + sequence.rows - 1].ordinal + 1);
  }
  const std::size_t dims = mixer.geometry.key_dims + mixer.geometry.value_dims;
  plan_items(blocks_.size() * mixer.geometry.kv_heads, simd::kQueriesAtOnce * dims * visible);
}

void Forward::run_item(std::size_t item) noexcept {
  if (!products_.empty()) return run_product_item(item);
  if (stage_ == Stage::kAttend) return attend(item);
  run_row(item);
}

void Forward::run_product_item(std::size_t item) noexcept {
  const Product* product = products_.data();
  while (item >= product->items()) item -= (product++)->items();
  // Columns of the same panels follow one another, so that decoded weights are still near.
  const std::size_t column_blocks = base::div_up(product->input.floats.count, kColumnBlock);
  const std::size_t first_panel = item / column_blocks * simd::kPanelGroup;
  const std::size_t last_panel = std::min(first_panel + simd::kPanelGroup, product->weight->panel_count());
  const std::size_t first_column = item % column_blocks * kColumnBlock;
  const std::size_t columns = std::min(kColumnBlock, product->input.floats.count - first_column);
  const simd::ProductOutput output{product->output.column(first_column), product->output.stride};
  product->input.multiply(*product->weight, first_panel, last_panel, first_column, columns, output);
  if (product->bias.empty()) return;
  const std::size_t first_row = first_panel * simd::kPanelRows;
  const std::size_t last_row = std::min(last_panel * simd::kPanelRows, product->bias.size());
  for (std::size_t column = 0; column < columns; ++column) {
    add_to({output.column(column) + first_row, last_row - first_row},
           product->bias.subspan(first_row, last_row - first_row));
  }
}

void Forward::run_row(std::size_t row) noexcept {
  Workspace& w = *workspace_;
  switch (stage_) {
    case Stage::kEmbed:
      return embed(row);
    case Stage::kMixerNorm:
      return norm_row(layer().mixer_norm, row, row);
    case Stage::kStore:
      return store(row);
    case Stage::kPackAttended:
      return w.attended.pack(row, layer().mixer.output.in());
    case Stage::kFeedForwardNorm:
      return norm_row(layer().feed_forward_norm, row, row);
    case Stage::kActivate: {
      const std::size_t width = dense()->gate.out();
      simd::silu_gate(w.gate.row(row).first(width), w.up.row(row).first(width));
      return w.gate.pack(row, width);
    }
    case Stage::kRoute: {
      route(w.experts, row_count(), experts().experts.size(), experts().used);
      for (std::size_t i = 0; i < row_count() * experts().used; ++i) {
        std::ranges::copy(w.normed.row(w.experts.assignments[i].row), w.experts.input.row(i).begin());
        w.experts.input.pack(i, w.normed.row(0).size());
      }
      return;
    }
    case Stage::kExpertActivate: {
      const std::size_t width = experts().experts[0].gate.out();
      simd::silu_gate(w.experts.gate.row(row).first(width), w.experts.up.row(row).first(width));
      return w.experts.gate.pack(row, width);
    }
    case Stage::kCombine:
      return combine(row);
    case Stage::kOutputNorm:
      return norm_row(model_->network().output_norm, logits_source_[row], row);
    default:
      return;
  }
}

void Forward::embed(std::size_t row) noexcept {
  Workspace& w = *workspace_;
  const PassRow& entry = pass_.rows[row];
  if (entry.vector != nullptr) {
    std::ranges::copy(std::span(entry.vector, w.hidden.width()), w.hidden.row(row).begin());
  } else {
    model_->network().token_embedding.read_row(static_cast<std::size_t>(entry.token), w.hidden.row(row));
  }
  std::ranges::fill(w.product.row(row), 0.0F);
  const std::vector<std::int64_t>& shifts = shifts_[entry.sequence];
  for (std::size_t table = 0; table < w.cosines.size(); ++table) {
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      const std::size_t variant = variants_[row].first + i;
      model_->network().rotary[table].turn_at(static_cast<double>(entry.position - shifts[i]),
                                              w.cosines[table].row(variant), w.sines[table].row(variant));
    }
  }
}

// Adds what the last part computed to the residual stream and norms the sum as the input of the next part.
void Forward::norm_row(const Norm& norm, std::size_t row, std::size_t into) noexcept {
  Workspace& w = *workspace_;
  add_to(w.hidden.row(row), w.product.row(row));
  simd::rms_norm(w.hidden.row(row), norm.weight, norm.epsilon, w.normed.row(into));
  w.normed.pack(into, w.hidden.width());
}

// Norms and turns the heads of query and key, and stores key and value in the row's cell. The raw query is
// turned anew for each variant, so that no query is ever turned twice.
void Forward::store(std::size_t row) noexcept {
  Workspace& w = *workspace_;
  const Attention& mixer = layer().mixer;
  const std::span<float> raw = w.query.row(row).first(mixer.query.out());
  const std::span<float> keys = w.key.row(row).first(mixer.key.out());
  norm_heads(raw, mixer.query_norm);
  norm_heads(keys, mixer.key_norm);
  turn_heads(keys, variants_[row].own);
  for (std::size_t i = 0; i < shifts_[pass_.rows[row].sequence].size(); ++i) {
    const std::size_t variant = variants_[row].first + i;
    const std::span<float> turned = w.turned.row(variant).first(raw.size());
    std::ranges::copy(raw, turned.begin());
    turn_heads(turned, variant);
  }
  const CellPlace& place = pass_.places[mixer.group][row];
  arena_->store(mixer.geometry, store_->frame(mixer.group, place.page, mixer.layer_in_group), place.cell,
                keys, w.value.row(row).first(mixer.value.out()));
}

void Forward::norm_heads(std::span<float> heads, const std::optional<Norm>& norm) const noexcept {
  if (!norm) return;
  for (std::size_t at = 0; at < heads.size(); at += norm->weight.size()) {
    const std::span<float> head = heads.subspan(at, norm->weight.size());
    simd::rms_norm(head, norm->weight, norm->epsilon, head);
  }
}

void Forward::turn_heads(std::span<float> heads, std::size_t variant) const noexcept {
  const Attention& mixer = layer().mixer;
  const std::span<const float> cosines = workspace_->cosines[mixer.rotary].row(variant);
  const std::span<const float> sines = workspace_->sines[mixer.rotary].row(variant);
  for (std::size_t at = 0; at < heads.size(); at += mixer.geometry.key_dims) {
    model_->network().rotary[mixer.rotary].rotate(heads.subspan(at, mixer.geometry.key_dims), cosines, sines);
  }
}

void Forward::attend(std::size_t item) noexcept {
  Workspace& w = *workspace_;
  const Attention& mixer = layer().mixer;
  const AttentionBlock& block = blocks_[item / mixer.geometry.kv_heads];
  const auto kv_head = static_cast<std::uint32_t>(item % mixer.geometry.kv_heads);
  std::array<simd::AttentionQuery, simd::kQueriesAtOnce> queries;
  std::size_t count = 0;
  for (std::uint32_t row = block.first_row; row < block.first_row + block.rows; ++row) {
    for (std::uint32_t i = 0; i < block.heads; ++i) {
      const std::size_t head = kv_head * mixer.heads_per_kv() + block.first_head + i;
      queries[count++] = {.query = w.turned.row(variants_[row].first).data() + head * mixer.geometry.key_dims,
                          .out = w.attended.row(row).data() + head * mixer.geometry.value_dims,
                          .visible = pass_.rows[row].ordinal + 1,
                          .variant_stride = w.turned.stride()};
    }
  }
  arena_->attend(mixer.geometry, kv_head, mixer.scale, w.resolved[block.sequence],
                 std::span(queries).first(count));
}

// The weighted sum of a row's experts, in ascending order of experts.
void Forward::combine(std::size_t row) noexcept {
  const ExpertScratch& e = workspace_->experts;
  const std::span<float> sum = workspace_->product.row(row);
  std::ranges::fill(sum, 0.0F);
  for (std::size_t i = 0; i < experts().used; ++i) {
    const std::uint32_t assignment = e.of_row[row * experts().used + i];
    const float weight = e.assignments[assignment].weight;
    const std::span<const float> part = e.output.row(assignment);
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * part[d];
  }
}

}  // namespace kvasir::model
