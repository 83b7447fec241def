// Stands in for the bytes of the cache: one number for each frame and cell. A number depends linearly on the
// storage position, as a rotated key does on its angle, so that a rotation by a turn can be foretold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pages/page_store.h"

namespace kvasir::pages::test {

// What a cell was computed from, as a hash of all that came before it in its conversation.
using Contents = std::uint64_t;

// The bytes of the cells of one page store.
class CellBytes {
 public:
  CellBytes() = default;
  CellBytes(const CellBytes&) = delete;
  CellBytes& operator=(const CellBytes&) = delete;
  virtual ~CellBytes() = default;

  // Stores a new cell at its storage position in every layer of its group; a state as a cell whose position
  // is its ordinal.
  virtual void write(std::size_t group, CellAt at, Contents contents) = 0;

  // Does what a job says, or those of one group.
  virtual void perform(std::span<const CopyCells> jobs) = 0;
  virtual void perform(const RotateCells& job) = 0;
  virtual void perform(const SwapCells& job) = 0;

  // Copies the bytes of a run away, and back from where the store says they are; what they are called is a
  // name of its own for each run that was put away and not forgotten.
  [[nodiscard]] virtual TierBlock put_away(const CellRun& run) = 0;
  virtual void perform(const FetchCells& job) = 0;
  virtual void forget(TierBlock block) = 0;
  [[nodiscard]] virtual std::size_t blocks() const = 0;

  // Whether every layer of a cell holds these contents at the cell's present storage position, after the
  // turns that Turns knows by this number.
  [[nodiscard]] virtual bool holds(std::size_t group, CellAt at, Contents contents,
                                   std::uint32_t turns) const = 0;

  // Overwrites every cell that nobody holds, at least in used pages.
  virtual void poison_free_cells() = 0;

  // The bytes of a cell, or what stands for them, layer after layer.
  virtual void append_cell(std::size_t group, CellAt at, std::vector<std::uint64_t>& out) const = 0;

  // The bytes of a cell in every layer, to be kept elsewhere, and back.
  [[nodiscard]] virtual std::vector<std::byte> save_cell(std::size_t group, CellAt at) const = 0;
  virtual void load_cell(std::size_t group, CellAt at, std::span<const std::byte> bytes) = 0;

  [[nodiscard]] virtual std::string name() const = 0;
};

class FakeArena : public CellBytes {
 public:
  // Must not outlive the store, whose frames it shadows. All cells begin as poison.
  explicit FakeArena(const PageStore& store);

  void write(std::size_t group, CellAt at, Contents contents) override;
  void perform(std::span<const CopyCells> jobs) override;
  void perform(const RotateCells& job) override;
  void perform(const SwapCells& job) override;
  [[nodiscard]] TierBlock put_away(const CellRun& run) override;
  void perform(const FetchCells& job) override;
  void forget(TierBlock block) override { away_.erase(block); }
  [[nodiscard]] std::size_t blocks() const override { return away_.size(); }
  [[nodiscard]] bool holds(std::size_t group, CellAt at, Contents contents,
                           std::uint32_t turns) const override;
  void poison_free_cells() override;
  void append_cell(std::size_t group, CellAt at, std::vector<std::uint64_t>& out) const override;
  [[nodiscard]] std::vector<std::byte> save_cell(std::size_t group, CellAt at) const override;
  void load_cell(std::size_t group, CellAt at, std::span<const std::byte> bytes) override;
  [[nodiscard]] std::string name() const override { return "numbers"; }

 private:
  [[nodiscard]] std::uint64_t& value(std::size_t group, CellAt at, std::uint32_t layer);
  [[nodiscard]] std::uint64_t value(std::size_t group, CellAt at, std::uint32_t layer) const;

  const PageStore* store_;
  std::vector<std::uint64_t> values_;                     // [frame][cell]
  std::map<TierBlock, std::vector<std::uint64_t>> away_;  // [block][layer * cells + cell]
  std::uint64_t blocks_made_ = 0;
};

}  // namespace kvasir::pages::test
