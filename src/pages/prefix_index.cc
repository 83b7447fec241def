#include "pages/prefix_index.h"

#include <algorithm>
#include <utility>

namespace kvasir::pages {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014): spreads every bit.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t PrefixIndex::hash_of(BlockId parent, const Origin& origin,
                                   std::span<const Token> tokens) const noexcept {
  std::uint64_t hash = parent == kRoot ? mix(origin.salt + (origin.encoded + 1) * 0x9E3779B97F4A7C15ULL)
                                       : blocks_[parent].hash;
  for (const Token token : tokens)
    hash = mix(hash + static_cast<std::uint32_t>(token) + 0x9E3779B97F4A7C15ULL);
  return hash;
}

std::optional<PrefixIndex::BlockId> PrefixIndex::find(BlockId parent, const Origin& origin,
                                                      std::span<const Token> tokens) const noexcept {
  const auto found = by_hash_.find(hash_of(parent, origin, tokens));
  if (found == by_hash_.end()) return std::nullopt;
  for (BlockId id = found->second; id != kRoot; id = blocks_[id].same_hash) {
    const Block& block = blocks_[id];
    if (block.parent == parent && (parent != kRoot || block.origin == origin) &&
        std::ranges::equal(block.tokens, tokens)) {
      return id;
    }
  }
  return std::nullopt;
}

PrefixIndex::BlockId PrefixIndex::insert(BlockId parent, const Origin& origin, std::span<const Token> tokens,
                                         std::vector<PageTable> cells) {
  std::vector<Token> copy(tokens.begin(), tokens.end());
  if (unused_.empty()) {
    unused_.reserve(blocks_.size() + 1);
    blocks_.emplace_back();
    unused_.push_back(static_cast<BlockId>(blocks_.size() - 1));
  }
  const std::uint64_t hash = hash_of(parent, origin, tokens);
  BlockId& first_of_hash = by_hash_.try_emplace(hash, kRoot).first->second;
  const BlockId id = unused_.back();
  unused_.pop_back();
  Block& block = blocks_[id];
  block = Block{.parent = parent,
                .origin = origin,
                .hash = hash,
                .tokens = std::move(copy),
                .cells = std::move(cells),
                .same_hash = first_of_hash,
                .used = true};
  first_of_hash = id;
  if (parent != kRoot) ++blocks_[parent].children;
  ++size_;
  link_newest(id);
  touch(id);
  return id;
}

void PrefixIndex::touch(BlockId block) noexcept {
  for (BlockId id = block; id != kRoot; id = blocks_[id].parent) {
    unlink(id);
    link_newest(id);
    blocks_[id].used_at = tick();
  }
}

std::optional<PrefixIndex::BlockId> PrefixIndex::oldest() const noexcept {
  if (oldest_ == kRoot) return std::nullopt;
  return oldest_;
}

std::vector<PageTable> PrefixIndex::erase(BlockId id) noexcept {
  Block& block = blocks_[id];
  unlink(id);
  const auto entry = by_hash_.find(block.hash);
  BlockId* link = &entry->second;
  while (*link != id) link = &blocks_[*link].same_hash;
  *link = block.same_hash;
  if (entry->second == kRoot) by_hash_.erase(entry);
  if (block.parent != kRoot) --blocks_[block.parent].children;
  std::vector<PageTable> cells = std::move(block.cells);
  block = Block{};
  unused_.push_back(id);  // within capacity: insert() made room for every block
  --size_;
  ++counters_.evictions;
  return cells;
}

std::vector<PrefixIndex::BlockId> PrefixIndex::blocks() const {
  std::vector<BlockId> all;
  for (BlockId id = 0; id < blocks_.size(); ++id) {
    if (blocks_[id].used) all.push_back(id);
  }
  return all;
}

void PrefixIndex::link_newest(BlockId id) noexcept {
  blocks_[id].older = newest_;
  blocks_[id].newer = kRoot;
  if (newest_ != kRoot) blocks_[newest_].newer = id;
  newest_ = id;
  if (oldest_ == kRoot) oldest_ = id;
}

void PrefixIndex::unlink(BlockId id) noexcept {
  const Block& block = blocks_[id];
  (block.newer == kRoot ? newest_ : blocks_[block.newer].older) = block.older;
  (block.older == kRoot ? oldest_ : blocks_[block.older].newer) = block.newer;
}

}  // namespace kvasir::pages
