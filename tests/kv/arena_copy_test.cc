// The copy jobs against a twin that knows cells only: after every job each cell of every frame holds what the
// twin holds, so a job does what it says and touches nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "kv/arena.h"
#include "kv/cell_twin.h"
#include "kv/copy_plan.h"
#include "support/allocations.h"

namespace kvasir::kv {
namespace {

constexpr std::uint32_t kFrames = 3;

struct Turning {
  simd::RotaryTable table;
  simd::RopePairing pairing{};
};

// Tables that turn all of a head or a part of it, with an attention factor that must not show.
std::vector<Turning> turnings(std::uint32_t key_dims) {
  std::vector<Turning> all;
  for (const auto pairing : {simd::RopePairing::kAdjacent, simd::RopePairing::kHalves}) {
    for (const std::size_t dims : {std::size_t{key_dims} / 2 * 2, std::size_t{key_dims} / 4 * 2}) {
      simd::RotarySpec spec;
      spec.dims = dims;
      spec.pairing = pairing;
      spec.attention_factor = 1.5;
      spec.frequency_scale = 0.5;
      spec.yarn = simd::YarnSpec{.original_context = 64};
      const auto table = simd::RotaryTable::make(spec);
      EXPECT_TRUE(table.has_value());
      if (table) all.push_back({*table, pairing});
    }
  }
  all.push_back({simd::RotaryTable(), simd::RopePairing::kAdjacent});
  return all;
}

// An arena and its twin. Every act is done to both.
class Pair {
 public:
  Pair(const Shape& shape, const CacheTypes& types, std::mt19937& random)
      : shape_(shape), types_(types), random_(&random), turnings_(turnings(shape.layer.key_dims)) {
    auto arena = Arena::create({&shape.layer, 1}, types, shape.page_cells, kFrames);
    EXPECT_TRUE(arena.has_value());
    arena_ = *std::move(arena);
    twin_.resize(kFrames, std::vector<TwinCell>(shape.page_cells));
    for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
      for (std::uint32_t cell = 0; cell < shape.page_cells; ++cell) store({pages::FrameId{frame}, cell});
    }
  }

  void store(FrameCell at) {
    const LayerGeometry& layer = shape_.layer;
    const Floats keys = random_floats(std::size_t{layer.kv_heads} * layer.key_dims, *random_);
    const Floats values = random_floats(std::size_t{layer.kv_heads} * layer.value_dims, *random_);
    arena_.store(layer, at.frame, at.cell, keys, values);
    twin(at) = encode_cell(layer, types_, keys, values);
  }

  void copy() {
    const Ranges r = ranges();
    copy_all(arena_, shape_.layer, {{0, page_of(r.from), page_of(r.to), r.count}});
    for (std::uint32_t i = 0; i < r.count; ++i) twin(r.to, i) = twin(r.from, i);
  }

