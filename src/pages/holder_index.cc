#include "pages/holder_index.h"

#include <utility>

namespace kvasir::pages {

void HolderIndex::reset(std::uint32_t pages) {
  current_.reset();
  holders_.clear();
  nodes_.clear();
  first_.assign(pages, kNone);
}

void HolderIndex::add(Holder holder, std::span<const Run> runs) {
  if (runs.empty()) return;
  const auto index = static_cast<std::uint32_t>(holders_.size());
  holders_.push_back(holder);
  for (const Run& run : runs) {
    if (!in_tier(run.page)) add_piece({index, run.cell, run.count, run.ordinal}, run.page);
  }
}

void HolderIndex::link(std::uint32_t node, PageId page) noexcept {
  nodes_[node].next = std::exchange(first_[static_cast<std::uint32_t>(page)], node);
}

void HolderIndex::add_piece(const Piece& piece, PageId page) {
  nodes_.push_back({.piece = piece});
  link(static_cast<std::uint32_t>(nodes_.size() - 1), page);
}

void HolderIndex::move(const Moves& moves) {
  current_.reset();
  std::optional<PageId> done;
  for (const CopyCells& copy : moves.all()) {
    const PageId page = copy.from.page;
    if (done == page) continue;
    done = page;
    std::uint32_t at = std::exchange(first_[static_cast<std::uint32_t>(page)], kNone);
    while (at != kNone) {
      const std::uint32_t next = nodes_[at].next;
      const Piece whole = nodes_[at].piece;
      moves.visit({page, whole.cell}, whole.count, [&](CellAt before, CellAt after, std::uint32_t count) {
        const Piece part{whole.holder, after.cell, count, whole.ordinal + (before.cell - whole.cell)};
        if (before.cell != whole.cell) return add_piece(part, after.page);
        nodes_[at].piece = part;
        link(at, after.page);
      });
      at = next;
    }
  }
}

}  // namespace kvasir::pages
