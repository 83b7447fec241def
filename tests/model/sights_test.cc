// What rows see of a window, against the definition applied to every cell.

#include "model/sights.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::model {
namespace {

using pages::GroupKind;

constexpr std::uint64_t kWidth = 24;

// A store with one group of every cell and one window, as a model declares them.
struct Host {
  Network network;
  std::unique_ptr<pages::PageStore> store;
  pages::TableId table{};

  Host() {
    network.groups.push_back({.kind = GroupKind::kFull});
    network.groups.push_back({.kind = GroupKind::kWindow, .width = kWidth});
    // The store keeps every cell here, so that what a window hides is hidden by the sights alone.
    pages::StoreSpec spec{.page_cells = 16, .frames = 200, .groups = {{.layers = 1}, {.layers = 1}}};
    store = *pages::PageStore::create(spec);
    table = *store->open();
  }

  void grow(std::uint64_t count) {
    const std::vector<pages::Growth> plan = {{.table = table, .count = count}};
    auto ticket = *store->begin(plan);
    const std::vector<std::uint64_t> accepted = {count};
    ticket.commit(accepted);
  }

  void edit(const pages::EditOperation& operation) {
    const std::vector<pages::EditOperation> operations = {operation};
    auto ticket = store->begin_edit(table, operations);
    ASSERT_TRUE(ticket) << ticket.error().message();
    ticket->commit();
  }
};

// A pass over the last `count` tokens of the conversation, which are stored already.
Pass pass_of(const Host& host, std::uint64_t count, std::uint64_t floor) {
  Pass pass;
  const std::uint64_t length = host.store->length(host.table);
  PassSequence& sequence = pass.sequences.emplace_back();
  sequence.rows = static_cast<std::uint32_t>(count);
  sequence.floors = {0, floor};
  sequence.runs.resize(2);
  for (std::size_t group = 0; group < 2; ++group) {
    const auto runs = host.store->runs(host.table, group);
    sequence.runs[group].assign(runs.begin(), runs.end());
    for (const pages::Run& run : runs) {
      for (std::uint32_t i = 0; i < run.count && group == 1; ++i) {
        if (run.ordinal + i < length - count) continue;
        const auto stored =
            static_cast<std::int64_t>(host.store->position(group, run.page, run.cell + i)) + run.shift;
        pass.rows.push_back({.ordinal = run.ordinal + i, .position = stored});
      }
    }
  }
  return pass;
}

std::int64_t position_at(const Host& host, std::uint64_t ordinal) {
  for (const pages::Run& run : host.store->runs(host.table, 1)) {
    if (ordinal >= run.ordinal && ordinal < run.end()) {
      const auto cell = run.cell + static_cast<std::uint32_t>(ordinal - run.ordinal);
      return static_cast<std::int64_t>(host.store->position(1, run.page, cell)) + run.shift;
    }
  }
  return -1;
}

std::set<std::uint64_t> cells_of(const Sight& sight) {
  std::set<std::uint64_t> cells;
  for (std::uint64_t ordinal = sight.first; ordinal < sight.end; ++ordinal) cells.insert(ordinal);
  for (const simd::OrdinalRange& range : sight.hidden) {
    for (std::uint64_t ordinal = range.begin; ordinal < range.end; ++ordinal)
      EXPECT_EQ(cells.erase(ordinal), 1U) << "ranges lie in what is seen and do not meet";
  }
  return cells;
}

std::set<std::uint64_t> by_definition(const Host& host, const PassRow& row, std::uint64_t floor) {
  std::set<std::uint64_t> cells;
  for (std::uint64_t ordinal = floor; ordinal <= row.ordinal; ++ordinal) {
    const std::int64_t behind = row.position - position_at(host, ordinal);
    if (row.ordinal - ordinal < kWidth && behind < static_cast<std::int64_t>(kWidth)) cells.insert(ordinal);
  }
  cells.insert(row.ordinal);
  return cells;
}

void expect_sights(const Host& host, std::uint64_t count, std::uint64_t floor) {
  const Pass pass = pass_of(host, count, floor);
  ASSERT_EQ(pass.rows.size(), count);
  Sights sights;
  sights.look(host.network, pass, *host.store);
  for (std::size_t row = 0; row < pass.rows.size(); ++row) {
    const Sight all = sights.of(pass, 0, row);
    EXPECT_EQ(all.first, 0U);
    EXPECT_EQ(all.end, pass.rows[row].ordinal + 1);
    EXPECT_TRUE(all.hidden.empty());
    EXPECT_EQ(cells_of(sights.of(pass, 1, row)), by_definition(host, pass.rows[row], floor)) << row;
  }
}

TEST(Sights, OfAWindowAreTheCellsLessThanItsWidthBehind) {
  Host host;
  host.grow(200);
  for (const std::uint64_t count : {1U, 2U, 23U, 24U, 25U, 100U, 200U}) expect_sights(host, count, 0);
}

TEST(Sights, EndAtTheFloor) {
  Host host;
  host.grow(100);
  for (const std::uint64_t floor : {1U, 75U, 77U, 90U, 99U}) expect_sights(host, 100 - floor, floor);
}

TEST(Sights, FollowPositionsThatEditsHaveMoved) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    Host host;
    host.grow(60 + random() % 100);
    for (int edits = 0; edits < 3; ++edits) {
      const std::uint64_t length = host.store->length(host.table);
      const std::uint64_t first = random() % length;
      const std::uint64_t count = 1 + random() % (length - first);
      switch (random() % 3) {
        case 0:
          if (count < length - first)
            host.edit({pages::EditOperation::Kind::kRemove, first, std::min<std::uint64_t>(count, 30), 0});
          break;
        case 1:
          // Forward or back, past what stands around it: then positions do not ascend.
          host.edit({pages::EditOperation::Kind::kShift, first, count,
                     static_cast<std::int64_t>(random() % 60) -
                         std::min<std::int64_t>(20, position_at(host, first))});
          break;
        default:
          host.edit({pages::EditOperation::Kind::kDivide, first, count, 2});
          break;
      }
      if (HasFatalFailure()) return;
    }
    host.grow(1 + random() % 20);
    const std::uint64_t length = host.store->length(host.table);
    expect_sights(host, 1 + random() % std::min<std::uint64_t>(length, 40), 0);
  }
}

}  // namespace
}  // namespace kvasir::model
