// Texts read both ways: the walk through a model's encoder.
//
// All tokens of the texts are one unit. Keys and values of one layer at a time lie in frames of their own, as
// floats, whatever the cache stores. What is longer than a pass goes in chunks, all of them through one phase
// before the next: first the keys and values of a layer, for every token; then its queries, which read them;
// then the part behind. So no bit depends on how long a pass may be or on what else is read (F1, F2).
//
// A job is a range of the items of a stage, as in Forward. Between two jobs the reading may be left, resumed
// or dropped: its only traces elsewhere are the cells of cross-attention that it was given to fill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/arena.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "model/model.h"
#include "model/stages.h"
#include "model/workspace.h"
#include "parallel/thread_pool.h"

namespace kvasir::model {

// Cells that cross-attention reads: where the keys and values go that are made of the output.
struct CrossCells {
  kv::Arena* arena = nullptr;
  // [layer of the cross-attention group]: the cells of the source's tokens, in order.
  std::vector<std::vector<kv::FrameRun>> layers;
};

// Not thread-safe. Model and pool must outlive it.
class Encoder {
 public:
  // Begins to read `texts`, of at least one token each. Where `cells` are given, there is one text, and its
  // keys and values are left there. kUnsupported in a model without an encoder; kInvalidArgument for an empty
  // text, a token outside the vocabulary, or a text longer than the positions that were learned;
  // kOutOfMemory.
  [[nodiscard]] static Result<std::unique_ptr<Encoder>> begin(const Model& model, parallel::ThreadPool& pool,
                                                              std::span<const std::span<const Token>> texts,
                                                              std::uint32_t pass_tokens,
                                                              CrossCells cells = {});
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Does the next job. May be called while !done(). kOutOfMemory ends the reading.
  [[nodiscard]] Status advance();

  [[nodiscard]] bool done() const noexcept { return phase_ == phases_.size(); }
  // Whether the next job writes to the cells of cross-attention.
  [[nodiscard]] bool writes_cells() const noexcept { return !done() && phases_[phase_].fills_cells; }
  [[nodiscard]] PassProgress progress() const noexcept;

  // What was made of a token, counted over all texts one behind the other: as many floats as an embedding
  // has. Once it is done.
  [[nodiscard]] std::span<const float> output(std::size_t row) const noexcept { return stream_.row(row); }

 private:
  // Stages that all chunks go through before those of the next phase.
  struct Phase {
    StageList stages;
    std::uint32_t layer = 0;  // layers that are finished before it
    bool fills_cells = false;
    std::uint32_t cross_layer = 0;  // of the group, where it does
  };
  struct TextRows {
    std::span<const Token> tokens;
    std::size_t first_row = 0;
    std::uint32_t first_frame = 0;
  };

  Encoder(const Model& model, parallel::ThreadPool& pool, CrossCells cells);
  [[nodiscard]] Status take_texts(std::span<const std::span<const Token>> texts);
  [[nodiscard]] Status take_memory(std::uint32_t pass_tokens);
  void list_phases();
  void add_layer(const Layer& layer, std::uint32_t index);
  void add_cross_phases();
  Phase& add_phase(std::uint32_t layer);
  void add_load(const Part& part, Phase& phase);
  void add_end(const Part& part, Phase& phase);
  void open_chunk();
  void place_sequence(const TextRows& text, std::uint32_t sequence);
  void place_cross_rows();
  void find_work();

  const Model* model_;
  parallel::ThreadPool* pool_;
  CrossCells cells_;
  std::vector<TextRows> texts_;
  std::size_t rows_ = 0;  // tokens of all texts
  std::uint32_t page_cells_ = 0;

  FloatRows stream_;  // [row], between two phases
  kv::Arena frames_;  // keys and values of the layer at hand
  Workspace workspace_;
  OpenPass open_;
  StageItems items_;
  parallel::RangeFunction run_range_;

  std::vector<Phase> phases_;
  std::size_t phase_ = 0;
  std::size_t chunk_ = 0;  // its first row
  std::size_t stage_ = 0;
  bool chunk_open_ = false;
  std::size_t next_item_ = 0;
  std::size_t first_item_ = 0;  // of the job at hand
  std::uint64_t jobs_ = 0;
};

// What `rows` of an encoder's output, those of one text, become: one vector, or with kNone all of them.
// kUnsupported for kRank, which needs a matrix that no known model brings; `out` is appended to.
[[nodiscard]] Status pool_rows(const Encoder& encoder, std::size_t first, std::size_t count, Pooling pooling,
                               std::vector<float>& out);

}  // namespace kvasir::model
