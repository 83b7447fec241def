// The bytes of a history in kv::Arena itself: keys and values of every type, copied, turned and exchanged as
// the page store plans it, and compared with what each cell must hold after all that happened to it.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "fake_arena.h"
#include "kv/arena.h"
#include "random.h"
#include "simd/rotary.h"
#include "twin.h"

namespace kvasir::pages::test {

// Recurrent states have no keys; they stay numbers.
class RealArena : public CellBytes {
 public:
  // Of random types, and of random geometry where none is given for the groups. Must not outlive the store
  // and `turns`, the history of each key.
  RealArena(const PageStore& store, const Turns& turns, Random& random,
            std::vector<kv::LayerGeometry> geometry);

  void write(std::size_t group, CellAt at, Contents contents) override;
  void perform(std::span<const CopyCells> jobs) override;
  void perform(const RotateCells& job) override;
  void perform(const SwapCells& job) override;
  [[nodiscard]] TierBlock put_away(const CellRun& run) override;
  void perform(const FetchCells& job) override;
  void forget(TierBlock block) override;
  [[nodiscard]] std::size_t blocks() const override { return away_.size() + states_.blocks(); }
  [[nodiscard]] bool holds(std::size_t group, CellAt at, Contents contents,
                           std::uint32_t turns) const override;
  void poison_free_cells() override;
  void append_cell(std::size_t group, CellAt at, std::vector<std::uint64_t>& out) const override;
  [[nodiscard]] std::vector<std::byte> save_cell(std::size_t group, CellAt at) const override;
  void load_cell(std::size_t group, CellAt at, std::span<const std::byte> bytes) override;
  [[nodiscard]] std::string name() const override;

 private:
  using CellRows = std::vector<std::byte>;

  [[nodiscard]] bool is_state(std::size_t group) const;
  void append_row(std::size_t group, CellAt at, std::uint32_t layer, CellRows& out) const;
  [[nodiscard]] kv::FrameCell place(std::size_t group, CellAt at, std::uint32_t layer) const;
  [[nodiscard]] const CellRows& expected(std::size_t group, std::uint32_t layer, Contents contents,
                                         std::int64_t position, std::uint32_t turns) const;

  const PageStore* store_;
  const Turns* turns_;
  FakeArena states_;
  kv::CacheTypes types_;
  std::vector<kv::LayerGeometry> geometry_;  // [group]
  simd::RotaryTable rotary_;
  simd::RopePairing pairing_ = simd::RopePairing::kAdjacent;
  kv::Arena arena_;
  std::map<TierBlock, CellRows> away_;  // [block][layer][cell], as kv::Arena exports them
  std::uint64_t blocks_made_ = 0;
  mutable std::unordered_map<std::uint64_t, CellRows> known_;
};

}  // namespace kvasir::pages::test
