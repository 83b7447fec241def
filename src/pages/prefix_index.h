// Which committed cells hold which beginnings: blocks of one page's tokens in a tree, found by their tokens.
//
// A block is known by the chain of all tokens before and in it, and by a salt. A hash only finds it; the
// tokens decide.
//
// Invariants (docs/invariants.md)
//   I1  A block's parent is in the index as long as the block is.
//   I2  A parent is more recently used than its children, so the least recently used block has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"
#include "pages/page_table.h"
#include "pages/types.h"

namespace kvasir::pages {

// Counters since the index was made.
struct PrefixCounters {
  std::uint64_t lookups = 0;       // beginnings that were looked up
  std::uint64_t hits = 0;          // of them found at least in part
  std::uint64_t tokens_found = 0;  // tokens that need not be computed
  std::uint64_t evictions = 0;     // blocks given up
};

// Counts no cells: the page store holds them for it. Not thread-safe. May throw std::bad_alloc where it says
// so.
class PrefixIndex {
 public:
  using BlockId = std::uint32_t;
  static constexpr BlockId kRoot = UINT32_MAX;  // the empty beginning

  // What a beginning depends on beside its tokens.
  struct Origin {
    std::uint64_t salt = 0;
    std::uint64_t encoded = 0;  // the encoder's output that it attends to

    friend bool operator==(const Origin&, const Origin&) = default;
  };

  // The block of `tokens` behind `parent`, if it is known. `origin` counts behind the root alone.
  [[nodiscard]] std::optional<BlockId> find(BlockId parent, const Origin& origin,
                                            std::span<const Token> tokens) const noexcept;

  // Takes memory for so many blocks in all, each of so many tokens and with its cells in a span or two of
  // each group: insert() takes none for those. Throws std::bad_alloc; then there is memory for fewer.
  void make_room(std::size_t blocks, std::size_t tokens, std::size_t groups);

  // Adds a block that find() does not know, with its cells in each group: of a recurrent group the state at
  // its end; none where the group has nothing of it. Throws std::bad_alloc, having changed nothing.
  BlockId insert(BlockId parent, const Origin& origin, std::span<const Token> tokens,
                 std::span<const PageTable> cells);

  // Marks the block and all before it as just used (I2).
  void touch(BlockId block) noexcept;

  // The time of a use: greater than that of every one before, whatever was used.
  [[nodiscard]] std::uint64_t tick() noexcept { return ++clock_; }
  [[nodiscard]] std::uint64_t used(BlockId block) const noexcept { return blocks_[block].used_at; }

  // The least recently used block; nothing where the index is empty.
  [[nodiscard]] std::optional<BlockId> oldest() const noexcept;

  // Takes a block without children out, whose cells the caller has released.
  void erase(BlockId id) noexcept;

  // The blocks that name one of the cells of a group, and all behind them; children come before their
  // parents. Throws std::bad_alloc.
  [[nodiscard]] std::vector<BlockId> naming(const CellRun& cells) const;

  [[nodiscard]] std::span<const PageTable> cells(BlockId block) const noexcept {
    return blocks_[block].cells;
  }
  [[nodiscard]] std::span<PageTable> cells(BlockId block) noexcept { return blocks_[block].cells; }

  // Every block in the index, for whoever must visit all holders of cells.
  [[nodiscard]] std::vector<BlockId> blocks() const;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // I1 and I2, recounted from nothing. kInternal names the broken one. Throws std::bad_alloc.
  [[nodiscard]] Status check() const;
  [[nodiscard]] PrefixCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const PrefixCounters& counters() const noexcept { return counters_; }

 private:
  struct Block {
    BlockId parent = kRoot;
    std::uint32_t children = 0;
    Origin origin;
    std::uint64_t hash = 0;
    std::uint64_t used_at = 0;
    std::vector<Token> tokens;
    std::vector<PageTable> cells;  // [group]
    BlockId newer = kRoot;
    BlockId older = kRoot;
    BlockId next_in_bucket = kRoot;
    bool used = false;
  };

  [[nodiscard]] BlockId& bucket_of(std::uint64_t hash) noexcept { return buckets_[hash % buckets_.size()]; }
  [[nodiscard]] std::uint64_t hash_of(BlockId parent, const Origin& origin,
                                      std::span<const Token> tokens) const noexcept;
  void link_newest(BlockId id) noexcept;
  void unlink(BlockId id) noexcept;

  std::vector<Block> blocks_;     // those that are not used keep their memory
  std::vector<BlockId> unused_;   // a stack, with room for all blocks
  std::vector<BlockId> buckets_;  // the first block of each, as many as there are blocks
  BlockId newest_ = kRoot;
  BlockId oldest_ = kRoot;
  std::size_t size_ = 0;
  std::uint64_t clock_ = 0;
  PrefixCounters counters_;
};

}  // namespace kvasir::pages
