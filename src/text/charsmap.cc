#include "text/charsmap.h"

#include <algorithm>
#include <string>

namespace kvasir::text {
namespace {

constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kUnitBytes = 4;
constexpr std::size_t kLongestKey = 256;  // the longest in use have some 20 bytes

std::uint32_t read_u32(std::span<const std::uint8_t> bytes) {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 |
         std::uint32_t{bytes[3]} << 24;
}

// A unit of darts-clone: a node's label, whether a key ends there, and where its children are; or a leaf's
// value.
std::uint32_t label(std::uint32_t unit) {
  return unit & 0x800000FFU;
}
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t offset(std::uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200U) >> 6);
}
std::uint32_t value(std::uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::span<const std::uint8_t> blob) {
  const std::size_t trie_bytes = blob.size() < kHeaderBytes ? 0 : read_u32(blob);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes >= blob.size() - kHeaderBytes ||
      blob.back() != 0) {
    return fail(Outcome::kCorrupt, "the map of characters (" + std::to_string(blob.size()) +
                                       " bytes) is not a trie and texts that end in zero bytes");
  }
  Charsmap map;
  map.units_.reserve(trie_bytes / kUnitBytes);
  for (std::size_t at = 0; at < trie_bytes; at += kUnitBytes) {
    map.units_.push_back(read_u32(blob.subspan(kHeaderBytes + at, kUnitBytes)));
  }
  const std::span<const std::uint8_t> texts = blob.subspan(kHeaderBytes + trie_bytes);
  map.texts_.assign(texts.begin(), texts.end());
  return map;
}

Charsmap::Replaced Charsmap::match(std::string_view text) const noexcept {
  Replaced longest;
  if (units_.empty()) return longest;
  std::size_t node = offset(units_[0]);
  for (std::size_t at = 0; at < std::min(text.size(), kLongestKey); ++at) {
    const auto byte = static_cast<std::uint8_t>(text[at]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size() || value(units_[node]) >= texts_.size()) break;
    const char* by = texts_.data() + value(units_[node]);  // the texts end in a zero byte
    longest = {std::string_view(by), at + 1};
  }
  return longest;
}

}  // namespace kvasir::text
