#include "twin.h"

#include <algorithm>

#include "random.h"

namespace kvasir::pages::test {
namespace {

Contents first_contents(std::uint64_t salt) {
  return mix(salt);
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
  cell.contents =
      next_contents(before.empty() ? first_contents(salt) : before.back().contents, token, cell.position);
  return cell;
}

void TwinConversation::edit(const EditOperation& operation) {
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(operation.first);
  const auto last = first + static_cast<std::ptrdiff_t>(operation.count);
  if (first == last) return;
  switch (operation.kind) {
    case EditOperation::Kind::kRemove: {
      const auto behind = cells.erase(first, last);
      if (behind != cells.end()) behind->touched = true;
      break;
    }
    case EditOperation::Kind::kShift:
      for (auto cell = first; cell != last; ++cell) {
        cell->position += operation.amount;
        cell->touched = true;
      }
      break;
    case EditOperation::Kind::kDivide:
      for (auto cell = first; cell != last; ++cell) {
        cell->position /= operation.amount;
        cell->touched = true;
      }
      break;
  }
}

std::vector<Contents> clean_contents(std::uint64_t salt, std::span<const Token> tokens) {
  std::vector<Contents> all;
  Contents contents = first_contents(salt);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    contents = next_contents(contents, tokens[i], static_cast<std::int64_t>(i));
    all.push_back(contents);
  }
  return all;
}

const TwinBlock* TwinIndex::find(Contents key) const {
  const auto found = std::ranges::find(blocks_, key, &TwinBlock::key);
  return found == blocks_.end() ? nullptr : &*found;
}

TwinBlock* TwinIndex::find(Contents key) {
  const auto found = std::ranges::find(blocks_, key, &TwinBlock::key);
  return found == blocks_.end() ? nullptr : &*found;
}

void TwinIndex::remember(TwinConversation& conversation, std::uint32_t page_cells,
                         const std::vector<std::vector<CellAt>>& cells) {
  const std::uint64_t clean = conversation.clean_length();
  if (clean / page_cells <= conversation.remembered / page_cells) return;
  conversation.remembered = clean;
  std::optional<Contents> parent;
  for (std::uint64_t end = page_cells; end <= clean; end += page_cells) {
    const Contents key = conversation.cells[end - 1].contents;
    if (find(key) == nullptr) {
      TwinBlock block{.key = key, .parent = parent};
      for (const std::vector<CellAt>& of_group : cells) {
        const auto last = of_group.begin() + static_cast<std::ptrdiff_t>(end);
        block.cells.emplace_back(last - page_cells, last);
      }
      blocks_.push_back(std::move(block));
      touch(key);
    }
    parent = key;
  }
}

std::vector<const TwinBlock*> TwinIndex::find(std::uint64_t salt, std::span<const Token> tokens,
                                              std::uint64_t limit, std::uint32_t page_cells) const {
  std::vector<const TwinBlock*> found;
  const std::uint64_t most = std::min<std::uint64_t>(limit, tokens.size());
  const std::vector<Contents> keys = clean_contents(salt, tokens.first(most));
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

bool TwinIndex::evict() {
  const auto oldest = std::ranges::min_element(blocks_, {}, &TwinBlock::used);
  if (oldest == blocks_.end()) return false;
  blocks_.erase(oldest);
  return true;
}

void TwinIndex::copied(const CopyCells& copy) {
  for (TwinBlock& block : blocks_) {
    for (CellAt& at : block.cells[copy.group]) {
      if (at.page != copy.from.page || at.cell < copy.from.cell || at.cell >= copy.from.cell + copy.count)
        continue;
      at = {copy.to.page, copy.to.cell + (at.cell - copy.from.cell)};
    }
  }
}

void TwinIndex::swapped(const SwapCells& swap) {
  for (TwinBlock& block : blocks_) {
    for (CellAt& at : block.cells[swap.group]) {
      if (at == swap.a) {
        at = swap.b;
      } else if (at == swap.b) {
        at = swap.a;
      }
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
