// The stages of attention: query, key and value; norm, rotation and storing; reading; the output.

#include "model/attention_stages.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/checked.h"
#include "base/try.h"
#include "model/part_kinds.h"
#include "simd/elementwise.h"
#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// A piece of a cache that is worth a thread's turn.
constexpr std::size_t kTilesOfPiece = 4;

// Finds where the cells of a sequence lie in this layer.
void resolve(const OpenPass& open, const CellAttention& cells, std::size_t index) {
  AttentionScratch& scratch = open.workspace->attention;
  const std::vector<pages::Run>& runs = open.pass.sequences[index].runs[cells.group];
  const std::vector<std::int64_t>& shifts = open.shifts[index];
  scratch.frame_runs.clear();
  scratch.frame_runs.reserve(runs.capacity());
  scratch.resolved[index].reserve(runs.capacity());
  for (const pages::Run& run : runs) {
    const auto variant = std::ranges::find(shifts, run.shift) - shifts.begin();
    scratch.frame_runs.push_back(
        {open.frame(cells, run.page), run.cell, run.count, run.ordinal, static_cast<std::uint32_t>(variant)});
  }
  open.arena->resolve(cells.geometry, scratch.frame_runs, scratch.resolved[index]);
}

// Where scores are biased: the positions of the cells that a sequence may see. Cells of a window that lie
// before them have none.
void find_positions(const OpenPass& open, const CellAttention& cells, std::size_t index) {
  if (cells.bias == nullptr) return;
  const std::vector<pages::Run>& runs = open.pass.sequences[index].runs[cells.group];
  std::vector<std::int32_t>& positions = open.workspace->attention.positions[index];
  const std::size_t end = runs.empty() ? 0 : runs.back().end();
  if (positions.capacity() < end) positions.reserve(std::max(end, 2 * positions.capacity()));
  positions.resize(end);
  for (const pages::Run& run : runs) {
    for (std::uint32_t i = 0; i < run.count; ++i)
      positions[run.ordinal + i] = static_cast<std::int32_t>(open.position(cells.group, run, i));
  }
}

// The tiles that the rows of a block see.
simd::KeptTiles tiles_of(const OpenPass& open, const CellAttention& cells, const AttentionBlock& block) {
  simd::KeptTiles tiles = {.begin = SIZE_MAX};
  for (std::uint32_t row = block.first_row; row < block.first_row + block.rows; ++row) {
    const Sight sight = open.sights.of(open.pass, cells.group, row);
    tiles.begin = std::min<std::size_t>(tiles.begin, sight.first / simd::kTile);
    tiles.end = std::max<std::size_t>(tiles.end, base::div_up<std::size_t>(sight.end, simd::kTile));
  }
  tiles.begin = std::min(tiles.begin, tiles.end);
  return tiles;
}

bool any_hidden(const OpenPass& open, const CellAttention& cells) {
  for (std::size_t row = 0; row < open.rows(); ++row) {
    if (!open.sights.of(open.pass, cells.group, row).hidden.empty()) return true;
  }
  return false;
}

// Where there are fewer blocks than threads can share, and caches are long, blocks are read in pieces.
// Without the memory for that they stay whole.
void plan_pieces(const OpenPass& open, const CellAttention& cells, std::size_t threads) {
  AttentionScratch& scratch = open.workspace->attention;
  scratch.pieces = 1;
  const std::size_t whole = scratch.blocks.size() * cells.geometry.kv_heads;
  if (threads == 1 || whole >= 2 * threads || any_hidden(open, cells)) return;
  std::size_t most = 0;
  for (const AttentionBlock& block : scratch.blocks) {
    const simd::KeptTiles tiles = tiles_of(open, cells, block);
    most = std::max(most, tiles.end - tiles.begin);
  }
  const std::size_t pieces = std::min(base::div_up(4 * threads, whole), most / kTilesOfPiece);
  if (pieces < 2) return;
  // Some tiles more than there are, so that not every tile that a conversation begins takes memory anew.
  const std::size_t width = simd::kQueriesAtOnce * simd::tile_floats(cells.geometry.value_dims);
  if (!grow(scratch.kept, std::bit_ceil(whole * most), width)) return;
  scratch.most_tiles = most;
  scratch.pieces = pieces;
}

