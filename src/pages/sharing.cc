// Beginnings that conversations share through the index.

#include <algorithm>
#include <new>
#include <utility>

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

Result<std::uint64_t> PageStore::adopt(TableId id, std::span<const Token> tokens, std::uint64_t limit,
                                       std::uint64_t salt) {
  Table& table = entry(id);
  if (table.length != 0)
    return fail(Outcome::kWrongState, "only an empty conversation can take a shared beginning");
  const std::uint64_t block = spec_.page_cells;
  ++index_.counters().lookups;
  std::vector<PageTable> cells(groups_.size());
  std::uint64_t found = 0;
  PrefixIndex::BlockId last = PrefixIndex::kRoot;
  try {
    for (std::uint64_t end = block; end <= std::min<std::uint64_t>(limit, tokens.size()); end += block) {
      const auto known = index_.find(last, salt, tokens.subspan(found, block));
      if (!known) break;
      const std::span<const PageTable> shared = index_.cells(*known);
      for (std::size_t group = 0; group < groups_.size(); ++group)
        cells[group].reserve(shared[group].runs().size());
      for (std::size_t group = 0; group < groups_.size(); ++group)
        hold(group, shared[group].runs(), Holder::kFirm);
      // Cells that were evictable are held now; what is promised must still fit (S6).
      if (frames_needed(promised_) > frames_to_be_had()) {
        for (std::size_t group = 0; group < groups_.size(); ++group)
          release(group, shared[group].runs(), Holder::kFirm);
        break;
      }
      last = *known;
      found = end;
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        for (const Run& run : shared[group].runs()) cells[group].append(run);
      }
    }
  } catch (const std::bad_alloc&) {
    for (std::size_t group = 0; group < groups_.size(); ++group)
      release(group, cells[group].runs(), Holder::kFirm);
    return fail(Outcome::kOutOfMemory, "no memory for a shared beginning");
  }
  if (found == 0) return found;
  table.cells.swap(cells);
  table.length = found;
  table.remembered = found;
  index_.touch(last);
  ++index_.counters().hits;
  index_.counters().tokens_found += found;
  return found;
}

}  // namespace kvasir::pages
