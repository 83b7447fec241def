// Stands in for the bytes of the cache: one number for each frame and cell. A number depends linearly on the
// storage position, as a rotated key does on its angle, so that a rotation by a turn can be foretold.
#pragma once

#include <cstdint>
#include <vector>

#include "pages/page_store.h"

namespace kvasir::pages::test {

// What a cell was computed from, as a hash of all that came before it in its conversation.
using Contents = std::uint64_t;

class FakeArena {
 public:
  // Must not outlive the store, whose frames it shadows. All cells begin as poison.
  explicit FakeArena(const PageStore& store);

  // Stores a new cell at its storage position in every layer of its group; a state as a cell whose position
  // is its ordinal.
  void write(std::size_t group, CellAt at, Contents contents);

  // Does what a job says, reading and writing cell after cell as the arena would.
  void perform(const CopyCells& job);
  void perform(const RotateCells& job);
  void perform(const SwapCells& job);

  // Whether every layer of a cell holds these contents at the cell's present storage position, after whatever
  // turns.
  [[nodiscard]] bool holds(std::size_t group, CellAt at, Contents contents, std::uint32_t turns = 0) const;

  // Overwrites every cell that nobody holds, in used pages and free frames.
  void poison_free_cells();

  // The numbers of a cell, layer after layer.
  void append_cell(std::size_t group, CellAt at, std::vector<std::uint64_t>& out) const;

 private:
  [[nodiscard]] std::uint64_t& value(std::size_t group, CellAt at, std::uint32_t layer);
  [[nodiscard]] std::uint64_t value(std::size_t group, CellAt at, std::uint32_t layer) const;

  const PageStore* store_;
  std::vector<std::uint64_t> values_;  // [frame][cell]
};

}  // namespace kvasir::pages::test