  // Many runs at once from everywhere to everywhere, each cell in one of them: what compactions plan. Often
  // whole groups of lanes are put together of single cells.
  void gather() {
    std::vector<FrameCell> all;
    const std::uint32_t sources = kFrames - below(2);
    for (std::uint32_t frame = 0; frame < sources; ++frame) {
      for (std::uint32_t cell = 0; cell < shape_.page_cells; ++cell) {
        all.push_back({pages::FrameId{frame}, cell});
      }
    }
    const std::uint32_t run_max = 1 + below(3) * below(20);
    std::vector<FrameCell> from;
    while (!all.empty()) {  // runs in random order, which do not cross pages
      const std::size_t at = below(static_cast<std::uint32_t>(all.size()));
      std::size_t end = at + 1;
      const std::size_t most = std::min<std::size_t>(all.size(), at + 1 + below(run_max));
      while (end < most && all[end].frame == all[at].frame && all[end].cell == all[end - 1].cell + 1) ++end;
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last = all.begin() + static_cast<std::ptrdiff_t>(end);
      from.insert(from.end(), first, last);
      all.erase(first, last);
    }
    // The first part goes into cells of the last frame that are not of it.
    std::vector<FrameCell> to;
    from.resize(1 + below(shape_.page_cells));
    const std::uint32_t begin = below(2) * below(shape_.page_cells);
    for (std::uint32_t cell = begin; cell < shape_.page_cells; ++cell) {
      const FrameCell at{pages::FrameId{kFrames - 1}, cell};
      const auto same = [&](const FrameCell& other) { return other.frame == at.frame && other.cell == cell; };
      if (std::ranges::none_of(from, same)) to.push_back(at);
    }
    std::vector<pages::CopyCells> copies;
    std::vector<TwinCell> moved;
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      moved.push_back(twin(from[i]));
      const pages::CopyCells one{0, page_of(from[i]), page_of(to[i]), 1};
      const bool beside = !copies.empty() && copies.back().from.page == one.from.page &&
                          copies.back().from.cell + copies.back().count == one.from.cell &&
                          copies.back().to.cell + copies.back().count == one.to.cell;
      if (beside) {
        ++copies.back().count;
      } else {
        copies.push_back(one);
      }
    }
    copy_all(arena_, shape_.layer, copies);
    for (std::size_t i = 0; i < moved.size(); ++i) twin(to[i]) = moved[i];
  }

  // Copies in an arena whose pages are its frames.
  static void copy_all(Arena& arena, const LayerGeometry& layer,
                       const std::vector<pages::CopyCells>& copies) {
    const CopyPlan plan(copies, arena.types().keys);
    std::vector<pages::FrameId> frames;
    for (const pages::PageId page : plan.pages())
      frames.push_back(pages::FrameId{static_cast<std::uint32_t>(page)});
    arena.copy_cells(layer, plan, frames, std::vector(frames.rbegin(), frames.rend()));
  }
  static pages::CellAt page_of(FrameCell at) {
    return {pages::PageId{static_cast<std::uint32_t>(at.frame)}, at.cell};
  }

  void swap() {
    const FrameCell a = any_cell();
    const FrameCell b = any_cell();
    arena_.swap_cells(shape_.layer, a, b);
    std::swap(twin(a), twin(b));
  }

  void rotate() {
    Ranges r = ranges();
    if (below(3) == 0) r.to = r.from;
    std::vector<std::int64_t> turns(r.count);
    for (std::size_t i = 0; i < turns.size(); ++i) {
      turns[i] = i > 0 && below(2) == 0 ? turns[i - 1] : std::int64_t{below(4000)} - 2000;
      if (below(4) == 0) turns[i] = 0;
    }
    const Turning& turning = turnings_[below(static_cast<std::uint32_t>(turnings_.size()))];
    arena_.rotate_cells(shape_.layer, turning.table, r.from, r.to, turns);
    for (std::uint32_t i = 0; i < r.count; ++i) {
      TwinCell cell = twin(r.from, i);
      for (Bytes& key : cell.keys) {
        key = turned(types_.keys, key, shape_.layer.key_dims, turning.table, turning.pairing, turns[i]);
      }
      twin(r.to, i) = cell;
    }
  }

  // Takes cells out and puts them elsewhere, where they may overlap.
  void carry() {
    const auto count = 1 + below(shape_.page_cells);
    const FrameCell from{pages::FrameId{below(kFrames)}, below(shape_.page_cells - count + 1)};
    const FrameCell to{pages::FrameId{below(kFrames)}, below(shape_.page_cells - count + 1)};
    Bytes bytes(count * arena_.cell_bytes(shape_.layer));
    arena_.export_cells(shape_.layer, from, count, bytes);
    arena_.import_cells(shape_.layer, to, count, bytes);
    const std::vector<TwinCell> moved(&twin(from), &twin(from) + count);
    std::ranges::copy(moved, &twin(to));
  }

