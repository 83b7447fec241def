// Beginnings that conversations share through the index.

#include <algorithm>
#include <new>
#include <utility>

#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

// The spans of [first, first + count), their ordinals counted from 0.
PageTable part_of(const PageTable& table, std::uint64_t first, std::uint64_t count) {
  PageTable part;
  for (Run run : table.runs()) {
    const std::uint64_t begin = std::max(run.ordinal, first);
    const std::uint64_t end = std::min(run.end(), first + count);
    if (begin >= end) continue;
    run.cell += static_cast<std::uint32_t>(begin - run.ordinal);
    run.count = static_cast<std::uint32_t>(end - begin);
    part.append(run);
  }
  return part;
}

}  // namespace

void PageStore::remember(TableId id, std::span<const Token> tokens, std::uint64_t salt) noexcept {
  Table& table = entry(id);
  const std::uint64_t block = spec_.page_cells;
  const std::uint64_t clean = std::min({table.length, table.first_dirty, std::uint64_t{tokens.size()}});
  if (clean / block <= table.remembered / block) return;
  table.remembered = clean;
  PrefixIndex::BlockId parent = PrefixIndex::kRoot;
  try {
    for (std::uint64_t first = 0; first + block <= clean; first += block) {
      const std::span<const Token> ids = tokens.subspan(first, block);
      if (const auto known = index_.find(parent, salt, ids)) {
        parent = *known;
        continue;
      }
      std::vector<PageTable> cells;
      cells.reserve(table.cells.size());
      for (const PageTable& of_group : table.cells) cells.push_back(part_of(of_group, first, block));
      parent = index_.insert(parent, salt, ids, std::move(cells));
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        hold(group, index_.cells(parent)[group].runs(), Holder::kSoft);
      }
    }
  } catch (const std::bad_alloc&) {
    return;  // what is in stays; the rest is computed again by whoever wants it
  }
}

// The blocks of the longest known beginning of `tokens`, at most `limit` of them.
std::vector<PrefixIndex::BlockId> PageStore::known_blocks(std::span<const Token> tokens, std::uint64_t limit,
                                                          std::uint64_t salt) const {
  std::vector<PrefixIndex::BlockId> blocks;
  const std::uint64_t block = spec_.page_cells;
  PrefixIndex::BlockId parent = PrefixIndex::kRoot;
  for (std::uint64_t end = block; end <= std::min<std::uint64_t>(limit, tokens.size()); end += block) {
    const auto known = index_.find(parent, salt, tokens.subspan(end - block, block));
    if (!known) break;
    blocks.push_back(*known);
    parent = *known;
  }
  return blocks;
}

// Holds a block's cells if all that is promised still fits when they can no longer be evicted (S6).
bool PageStore::hold_block(PrefixIndex::BlockId block) noexcept {
  const std::span<const PageTable> shared = index_.cells(block);
  for (std::size_t group = 0; group < groups_.size(); ++group)
    hold(group, shared[group].runs(), Holder::kFirm);
  if (promises_fit()) return true;
  for (std::size_t group = 0; group < groups_.size(); ++group)
    release(group, shared[group].runs(), Holder::kFirm);
  return false;
}

Result<std::uint64_t> PageStore::adopt(TableId id, std::span<const Token> tokens, std::uint64_t limit,
                                       std::uint64_t salt) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    Table& table = entry(id);
    if (table.length != 0)
      return fail(Outcome::kWrongState, "only an empty conversation can take a shared beginning");
    const std::vector<PrefixIndex::BlockId> blocks = known_blocks(tokens, limit, salt);
    // Places for all spans first, so that nothing fails with cells held.
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      std::size_t spans = 0;
      for (const PrefixIndex::BlockId block : blocks) spans += index_.cells(block)[group].runs().size();
      table.cells[group].reserve(spans);
    }
    ++index_.counters().lookups;
    std::size_t taken = 0;
    while (taken < blocks.size() && hold_block(blocks[taken])) {
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        for (const Run& run : index_.cells(blocks[taken])[group].runs()) table.cells[group].append(run);
      }
      ++taken;
    }
    if (taken == 0) return 0;
    table.length = taken * spec_.page_cells;
    table.remembered = table.length;
    index_.touch(blocks[taken - 1]);
    ++index_.counters().hits;
    index_.counters().tokens_found += table.length;
    return table.length;
  });
}

}  // namespace kvasir::pages
