// The vocabulary of the page store: ids, groups and runs of cells. Metadata only; no byte of K or V is known
// here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvasir::pages {

// A page of one group.
enum class PageId : std::uint32_t {};

// A frame of the arena: where one layer's K and V of one page's cells lie.
enum class FrameId : std::uint32_t {};

// A conversation's page tables, one for each group.
enum class TableId : std::uint32_t {};

// Cells that lie in a tier instead of the pool, at most a page of them. They are named as those of a page
// are: the ids of such pages begin behind those of all others.
enum class TierRunId : std::uint32_t {};
inline constexpr std::uint32_t kFirstTierPage = std::uint32_t{1} << 31;
[[nodiscard]] constexpr bool in_tier(PageId page) noexcept {
  return static_cast<std::uint32_t>(page) >= kFirstTierPage;
}
[[nodiscard]] constexpr PageId tier_page(TierRunId run) noexcept {
  return PageId{kFirstTierPage + static_cast<std::uint32_t>(run)};
}
[[nodiscard]] constexpr TierRunId tier_run(PageId page) noexcept {
  return TierRunId{static_cast<std::uint32_t>(page) - kFirstTierPage};
}

// What the owner of the tiers calls the bytes of a tier run.
enum class TierBlock : std::uint64_t {};

// Limits of a page. Cells lie sixteen side by side in vector lanes, so a page is whole sixteens.
inline constexpr std::uint32_t kCellsStep = 16;
inline constexpr std::uint32_t kPageCellsMax = 256;

inline constexpr std::size_t kGroupsMax = 16;

// Cells that a window group keeps beyond its width, so that a rewind of as many tokens is free.
inline constexpr std::uint64_t kReleaseSlack = 64;

// What a group keeps of a conversation.
enum class GroupKind : std::uint8_t {
  kFull,       // every cell
  kWindow,     // the cells less than a width behind, and some more
  kRecurrent,  // one state, as if a page of one cell
  kCross,      // the cells of an encoder's output, written once and read from then on
};

// A kind of cache with its own geometry.
struct GroupSpec {
  std::uint32_t layers = 0;  // frames that one page takes; in a recurrent group, one state
  GroupKind kind = GroupKind::kFull;
  std::uint64_t width = 0;  // of a window, at least 1: how far behind a token is no longer seen
};

// What a page store is made of. One frame size serves all groups.
struct StoreSpec {
  std::uint32_t page_cells = 32;  // cells in a page, a multiple of kCellsStep up to kPageCellsMax
  std::uint32_t frames = 0;       // frames in the arena
  std::vector<GroupSpec> groups;
  std::uint32_t pass_tokens = 512;      // most tokens of one conversation that one pass computes
  bool positions_can_move = true;       // whether the model allows shifts and divisions
  std::uint32_t checkpoint_tokens = 0;  // from one checkpoint to the next: whole pages; 0: as near to 64
  std::uint32_t checkpoints_max = 8;    // kept for one conversation
};

// A span: cells side by side in one page as one conversation sees them.
struct Run {
  PageId page{};
  std::uint32_t cell = 0;     // first cell in the page
  std::uint32_t count = 0;    // cells
  std::uint64_t ordinal = 0;  // of the first cell in its conversation
  std::int64_t shift = 0;     // logical position - storage position of every cell

  [[nodiscard]] std::uint64_t end() const noexcept { return ordinal + count; }
  friend bool operator==(const Run&, const Run&) = default;
};

// A cell, and a number of cells side by side in one page.
struct CellAt {
  PageId page{};
  std::uint32_t cell = 0;

  friend bool operator==(const CellAt&, const CellAt&) = default;
};

// Cells side by side in one page of a group.
struct CellRun {
  std::uint32_t group = 0;
  CellAt at;
  std::uint32_t count = 0;

  friend bool operator==(const CellRun&, const CellRun&) = default;
};

// What is to be done to bytes, in every layer of a group. The page store plans these; the owner of the bytes
// performs them before the edit that planned them is committed.
struct CopyCells {
  std::uint32_t group = 0;
  CellAt from;
  CellAt to;
  std::uint32_t count = 0;
};
struct RotateCells {
  CopyCells cells;
  std::vector<std::int64_t> turns;  // for each cell: new storage position - old one
};

// Bytes of a tier run, from its cell `first` on, that come back into the pool.
struct FetchCells {
  std::uint32_t group = 0;
  TierRunId run{};
  std::uint32_t first = 0;
  CellAt to;
  std::uint32_t count = 0;
};

// Cells of each group, by its index.
using Need = std::array<std::uint64_t, kGroupsMax>;

// The largest logical position. Angles stay exact below it.
inline constexpr std::int64_t kPositionMax = (std::int64_t{1} << 30) - 1;

}  // namespace kvasir::pages
