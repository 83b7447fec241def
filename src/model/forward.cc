#include "model/forward.h"

#include <algorithm>
#include <new>
#include <string>
#include <variant>

#include "base/try.h"
#include "model/attention_stages.h"
#include "model/part_kinds.h"
#include "model/part_walk.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// Chunks of a job for each thread: enough that threads of different speed end together.
constexpr std::size_t kChunksOfThread = 64;

std::unexpected<Error> bad_pass(const std::string& what) {
  return fail(Outcome::kInvalidArgument, "a pass " + what);
}

}  // namespace

Forward::Forward(const Model& model, kv::Arena& arena, const pages::PageStore& store,
                 parallel::ThreadPool& pool, Workspace& workspace)
    : model_(&model),
      pool_(&pool),
      workspace_(&workspace),
      run_range_([this](std::size_t begin, std::size_t end) {
        for (std::size_t item = first_item_ + begin; item < first_item_ + end; ++item) {
          if (items_.are_products()) {
            items_.multiply(item);
          } else {
            stages_[stage_].run(open_, item);
          }
        }
      }),
      open_{.network = &model.network(), .arena = &arena, .store = &store, .workspace = &workspace},
      items_(static_cast<std::size_t>(pool.threads())) {
  for (const CacheGroup& group : model.network().groups)
    open_.states.emplace_back(group.states, arena.frame_size());
  list_stages();
}

void Forward::list_stages() {
  const Network& network = model_->network();
  stages_.add_rows(std::size_t{model_->sizes().embedding} * 8, enter_stream);
  add_turning(network, stages_);
  const Part* before = nullptr;
  for (std::uint32_t layer = 0; layer < network.layers.size(); ++layer) {
    stages_.begin_layer(layer);
    for (const Part& part : network.layers[layer].parts) {
      add_part(part, before);
      before = &part;
    }
  }
  stages_.begin_layer(static_cast<std::uint32_t>(network.layers.size()));
  output_ = stages_.size();
  end_ = stage_ = output_;
  add_output(*before);
}

// A part that reads the same input as the one before takes it, if it norms it anew, before what that one gave
// is added to the stream.
void Forward::add_part(const Part& part, const Part* before) {
  stages_.add_rows(std::size_t{model_->sizes().embedding} * 8,
                   [&part, before](OpenPass& open, std::size_t row) {
                     Workspace& w = *open.workspace;
                     if (before != nullptr && !part.same_input) end_part(*before, w, row);
                     if (!part.same_input || part.norm) take_input(part.norm, w, row, row);
                     if (before != nullptr && part.same_input) end_part(*before, w, row);
                   });
  std::visit([&](const auto& body) { add_stages(body, stages_); }, part.body);
}

void Forward::add_output(const Part& last) {
  stages_.add({.plan =
                   [](OpenPass& open, StageItems& items) {
                     items.plan(open.pass.logit_rows, open.workspace->hidden.width() * 4);
                   },
               .run =
                   [&last](OpenPass& open, std::size_t row) {
                     end_part(last, *open.workspace, open.logits_source[row]);
                     take_input(open.network->output_norm, *open.workspace, open.logits_source[row], row);
                   }});
  stages_.add_products([](OpenPass& open, StageItems& items) {
    const Network& network = *open.network;
    Workspace& w = *open.workspace;
    const std::span<const float> bias =
        network.output ? std::span<const float>(network.output->bias) : std::span<const float>();
    items.add_product(network.output_weight(), bias, w.normed.columns(0, open.pass.logit_rows),
                      w.logits.output());
  });
  const Network& network = model_->network();
  if (network.logit_scale == 1 && network.logit_cap == 0) return;
  stages_.add({.plan =
                   [](OpenPass& open, StageItems& items) {
                     items.plan(open.pass.logit_rows, open.workspace->logits.width() * 8);
                   },
               .run =
                   [&network](OpenPass& open, std::size_t row) {
                     const std::span<float> logits = open.workspace->logits.row(row);
                     scale_all(logits, network.logit_scale);
                     if (network.logit_cap != 0) simd::soft_cap(logits, network.logit_cap);
                   }});
}

Status Forward::check_row(const PassRow& row) const {
  if (row.vector == nullptr &&
      (row.token < 0 || static_cast<std::uint32_t>(row.token) >= model_->sizes().vocabulary)) {
    return bad_pass("names the token " + std::to_string(row.token) + ", the vocabulary has " +
                    std::to_string(model_->sizes().vocabulary));
  }
  const std::optional<simd::Panels>& learned = model_->network().position_embedding;
  if (learned && (row.position < 0 || static_cast<std::uint64_t>(row.position) >= learned->rows())) {
    return bad_pass("has a token at position " + std::to_string(row.position) + ", the model has learned " +
                    std::to_string(learned->rows()));
  }
  return {};
}

// Every recurrent group has states to leave, in order, the last of them behind the last row.
Status Forward::check_states(const Pass& pass, const PassSequence& sequence) const {
  const std::vector<CacheGroup>& groups = model_->network().groups;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].kind != pages::GroupKind::kRecurrent) continue;
    if (sequence.states.size() != groups.size()) return bad_pass("has sequences without states");
    // A checkpoint may lie where the pass ends, beside the state that goes on.
    std::uint64_t last = 0;
    for (const pages::StateWrite& write : sequence.states[group].writes) {
      if (write.ordinal <= pass.rows[sequence.first_row].ordinal || write.ordinal < last)
        return bad_pass("has states out of order");
      last = write.ordinal;
    }
    const std::uint64_t end = pass.rows[sequence.first_row + sequence.rows - 1].ordinal + 1;
    if (last != end) return bad_pass("has a sequence without a state behind its end");
  }
  return {};
}

