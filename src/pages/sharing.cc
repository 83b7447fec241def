// Beginnings that conversations share through the index.

#include <algorithm>
#include <new>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {
void PageStore::remember(TableId id, std::span<const Token> tokens, std::uint64_t salt) noexcept {
  Table& table = entry(id);
  if (cells_in_tiers(id) > 0) return;  // the index knows the pool alone
  const std::uint64_t block = spec_.page_cells;
  const std::uint64_t clean = std::min({table.length, table.first_dirty, std::uint64_t{tokens.size()}});
  if (clean / block <= table.remembered / block) return;
  table.remembered = clean;
  const PrefixIndex::Origin origin = origin_of(table, salt);
  PrefixIndex::BlockId parent = PrefixIndex::kRoot;
  try {
    for (std::uint64_t first = 0; first + block <= clean; first += block) {
      const std::span<const Token> ids = tokens.subspan(first, block);
      if (const auto known = index_.find(parent, origin, ids)) {
        parent = *known;
        if (!only_full_) complete_block(parent, table, first);
        continue;
      }
      block_cells_.resize(groups_.size());
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        cells_for_block(table, group, first, block_cells_[group]);
      }
      parent = index_.insert(parent, origin, ids, block_cells_);
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        hold(group, index_.cells(parent)[group].runs(), Holder::kSoft);
      }
    }
  } catch (const std::bad_alloc&) {
    return;  // what is in stays; the rest is computed again by whoever wants it
  }
}

Status PageStore::make_index_room() {
  std::uint64_t layers = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kFull) layers += groups_[group].layers();
  }
  if (layers == 0) return {};  // a block may hold nothing: there is no telling how many there will be
  return base::within_memory([&]() -> Status {
    index_.make_room(spec_.frames / layers, spec_.page_cells, groups_.size());
    return {};
  });
}

// What a conversation has of the block at `first` in a group: its cells, where all are held, or a state of
// its end; nothing else.
void PageStore::cells_for_block(const Table& table, std::size_t group, std::uint64_t first,
                                PageTable& into) const {
  into.clear();
  const std::uint64_t end = first + spec_.page_cells;
  const PageTable& cells = table.cells[group];
  switch (kind(group)) {
    case GroupKind::kFull:
      return cells.part(first, end, 0, into);
    case GroupKind::kWindow:
      if (cells.start() <= first) cells.part(first, end, 0, into);
      return;
    case GroupKind::kRecurrent: {
      if (table.length == end) {
        into = cells;
        return;
      }
      const auto checkpoint = nearest_checkpoint(table, end);
      if (!checkpoint || checkpoints_.at(*checkpoint).ordinal != end) return;
      const PageTable& state = checkpoints_.at(*checkpoint).cells[group];
      if (state.cells_in_tiers() == 0) into = state;
      return;
    }
    case GroupKind::kCross:
      return;
  }
}

// Adds to a known block what it lacks and a conversation has.
void PageStore::complete_block(PrefixIndex::BlockId block, const Table& table, std::uint64_t first) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    PageTable& known = index_.cells(block)[group];
    if (!known.empty()) continue;
    cells_for_block(table, group, first, known);
    hold(group, known.runs(), Holder::kSoft);
  }
}

// The blocks of the longest known beginning of `tokens`, at most `limit` of them.
std::vector<PrefixIndex::BlockId> PageStore::known_blocks(std::span<const Token> tokens, std::uint64_t limit,
                                                          const PrefixIndex::Origin& origin) const {
  std::vector<PrefixIndex::BlockId> blocks;
  const std::uint64_t block = spec_.page_cells;
  PrefixIndex::BlockId parent = PrefixIndex::kRoot;
  for (std::uint64_t end = block; end <= std::min<std::uint64_t>(limit, tokens.size()); end += block) {
    const auto known = index_.find(parent, origin, tokens.subspan(end - block, block));
    if (!known) break;
    blocks.push_back(*known);
    parent = *known;
  }
  return blocks;
}

