// Where a recurrent state lies in its frames. A state is what the layers of a group keep of one conversation:
// numbers of 32 bits, in pieces. The pieces of all layers, in order, lie one behind the other, each at a
// multiple of 64 bytes and whole in one frame: that gives the frames of one state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::kv {

// What one recurrent layer, or a part of it, keeps for each conversation: pieces of so many numbers each. A
// piece is what one head, or one block of channels, of its scan reads and writes.
struct StateGeometry {
  std::uint32_t pieces = 0;
  std::uint32_t floats = 0;  // of one piece

  [[nodiscard]] std::uint64_t all_floats() const noexcept { return std::uint64_t{pieces} * floats; }
  // In bytes, nothing between the pieces: what is exported of it.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return all_floats() * sizeof(float); }

  friend bool operator==(const StateGeometry&, const StateGeometry&) = default;
};

// A state takes at most so many bytes for each entry, so that an entry fits into a section of an archive.
inline constexpr std::uint64_t kStateEntryBytesMax = std::uint64_t{1} << 25;

// Bytes of the least frame that serves these entries of one group: a piece is whole in it, an entry where no
// other group says how large frames are (`alone`), and a state takes no more frames than can be managed.
// kInvalidArgument for an entry without pieces or numbers, kUnsupported for one of more than
// kStateEntryBytesMax.
[[nodiscard]] Result<std::size_t> state_frame_bytes(std::span<const StateGeometry> entries, bool alone);

// Immutable; any thread.
class StateLayout {
 public:
  // Where a piece lies: in the state's frame of that index, so many bytes behind its start.
  struct Place {
    std::uint32_t frame = 0;
    std::size_t offset = 0;
  };

  StateLayout() = default;
  // Frames must be at least as large as state_frame_bytes() says. Throws std::bad_alloc.
  StateLayout(std::span<const StateGeometry> entries, std::size_t frame_bytes);

  [[nodiscard]] Place place(std::size_t entry, std::uint32_t piece) const noexcept;
  [[nodiscard]] std::span<const StateGeometry> entries() const noexcept { return geometry_; }
  [[nodiscard]] std::uint32_t frames() const noexcept { return frames_; }  // of one state
  // Of one exported state: its entries one behind the other.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  // Where an entry begins, and how many of its pieces fit there and into each frame behind.
  struct Entry {
    std::uint32_t frame = 0;
    std::size_t offset = 0;
    std::size_t piece_bytes = 0;  // with what aligns the next
    std::uint32_t first = 0;
    std::uint32_t each = 0;
  };

  std::vector<StateGeometry> geometry_;
  std::vector<Entry> entries_;
  std::uint32_t frames_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace kvasir::kv