  // Takes cells out and puts them wherever there is a lane, in runs as they come.
  void scatter() {
    const auto count = 1 + below(std::min(shape_.page_cells, 40U));
    const FrameCell from{pages::FrameId{below(kFrames)}, below(shape_.page_cells - count + 1)};
    Bytes bytes(count * arena_.cell_bytes(shape_.layer));
    const FrameCell next = any_cell();
    const std::uint32_t most = shape_.page_cells - next.cell;
    arena_.export_cells(shape_.layer, from, count, bytes, count <= most ? &next : nullptr);
    const std::vector<TwinCell> moved(&twin(from), &twin(from) + count);
    std::vector<FrameRun> runs;
    FrameCell to = any_cell();
    for (std::uint32_t done = 0; done < count; done += runs.back().count) {
      if (to.cell == shape_.page_cells)
        to = {pages::FrameId{(static_cast<std::uint32_t>(to.frame) + 1) % kFrames}, 0};
      const std::uint32_t some = 1 + below(std::min(count - done, shape_.page_cells - to.cell));
      runs.push_back({.frame = to.frame, .cell = to.cell, .count = some});
      std::copy_n(moved.begin() + done, some, &twin(to));
      to.cell = std::min(shape_.page_cells, to.cell + some + below(3));
    }
    arena_.import_runs(shape_.layer, runs, bytes);
  }

  // Any bytes at all.
  void import_noise() {
    const FrameCell to = any_cell();
    for (auto* rows : {&twin(to).keys, &twin(to).values}) {
      for (Bytes& row : *rows) {
        for (std::byte& byte : row) byte = static_cast<std::byte>((*random_)());
      }
    }
    arena_.import_cells(shape_.layer, to, 1, twin(to).bytes());
  }

  void poison() {
    const auto count = 1 + below(std::min(shape_.page_cells, 20U));
    const FrameCell at{pages::FrameId{below(kFrames)}, below(shape_.page_cells - count + 1)};
    arena_.poison_cells(shape_.layer, at, count);
    const Bytes after = page(at.frame);
    const std::size_t size = arena_.cell_bytes(shape_.layer);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto begin = after.begin() + static_cast<std::ptrdiff_t>((at.cell + i) * size);
      adopt(twin(at, i), {begin, begin + static_cast<std::ptrdiff_t>(size)});
      expect_nan(twin(at, i));
    }
  }

  // The twin of every frame, cell by cell.
  [[nodiscard]] testing::AssertionResult agree() const {
    for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
      const Bytes all = page(pages::FrameId{frame});
      const std::size_t size = arena_.cell_bytes(shape_.layer);
      for (std::uint32_t cell = 0; cell < shape_.page_cells; ++cell) {
        const Bytes expected = twin_[frame][cell].bytes();
        if (!std::equal(expected.begin(), expected.end(),
                        all.begin() + static_cast<std::ptrdiff_t>(cell * size)))
          return testing::AssertionFailure() << "frame " << frame << ", cell " << cell << " differs";
      }
    }
    return testing::AssertionSuccess();
  }

  [[nodiscard]] Arena& arena() { return arena_; }

 private:
  struct Ranges {
    FrameCell from, to;
    std::uint32_t count = 0;
  };

  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>((*random_)() % count); }
  FrameCell any_cell() { return {pages::FrameId{below(kFrames)}, below(shape_.page_cells)}; }

  // Two ranges that do not overlap, often of one frame and whole groups.
  Ranges ranges() {
    while (true) {
      Ranges r{any_cell(), any_cell(), 1 + below(shape_.page_cells)};
      if (below(3) == 0) {
        r.from.cell = r.from.cell / 16 * 16;
        r.to.cell = r.to.cell / 16 * 16;
      }
      r.count = std::min(r.count, shape_.page_cells - std::max(r.from.cell, r.to.cell));
      const std::uint32_t apart = std::max(r.from.cell, r.to.cell) - std::min(r.from.cell, r.to.cell);
      if (r.from.frame != r.to.frame || apart >= r.count) return r;
    }
  }

  TwinCell& twin(FrameCell at, std::uint32_t more = 0) {
    return twin_[static_cast<std::uint32_t>(at.frame)][at.cell + more];
  }

  [[nodiscard]] Bytes page(pages::FrameId frame) const {
    Bytes bytes(shape_.page_cells * arena_.cell_bytes(shape_.layer));
    arena_.export_cells(shape_.layer, {frame, 0}, shape_.page_cells, bytes);
    return bytes;
  }

  static void adopt(TwinCell& cell, const Bytes& bytes) {
    auto from = bytes.begin();
    for (auto* rows : {&cell.keys, &cell.values}) {
      for (Bytes& row : *rows) {
        std::copy_n(from, row.size(), row.begin());
        from += static_cast<std::ptrdiff_t>(row.size());
      }
    }
  }

  void expect_nan(const TwinCell& cell) const {
    const auto all_nan = [](const Floats& values) {
      return std::ranges::all_of(values, [](float value) { return std::isnan(value); });
    };
    for (const Bytes& row : cell.keys) {
      EXPECT_TRUE(all_nan(decode(types_.keys, row, shape_.layer.key_dims)));
    }
    for (const Bytes& row : cell.values) {
      EXPECT_TRUE(all_nan(decode(types_.values, row, shape_.layer.value_dims)));
    }
  }

  Shape shape_;
  CacheTypes types_;
  std::mt19937* random_;
  std::vector<Turning> turnings_;
  Arena arena_;
  std::vector<std::vector<TwinCell>> twin_;  // [frame][cell]
};

