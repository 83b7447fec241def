#include "text/byte_trie.h"

#include <stdexcept>

namespace kvasir::text {
namespace {

constexpr std::size_t kFewestEdges = 64;

}  // namespace

ByteTrie::ByteTrie() : edges_(kFewestEdges), values_{kNone} {}

void ByteTrie::add(std::string_view key, std::uint32_t value) {
  std::uint32_t node = kRoot;
  for (const char byte : key) {
    const std::uint32_t next = child(node, byte);
    node = next != kNone ? next : add_child(node, byte);
  }
  values_[node] = value;
}

std::uint32_t ByteTrie::add_child(std::uint32_t node, char byte) {
  if (values_.size() > kNodeMask) throw std::length_error("too many nodes");
  if (2 * values_.size() > edges_.size()) {
    std::vector<std::uint64_t> old(2 * edges_.size());
    old.swap(edges_);
    for (const std::uint64_t edge : old) {
      if (edge != 0) insert(edge);
    }
  }
  const auto added = static_cast<std::uint32_t>(values_.size());
  values_.push_back(kNone);
  insert(key_of(node, byte) << kNodeBits | added);
  return added;
}

void ByteTrie::insert(std::uint64_t edge) noexcept {
  std::size_t at = home(edge >> kNodeBits);
  while (edges_[at] != 0) at = (at + 1) & (edges_.size() - 1);
  edges_[at] = edge;
}

}  // namespace kvasir::text
