#include "model/encoder.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "base/try.h"
#include "model/attention_stages.h"
#include "model/part_kinds.h"
#include "model/part_walk.h"
#include "pages/types.h"

namespace kvasir::model {
namespace {

// The encoder's keys and values of every layer lie in the same frames.
std::vector<kv::LayerGeometry> geometry_of(const EncoderStack& stack) {
  std::vector<kv::LayerGeometry> geometry;
  for (const Layer& layer : stack.layers) {
    for (const Part& part : layer.parts) {
      if (const auto* const attention = std::get_if<Attention>(&part.body))
        geometry.push_back(attention->cells.geometry);
    }
  }
  return geometry;
}

Status check_text(std::span<const Token> text, const Model& model) {
  if (text.empty()) return fail(Outcome::kInvalidArgument, "there is nothing to read in an empty text");
  const std::uint32_t vocabulary = model.sizes().vocabulary;
  const auto bad = std::ranges::find_if(
      text, [&](Token token) { return token < 0 || static_cast<std::uint32_t>(token) >= vocabulary; });
  if (bad != text.end()) {
    return fail(
        Outcome::kInvalidArgument,
        "there is no token " + std::to_string(*bad) + ", the vocabulary has " + std::to_string(vocabulary),
        {.limit = vocabulary});
  }
  const std::optional<simd::Panels>& learned = model.network().position_embedding;
  if (!learned || text.size() <= learned->rows()) return {};
  return fail(Outcome::kInvalidArgument,
              "a text of " + std::to_string(text.size()) + " tokens is longer than the " +
                  std::to_string(learned->rows()) + " positions that the model has learned",
              {.wanted = text.size(), .limit = learned->rows()});
}

}  // namespace

Encoder::Encoder(const Model& model, parallel::ThreadPool& pool, CrossCells cells)
    : model_(&model),
      pool_(&pool),
      cells_(std::move(cells)),
      items_(static_cast<std::size_t>(pool.threads())),
      run_range_([this](std::size_t begin, std::size_t end) {
        const Stage& stage = phases_[phase_].stages[stage_];
        for (std::size_t item = first_item_ + begin; item < first_item_ + end; ++item) {
          if (items_.are_products()) {
            items_.multiply(item);
          } else {
            stage.run(open_, item);
          }
        }
      }) {}

Result<std::unique_ptr<Encoder>> Encoder::begin(const Model& model, parallel::ThreadPool& pool,
                                                std::span<const std::span<const Token>> texts,
                                                std::uint32_t pass_tokens, CrossCells cells) {
  if (!model.network().encoder) {
    return fail(Outcome::kUnsupported,
                "a model of architecture '" + model.sizes().architecture + "' has no encoder");
  }
  try {
    std::unique_ptr<Encoder> encoder(new Encoder(model, pool, std::move(cells)));
    KVASIR_TRY(encoder->take_texts(texts));
    KVASIR_TRY(encoder->take_memory(pass_tokens));
    encoder->list_phases();
    encoder->find_work();
    return encoder;
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

Status Encoder::take_texts(std::span<const std::span<const Token>> texts) {
  std::size_t longest = 0;
  for (const std::span<const Token> text : texts) {
    KVASIR_TRY(check_text(text, *model_));
    texts_.push_back({.tokens = text, .first_row = rows_});
    rows_ += text.size();
    longest = std::max(longest, text.size());
  }
  if (rows_ == 0) return fail(Outcome::kInvalidArgument, "there is no text to read");
  const std::size_t cells = base::div_up<std::size_t>(longest, pages::kCellsStep) * pages::kCellsStep;
  page_cells_ = static_cast<std::uint32_t>(std::min<std::size_t>(cells, pages::kPageCellsMax));
  return {};
}

Status Encoder::take_memory(std::uint32_t pass_tokens) {
  const Network& network = model_->network();
  std::uint64_t frames = 0;
  for (TextRows& text : texts_) {
    text.first_frame = static_cast<std::uint32_t>(frames);
    frames += base::div_up<std::uint64_t>(text.tokens.size(), page_cells_);
    if (frames > UINT32_MAX) return fail(Outcome::kInvalidArgument, "more texts than can be read at once");
  }
  KVASIR_ASSIGN(stream_, FloatRows::allocate(rows_, model_->sizes().embedding));
  const kv::CacheTypes floats{kv::CacheElement::kF32, kv::CacheElement::kF32};
  // begin() has seen that there is an encoder.
  const std::vector<kv::LayerGeometry> geometry =
      geometry_of(*network.encoder);  // NOLINT(bugprone-unchecked-optional-access)
  KVASIR_ASSIGN(frames_,
                kv::Arena::create(geometry, floats, page_cells_, static_cast<std::uint32_t>(frames)));
  const auto pass = static_cast<std::uint32_t>(std::min<std::size_t>(pass_tokens, rows_));
  KVASIR_ASSIGN(workspace_, Workspace::create(*model_, {.rows = pass, .logit_rows = 1}));
  open_.network = &network;
  open_.workspace = &workspace_;
  const std::size_t groups = std::max<std::size_t>(1, network.groups.size());
  open_.pass.places.resize(groups);
  return {};
}

Encoder::Phase& Encoder::add_phase(std::uint32_t layer) {
  Phase& phase = phases_.emplace_back();
  phase.layer = layer;
  return phase;
}

// The stream comes from where it is kept between two phases, and goes there at the end.
void Encoder::add_load(const Part& part, Phase& phase) {
  phase.stages.add_rows(model_->sizes().embedding * 8, [this, &part](OpenPass& open, std::size_t row) {
    std::ranges::copy(stream_.row(chunk_ + row), open.workspace->hidden.row(row).begin());
    take_input(part.norm, *open.workspace, row, row);
  });
}

void Encoder::add_end(const Part& part, Phase& phase) {
  phase.stages.add_rows(model_->sizes().embedding * 8, [this, &part](OpenPass& open, std::size_t row) {
    end_part(part, *open.workspace, row);
    std::ranges::copy(open.workspace->hidden.row(row), stream_.row(chunk_ + row).begin());
  });
}

void Encoder::list_phases() {
  const EncoderStack& stack =
      *model_->network().encoder;  // NOLINT(bugprone-unchecked-optional-access): as above
  add_phase(0).stages.add_rows(model_->sizes().embedding * 8, [this](OpenPass& open, std::size_t row) {
    enter_stream(open, row);
    std::ranges::copy(open.workspace->hidden.row(row), stream_.row(chunk_ + row).begin());
  });
  for (std::uint32_t layer = 0; layer < stack.layers.size(); ++layer) add_layer(stack.layers[layer], layer);
  if (stack.output_norm) {
    const Norm& norm = *stack.output_norm;
    add_phase(static_cast<std::uint32_t>(stack.layers.size()))
        .stages.add_rows(model_->sizes().embedding * 8, [this, &norm](OpenPass&, std::size_t row) {
          apply(norm, stream_.row(chunk_ + row), stream_.row(chunk_ + row));
        });
  }
  if (cells_.arena != nullptr) add_cross_phases();
}

void Encoder::add_layer(const Layer& layer, std::uint32_t index) {
  for (const Part& part : layer.parts) {
    const auto* const attention = std::get_if<Attention>(&part.body);
    if (attention != nullptr) {
      Phase& keys = add_phase(index);
      add_load(part, keys);
      add_turning(model_->network(), keys.stages);
      add_keys(*attention, keys.stages);
    }
    Phase& phase = add_phase(index);
    add_load(part, phase);
    if (attention != nullptr) {
      add_turning(model_->network(), phase.stages);
      add_queries(*attention, phase.stages);
    } else {
      std::visit([&](const auto& body) { add_stages(body, phase.stages); }, part.body);
    }
    add_end(part, phase);
  }
}

// The keys and values of every layer of the decoder that reads the output.
void Encoder::add_cross_phases() {
  const Network& network = model_->network();
  if (!network.encoder) return;
  const auto layers = static_cast<std::uint32_t>(network.encoder->layers.size());
  for (const Layer& layer : network.layers) {
    for (const Part& part : layer.parts) {
      const auto* const cross = std::get_if<CrossAttention>(&part.body);
      if (cross == nullptr) continue;
      Phase& phase = add_phase(layers);
      phase.fills_cells = true;
      phase.cross_layer = cross->attention.cells.layer_in_group;
      phase.stages.add_rows(model_->sizes().embedding, [this](OpenPass& open, std::size_t row) {
        const std::span<const float> read = stream_.row(chunk_ + row);
        std::ranges::copy(read, open.workspace->normed.row(row).begin());
        open.workspace->normed.pack(row, read.size());
      });
      add_keys(cross->attention, phase.stages);
    }
  }
}

// The rows of the chunk as a pass, of which every sequence is a text or a part of one.
void Encoder::open_chunk() {
  const std::size_t end = std::min(rows_, chunk_ + workspace_.limits.rows);
  open_.arena = phases_[phase_].fills_cells ? cells_.arena : &frames_;
  Pass& pass = open_.pass;
  pass.rows.clear();
  for (std::vector<CellPlace>& places : pass.places) places.clear();
  auto text = std::ranges::upper_bound(texts_, chunk_, {}, &TextRows::first_row) - 1;
  std::uint32_t sequences = 0;
  for (; text != texts_.end() && text->first_row < end; ++text) {
    if (pass.sequences.size() <= sequences) pass.sequences.emplace_back();
    place_sequence(*text, sequences++);
  }
  pass.sequences.resize(sequences);
  open_.shifts.assign(sequences, std::vector<std::int64_t>{0});
  open_.variants.resize(pass.rows.size());
  for (std::uint32_t row = 0; row < pass.rows.size(); ++row) open_.variants[row] = {row, row};
  if (phases_[phase_].fills_cells) place_cross_rows();
  open_.sights.look_both_ways(pass);
  chunk_open_ = true;
}

void Encoder::place_sequence(const TextRows& text, std::uint32_t sequence) {
  Pass& pass = open_.pass;
  const std::size_t end = std::min(rows_, chunk_ + workspace_.limits.rows);
  const std::size_t from = std::max(chunk_, text.first_row) - text.first_row;
  const std::size_t to = std::min(end - text.first_row, text.tokens.size());
  PassSequence& into = pass.sequences[sequence];
  into.first_row = static_cast<std::uint32_t>(pass.rows.size());
  into.rows = static_cast<std::uint32_t>(to - from);
  into.runs.resize(pass.places.size());
  into.runs[0].clear();
  for (std::size_t at = 0; at < text.tokens.size(); at += page_cells_) {
    into.runs[0].push_back(
        {.page = pages::PageId{text.first_frame + static_cast<std::uint32_t>(at / page_cells_)},
         .count = static_cast<std::uint32_t>(std::min<std::size_t>(page_cells_, text.tokens.size() - at)),
         .ordinal = at});
  }
  for (std::size_t at = from; at < to; ++at) {
    pass.rows.push_back({.token = text.tokens[at],
                         .sequence = sequence,
                         .ordinal = at,
                         .position = static_cast<std::int64_t>(at)});
    pass.places[0].push_back({pages::PageId{text.first_frame + static_cast<std::uint32_t>(at / page_cells_)},
                              static_cast<std::uint32_t>(at % page_cells_)});
  }
}

// The cells of the source's tokens in the layer at hand.
void Encoder::place_cross_rows() {
  const std::vector<kv::FrameRun>& runs = cells_.layers[phases_[phase_].cross_layer];
  const std::vector<CacheGroup>& groups = model_->network().groups;
  const auto cross = std::ranges::find(groups, pages::GroupKind::kCross, &CacheGroup::kind);
  std::vector<CellPlace>& places = open_.pass.places[static_cast<std::size_t>(cross - groups.begin())];
  places.clear();
  auto run = runs.begin();
  for (const PassRow& row : open_.pass.rows) {
    while (row.ordinal >= run->ordinal + run->count) ++run;
    const auto offset = static_cast<std::uint32_t>(row.ordinal - run->ordinal);
    places.push_back({pages::PageId{static_cast<std::uint32_t>(run->frame)}, run->cell + offset});
  }
}

// Goes on to the next stage that has items, of this chunk, of the next one, or of the next phase.
void Encoder::find_work() {
  next_item_ = 0;
  for (; phase_ < phases_.size(); ++phase_, chunk_ = 0) {
    for (; chunk_ < rows_; chunk_ += workspace_.limits.rows, stage_ = 0, chunk_open_ = false) {
      if (!chunk_open_) open_chunk();
      for (; stage_ < phases_[phase_].stages.size(); ++stage_) {
        items_.clear();
        phases_[phase_].stages[stage_].plan(open_, items_);
        if (items_.count() > 0) return;
      }
    }
  }
}

Status Encoder::advance() {
  first_item_ = next_item_;
  const std::size_t count = std::min(items_.of_job(), items_.count() - next_item_);
  const auto threads = static_cast<std::size_t>(pool_->threads());
  pool_->run(count, std::max<std::size_t>(1, count / (threads * 4)), run_range_);
  next_item_ += count;
  ++jobs_;
  if (next_item_ < items_.count()) return {};
  try {
    ++stage_;
    find_work();
  } catch (const std::bad_alloc&) {
    phase_ = phases_.size();
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
  return {};
}

PassProgress Encoder::progress() const noexcept {
  const auto layers = static_cast<std::uint32_t>(
      model_->network().encoder->layers.size());  // NOLINT(bugprone-unchecked-optional-access): as above
  return {.layer = done() ? layers : phases_[phase_].layer, .layers = layers, .jobs = jobs_};
}

Status pool_rows(const Encoder& encoder, std::size_t first, std::size_t count, Pooling pooling,
                 std::vector<float>& out) {
  const auto append = [&](std::size_t row) {
    const std::span<const float> output = encoder.output(row);
    out.insert(out.end(), output.begin(), output.end());
  };
  switch (pooling) {
    case Pooling::kNone:
      for (std::size_t row = first; row < first + count; ++row) append(row);
      return {};
    case Pooling::kFirst:
      append(first);
      return {};
    case Pooling::kLast:
      append(first + count - 1);
      return {};
    case Pooling::kMean: {
      append(first);
      const std::span<float> mean = std::span(out).last(encoder.output(first).size());
      for (std::size_t row = first + 1; row < first + count; ++row) {
        const std::span<const float> output = encoder.output(row);
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += output[i];
      }
      for (float& value : mean) value /= static_cast<float>(count);
      return {};
    }
    case Pooling::kRank:
      break;
  }
  return fail(Outcome::kUnsupported,
              "this model has no matrix that ranks texts; none, mean, cls and last work");
}

}  // namespace kvasir::model
