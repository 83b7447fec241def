// What conversations hold, detached from where it lies: cells are numbered, group by group, and conversations
// and checkpoints name stretches of numbers. Taken by a Snapshot, put back by a RestoreTicket; as bytes it is
// the layout section of an archive.
//
// Cells that several hold are described once. A recurrent state is a cell whose position is its ordinal.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "pages/types.h"

namespace kvasir::pages {

// Cells, in order of their numbers, whose storage positions go on by one.
struct CellStretch {
  std::uint64_t count = 0;
  std::uint64_t position = 0;  // of the first, at most kPositionMax for all

  friend bool operator==(const CellStretch&, const CellStretch&) = default;
};

// Cells one behind the other, as a conversation sees them: a span without a place.
struct CellPiece {
  std::uint64_t first = 0;  // number of the first
  std::uint64_t count = 0;
  std::int64_t shift = 0;  // logical position - storage position

  friend bool operator==(const CellPiece&, const CellPiece&) = default;
};

struct CheckpointLayout {
  std::uint64_t ordinal = 0;
  std::array<std::uint64_t, kGroupsMax> floors{};
  std::vector<std::vector<CellPiece>> cells;  // [group]: of windows, up to its ordinal, and of states

  friend bool operator==(const CheckpointLayout&, const CheckpointLayout&) = default;
};

struct ConversationLayout {
  std::uint64_t length = 0;   // tokens
  std::uint64_t behind = 0;   // tokens that must be computed again, from `length` on
  std::uint64_t clean = 0;    // tokens before the first that was edited: at most `length`
  std::uint64_t encoded = 0;  // number of the encoder's output that it attends to, from 1 on; 0: none
  std::array<std::uint64_t, kGroupsMax> floors{};
  std::vector<std::vector<CellPiece>>
      cells;                               // [group]: up to `length`; of a window, from the release line on
  std::vector<std::uint32_t> checkpoints;  // indices, by ascending ordinal
  bool foreign = false;  // from elsewhere: clean ones do not serve others through the index either

  friend bool operator==(const ConversationLayout&, const ConversationLayout&) = default;
};

struct Layout {
  std::vector<std::vector<CellStretch>> cells;  // [group]: in order of numbers, from 0 on
  std::vector<CheckpointLayout> checkpoints;    // the least recently used first
  std::vector<ConversationLayout> conversations;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Cells that a list of stretches or pieces covers. kCorrupt where their number overflows.
[[nodiscard]] Result<std::uint64_t> cells_in(std::span<const CellStretch> stretches);
[[nodiscard]] Result<std::uint64_t> cells_in(std::span<const CellPiece> pieces);

// Whether such conversations can be in a store of this kind: every invariant of conversations and checkpoints
// that concerns one of them. kCorrupt says what is wrong.
[[nodiscard]] Status check_layout(const Layout& layout, const StoreSpec& spec);

// As bytes and back; docs/formats/archive.md says which. Appends; throws std::bad_alloc. kCorrupt for what is
// no layout; nothing but its form is checked.
void append_layout(const Layout& layout, std::vector<std::byte>& bytes);
[[nodiscard]] Result<Layout> parse_layout(std::span<const std::byte> bytes);

}  // namespace kvasir::pages