// Gives an empty conversation what a beginning of these blocks needs in windows and recurrent groups: the
// cells that the next token sees, more up to what is kept where the index has it, and the state at the end.
// False where the index has less; the conversation is empty then.
bool PageStore::serve_tail(Table& table, std::span<const PrefixIndex::BlockId> blocks) noexcept {
  const std::uint64_t end = blocks.size() * spec_.page_cells;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    PageTable& cells = table.cells[group];
    if (kind(group) == GroupKind::kRecurrent) {
      const PageTable& state = index_.cells(blocks.back())[group];
      if (state.empty()) return return_tail(table), false;
      cells.append(state.runs().front());
      hold(group, cells.runs(), Holder::kFirm);
    } else if (kind(group) == GroupKind::kWindow) {
      const std::uint64_t kept = end - std::min(end, kept_behind(group));
      std::size_t first = blocks.size();
      while (first > 0 && first * spec_.page_cells > kept &&
             !index_.cells(blocks[first - 1])[group].empty()) {
        --first;
      }
      if (first * spec_.page_cells > end - std::min(end, spec_.groups[group].width))
        return return_tail(table), false;
      cells.start_at(first * spec_.page_cells);
      for (const PrefixIndex::BlockId block : blocks.subspan(first)) {
        for (const Run& run : index_.cells(block)[group].runs()) cells.append(run);
      }
      cells.drop_below(kept, [](const Run&) {});
      hold(group, cells.runs(), Holder::kFirm);
    }
  }
  return true;
}

void PageStore::return_tail(Table& table) noexcept {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kFull || kind(group) == GroupKind::kCross) continue;
    release(group, table.cells[group].runs(), Holder::kFirm);
    table.cells[group].clear();
  }
}

// Lets an empty conversation hold the longest beginning of these blocks that every group can serve and beside
// which all that is promised still fits, its cells being evictable no longer (S6). Answers how many blocks.
std::size_t PageStore::hold_beginning(Table& table, std::span<const PrefixIndex::BlockId> blocks) noexcept {
  const auto each_full = [&](PrefixIndex::BlockId block, const auto& perform) {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kFull) perform(group, index_.cells(block)[group].runs());
    }
  };
  for (const PrefixIndex::BlockId block : blocks) {
    each_full(block, [&](std::size_t group, std::span<const Run> runs) { hold(group, runs, Holder::kFirm); });
  }
  std::size_t count = blocks.size();
  while (count > 0) {
    if (serve_tail(table, blocks.first(count))) {
      if (promises_fit()) break;
      return_tail(table);
    }
    --count;
    each_full(blocks[count],
              [&](std::size_t group, std::span<const Run> runs) { release(group, runs, Holder::kFirm); });
  }
  for (const PrefixIndex::BlockId block : blocks.first(count)) {
    each_full(block, [&](std::size_t group, std::span<const Run> runs) {
      for (const Run& run : runs) table.cells[group].append(run);
    });
  }
  return count;
}

Result<std::uint64_t> PageStore::adopt(TableId id, std::span<const Token> tokens, std::uint64_t limit,
                                       std::uint64_t salt) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    Table& table = entry(id);
    KVASIR_TRY(check_idle(id));
    if (table.length + table.behind != 0)
      return fail(Outcome::kWrongState, "only an empty conversation can take a shared beginning");
    const std::vector<PrefixIndex::BlockId> blocks = known_blocks(tokens, limit, origin_of(table, salt));
    // Places for all spans first, so that nothing fails with cells held.
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kCross) continue;
      std::size_t spans = 0;
      for (const PrefixIndex::BlockId block : blocks) spans += index_.cells(block)[group].runs().size();
      table.cells[group].reserve(spans);
    }
    ++index_.counters().lookups;
    const std::size_t taken = hold_beginning(table, blocks);
    if (taken == 0) return 0;
    table.length = taken * spec_.page_cells;
    table.remembered = table.length;
    index_.touch(blocks[taken - 1]);
    ++index_.counters().hits;
    index_.counters().tokens_found += table.length;
    return table.length;
  });
}

void PageStore::return_beginning(TableId id) noexcept {
  Table& table = entry(id);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kCross) continue;  // is no beginning: it was there before
    release(group, table.cells[group].runs(), Holder::kFirm);
    table.cells[group].clear();
  }
  --index_.counters().lookups;
  --index_.counters().hits;
  index_.counters().tokens_found -= table.length;
  table.length = 0;
  table.remembered = 0;
}

}  // namespace kvasir::pages
