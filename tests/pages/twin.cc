#include "twin.h"

#include <algorithm>

#include "random.h"

namespace kvasir::pages::test {
namespace {

Contents first_contents(const TwinConversation& of) {
  return mix(of.salt + 1000 * of.encoded);
}

Contents next_contents(Contents before, Token token, std::int64_t position) {
  return mix(mix(before ^ static_cast<std::uint64_t>(token)) ^ static_cast<std::uint64_t>(position));
}

}  // namespace

std::uint64_t TwinConversation::clean_length() const {
  const auto touched = std::ranges::find(cells, true, &TwinCell::touched);
  return static_cast<std::uint64_t>(touched - cells.begin());
}

std::int64_t TwinConversation::next_position() const {
  return cells.empty() ? 0 : cells.back().position + 1;
}

std::vector<Token> TwinConversation::tokens() const {
  std::vector<Token> all;
  all.reserve(cells.size());
  for (const TwinCell& cell : cells) all.push_back(cell.token);
  return all;
}

TwinCell TwinConversation::next_cell(std::span<const TwinCell> before, Token token) const {
  TwinCell cell{.token = token};
  cell.position = before.empty() ? 0 : before.back().position + 1;
  cell.stored = before.empty() ? 0 : before.back().stored + 1;
  cell.contents =
      next_contents(before.empty() ? first_contents(*this) : before.back().contents, token, cell.position);
  return cell;
}

bool keeps_tokens(const GroupSpec& group) {
  return group.kind == GroupKind::kFull || group.kind == GroupKind::kWindow;
}

bool TwinConversation::sees_less(std::uint64_t length, const StoreSpec& spec) const {
  for (std::size_t group = 0; group < spec.groups.size(); ++group) {
    if (spec.groups[group].kind != GroupKind::kWindow) continue;
    for (std::uint64_t hidden = 0; hidden < floors[group]; ++hidden) {
      if (hidden + spec.groups[group].width >= length) return true;
    }
  }
  return false;
}

bool TwinConversation::rewinds_freely(std::uint64_t length, const StoreSpec& spec) const {
  if (length == cells.size()) return true;
  for (std::size_t group = 0; group < spec.groups.size(); ++group) {
    const GroupSpec& geometry = spec.groups[group];
    if (geometry.kind == GroupKind::kRecurrent) return false;
    if (geometry.kind != GroupKind::kWindow) continue;
    if (length <= floors[group]) return false;
    // Every ordinal that the next token sees.
    for (std::uint64_t seen = floors[group]; seen < length; ++seen) {
      if (seen + geometry.width >= length && seen < starts[group]) return false;
    }
  }
  return true;
}

void TwinConversation::drop_checkpoints_above(std::uint64_t ordinal) {
  std::erase_if(checkpoints, [&](const auto& checkpoint) { return checkpoint->ordinal > ordinal; });
}

bool changes_nothing(const EditOperation& operation) {
  using Kind = EditOperation::Kind;
  return operation.count == 0 || (operation.kind == Kind::kShift && operation.amount == 0) ||
         (operation.kind == Kind::kDivide && operation.amount == 1);
}

Outcome TwinConversation::judge(const EditOperation& operation, const StoreSpec& spec) const {
  using Kind = EditOperation::Kind;
  const std::uint64_t length = cells.size();
  if (operation.first > length || operation.count > length - operation.first)
    return Outcome::kInvalidArgument;
  if (operation.kind == Kind::kDivide && operation.amount < 1) return Outcome::kInvalidArgument;
  if (changes_nothing(operation)) return Outcome::kDone;
  if (operation.kind == Kind::kRemove && operation.first + operation.count == length)
    return rewinds_freely(operation.first, spec) ? Outcome::kDone : Outcome::kWrongState;
  std::uint64_t held = length;
  for (std::size_t group = 0; group < spec.groups.size(); ++group) {
    if (spec.groups[group].kind == GroupKind::kRecurrent) return Outcome::kUnsupported;
    if (keeps_tokens(spec.groups[group])) held = std::min(held, starts[group]);
  }
  if (operation.kind != Kind::kRemove && !spec.positions_can_move) return Outcome::kUnsupported;
  if (operation.kind != Kind::kShift) return Outcome::kDone;
  for (std::uint64_t i = std::max(operation.first, held); i < operation.first + operation.count; ++i) {
    const std::int64_t position = cells[i].position + operation.amount;
    if (position < 0 || position > kPositionMax) return Outcome::kInvalidArgument;
  }
  return Outcome::kDone;
}

void TwinConversation::edit(const EditOperation& operation, const StoreSpec& spec, Turns& turns) {
  using Kind = EditOperation::Kind;
  if (changes_nothing(operation)) return;
  const std::uint64_t end = operation.first + operation.count;
  const bool cuts_the_end = operation.kind == Kind::kRemove && end == cells.size();
  // An ordinal follows the token that it names; one whose token goes names the next that stays.
  const auto carry = [&](std::uint64_t ordinal) {
    if (operation.kind != Kind::kRemove || ordinal <= operation.first) return ordinal;
    return ordinal < end ? operation.first : ordinal - operation.count;
  };
  for (std::size_t group = 0; group < spec.groups.size() && !cuts_the_end; ++group) {
    const GroupSpec& geometry = spec.groups[group];
    if (geometry.kind != GroupKind::kWindow) continue;
    if (cells.size() > geometry.width) floors[group] = std::max(floors[group], cells.size() - geometry.width);
    floors[group] = carry(floors[group]);
    starts[group] = carry(starts[group]);
  }
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(operation.first);
  const auto last = first + static_cast<std::ptrdiff_t>(operation.count);
  switch (operation.kind) {
    case Kind::kRemove: {
      const auto behind = cells.erase(first, last);
      if (behind != cells.end()) behind->touched = true;
      break;
    }
    case Kind::kShift:
      for (auto cell = first; cell != last; ++cell) {
        cell->position += operation.amount;
        cell->touched = true;
      }
      break;
    case Kind::kDivide:
      for (auto cell = first; cell != last; ++cell) {
        cell->position /= operation.amount;
        cell->turns = turns.add(cell->turns, cell->position - cell->stored);
        cell->stored = cell->position;
        cell->touched = true;
      }
      break;
  }
}

std::vector<Contents> clean_contents(const TwinConversation& like, std::span<const Token> tokens) {
  std::vector<Contents> all;
  Contents contents = first_contents(like);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    contents = next_contents(contents, tokens[i], static_cast<std::int64_t>(i));
    all.push_back(contents);
  }
  return all;
}

