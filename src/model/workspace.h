// The memory that a pass computes in, taken once for the largest pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/model.h"
#include "model/recurrent_scratch.h"
#include "model/rows.h"

namespace kvasir::model {

// Sizes of the largest pass.
struct PassLimits {
  std::uint32_t rows = 512;        // tokens in a pass
  std::uint32_t logit_rows = 512;  // rows of a pass whose logits are wanted
};

// Rows of one sequence that attend together, with `heads` of the query heads of each KV head.
struct AttentionBlock {
  std::uint32_t sequence = 0;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_head = 0;
  std::uint32_t heads = 0;
};

struct AttentionScratch {
  FloatRows query, key, value;            // [row]
  FloatRows gate;                         // [row]: of what is read
  InputRows attended;                     // [row]: what every query head has read, one behind the other
  FloatRows turned;                       // [variant]: the query, rotated
  std::vector<FloatRows> cosines, sines;  // [rotary table][variant]
  std::vector<kv::FrameRun> frame_runs;
  std::vector<kv::ResolvedRuns> resolved;            // [sequence]
  std::vector<std::vector<std::int32_t>> positions;  // [sequence]: of its cells by ordinal, for biases
  std::vector<AttentionBlock> blocks;
  // A long cache with few rows is read in pieces: how many there are of each block and KV head, and what is
  // kept of each tile for all queries of a block.
  std::size_t pieces = 1;
  std::size_t most_tiles = 0;  // of a block
  FloatRows kept;              // [(block, KV head) * most_tiles + tile]

  // Room for this many variants of queries in a pass (see OpenPass); there is always room for two a row.
  // kOutOfMemory, with nothing changed.
  [[nodiscard]] Status reserve_variants(const Network& network, std::size_t variants);
};

// Rows of heads lie head by head: row [head * rows of the pass + row].
struct LatentScratch {
  InputRows query;     // [row]: the query latent
  FloatRows joint;     // [row]: (latent, part to turn)
  FloatRows unpacked;  // [row]: all heads of the query
  InputRows plain;     // [head, row]
  FloatRows absorbed;  // [head, row]
  InputRows read;      // [head, row]: of latents
  FloatRows value;     // [head, row]
  InputRows values;    // [row]: all heads
};

struct FeedForwardScratch {
  InputRows gate;  // [row]
  FloatRows up;    // [row]
  FloatRows share;
};

// One expert's part of a pass: the assignments [first, first + count) go through it.
struct ExpertLoad {
  std::uint32_t expert = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// A token's use of one expert.
struct Assignment {
  std::uint32_t row = 0;
  float weight = 0;
};

// What experts need: assignments sorted by expert, and where those of each row are.
struct ExpertScratch {
  FloatRows router;                     // [row] scores of all experts
  FloatRows choice;                     // [row] the same with what they are chosen by
  InputRows input, gate;                // [assignment]
  FloatRows up, output;                 // [assignment]
  std::vector<Assignment> assignments;  // sorted by expert, then row
  std::vector<std::uint32_t> of_row;    // [row * used + i]: assignment of the row's i-th expert, ascending
  std::vector<std::uint32_t> chosen;    // [row * used + i]: that expert
  std::vector<ExpertLoad> loads;
};

// One pass uses it at a time. Parts run one after the other, so all parts of a kind share its scratch.
struct Workspace {
  // kOutOfMemory names the bytes.
  [[nodiscard]] static Result<Workspace> create(const Model& model, const PassLimits& limits);

  PassLimits limits;
  bool as_bytes = false;  // whether inputs of products are packed
  FloatRows hidden;       // [row]: the residual stream
  InputRows normed;       // [row]: what the body of a part reads; it is not written by it
  FloatRows product;      // [row]: what the body of a part gives
  FloatRows logits;       // [logits row]

  AttentionScratch attention;
  LatentScratch latent;
  FeedForwardScratch feed_forward;
  ExpertScratch experts;
  RecurrentScratch recurrent;
};

}  // namespace kvasir::model
