// What each row of a pass may see of the cells of its conversation.
//
// Of a group of kind window a row sees a cell where the cell's ordinal and logical position are both less
// than the width behind its own and the ordinal is at least the conversation's floor; of every other group
// all cells up to its own, and all of an encoder's output. Ordinals grow along a table and positions nearly
// always do: what is seen then is one range. Where an edit has let positions go back, cells in the middle may
// be hidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/layers.h"
#include "model/pass.h"
#include "pages/page_store.h"
#include "simd/attention.h"

namespace kvasir::model {

// The ordinals [first, end) but for those that are hidden, which ascend.
struct Sight {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::span<const simd::OrdinalRange> hidden;
};

// Not thread-safe while look() runs; then constant.
class Sights {
 public:
  // Finds out for every row. May throw std::bad_alloc, but not for a pass that is no larger than one before
  // unless cells are hidden.
  void look(const Network& network, const Pass& pass, const pages::PageStore& store);

  // Lets every row see all cells of its sequence in the first group: a text that is read both ways.
  void look_both_ways(const Pass& pass);

  [[nodiscard]] Sight of(const Pass& pass, std::size_t group, std::size_t row) const noexcept {
    const std::vector<Seen>& seen = seen_[group];
    if (seen.empty()) return {0, pass.rows[row].ordinal + 1, {}};
    const Seen& at = seen[row];
    return {at.first, at.end, std::span(hidden_).subspan(at.hidden, at.hidden_count)};
  }

 private:
  struct Seen {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::size_t hidden = 0;  // in hidden_
    std::size_t hidden_count = 0;
  };
  struct Window;
  void see_all(const Pass& pass, std::size_t group);
  void look(const Window& window, const Pass& pass, const PassSequence& sequence);
  void hide(const Window& window, const PassRow& row, Seen& seen);

  std::vector<std::vector<Seen>> seen_;  // [group][row]; empty where a row sees all up to its own
  std::vector<simd::OrdinalRange> hidden_;
  std::vector<std::int64_t> positions_;  // of the cells that a sequence may see, from the first on
};

}  // namespace kvasir::model