Contents encoded_contents(std::uint64_t encoded, std::uint64_t cell) {
  return mix(mix(encoded) + cell);
}

const TwinBlock* TwinIndex::find(Contents key) const {
  const auto found = std::ranges::find(blocks_, key, &TwinBlock::key);
  return found == blocks_.end() ? nullptr : &*found;
}

TwinBlock* TwinIndex::find(Contents key) {
  const auto found = std::ranges::find(blocks_, key, &TwinBlock::key);
  return found == blocks_.end() ? nullptr : &*found;
}

// What a conversation has of the block that ends at `end`.
std::vector<CellAt> TwinIndex::cells_for(const TwinConversation& conversation, const StoreSpec& spec,
                                         std::size_t group, const std::vector<CellAt>& cells,
                                         std::uint64_t end) const {
  const std::uint64_t first = end - spec.page_cells;
  switch (spec.groups[group].kind) {
    case GroupKind::kFull:
    case GroupKind::kWindow: {
      if (conversation.starts[group] > first) return {};
      const auto begin = cells.begin() + static_cast<std::ptrdiff_t>(first - conversation.starts[group]);
      return {begin, begin + static_cast<std::ptrdiff_t>(spec.page_cells)};
    }
    case GroupKind::kRecurrent:
      if (conversation.cells.size() == end) return cells;
      for (const auto& checkpoint : conversation.checkpoints) {
        if (checkpoint->ordinal != end) continue;
        const std::vector<CellAt>& state = checkpoint->cells[group];
        return in_tier(state.front().page) ? std::vector<CellAt>() : state;
      }
      break;
    case GroupKind::kCross:
      break;
  }
  return {};
}

