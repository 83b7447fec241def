// The order in which an archive brings cells and states, and what is refused of it.

#include "engine/cell_sections.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/pool_shape.h"

namespace kvasir::engine {
namespace {

using Bytes = std::vector<std::byte>;

// Two layers of K and V of 8 and 12 bytes a cell, and states of two entries of 40 and 24 bytes.
Origin origin() {
  Origin origin;
  origin.keys = "f16";
  origin.values = "f16";
  origin.groups.push_back({.kind = pages::GroupKind::kFull, .layers = {{1, 2, 2}, {1, 3, 3}}, .states = {}});
  origin.groups.push_back({.kind = pages::GroupKind::kRecurrent, .layers = {}, .states = {{2, 5}, {1, 6}}});
  return origin;
}

CellSections sections_of(std::vector<std::uint64_t> cells) {
  auto sections = CellSections::of(origin(), std::move(cells));
  EXPECT_TRUE(sections) << sections.error().message();
  return *std::move(sections);
}

Bytes written(const CellSections& sections, const CellSection& section) {
  Bytes bytes;
  const bool state = section.group < origin().groups.size() && sections.state(section.group);
  CellSections::append_head(section, state, bytes);
  bytes.resize(bytes.size() + section.bytes);
  return bytes;
}

TEST(CellSections, ComeInOrderAndAreReadAsTheyAreWritten) {
  CellSections writer = sections_of({5, 2});
  CellSections reader = sections_of({5, 2});
  EXPECT_EQ(writer.bytes_total(), 5U * 20 + 2 * 64);
  std::vector<std::vector<std::uint64_t>> all;
  while (!writer.done()) {
    const CellSection section = writer.next(45);
    const auto read = reader.read(written(writer, section));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->bytes, section.bytes);
    all.push_back({read->group, read->first, read->count, read->first_part, read->parts});
    writer.pass(section);
    reader.pass(*read);
  }
  EXPECT_TRUE(reader.done());
  EXPECT_TRUE(reader.check_complete());
  EXPECT_EQ(all, (std::vector<std::vector<std::uint64_t>>{{0, 0, 2, 0, 2},
                                                          {0, 2, 2, 0, 2},
                                                          {0, 4, 1, 0, 2},
                                                          {1, 0, 1, 0, 1},
                                                          {1, 0, 1, 1, 1},
                                                          {1, 1, 1, 0, 1},
                                                          {1, 1, 1, 1, 1}}));
}

TEST(CellSections, AreRefusedOutOfTheirPlace) {
  const CellSections reader = sections_of({5, 2});
  const CellSection good = reader.next(1000);
  ASSERT_TRUE(reader.read(written(reader, good)));
  const auto expect_refused = [&](const Bytes& bytes) {
    const auto read = reader.read(bytes);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), Outcome::kCorrupt);
  };
  const auto changed = [&](auto change) {
    CellSection section = good;
    change(section);
    return written(reader, section);
  };
  expect_refused(changed([](CellSection& section) { section.group = 1; }));
  expect_refused(changed([](CellSection& section) { section.group = 7; }));
  expect_refused(changed([](CellSection& section) { section.first = 1; }));
  expect_refused(changed([](CellSection& section) { section.count = 0; }));
  expect_refused(changed([](CellSection& section) { section.count = 6; }));
  expect_refused(changed([](CellSection& section) { --section.bytes; }));
  const Bytes whole = written(reader, good);
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
  const Status incomplete = reader.check_complete();
  ASSERT_FALSE(incomplete);
  EXPECT_EQ(incomplete.error().code(), Outcome::kCorrupt);
}

TEST(CellSections, EntriesOfAStateComeOneAfterTheOther) {
  CellSections reader = sections_of({0, 1});
  CellSection first = reader.next(1);
  EXPECT_EQ(first.bytes, 40U);
  CellSection second = first;
  second.first_part = 1;
  second.bytes = 24;
  EXPECT_FALSE(reader.read(written(reader, second)));
  reader.pass(first);
  EXPECT_FALSE(reader.read(written(reader, first)));
  ASSERT_TRUE(reader.read(written(reader, second)));
  reader.pass(second);
  EXPECT_TRUE(reader.done());
  EXPECT_FALSE(reader.read(written(reader, second))) << "nothing comes behind the last";
}

TEST(CellSections, CellsWithoutLayersAreRefused) {
  Origin empty = origin();
  empty.groups[1].states.clear();
  EXPECT_FALSE(CellSections::of(empty, {1, 1}));
  EXPECT_TRUE(CellSections::of(empty, {1, 0}));
  EXPECT_FALSE(CellSections::of(empty, {1}));
}

TEST(PoolShape, CountsFramesOfPagesAndOfStates) {
  model::Network network;
  network.layers.resize(1);
  network.groups.push_back({.layers = {{1, 2, 2}, {1, 3, 3}}});
  network.groups.push_back({.kind = pages::GroupKind::kRecurrent, .states = {{2, 5}, {1, 6}}});
  const PoolWishes wishes{.tokens = 100, .context = 50, .states = 7, .page_cells = 32, .pass_tokens = 64};
  const auto shape = pool_shape(network, wishes);
  ASSERT_TRUE(shape) << shape.error().message();
  EXPECT_EQ(shape->frame_bytes, kv::Arena::frame_bytes(network.groups[0].layers, {}, 32).value_or(0));
  EXPECT_EQ(shape->states[1].frames(), 1U);
  EXPECT_EQ(shape->spec.frames, 4U * 2 + 7) << "four pages of two layers, and seven states";
  EXPECT_EQ(shape->bytes, shape->spec.frames * shape->frame_bytes);
  EXPECT_EQ(shape->spec.groups[1].kind, pages::GroupKind::kRecurrent);
  EXPECT_EQ(tokens_within(shape->bytes, network, wishes).value_or(0), 128U);
  EXPECT_EQ(tokens_within(7 * shape->frame_bytes - 1, network, wishes).value_or(1), 0U);
  EXPECT_FALSE(pool_shape(network, {.tokens = UINT64_MAX, .context = 1, .page_cells = 16}));
}

TEST(PoolShape, HasStatesForTheConversationsItHoldsAndForOthersAsFarAsBytesGo) {
  model::Network network;
  network.layers.resize(1);
  network.groups.push_back({.layers = {{1, 2, 2}, {1, 3, 3}}});
  PoolWishes wishes{.tokens = 96, .context = 32, .page_cells = 32, .pass_tokens = 64};
  EXPECT_EQ(states_within(UINT64_MAX, network, wishes, 24), 0U) << "no group keeps any";
  network.groups.push_back({.kind = pages::GroupKind::kRecurrent, .states = {{2, 5}, {1, 6}}});
  const auto shape = pool_shape(network, wishes);
  ASSERT_TRUE(shape) << shape.error().message();
  EXPECT_EQ(shape->spec.frames, 3U * 2 + states_for(3)) << "three of full length";
  EXPECT_EQ(states_within(UINT64_MAX, network, wishes, 24), states_for(24));
  EXPECT_EQ(states_within(UINT64_MAX, network, wishes, 2), states_for(3));
  EXPECT_EQ(states_within(0, network, wishes, 24), states_for(3)) << "those that it needs in any case";
  EXPECT_EQ(states_within(shape->bytes + 5 * shape->state_bytes, network, wishes, 24), states_for(3) + 5);
  EXPECT_EQ(states_within(shape->bytes + 5 * shape->state_bytes - 1, network, wishes, 24), states_for(3) + 4);
}

}  // namespace
}  // namespace kvasir::engine