class CopyJobs : public testing::TestWithParam<CacheTypes> {
 protected:
  // Does `act` some times on every shape and looks at every cell each time.
  void on_every_shape(int times, void (Pair::*act)()) {
    for (const Shape& shape : shapes()) {
      Pair pair(shape, GetParam(), random_);
      for (int i = 0; i < times; ++i) {
        (pair.*act)();
        ASSERT_TRUE(pair.agree()) << "heads of " << shape.layer.key_dims << " and " << shape.layer.value_dims
                                  << ", page " << shape.page_cells;
      }
    }
  }

  std::mt19937 random_{7};
};

TEST_P(CopyJobs, CopyCellsExactly) {
  on_every_shape(12, &Pair::copy);
}

TEST_P(CopyJobs, GatherRunsFromEverywhereExactly) {  // A3
  on_every_shape(25, &Pair::gather);
}

TEST_P(CopyJobs, SwapCellsExactly) {
  on_every_shape(12, &Pair::swap);
}

TEST_P(CopyJobs, RotateKeysAndCopyValuesExactly) {
  on_every_shape(12, &Pair::rotate);
}

TEST_P(CopyJobs, ExportCellsThatImportTakesBackAnywhere) {
  on_every_shape(8, &Pair::carry);
}

TEST_P(CopyJobs, ImportCellsIntoTheLanesThatAreFree) {  // A3
  on_every_shape(20, &Pair::scatter);
}

TEST_P(CopyJobs, ImportAnyBytesAndGiveThemBack) {
  on_every_shape(8, &Pair::import_noise);
}

TEST_P(CopyJobs, TakeHeadsOfTheMostDimensions) {
  Pair pair({{1, simd::kMaxHeadDims, simd::kMaxHeadDims}, 32}, GetParam(), random_);
  for (int i = 0; i < 8; ++i) {
    pair.carry();
    pair.scatter();
    ASSERT_TRUE(pair.agree());
  }
}

TEST_P(CopyJobs, PoisonWhatTheyAreGivenAndNothingBeside) {
  on_every_shape(8, &Pair::poison);
}

TEST_P(CopyJobs, AgreeWithTheTwinInAnyOrder) {  // A1
  using Act = void (Pair::*)();
  const std::vector<Act> acts = {&Pair::copy,  &Pair::gather,  &Pair::swap,         &Pair::rotate,
                                 &Pair::carry, &Pair::scatter, &Pair::import_noise, &Pair::poison};
  for (const Shape& shape : shapes()) {
    Pair pair(shape, GetParam(), random_);
    for (int i = 0; i < 20; ++i) {
      // What is turned after noise or poison is defined too: quant::pack and the conversions take any float.
      (pair.*acts[random_() % acts.size()])();
    }
    ASSERT_TRUE(pair.agree());
  }
}

