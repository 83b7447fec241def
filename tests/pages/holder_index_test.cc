// The index of holders against a list of every cell, and the moves it follows.

#include "pages/holder_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "random.h"
#include "small_store.h"

namespace kvasir::pages::test {
namespace {

constexpr std::uint32_t kPages = 6;
constexpr std::uint32_t kCells = 32;

using Kind = HolderIndex::Kind;
using Cell = std::pair<std::uint32_t, std::uint32_t>;  // page, cell

TEST(Moves, CutRangesWhereCellsStopLyingSideBySide) {
  const std::vector<CopyCells> copies = {{0, {PageId{1}, 8}, {PageId{0}, 0}, 4},
                                         {0, {PageId{1}, 2}, {PageId{2}, 5}, 3}};
  const Moves moves(copies);
  EXPECT_EQ(moves.all().front().from.cell, 2);
  std::vector<std::tuple<CellAt, CellAt, std::uint32_t>> parts;
  const auto collect = [&](CellAt before, CellAt after, std::uint32_t count) {
    parts.emplace_back(before, after, count);
  };
  moves.visit({PageId{1}, 0}, 16, collect);
  const auto same = [](std::uint32_t cell) { return CellAt{PageId{1}, cell}; };
  EXPECT_EQ(parts, (std::vector<std::tuple<CellAt, CellAt, std::uint32_t>>{{same(0), same(0), 2},
                                                                           {same(2), {PageId{2}, 5}, 3},
                                                                           {same(5), same(5), 3},
                                                                           {same(8), {PageId{0}, 0}, 4},
                                                                           {same(12), same(12), 4}}));
  parts.clear();
  moves.visit({PageId{1}, 3}, 1, collect);  // the middle of a copy
  moves.visit({PageId{1}, 10}, 2, collect);
  moves.visit({PageId{2}, 2}, 3, collect);
  EXPECT_EQ(
      parts,
      (std::vector<std::tuple<CellAt, CellAt, std::uint32_t>>{
          {same(3), {PageId{2}, 6}, 1}, {same(10), {PageId{0}, 2}, 2}, {{PageId{2}, 2}, {PageId{2}, 2}, 3}}));
  EXPECT_TRUE(moves.any(same(4), 1));
  EXPECT_TRUE(moves.any(same(0), 3));
  EXPECT_FALSE(moves.any(same(0), 2));
  EXPECT_FALSE(moves.any(same(5), 3));
  EXPECT_FALSE(moves.any(same(12), 20));
  EXPECT_FALSE(moves.any({PageId{2}, 5}, 3));
}

// Everyone's cells by the naive way: [cell] = who holds it with which ordinal.
using Held = std::multimap<Cell, std::tuple<Kind, std::uint32_t, std::uint64_t>>;

Held named_by(const HolderIndex& index) {
  Held held;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    index.visit(PageId{page}, [&](const HolderIndex::Piece& piece) {
      const HolderIndex::Holder& holder = index.holder(piece);
      for (std::uint32_t i = 0; i < piece.count; ++i)
        held.emplace(Cell{page, piece.cell + i}, std::tuple{holder.kind, holder.id, piece.ordinal + i});
    });
  }
  return held;
}

std::vector<std::pair<Cell, std::tuple<Kind, std::uint32_t, std::uint64_t>>> sorted(const Held& held) {
  std::vector<std::pair<Cell, std::tuple<Kind, std::uint32_t, std::uint64_t>>> all(held.begin(), held.end());
  std::ranges::sort(all);
  return all;
}

TEST(HolderIndex, NamesEveryHolderHoweverCellsMove) {  // M3
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    HolderIndex index;
    index.reset(kPages);
    Held held;
    for (std::uint32_t id = 0; id < 5; ++id) {
      const auto kind = random.one_of(std::vector<Kind>{Kind::kTable, Kind::kBlock, Kind::kCheckpoint});
      std::vector<Span> runs;
      for (std::uint64_t ordinal = random.below(100); runs.size() < 5;) {
        Span run{.page = PageId{static_cast<std::uint32_t>(random.below(kPages))}, .ordinal = ordinal};
        run.cell = static_cast<std::uint32_t>(random.below(kCells));
        run.count = static_cast<std::uint32_t>(random.between(1, kCells - run.cell));
        for (std::uint32_t i = 0; i < run.count; ++i)
          held.emplace(Cell{static_cast<std::uint32_t>(run.page), run.cell + i},
                       std::tuple{kind, id, ordinal + i});
        ordinal += run.count;
        runs.push_back(run);
      }
      index.add({kind, id}, runs);
    }
    ASSERT_EQ(sorted(named_by(index)), sorted(held));
    for (int turn = 0; turn < 20; ++turn) {
      // Cells that are held, to cells that are not.
      std::vector<CopyCells> copies;
      std::vector<Cell> free;
      for (std::uint32_t i = 0; i < kPages * kCells; ++i) {
        if (!held.contains({i / kCells, i % kCells})) free.emplace_back(i / kCells, i % kCells);
      }
      Held after;
      std::map<Cell, Cell> to;
      for (const auto& [cell, who] : held) {
        if (!to.contains(cell) && !free.empty() && random.percent(30)) {
          to[cell] = free.back();
          free.pop_back();
          copies.push_back(
              {0, {PageId{cell.first}, cell.second}, {PageId{to[cell].first}, to[cell].second}, 1});
        } else {
          to.try_emplace(cell, cell);
        }
        after.emplace(to[cell], who);
      }
      index.move(Moves(copies));
      EXPECT_FALSE(index.current(7)) << "until it is said to be";
      held = std::move(after);
      ASSERT_EQ(sorted(named_by(index)), sorted(held)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace kvasir::pages::test
