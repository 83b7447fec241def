// A set of byte strings with a number each, walked byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kvasir::text {

// Nodes are numbered in the order they came to be, parents before children. Any thread may walk while none
// adds. Adding may throw std::bad_alloc, and std::length_error beyond 2^28 nodes.
class ByteTrie {
 public:
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  ByteTrie();

  // Gives `key` the value, in place of an earlier one. The empty key gives the root one.
  void add(std::string_view key, std::uint32_t value);

  // The node one byte further, or kNone.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, char byte) const noexcept {
    const std::uint64_t key = key_of(node, byte);
    for (std::size_t at = home(key);; at = (at + 1) & (edges_.size() - 1)) {
      if (edges_[at] >> kNodeBits == key && edges_[at] != 0)
        return static_cast<std::uint32_t>(edges_[at] & kNodeMask);
      if (edges_[at] == 0) return kNone;
    }
  }

  // The value of the key that ends at the node, or kNone.
  [[nodiscard]] std::uint32_t value(std::uint32_t node) const noexcept { return values_[node]; }

  [[nodiscard]] std::size_t nodes() const noexcept { return values_.size(); }

 private:
  // An edge is one number: parent, byte and child. None is 0, for the root is nobody's child.
  static constexpr unsigned kNodeBits = 28;
  static constexpr std::uint64_t kNodeMask = (std::uint64_t{1} << kNodeBits) - 1;

  [[nodiscard]] static std::uint64_t key_of(std::uint32_t node, char byte) noexcept {
    return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(byte);
  }
  [[nodiscard]] std::size_t home(std::uint64_t key) const noexcept {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio: spreads neighbours
    return (key * kGolden) >> 32 & (edges_.size() - 1);
  }
  void insert(std::uint64_t edge) noexcept;
  std::uint32_t add_child(std::uint32_t node, char byte);

  std::vector<std::uint64_t> edges_;  // open addressing, at most half full, a power of two of them
  std::vector<std::uint32_t> values_;
};

}  // namespace kvasir::text
