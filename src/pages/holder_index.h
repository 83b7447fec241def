// Who holds the cells of each page of a group, so that moving cells costs what they and their holders weigh
// and not a look at every span there is. Made in one look at all of them; moves are entered as they are made.
//
// Invariants (docs/invariants.md)
//   M3  While it is current, the index names every list of spans that holds a cell, with the cell's ordinal
//       there, and no other. Cells in tiers are in no page.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pages/moves.h"
#include "pages/types.h"

namespace kvasir::pages {

// Not thread-safe.
class HolderIndex {
 public:
  enum class Kind : std::uint8_t { kTable, kSnapshot, kBlock, kCheckpoint };

  // Whose list of spans it is, by the number of its TableId, BlockId or CheckpointId, or its place among the
  // snapshots.
  struct Holder {
    Kind kind = Kind::kTable;
    std::uint32_t id = 0;

    friend bool operator==(const Holder&, const Holder&) = default;
  };

  // Cells side by side that one of them holds.
  struct Piece {
    std::uint32_t holder = 0;  // see holder()
    std::uint32_t cell = 0;
    std::uint32_t count = 0;
    std::uint64_t ordinal = 0;
  };

  // Whether nothing has changed since the group was as `changes` says.
  [[nodiscard]] bool current(std::uint64_t changes) const noexcept { return current_ == changes; }
  void set_current(std::optional<std::uint64_t> changes) noexcept { current_ = changes; }

  // Begins anew, with no piece of any page. Throws std::bad_alloc; what follows too.
  void reset(std::uint32_t pages);
  void add(Holder holder, std::span<const Run> runs);

  // Lets every holder find cells where they have moved. It is not current where this throws.
  void move(const Moves& moves);

  [[nodiscard]] const Holder& holder(const Piece& piece) const noexcept { return holders_[piece.holder]; }
  [[nodiscard]] std::span<const Holder> holders() const noexcept { return holders_; }

  // The pieces that lie in a page, in no order.
  template <class Visit>
  void visit(PageId page, const Visit& visit) const {
    for (std::uint32_t at = first_[static_cast<std::uint32_t>(page)]; at != kNone; at = nodes_[at].next) {
      visit(nodes_[at].piece);
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Node {
    Piece piece;
    std::uint32_t next = kNone;
  };

  void link(std::uint32_t node, PageId page) noexcept;
  void add_piece(const Piece& piece, PageId page);

  std::optional<std::uint64_t> current_;
  std::vector<Holder> holders_;
  std::vector<std::uint32_t> first_;  // [page]
  std::vector<Node> nodes_;
};

}  // namespace kvasir::pages
