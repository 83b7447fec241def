#include "real_arena.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

#include "kv/cell_twin.h"
#include "kv/copy_plan.h"

namespace kvasir::pages::test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}

// The numbers of a new cell, from what it was computed from and where.
kv::Floats numbers(std::uint64_t seed, std::size_t count) {
  kv::Floats all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = static_cast<float>(static_cast<double>(mix(seed + i) >> 40) / (1 << 23) - 1);
  }
  return all;
}

struct Rows {
  kv::Floats keys, values;
};

Rows rows_of(const kv::LayerGeometry& layer, std::uint64_t seed) {
  return {numbers(mix(seed), std::size_t{layer.kv_heads} * layer.key_dims),
          numbers(mix(seed + 1), std::size_t{layer.kv_heads} * layer.value_dims)};
}

std::uint64_t seed_of(std::size_t group, std::uint32_t layer, Contents contents, std::int64_t position) {
  return mix(mix(contents + group * 64 + layer) ^ static_cast<std::uint64_t>(position));
}

}  // namespace

RealArena::RealArena(const PageStore& store, const Turns& turns, Random& random,
                     std::vector<kv::LayerGeometry> geometry)
    : store_(&store), turns_(&turns), states_(store), geometry_(std::move(geometry)) {
  types_ = random.one_of(kv::all_types());
  while (geometry_.size() < store.group_count()) {
    geometry_.push_back({static_cast<std::uint32_t>(random.between(1, 2)),
                         random.one_of(std::vector<std::uint32_t>{4, 32, 40}),
                         random.one_of(std::vector<std::uint32_t>{3, 32, 36})});
  }
  simd::RotarySpec spec;
  spec.dims = random.percent(50) ? 4 : 2;
  pairing_ = random.percent(50) ? simd::RopePairing::kAdjacent : simd::RopePairing::kHalves;
  spec.pairing = pairing_;
  rotary_ = value_of(simd::RotaryTable::make(spec));
  arena_ = value_of(kv::Arena::create(geometry_, types_, store.page_cells(), store.spec().frames));
}

std::string RealArena::name() const {
  return std::string(kv::element_name(types_.keys)) + " keys and " +
         std::string(kv::element_name(types_.values)) + " values";
}

bool RealArena::is_state(std::size_t group) const {
  return store_->spec().groups[group].kind == GroupKind::kRecurrent;
}

kv::FrameCell RealArena::place(std::size_t group, CellAt at, std::uint32_t layer) const {
  return {store_->frame(group, at.page, layer), at.cell};
}

void RealArena::write(std::size_t group, CellAt at, Contents contents) {
  if (is_state(group)) return states_.write(group, at, contents);
  const auto position = static_cast<std::int64_t>(store_->position(group, at.page, at.cell));
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    const Rows rows = rows_of(geometry_[group], seed_of(group, layer, contents, position));
    arena_.store(geometry_[group], store_->frame(group, at.page, layer), at.cell, rows.keys, rows.values);
  }
}

void RealArena::perform(std::span<const CopyCells> jobs) {
  const std::uint32_t group = jobs.front().group;
  const kv::CopyPlan plan(jobs, types_.keys);
  std::vector<FrameId> frames;
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    frames.clear();
    for (const PageId page : plan.pages()) frames.push_back(store_->frame(group, page, layer));
    arena_.copy_cells(geometry_[group], plan, frames);
  }
}

void RealArena::perform(const RotateCells& job) {
  const CopyCells& cells = job.cells;
  for (std::uint32_t layer = 0; layer < store_->group(cells.group).layers(); ++layer) {
    arena_.rotate_cells(geometry_[cells.group], rotary_, place(cells.group, cells.from, layer),
                        place(cells.group, cells.to, layer), job.turns);
  }
}

void RealArena::perform(const SwapCells& job) {
  for (std::uint32_t layer = 0; layer < store_->group(job.group).layers(); ++layer) {
    arena_.swap_cells(geometry_[job.group], place(job.group, job.a, layer), place(job.group, job.b, layer));
  }
}

// States are put away as numbers, by even names.
TierBlock RealArena::put_away(const CellRun& run) {
  if (is_state(run.group)) return states_.put_away(run);
  const TierBlock block{2 * ++blocks_made_ + 1};
  const kv::LayerGeometry& geometry = geometry_[run.group];
  const std::size_t bytes = run.count * arena_.cell_bytes(geometry);
  CellRows& away = away_[block];
  away.resize(bytes * store_->group(run.group).layers());
  for (std::uint32_t layer = 0; layer < store_->group(run.group).layers(); ++layer) {
    arena_.export_cells(geometry, place(run.group, run.at, layer), run.count,
                        std::span(away).subspan(layer * bytes, bytes));
  }
  return block;
}

