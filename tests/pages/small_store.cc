#include "small_store.h"

#include <utility>

namespace kvasir::pages::test {

std::unique_ptr<PageStore> make_store(std::uint32_t frames, const std::vector<std::uint32_t>& layers,
                                      std::uint32_t page_cells) {
  StoreSpec spec{.page_cells = page_cells, .frames = frames};
  for (const std::uint32_t count : layers) spec.groups.push_back({count});
  auto store = PageStore::create(spec);
  EXPECT_TRUE(store.has_value());
  return std::move(store).value();
}

TableId open(PageStore& store) {
  const auto table = store.open();
  EXPECT_TRUE(table.has_value());
  return *table;
}

void grow(PageStore& store, TableId table, std::uint64_t count) {
  const Growth growth{table, count};
  auto ticket = store.begin({&growth, 1});
  ASSERT_TRUE(ticket.has_value()) << ticket.error().message();
  ticket->commit({&count, 1});
}

TableId open_with(PageStore& store, std::uint64_t count) {
  const TableId table = open(store);
  grow(store, table, count);
  return table;
}

void edit(PageStore& store, TableId table, const std::vector<EditOperation>& operations) {
  auto ticket = store.begin_edit(table, operations);
  ASSERT_TRUE(ticket.has_value()) << ticket.error().message();
  ticket->commit();
}

void remove(PageStore& store, TableId table, std::uint64_t first, std::uint64_t count) {
  edit(store, table, {{EditOperation::Kind::kRemove, first, count, 0}});
}

std::vector<Run> runs_of(const PageStore& store, TableId table, std::size_t group) {
  const std::span<const Run> runs = store.runs(table, group);
  return {runs.begin(), runs.end()};
}

std::vector<Token> tokens_from(Token first, std::size_t count) {
  std::vector<Token> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<Token>(i);
  return tokens;
}

std::vector<std::uint64_t> state_of(const PageStore& store, std::span<const TableId> tables) {
  std::vector<std::uint64_t> state = {store.tokens_free(), store.frames_free(), store.space().promised,
                                      store.prefix_blocks()};
  for (std::size_t group = 0; group < store.group_count(); ++group) {
    const GroupCells& cells = store.group(group);
    for (std::uint32_t page = 0; page < cells.page_count(); ++page) {
      for (std::uint32_t cell = 0; cell < cells.page_cells(); ++cell) {
        state.push_back(cells.holders(PageId{page}, cell));
        state.push_back(cells.soft_holders(PageId{page}, cell));
      }
    }
    for (const TableId table : tables) {
      state.push_back(store.floor(table, group));
      state.push_back(store.release_line(table, group));
      for (const Run& run : store.runs(table, group)) {
        state.insert(state.end(), {static_cast<std::uint64_t>(run.page), run.cell, run.count, run.ordinal,
                                   static_cast<std::uint64_t>(run.shift)});
        for (std::uint32_t i = 0; i < run.count; ++i) {
          state.push_back(store.position(group, run.page, run.cell + i));
        }
      }
    }
  }
  for (const TableId table : tables) {
    state.push_back(store.length(table));
    state.push_back(store.behind(table));
    for (std::size_t i = 0; i < store.checkpoint_count(table); ++i)
      state.push_back(store.checkpoint(table, i));
    state.push_back(store.holdings(table).promised);
    state.push_back(static_cast<std::uint64_t>(store.next_position(table)));
  }
  return state;
}

TableId make_checkerboard(PageStore& store, std::uint64_t pages) {
  const TableId table = open_with(store, pages * store.page_cells());
  std::vector<EditOperation> operations;
  for (std::uint64_t cell = 0; cell < pages * store.page_cells() / 2; ++cell) {
    operations.push_back({EditOperation::Kind::kRemove, cell + 1, 1, 0});
  }
  edit(store, table, operations);
  return table;
}

void expect_sound(const PageStore& store) {
  const Status status = store.check();
  EXPECT_TRUE(status.has_value()) << status.error().message();
}

}  // namespace kvasir::pages::test
