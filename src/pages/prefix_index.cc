#include "pages/prefix_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvasir::pages {
namespace {

// Blocks that memory is taken for at a time, at least.
constexpr std::size_t kFewest = 16;

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
  if (buckets_.empty()) return std::nullopt;
  const std::uint64_t hash = hash_of(parent, origin, tokens);
  for (BlockId id = buckets_[hash % buckets_.size()]; id != kRoot; id = blocks_[id].next_in_bucket) {
    const Block& block = blocks_[id];
    if (block.hash == hash && block.parent == parent && (parent != kRoot || block.origin == origin) &&
        std::ranges::equal(block.tokens, tokens)) {
      return id;
    }
  }
  return std::nullopt;
}

void PrefixIndex::make_room(std::size_t blocks, std::size_t tokens, std::size_t groups) {
  const std::size_t before = blocks_.size();
  if (blocks <= before) return;
  std::vector<BlockId> buckets(blocks, kRoot);
  std::vector<Block> more(blocks - before);
  for (Block& block : more) {
    block.tokens.reserve(tokens);
    block.cells.resize(groups);
    for (PageTable& cells : block.cells) cells.reserve(2);
  }
  unused_.reserve(blocks);
  blocks_.reserve(blocks);
  // Nothing fails from here on.
  std::ranges::move(more, std::back_inserter(blocks_));
  for (std::size_t id = blocks; id-- > before;) unused_.push_back(static_cast<BlockId>(id));
  buckets_.swap(buckets);
  for (BlockId id = 0; id < before; ++id) {
    if (!blocks_[id].used) continue;
    BlockId& first = bucket_of(blocks_[id].hash);
    blocks_[id].next_in_bucket = std::exchange(first, id);
  }
}

PrefixIndex::BlockId PrefixIndex::insert(BlockId parent, const Origin& origin, std::span<const Token> tokens,
                                         std::span<const PageTable> cells) {
  if (unused_.empty()) make_room(std::max(kFewest, blocks_.size() * 2), tokens.size(), cells.size());
  const BlockId id = unused_.back();
  Block& block = blocks_[id];
  block.tokens.assign(tokens.begin(), tokens.end());
  block.cells.assign(cells.begin(), cells.end());
  // Nothing fails from here on.
  unused_.pop_back();
  block.parent = parent;
  block.children = 0;
  block.origin = origin;
  block.hash = hash_of(parent, origin, tokens);
  block.used = true;
  block.next_in_bucket = std::exchange(bucket_of(block.hash), id);
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

void PrefixIndex::erase(BlockId id) noexcept {
  Block& block = blocks_[id];
  unlink(id);
  BlockId* link = &bucket_of(block.hash);
  while (*link != id) link = &blocks_[*link].next_in_bucket;
  *link = block.next_in_bucket;
  if (block.parent != kRoot) --blocks_[block.parent].children;
  block.tokens.clear();
  for (PageTable& cells : block.cells) cells.clear();
  block.used = false;
  unused_.push_back(id);  // within capacity: make_room() took it for every block
  --size_;
  ++counters_.evictions;
}

std::vector<PrefixIndex::BlockId> PrefixIndex::blocks() const {
  std::vector<BlockId> all;
  for (BlockId id = 0; id < blocks_.size(); ++id) {
    if (blocks_[id].used) all.push_back(id);
  }
  return all;
}

// From the newest on a parent is met before its children (I2).
std::vector<PrefixIndex::BlockId> PrefixIndex::naming(const CellRun& cells) const {
  std::vector<BlockId> all;
  std::vector<bool> named(blocks_.size());
  for (BlockId id = newest_; id != kRoot; id = blocks_[id].older) {
    const Block& block = blocks_[id];
    const bool behind_one = block.parent != kRoot && named[block.parent];
    named[id] = behind_one || block.cells[cells.group].names_any(cells.at, cells.count);
    if (named[id]) all.push_back(id);
  }
  std::ranges::reverse(all);
  return all;
}

Status PrefixIndex::check() const {
  const auto broken = [](const char* what) { return fail(Outcome::kInternal, what); };
  std::vector<std::uint32_t> children(blocks_.size());
  std::vector<bool> met(blocks_.size());
  std::size_t found = 0;
  for (BlockId id = newest_; id != kRoot; id = blocks_[id].older) {
    const Block& block = blocks_[id];
    met[id] = true;
    ++found;
    if (block.parent == kRoot) continue;
    if (!blocks_[block.parent].used) return broken("I1: a block's parent is gone");
    if (!met[block.parent]) return broken("I2: a block is more recently used than its parent");
    ++children[block.parent];
  }
  if (found != size_) return broken("I2: not every block is in the order of use");
  for (const BlockId id : blocks()) {
    if (blocks_[id].children != children[id]) return broken("I1: a block's children are counted wrongly");
  }
  return {};
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
