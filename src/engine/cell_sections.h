// The order in which an archive's sections bring cells: group by group, in order of their numbers, all parts
// of some cells together. A recurrent state comes entry by entry, each in a section of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/saved.h"
#include "kvasir/result.h"
#include "pages/types.h"

namespace kvasir::engine {

// What one section brings: the parts [first_part, first_part + parts) of the cells [first, first + count),
// one part of all of them behind the other.
struct CellSection {
  std::uint32_t group = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint32_t first_part = 0;
  std::uint32_t parts = 0;
  std::uint64_t bytes = 0;
};

// Not thread-safe.
class CellSections {
 public:
  // Of `cells` cells in each group. kCorrupt and kUnsupported as part_bytes(), and kCorrupt where cells have
  // no parts; kOutOfMemory.
  [[nodiscard]] static Result<CellSections> of(const Origin& origin, std::vector<std::uint64_t> cells);

  [[nodiscard]] bool done() const noexcept { return group_ == cells_.size(); }

  // What comes next where a section holds about `bytes`: whole groups of lanes where these are at most `most`
  // bytes. Not when done().
  [[nodiscard]] CellSection next(std::uint64_t bytes, std::uint64_t most = 0) const noexcept;

  // The same for a section that is there, whose content is what follows its head. kCorrupt where it is not
  // what comes next.
  [[nodiscard]] Result<CellSection> read(std::span<const std::byte> section) const;

  // The section next() or read() has named is dealt with.
  void pass(const CellSection& section) noexcept;

  // Whether every cell has come: kCorrupt where not.
  [[nodiscard]] Status check_complete() const;

  [[nodiscard]] std::uint64_t bytes_total() const noexcept;
  [[nodiscard]] std::uint64_t cell_bytes(std::size_t group) const noexcept;  // of one cell, all parts
  [[nodiscard]] std::uint64_t part_bytes(std::size_t group, std::uint32_t part) const noexcept {
    return part_bytes_[group][part];
  }

  // How many cells of `cell_bytes` each are copied in one go where about `bytes` are to be: whole groups of
  // lanes, at least one, since what begins in the middle of a group is copied lane by lane; fewer, at least
  // one cell, only where a group is large.
  [[nodiscard]] static std::uint64_t cells_at_once(std::uint64_t bytes, std::uint64_t cell_bytes) noexcept {
    constexpr std::uint64_t kGroupBytesMost = 262'144;
    const std::uint64_t group = pages::kCellsStep * std::max<std::uint64_t>(1, cell_bytes);
    if (group <= bytes) return bytes / group * pages::kCellsStep;
    if (group <= kGroupBytesMost) return pages::kCellsStep;
    return std::max<std::uint64_t>(1, bytes * pages::kCellsStep / group);
  }
  // The same for bytes of a state, whole numbers of it.
  [[nodiscard]] static std::uint64_t state_bytes_at_once(std::uint64_t bytes) noexcept {
    return std::max<std::uint64_t>(1, bytes / sizeof(float)) * sizeof(float);
  }

  static constexpr std::size_t kHeadBytes = 16;
  static void append_head(const CellSection& section, bool state, std::vector<std::byte>& out);
  [[nodiscard]] bool state(std::size_t group) const noexcept { return states_[group] != 0; }

 private:
  void skip_empty() noexcept;

  std::vector<std::uint64_t> cells_;                    // [group]
  std::vector<std::vector<std::uint64_t>> part_bytes_;  // [group][part]: of one cell
  std::vector<std::uint8_t> states_;                    // [group]: whether its cells are states
  std::size_t group_ = 0;
  std::uint64_t first_ = 0;
  std::uint32_t part_ = 0;
};

}  // namespace kvasir::engine