Status Forward::check(const Pass& pass) const {
  const std::vector<CacheGroup>& groups = model_->network().groups;
  if (pass.rows.empty() || pass.rows.size() > workspace_->limits.rows) {
    return bad_pass("has " + std::to_string(pass.rows.size()) + " tokens, it must have 1 to " +
                    std::to_string(workspace_->limits.rows));
  }
  if (pass.logit_rows > workspace_->limits.logit_rows) return bad_pass("wants too many rows of logits");
  std::uint32_t logit_rows = 0;
  for (const PassRow& row : pass.rows) {
    KVASIR_TRY(check_row(row));
    if (row.sequence >= pass.sequences.size()) return bad_pass("names a sequence that it does not have");
    if (row.logits_row != PassRow::kNoLogits && row.logits_row != logit_rows++) {
      return bad_pass("numbers its rows of logits out of order");
    }
  }
  if (logit_rows != pass.logit_rows) return bad_pass("counts its rows of logits wrongly");
  std::size_t next = 0;
  for (const PassSequence& sequence : pass.sequences) {
    if (sequence.first_row != next || sequence.rows == 0 || sequence.runs.size() != groups.size()) {
      return bad_pass("has sequences that do not follow one another");
    }
    if (!sequence.floors.empty() && sequence.floors.size() != groups.size())
      return bad_pass("has sequences without floors");
    next += sequence.rows;
  }
  if (next != pass.rows.size() || pass.places.size() != groups.size())
    return bad_pass("has rows outside its sequences");
  for (const PassSequence& sequence : pass.sequences) KVASIR_TRY(check_states(pass, sequence));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (stores_cells(groups[group].kind) && pass.places[group].size() != pass.rows.size())
      return bad_pass("has rows without cells");
  }
  return {};
}

Status Forward::start(Pass pass) {
  stage_ = end_;
  KVASIR_TRY(check(pass));
  try {
    open_.pass = std::move(pass);
    open_.logits_source.resize(open_.pass.logit_rows);
    for (std::uint32_t row = 0; row < open_.pass.rows.size(); ++row) {
      const std::uint32_t logits_row = open_.pass.rows[row].logits_row;
      if (logits_row != PassRow::kNoLogits) open_.logits_source[logits_row] = row;
    }
    number_variants();
    open_.sights.look(model_->network(), open_.pass, *open_.store);
    const std::size_t variants = open_.variants.back().first + open_.shifts.back().size();
    KVASIR_TRY(workspace_->attention.reserve_variants(model_->network(), variants));
    jobs_ = 0;
    end_ = open_.pass.logit_rows > 0 ? stages_.size() : output_;
    enter(0);
  } catch (const std::bad_alloc&) {
    stage_ = end_;
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  return {};
}

void Forward::number_variants() {
  const Pass& pass = open_.pass;
  open_.shifts.resize(pass.sequences.size());
  open_.variants.resize(pass.rows.size());
  std::uint32_t next = 0;
  for (std::size_t index = 0; index < pass.sequences.size(); ++index) {
    const PassSequence& sequence = pass.sequences[index];
    std::vector<std::int64_t>& shifts = open_.shifts[index];
    shifts.clear();
    for (const std::vector<pages::Run>& runs : sequence.runs) {
      for (const pages::Run& run : runs) {
        if (std::ranges::find(shifts, run.shift) == shifts.end()) shifts.push_back(run.shift);
      }
    }
    const auto own = std::ranges::find(shifts, own_shift(sequence));
    for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row) {
      open_.variants[row] = {next, next + static_cast<std::uint32_t>(own - shifts.begin())};
      next += static_cast<std::uint32_t>(shifts.size());
    }
  }
}

// New cells all have the shift of the last span (a storage position goes on from its predecessor's).
std::int64_t Forward::own_shift(const PassSequence& sequence) const noexcept {
  const std::vector<CacheGroup>& groups = model_->network().groups;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (stores_cells(groups[group].kind)) return sequence.runs[group].back().shift;
  }
  return 0;
}

PassProgress Forward::progress() const noexcept {
  const auto layers = static_cast<std::uint32_t>(model_->network().layers.size());
  const std::uint32_t layer = done() ? layers : stages_[stage_].layer;
  return {.layer = layer, .layers = layers, .jobs = jobs_, .attended = attended_};
}

Status Forward::advance() {
  attended_ = stages_[stage_].attends;
  first_item_ = next_item_;
  const std::size_t count = std::min(items_.of_job(), items_.count() - next_item_);
  const auto threads = static_cast<std::size_t>(pool_->threads());
  pool_->run(count, std::max<std::size_t>(1, count / (threads * kChunksOfThread)), run_range_);
  next_item_ += count;
  ++jobs_;
  if (next_item_ < items_.count()) return {};
  try {
    enter(stage_ + 1);
  } catch (const std::bad_alloc&) {
    stage_ = end_;
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  return {};
}

void Forward::enter(std::size_t stage) {
  next_item_ = 0;
  for (stage_ = stage; stage_ < end_; ++stage_) {
    items_.clear();
    stages_[stage_].plan(open_, items_);
    if (items_.count() > 0) return;
  }
}

}  // namespace kvasir::model