void plan_reading(const OpenPass& open, const CellAttention& cells, StageItems& items) {
  AttentionScratch& scratch = open.workspace->attention;
  const std::uint32_t heads_at_once = std::min<std::uint32_t>(cells.heads_per_kv(), simd::kQueriesAtOnce);
  const std::uint32_t rows_at_once = simd::kQueriesAtOnce / heads_at_once;
  std::uint64_t visible = 1;
  scratch.blocks.clear();
  for (std::uint32_t index = 0; index < open.pass.sequences.size(); ++index) {
    const PassSequence& sequence = open.pass.sequences[index];
    resolve(open, cells, index);
    find_positions(open, cells, index);
    for (std::uint32_t row = 0; row < sequence.rows; row += rows_at_once) {
      for (std::uint32_t head = 0; head < cells.heads_per_kv(); head += heads_at_once) {
        scratch.blocks.push_back({index, sequence.first_row + row,
                                  std::min(rows_at_once, sequence.rows - row), head,
                                  std::min(heads_at_once, cells.heads_per_kv() - head)});
      }
    }
    const Sight sight = open.sights.of(open.pass, cells.group, sequence.first_row + sequence.rows - 1);
    visible = std::max(visible, sight.end - sight.first);
  }
  plan_pieces(open, cells, items.threads());
  const std::size_t dims = cells.geometry.key_dims + cells.geometry.value_dims;
  items.plan(scratch.blocks.size() * cells.geometry.kv_heads * scratch.pieces,
             simd::kQueriesAtOnce * dims * visible / scratch.pieces);
}

// A block and KV head: its queries, and the tiles that they see.
struct Reading {
  const AttentionBlock* block = nullptr;
  std::uint32_t kv_head = 0;
  std::array<simd::AttentionQuery, simd::kQueriesAtOnce> queries = {};
  std::size_t count = 0;

  [[nodiscard]] std::span<const simd::AttentionQuery> all() const { return std::span(queries).first(count); }
};

Reading reading_of(const OpenPass& open, const CellAttention& cells, std::size_t index) noexcept {
  AttentionScratch& scratch = open.workspace->attention;
  const AttentionBlock& block = scratch.blocks[index / cells.geometry.kv_heads];
  Reading reading = {&block, static_cast<std::uint32_t>(index % cells.geometry.kv_heads)};
  for (std::uint32_t row = block.first_row; row < block.first_row + block.rows; ++row) {
    const Sight sight = open.sights.of(open.pass, cells.group, row);
    for (std::uint32_t i = 0; i < block.heads; ++i) {
      const std::size_t head = reading.kv_head * cells.heads_per_kv() + block.first_head + i;
      simd::AttentionQuery& query = reading.queries[reading.count++];
      query.query = scratch.turned.row(open.variants[row].first).data() + head * cells.geometry.key_dims;
      query.out = scratch.attended.row(row).data() + head * cells.geometry.value_dims;
      query.visible = sight.end;
      query.first = sight.first;
      query.variant_stride = scratch.turned.stride();
      query.hidden = sight.hidden;
      if (!cells.sinks.empty()) query.sink = cells.sinks[head];
      if (cells.bias == nullptr) continue;
      query.bias = cells.bias->of(head);
      query.position = static_cast<std::int32_t>(open.pass.rows[row].position);
    }
  }
  return reading;
}

kv::Arena::Scoring scoring_of(const OpenPass& open, const CellAttention& cells, std::uint32_t sequence) {
  kv::Arena::Scoring scoring{.scale = cells.scale, .soft_cap = cells.soft_cap};
  if (cells.bias != nullptr) {
    scoring.positions = open.workspace->attention.positions[sequence].data();
    scoring.reach = cells.bias->reach;
  }
  return scoring;
}

void read_cells(const OpenPass& open, const CellAttention& cells, std::size_t item) noexcept {
  AttentionScratch& scratch = open.workspace->attention;
  const std::size_t whole = item / scratch.pieces;
  const Reading reading = reading_of(open, cells, whole);
  const kv::ResolvedRuns& runs = scratch.resolved[reading.block->sequence];
  const kv::Arena::Scoring scoring = scoring_of(open, cells, reading.block->sequence);
  if (scratch.pieces == 1)
    return open.arena->attend(cells.geometry, reading.kv_head, scoring, runs, reading.all());
  const simd::KeptTiles tiles = tiles_of(open, cells, *reading.block);
  const std::size_t piece = item % scratch.pieces;
  const std::size_t begin = (tiles.end - tiles.begin) * piece / scratch.pieces;
  const std::size_t end = (tiles.end - tiles.begin) * (piece + 1) / scratch.pieces;
  if (begin == end) return;
  float* const kept = scratch.kept.row(whole * scratch.most_tiles).data() +
                      begin * reading.count * simd::tile_floats(cells.geometry.value_dims);
  open.arena->attend_tiles(cells.geometry, reading.kv_head, scoring, runs, reading.all(),
                           {tiles.begin + begin, tiles.begin + end, kept});
}