void RealArena::perform(const FetchCells& job) {
  if (is_state(job.group)) return states_.perform(job);
  const kv::LayerGeometry& geometry = geometry_[job.group];
  const CellRows& away = away_.at(store_->tier_runs().block(job.run));
  const std::size_t cell = arena_.cell_bytes(geometry);
  for (std::uint32_t layer = 0; layer < store_->group(job.group).layers(); ++layer) {
    const std::size_t from = (std::size_t{layer} * store_->tier_runs().cells(job.run) + job.first) * cell;
    arena_.import_cells(geometry, place(job.group, job.to, layer), job.count,
                        std::span(away).subspan(from, job.count * cell));
  }
}

void RealArena::forget(TierBlock block) {
  if (static_cast<std::uint64_t>(block) % 2 == 0) return states_.forget(block);
  away_.erase(block);
}

// Appends the bytes of one layer of a cell, wherever it lies.
void RealArena::append_row(std::size_t group, CellAt at, std::uint32_t layer, CellRows& out) const {
  const kv::LayerGeometry& geometry = geometry_[group];
  if (!in_tier(at.page)) {
    return arena_.append_cell(geometry, store_->frame(group, at.page, layer), at.cell, out);
  }
  const TierRunId run = tier_run(at.page);
  const std::size_t cell = arena_.cell_bytes(geometry);
  const CellRows& away = away_.at(store_->tier_runs().block(run));
  const auto from =
      away.begin() +
      static_cast<std::ptrdiff_t>((std::size_t{layer} * store_->tier_runs().cells(run) + at.cell) * cell);
  out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(cell));
}

// A cell as it was computed and then turned, each time rounded to its type again.
const RealArena::CellRows& RealArena::expected(std::size_t group, std::uint32_t layer, Contents contents,
                                               std::int64_t position, std::uint32_t turns) const {
  std::vector<std::int64_t> distances;
  for (std::uint32_t turn = turns; turn != 0; turn = turns_->at(turn).before) {
    distances.push_back(turns_->at(turn).turn);
    position -= turns_->at(turn).turn;
  }
  const std::uint64_t seed = seed_of(group, layer, contents, position);
  std::uint64_t key = seed;
  for (const std::int64_t distance : distances) key = mix(key ^ static_cast<std::uint64_t>(distance));
  CellRows& rows = known_[key];
  if (!rows.empty()) return rows;
  const kv::LayerGeometry& geometry = geometry_[group];
  const Rows fresh = rows_of(geometry, seed);
  kv::TwinCell cell = kv::encode_cell(geometry, types_, fresh.keys, fresh.values);
  for (const std::int64_t distance : distances | std::views::reverse) {
    for (kv::Bytes& head : cell.keys) {
      head = kv::turned(types_.keys, head, geometry.key_dims, rotary_, pairing_, distance);
    }
  }
  rows = cell.bytes();
  return rows;
}

bool RealArena::holds(std::size_t group, CellAt at, Contents contents, std::uint32_t turns) const {
  if (is_state(group)) return states_.holds(group, at, contents, turns);
  const auto position = static_cast<std::int64_t>(store_->position(group, at.page, at.cell));
  CellRows there;
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    there.clear();
    append_row(group, at, layer, there);
    if (there != expected(group, layer, contents, position, turns)) return false;
  }
  return true;
}

void RealArena::poison_free_cells() {
  states_.poison_free_cells();
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    if (is_state(group)) continue;
    const GroupCells& cells = store_->group(group);
    for (std::uint32_t page = 0; page < cells.page_count(); ++page) {
      if (cells.held_cells(PageId{page}) == 0) continue;
      for (std::uint32_t cell = 0; cell < cells.page_cells(); ++cell) {
        if (cells.holders(PageId{page}, cell) > 0) continue;
        for (std::uint32_t layer = 0; layer < cells.layers(); ++layer) {
          arena_.poison_cells(geometry_[group], place(group, {PageId{page}, cell}, layer), 1);
        }
      }
    }
  }
}

void RealArena::append_cell(std::size_t group, CellAt at, std::vector<std::uint64_t>& out) const {
  if (is_state(group)) return states_.append_cell(group, at, out);
  CellRows there;
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    there.clear();
    append_row(group, at, layer, there);
    std::uint64_t hash = there.size();
    for (const std::byte byte : there) hash = mix(hash ^ static_cast<std::uint64_t>(byte));
    out.push_back(hash);
  }
}

std::vector<std::byte> RealArena::save_cell(std::size_t group, CellAt at) const {
  if (is_state(group)) return states_.save_cell(group, at);
  CellRows rows;
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    append_row(group, at, layer, rows);
  }
  return rows;
}

void RealArena::load_cell(std::size_t group, CellAt at, std::span<const std::byte> bytes) {
  if (is_state(group)) return states_.load_cell(group, at, bytes);
  const std::size_t size = arena_.cell_bytes(geometry_[group]);
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    arena_.import_cells(geometry_[group], place(group, at, layer), 1, bytes.subspan(layer * size, size));
  }
}

}  // namespace kvasir::pages::test