TEST_P(CopyJobs, AllocateNothing) {
  const Shape shape{{2, 80, 24}, 32};
  Pair pair(shape, GetParam(), random_);
  Arena& arena = pair.arena();
  const Turning turning = turnings(80)[0];
  Bytes bytes(32 * arena.cell_bytes(shape.layer));
  const std::vector<std::int64_t> turns(16, -5);
  const Floats numbers = random_floats(160, random_);
  const FrameCell from{pages::FrameId{0}, 3};
  const FrameCell to{pages::FrameId{1}, 9};
  const std::vector<pages::CopyCells> copies = {{0, {pages::PageId{0}, 3}, {pages::PageId{1}, 9}, 16}};
  const CopyPlan plan(copies, arena.types().keys);
  const std::vector<pages::FrameId> frames = {pages::FrameId{0}, pages::FrameId{1}};
  const test::AllocationFault fault(0);
  arena.store(shape.layer, pages::FrameId{2}, 1, numbers, std::span(numbers).first(48));
  arena.copy_cells(shape.layer, plan, frames);
  arena.swap_cells(shape.layer, from, to);
  arena.rotate_cells(shape.layer, turning.table, from, to, turns);
  arena.poison_cells(shape.layer, from, 2);
  arena.export_cells(shape.layer, {pages::FrameId{1}, 0}, 32, bytes);
  arena.import_cells(shape.layer, {pages::FrameId{0}, 0}, 32, bytes);
  const std::array<FrameRun, 2> runs = {FrameRun{.frame = pages::FrameId{0}, .cell = 3, .count = 2},
                                        FrameRun{.frame = pages::FrameId{1}, .cell = 7, .count = 20}};
  arena.import_runs(shape.layer, runs, std::span(bytes).first(22 * arena.cell_bytes(shape.layer)));
  EXPECT_FALSE(fault.fired());
}

// The cells of one group of lanes, every second one each, worked on by two threads at once.
TEST_P(CopyJobs, OfNeighbouringCellsRunAtOnce) {
  const Shape shape{{2, 64, 64}, 32};
  Pair pair(shape, GetParam(), random_);
  Pair alone(shape, GetParam(), random_);
  for (Pair* one : {&pair, &alone}) {
    Bytes bytes(32 * one->arena().cell_bytes(shape.layer));
    alone.arena().export_cells(shape.layer, {pages::FrameId{0}, 0}, 32, bytes);
    one->arena().import_cells(shape.layer, {pages::FrameId{0}, 0}, 32, bytes);
  }
  const Turning turning = turnings(64)[0];
  const Floats numbers = random_floats(128, random_);
  const auto work = [&](Arena& arena, std::uint32_t parity) {
    const std::vector<std::int64_t> turn = {7};
    Bytes bytes(arena.cell_bytes(shape.layer));
    for (std::uint32_t cell = parity; cell < 32; cell += 2) {
      const FrameCell from{pages::FrameId{0}, cell};
      arena.rotate_cells(shape.layer, turning.table, from, from, turn);
      Pair::copy_all(arena, shape.layer, {{0, {pages::PageId{0}, cell}, {pages::PageId{1}, cell}, 1}});
      arena.export_cells(shape.layer, from, 1, bytes);
      arena.import_cells(shape.layer, {pages::FrameId{2}, cell}, 1, bytes);
      if (cell >= 2) arena.swap_cells(shape.layer, from, {pages::FrameId{1}, cell - 2});
      if (cell % 4 == parity) arena.store(shape.layer, pages::FrameId{2}, cell, numbers, numbers);
    }
  };
  {
    const std::jthread other([&] { work(pair.arena(), 1); });
    work(pair.arena(), 0);
  }
  work(alone.arena(), 0);
  work(alone.arena(), 1);
  for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
    Bytes together(32 * pair.arena().cell_bytes(shape.layer));
    Bytes in_turn(together.size());
    pair.arena().export_cells(shape.layer, {pages::FrameId{frame}, 0}, 32, together);
    alone.arena().export_cells(shape.layer, {pages::FrameId{frame}, 0}, 32, in_turn);
    EXPECT_EQ(together, in_turn) << "frame " << frame;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CopyJobs, testing::ValuesIn(all_types()), types_name);

