// Page stores small enough to follow in one's head.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <vector>

#include "pages/page_store.h"

namespace kvasir::pages {

// How a failed comparison shows them.
inline void PrintTo(const Run& run, std::ostream* out) {
  *out << run.count << " cells from " << run.cell << " of page " << static_cast<std::uint32_t>(run.page)
       << " as ordinal " << run.ordinal << " shifted by " << run.shift;
}
inline void PrintTo(const CellAt& at, std::ostream* out) {
  *out << "cell " << at.cell << " of page " << static_cast<std::uint32_t>(at.page);
}

}  // namespace kvasir::pages

namespace kvasir::pages::test {

// Inside a GoogleTest case Run is a function of the case.
using Span = Run;

// Pages of 16 cells; a group for each number of layers.
[[nodiscard]] std::unique_ptr<PageStore> make_store(std::uint32_t frames,
                                                    const std::vector<std::uint32_t>& layers = {1},
                                                    std::uint32_t page_cells = 16);

[[nodiscard]] TableId open(PageStore& store);

// A step of one conversation, committed whole.
void grow(PageStore& store, TableId table, std::uint64_t count);

// A new conversation of `count` tokens.
[[nodiscard]] TableId open_with(PageStore& store, std::uint64_t count);

// Edits, committed; whatever must be done to bytes is not.
void edit(PageStore& store, TableId table, const std::vector<EditOperation>& operations);
void remove(PageStore& store, TableId table, std::uint64_t first, std::uint64_t count);

// The spans of a conversation in a group, and of any list.
[[nodiscard]] std::vector<Run> runs_of(const PageStore& store, TableId table, std::size_t group = 0);

// Tokens first, first + 1, ...
[[nodiscard]] std::vector<Token> tokens_from(Token first, std::size_t count);

// All that a failed call must leave as it was, but for the bytes: spans, positions, holders, promises,
// floors, checkpoints, space and the index.
[[nodiscard]] std::vector<std::uint64_t> state_of(const PageStore& store, std::span<const TableId> tables);

// Every second cell of all pages held, no page free: one conversation of `pages` full pages in each group has
// dropped its odd cells. Answers it.
[[nodiscard]] TableId make_checkerboard(PageStore& store, std::uint64_t pages);

// Whether every invariant holds.
void expect_sound(const PageStore& store);

}  // namespace kvasir::pages::test