void TwinIndex::remember(TwinConversation& conversation, const StoreSpec& spec,
                         const std::vector<std::vector<CellAt>>& cells) {
  const std::uint64_t clean = conversation.clean_length();
  const std::uint32_t page_cells = spec.page_cells;
  if (clean / page_cells <= conversation.remembered / page_cells) return;
  conversation.remembered = clean;
  std::optional<Contents> parent;
  for (std::uint64_t end = page_cells; end <= clean; end += page_cells) {
    const Contents key = conversation.cells[end - 1].contents;
    if (TwinBlock* const known = find(key); known != nullptr) {
      for (std::size_t group = 0; group < cells.size(); ++group) {
        if (known->cells[group].empty())
          known->cells[group] = cells_for(conversation, spec, group, cells[group], end);
      }
    } else {
      TwinBlock block{.key = key, .used = 0, .cells = {}, .parent = parent};
      for (std::size_t group = 0; group < cells.size(); ++group) {
        block.cells.push_back(cells_for(conversation, spec, group, cells[group], end));
      }
      blocks_.push_back(std::move(block));
      touch(key);
    }
    parent = key;
  }
}

std::vector<const TwinBlock*> TwinIndex::find(const TwinConversation& like, std::span<const Token> tokens,
                                              std::uint64_t limit, std::uint32_t page_cells) const {
  std::vector<const TwinBlock*> found;
  const std::uint64_t most = std::min<std::uint64_t>(limit, tokens.size());
  const std::vector<Contents> keys = clean_contents(like, tokens.first(most));
  for (std::uint64_t end = page_cells; end <= most; end += page_cells) {
    const TwinBlock* block = find(keys[end - 1]);
    if (block == nullptr) break;
    found.push_back(block);
  }
  return found;
}

void TwinIndex::touch(Contents key) {
  for (TwinBlock* block = find(key); block != nullptr;) {
    block->used = ++clock_;
    block = block->parent ? find(*block->parent) : nullptr;
  }
}

std::size_t TwinIndex::forget_naming(const CellRun& run) {
  std::vector<Contents> doomed;
  for (const TwinBlock& block : blocks_) {
    const bool named = std::ranges::any_of(block.cells[run.group], [&](const CellAt& at) {
      return at.page == run.at.page && at.cell >= run.at.cell && at.cell < run.at.cell + run.count;
    });
    if (named) doomed.push_back(block.key);
  }
  for (std::size_t found = 0; found < doomed.size(); ++found) {
    for (const TwinBlock& block : blocks_) {
      if (block.parent == doomed[found] && std::ranges::find(doomed, block.key) == doomed.end())
        doomed.push_back(block.key);
    }
  }
  std::erase_if(blocks_,
                [&](const TwinBlock& block) { return std::ranges::find(doomed, block.key) != doomed.end(); });
  return doomed.size();
}

bool TwinIndex::evict() {
  const auto oldest = std::ranges::min_element(blocks_, {}, &TwinBlock::used);
  if (oldest == blocks_.end()) return false;
  blocks_.erase(oldest);
  return true;
}

void TwinIndex::copied(const CopyCells& copy) {
  for (TwinBlock& block : blocks_) follow(block.cells[copy.group], copy);
}

void TwinIndex::swapped(const SwapCells& swap) {
  for (TwinBlock& block : blocks_) follow(block.cells[swap.group], swap);
}

void follow(std::vector<CellAt>& cells, const CopyCells& copy) {
  for (CellAt& at : cells) {
    if (at.page != copy.from.page || at.cell < copy.from.cell || at.cell >= copy.from.cell + copy.count)
      continue;
    at = {copy.to.page, copy.to.cell + (at.cell - copy.from.cell)};
  }
}

void follow(std::vector<CellAt>& cells, const SwapCells& swap) {
  for (CellAt& at : cells) {
    if (at == swap.a) {
      at = swap.b;
    } else if (at == swap.b) {
      at = swap.a;
    }
  }
}

std::vector<std::vector<CellAt>> cells_of(const PageStore& store, TableId table) {
  std::vector<std::vector<CellAt>> all(store.group_count());
  for (std::size_t group = 0; group < all.size(); ++group) {
    for (const Run& run : store.runs(table, group)) {
      for (std::uint32_t i = 0; i < run.count; ++i) all[group].push_back({run.page, run.cell + i});
    }
  }
  return all;
}

}  // namespace kvasir::pages::test