// Cells go to pages of another size through the bytes of export_cells().
TEST(ExportedCells, FitPagesOfAnySize) {
  std::mt19937 random(3);
  const LayerGeometry layer{2, 80, 24};
  for (const CacheTypes& types : all_types()) {
    auto from = Arena::create({&layer, 1}, types, 48, 1);
    auto to = Arena::create({&layer, 1}, types, 16, 3);
    ASSERT_TRUE(from && to);
    for (std::uint32_t cell = 0; cell < 48; ++cell) {
      from->store(layer, pages::FrameId{0}, cell, random_floats(160, random), random_floats(48, random));
    }
    Bytes bytes(48 * from->cell_bytes(layer));
    Bytes back(bytes.size());
    from->export_cells(layer, {pages::FrameId{0}, 0}, 48, bytes);
    for (std::uint32_t page = 0; page < 3; ++page) {
      const auto third = std::span(bytes).subspan(page * bytes.size() / 3, bytes.size() / 3);
      to->import_cells(layer, {pages::FrameId{2 - page}, 0}, 16, third);
      to->export_cells(layer, {pages::FrameId{2 - page}, 0}, 16,
                       std::span(back).subspan(page * bytes.size() / 3, bytes.size() / 3));
    }
    ASSERT_EQ(bytes, back);
  }
}

// A key stored at one position and turned is the key of the other position; the attention factor that it got
// when it was first turned stays the only one.
TEST(RotatedCells, HoldTheKeysOfTheirNewPositions) {
  std::mt19937 random(4);
  const LayerGeometry layer{2, 64, 16};
  for (const Turning& turning : turnings(64)) {
    if (turning.table.dims() == 0) continue;
    auto arena = Arena::create({&layer, 1}, {CacheElement::kF32, CacheElement::kF32}, 16, 1);
    ASSERT_TRUE(arena);
    const std::size_t pairs = turning.table.dims() / 2;
    const auto key_at = [&](const Floats& raw, double position) {
      Floats cosines(pairs);
      Floats sines(pairs);
      turning.table.turn_at(position, cosines, sines);
      Floats key = raw;
      for (std::size_t head = 0; head < 2; ++head) {
        turning.table.rotate(std::span(key).subspan(head * 64, 64), cosines, sines);
      }
      return key;
    };
    for (const std::int64_t turn : {-1'000'000, -3, 1, 40, 123'456}) {
      const Floats raw = random_floats(128, random);
      const std::int64_t position = 1'000'017;
      arena->store(layer, pages::FrameId{0}, 3, key_at(raw, static_cast<double>(position)), Floats(32));
      arena->rotate_cells(layer, turning.table, {pages::FrameId{0}, 3}, {pages::FrameId{0}, 8},
                          std::vector<std::int64_t>{turn});
      Bytes bytes(arena->cell_bytes(layer));
      arena->export_cells(layer, {pages::FrameId{0}, 8}, 1, bytes);
      const Floats got = decode(CacheElement::kF32, bytes, 128);
      const Floats expected = key_at(raw, static_cast<double>(position + turn));
      for (std::size_t d = 0; d < 128; ++d) {
        // Three turns, each with four roundings of numbers below 5 times the factor of 1.6 of the table.
        EXPECT_NEAR(expected[d], got[d], 12 * 8 * 0x1p-24) << "dimension " << d << ", turn " << turn;
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::kv