void merge_pieces(const OpenPass& open, const CellAttention& cells, std::size_t index) noexcept {
  AttentionScratch& scratch = open.workspace->attention;
  const Reading reading = reading_of(open, cells, index);
  simd::KeptTiles tiles = tiles_of(open, cells, *reading.block);
  tiles.kept = scratch.kept.row(index * scratch.most_tiles).data();
  open.arena->merge_tiles(cells.geometry, reading.all(), tiles);
}

}  // namespace

Status AttentionScratch::reserve_variants(const Network& network, std::size_t variants) {
  if (variants <= turned.rows() || query.width() == 0) return {};
  KVASIR_ASSIGN(FloatRows more_turned, FloatRows::allocate(variants, query.width()));
  std::vector<FloatRows> more_cosines;
  std::vector<FloatRows> more_sines;
  for (const simd::RotaryTable& table : network.rotary) {
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

Status reserve_cells(const CellAttention& cells, Workspace& workspace) {
  AttentionScratch& scratch = workspace.attention;
  const std::size_t rows = workspace.limits.rows;
  const std::size_t kv_heads = cells.geometry.kv_heads;
  KVASIR_TRY(grow(scratch.query, rows, std::size_t{cells.heads} * cells.geometry.key_dims));
  KVASIR_TRY(grow(scratch.key, rows, kv_heads * cells.geometry.key_dims));
  KVASIR_TRY(grow(scratch.value, rows, kv_heads * cells.geometry.value_dims));
  KVASIR_TRY(
      grow(scratch.attended, rows, std::size_t{cells.heads} * cells.geometry.value_dims, workspace.as_bytes));
  scratch.resolved.resize(rows);
  if (cells.bias != nullptr) scratch.positions.resize(rows);
  return {};
}

void add_turning(const Network& network, StageList& stages) {
  if (network.rotary.empty()) return;
  stages.add_rows(network.rotary.size() * 1024, [](OpenPass& open, std::size_t row) {
    AttentionScratch& scratch = open.workspace->attention;
    const std::vector<std::int64_t>& shifts = open.shifts_of(row);
    for (std::size_t table = 0; table < scratch.cosines.size(); ++table) {
      for (std::size_t i = 0; i < shifts.size(); ++i) {
        const std::size_t variant = open.variants[row].first + i;
        open.network->rotary[table].turn_at(static_cast<double>(open.pass.rows[row].position - shifts[i]),
                                            scratch.cosines[table].row(variant),
                                            scratch.sines[table].row(variant));
      }
    }
  });
}

void turn_heads(const OpenPass& open, const CellAttention& cells, std::span<float> heads,
                std::size_t variant) noexcept {
  const AttentionScratch& scratch = open.workspace->attention;
  const simd::RotaryTable& table = open.network->rotary[cells.rotary];
  const std::span<const float> cosines = scratch.cosines[cells.rotary].row(variant);
  const std::span<const float> sines = scratch.sines[cells.rotary].row(variant);
  for (std::size_t at = 0; at < heads.size(); at += cells.geometry.key_dims) {
    table.rotate(heads.subspan(at, cells.geometry.key_dims), cosines, sines);
  }
}

void turn_query(const OpenPass& open, const CellAttention& cells, std::size_t row) noexcept {
  AttentionScratch& scratch = open.workspace->attention;
  const std::span<float> raw =
      scratch.query.row(row).first(std::size_t{cells.heads} * cells.geometry.key_dims);
  for (std::size_t i = 0; i < open.shifts_of(row).size(); ++i) {
    const std::size_t variant = open.variants[row].first + i;
    const std::span<float> turned = scratch.turned.row(variant).first(raw.size());
    std::ranges::copy(raw, turned.begin());
    turn_heads(open, cells, turned, variant);
  }
}

void store_key_value(const OpenPass& open, const CellAttention& cells, std::size_t row) noexcept {
  AttentionScratch& scratch = open.workspace->attention;
  const std::size_t kv_heads = cells.geometry.kv_heads;
  const std::span<float> keys = scratch.key.row(row).first(kv_heads * cells.geometry.key_dims);
  turn_heads(open, cells, keys, open.variants[row].own);
  const CellPlace& place = open.pass.places[cells.group][row];
  open.arena->store(cells.geometry, open.frame(cells, place.page), place.cell, keys,
                    scratch.value.row(row).first(kv_heads * cells.geometry.value_dims));
}

void store_cell(const OpenPass& open, const CellAttention& cells, std::size_t row) noexcept {
  store_key_value(open, cells, row);
  turn_query(open, cells, row);
}

void add_reading(const CellAttention& cells, StageList& stages) {
  stages.add({.plan = [&cells](OpenPass& open, StageItems& items) { plan_reading(open, cells, items); },
              .run = [&cells](OpenPass& open, std::size_t item) { read_cells(open, cells, item); },
              .attends = true});
  stages.add({.plan =
                  [&cells](OpenPass& open, StageItems& items) {
                    const AttentionScratch& scratch = open.workspace->attention;
                    if (scratch.pieces == 1) return;
                    items.plan(scratch.blocks.size() * cells.geometry.kv_heads,
                               scratch.most_tiles * simd::kQueriesAtOnce * cells.geometry.value_dims);
                  },
              .run = [&cells](OpenPass& open, std::size_t item) { merge_pieces(open, cells, item); },
              .attends = true});
}

Status reserve(const Attention& part, Workspace& workspace) {
  if (part.gate) {
    KVASIR_TRY(grow(workspace.attention.gate, workspace.limits.rows, part.gate->out()));
  }
  return reserve_cells(part.cells, workspace);
}

namespace {

void take_query(const Attention& part, const OpenPass& open, std::size_t row) noexcept {
  const std::span<float> query = open.workspace->attention.query.row(row).first(part.query.out());
  if (part.query_norm) apply(*part.query_norm, query, query);
  turn_query(open, part.cells, row);
}

void keep_key(const Attention& part, const OpenPass& open, std::size_t row) noexcept {
  const std::span<float> key = open.workspace->attention.key.row(row).first(part.key.out());
  if (part.key_norm) apply(*part.key_norm, key, key);
  store_key_value(open, part.cells, row);
}

void add_query(const Attention& part, OpenPass& open, StageItems& items) {
  Workspace& w = *open.workspace;
  const ProductInput normed = w.normed.columns(0, open.rows());
  items.add_product(part.query, normed, w.attention.query.output());
  if (part.gate) items.add_product(*part.gate, normed, w.attention.gate.output());
}

void add_keys_and_values(const Attention& part, OpenPass& open, StageItems& items) {
  Workspace& w = *open.workspace;
  const ProductInput normed = w.normed.columns(0, open.rows());
  items.add_product(part.key, normed, w.attention.key.output());
  items.add_product(part.value, normed, w.attention.value.output());
}

// What the queries have read becomes what the part gives.
void add_read(const Attention& part, StageList& stages) {
  add_reading(part.cells, stages);
  stages.add_rows(part.output.in(), [&part](OpenPass& open, std::size_t row) {
    AttentionScratch& scratch = open.workspace->attention;
    if (part.gate) {
      const std::span<float> gate = scratch.gate.row(row).first(part.output.in());
      simd::sigmoid(gate);
      simd::multiply_by(scratch.attended.row(row).first(part.output.in()), gate);
    }
    scratch.attended.pack(row, part.output.in());
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.attention.attended.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace

void add_stages(const Attention& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    add_query(part, open, items);
    add_keys_and_values(part, open, items);
  });
  stages.add_rows(part.query.out() * 8, [&part](OpenPass& open, std::size_t row) {
    take_query(part, open, row);
    keep_key(part, open, row);
  });
  add_read(part, stages);  // a stage of its own, so behind all that is stored (F2)
}

void add_keys(const Attention& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) { add_keys_and_values(part, open, items); });
  stages.add_rows(part.key.out() * 8,
                  [&part](OpenPass& open, std::size_t row) { keep_key(part, open, row); });
}

void add_queries(const Attention& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) { add_query(part, open, items); });
  stages.add_rows(part.query.out() * 8,
                  [&part](OpenPass& open, std::size_t row) { take_query(part, open, row); });
  add_read(part, stages);
}

Status reserve(const CrossAttention& part, Workspace& workspace) {
  return reserve(part.attention, workspace);
}

void add_stages(const CrossAttention& part, StageList& stages) {
  add_queries(part.attention, stages);
}

}  // namespace kvasir::model
