#include "fake_arena.h"

#include <cstring>
#include <utility>

#include "random.h"

namespace kvasir::pages::test {
namespace {

constexpr std::uint64_t kPoison = 0xA5A5A5A5A5A5A5A5;
constexpr std::uint64_t kTurn = 0x9E3779B97F4A7C15;  // what one position adds

std::uint64_t stored(Contents contents, std::size_t group, std::uint32_t layer, std::uint64_t position) {
  return mix(contents + group * 64 + layer) + kTurn * position;
}

}  // namespace

FakeArena::FakeArena(const PageStore& store)
    : store_(&store), values_(store.space().frames * store.page_cells(), kPoison) {}

std::uint64_t& FakeArena::value(std::size_t group, CellAt at, std::uint32_t layer) {
  const auto frame = static_cast<std::size_t>(store_->frame(group, at.page, layer));
  return values_.at(frame * store_->page_cells() + at.cell);
}

std::uint64_t FakeArena::value(std::size_t group, CellAt at, std::uint32_t layer) const {
  if (in_tier(at.page)) {
    const TierRunId run = tier_run(at.page);
    const std::vector<std::uint64_t>& away = away_.at(store_->tier_runs().block(run));
    return away.at(std::size_t{layer} * store_->tier_runs().cells(run) + at.cell);
  }
  const auto frame = static_cast<std::size_t>(store_->frame(group, at.page, layer));
  return values_.at(frame * store_->page_cells() + at.cell);
}

TierBlock FakeArena::put_away(const CellRun& run) {
  const TierBlock block{2 * ++blocks_made_};  // odd names are left to others
  std::vector<std::uint64_t>& away = away_[block];
  for (std::uint32_t layer = 0; layer < store_->group(run.group).layers(); ++layer) {
    for (std::uint32_t i = 0; i < run.count; ++i)
      away.push_back(std::as_const(*this).value(run.group, {run.at.page, run.at.cell + i}, layer));
  }
  return block;
}

void FakeArena::perform(const FetchCells& job) {
  for (std::uint32_t layer = 0; layer < store_->group(job.group).layers(); ++layer) {
    for (std::uint32_t i = 0; i < job.count; ++i) {
      value(job.group, {job.to.page, job.to.cell + i}, layer) =
          std::as_const(*this).value(job.group, {tier_page(job.run), job.first + i}, layer);
    }
  }
}

void FakeArena::write(std::size_t group, CellAt at, Contents contents) {
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    value(group, at, layer) = stored(contents, group, layer, store_->position(group, at.page, at.cell));
  }
}

void FakeArena::perform(std::span<const CopyCells> jobs) {
  for (const CopyCells& job : jobs) {
    for (std::uint32_t layer = 0; layer < store_->group(job.group).layers(); ++layer) {
      for (std::uint32_t i = 0; i < job.count; ++i) {
        value(job.group, {job.to.page, job.to.cell + i}, layer) =
            value(job.group, {job.from.page, job.from.cell + i}, layer);
      }
    }
  }
}

void FakeArena::perform(const RotateCells& job) {
  perform({&job.cells, 1});
  for (std::uint32_t layer = 0; layer < store_->group(job.cells.group).layers(); ++layer) {
    for (std::uint32_t i = 0; i < job.turns.size(); ++i) {
      value(job.cells.group, {job.cells.to.page, job.cells.to.cell + i}, layer) +=
          kTurn * static_cast<std::uint64_t>(job.turns[i]);
    }
  }
}

void FakeArena::perform(const SwapCells& job) {
  for (std::uint32_t layer = 0; layer < store_->group(job.group).layers(); ++layer) {
    std::swap(value(job.group, job.a, layer), value(job.group, job.b, layer));
  }
}

bool FakeArena::holds(std::size_t group, CellAt at, Contents contents, std::uint32_t /*turns*/) const {
  const std::uint64_t position = store_->position(group, at.page, at.cell);
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    if (value(group, at, layer) != stored(contents, group, layer, position)) return false;
  }
  return true;
}

void FakeArena::poison_free_cells() {
  std::vector<std::uint64_t> kept(values_.size(), kPoison);
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    const GroupCells& cells = store_->group(group);
    for (std::uint32_t page = 0; page < cells.page_count(); ++page) {
      if (cells.held_cells(PageId{page}) == 0) continue;
      for (const FrameId frame : cells.frames(PageId{page})) {
        for (std::uint32_t cell = 0; cell < cells.page_cells(); ++cell) {
          const std::size_t at = static_cast<std::size_t>(frame) * store_->page_cells() + cell;
          if (cells.holders(PageId{page}, cell) > 0) kept[at] = values_[at];
        }
      }
    }
  }
  values_.swap(kept);
}

std::vector<std::byte> FakeArena::save_cell(std::size_t group, CellAt at) const {
  std::vector<std::uint64_t> numbers;
  append_cell(group, at, numbers);
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

void FakeArena::load_cell(std::size_t group, CellAt at, std::span<const std::byte> bytes) {
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    std::memcpy(&value(group, at, layer), bytes.data() + layer * sizeof(std::uint64_t),
                sizeof(std::uint64_t));
  }
}

void FakeArena::append_cell(std::size_t group, CellAt at, std::vector<std::uint64_t>& out) const {
  for (std::uint32_t layer = 0; layer < store_->group(group).layers(); ++layer) {
    out.push_back(value(group, at, layer));
  }
}

}  // namespace kvasir::pages::test
