// Earlier moments that conversations can return to: what a window group needs of the cells before an ordinal,
// and the recurrent state there. Forks share them.
//
// A checkpoint is evictable where nobody but checkpoints and the index holds its cells. The beginning, at
// ordinal 0, needs nothing and is none of them.
//
// Invariants (docs/invariants.md)
//   K1  A conversation's checkpoints are in order of ordinals, each above 0 and at most its length.
//   K2  A checkpoint holds, softly, a state of its ordinal in every recurrent group, and in every window
//   group
//       of width W the cells from at most max(its floor, its ordinal - W) up to its ordinal.
//   K3  A checkpoint is in the store exactly as long as a conversation has it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "pages/page_table.h"
#include "pages/types.h"

namespace kvasir::pages {

enum class CheckpointId : std::uint32_t {};

struct Checkpoint {
  std::uint64_t ordinal = 0;     // of the token that would come next
  std::vector<PageTable> cells;  // [group]: of windows and recurrent groups
  std::array<std::uint64_t, kGroupsMax> floors{};
  std::uint32_t owners = 0;  // conversations; 0 while a ticket prepares it
  std::uint64_t used = 0;    // greater: more recently
};

// Counts no cells: the page store holds them. Not thread-safe.
class Checkpoints {
 public:
  // A new one, without owners. Throws std::bad_alloc, having changed nothing.
  [[nodiscard]] CheckpointId add(Checkpoint checkpoint);

  // Takes one out that nobody owns; its cells are no longer held.
  void remove(CheckpointId id) noexcept;

  [[nodiscard]] Checkpoint& at(CheckpointId id) noexcept { return all_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Checkpoint& at(CheckpointId id) const noexcept {
    return all_[static_cast<std::size_t>(id)];
  }

  // Owned ones, in no order.
  template <class Visit>
  void visit(const Visit& visit_one) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].owners > 0) visit_one(CheckpointId{static_cast<std::uint32_t>(i)}, all_[i]);
    }
  }
  template <class Visit>
  void visit(const Visit& visit_one) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].owners > 0) visit_one(CheckpointId{static_cast<std::uint32_t>(i)}, all_[i]);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return all_.size() - unused_.size(); }

 private:
  std::vector<Checkpoint> all_;
  std::vector<CheckpointId> unused_;
};

}  // namespace kvasir::pages
