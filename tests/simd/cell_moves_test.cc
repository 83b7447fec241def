#include "simd/cell_moves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace kvasir::simd {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(MoveBytes, MovesEveryLengthAndNothingBeside) {
  std::mt19937 random(1);
  for (const std::ptrdiff_t ahead : {0, 700}) {
    for (std::size_t length = 0; length < 420; length += length < 200 ? 1 : 7) {
      for (const std::size_t at : {0U, 1U, 16U, 37U}) {
        const Bytes from = random_bytes(1000, random);
        Bytes to = random_bytes(1000, random);
        Bytes expected = to;
        const Repeat repeat{.count = 3, .step = 250};
        const std::vector<BytesMove> moves = {{from.data() + 7, to.data() + at, length, ahead},
                                              {from.data() + 230, to.data() + 230, 5, ahead}};
        for (std::size_t i = 0; i < repeat.count; ++i) {
          for (const BytesMove& move : moves) {
            for (std::size_t byte = 0; byte < move.bytes; ++byte) {
              expected[static_cast<std::size_t>(move.to - to.data()) + i * repeat.step + byte] =
                  move.from[i * repeat.step + byte];
            }
          }
        }
        move_bytes(moves, repeat);
        ASSERT_EQ(to, expected) << length << " bytes to " << at;
      }
    }
  }
}

// Rows of every width put together of every number of sources, byte by byte.
TEST(MoveLanes, PutsRowsTogetherOfTheirSources) {
  std::mt19937 random(2);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random()) % count; };
  for (int turn = 0; turn < 2000; ++turn) {
    LanesMove move{.rows = 1 + below(9), .parts = std::size_t{1} << below(3), .sources = 1 + below(16)};
    if (move.parts * move.sources > kLaneSourcesMax) continue;
    const std::size_t row = move.parts * 16;
    const Repeat repeat{.count = 1 + below(3), .step = 1024};
    const Bytes from = random_bytes(4096, random);
    std::array<std::byte, 4096> to{};
    const std::vector<std::ptrdiff_t> ahead(kLaneSourcesMax, 64);
    std::array<std::byte, 4096> expected{};
    std::vector<const std::byte*> sources(move.parts * move.sources);
    std::vector<LaneLookup> lookups(sources.size());
    for (const std::byte*& source : sources) source = from.data() + below(1024 - row * move.rows);
    for (LaneLookup& lookup : lookups) lookup.fill(kNotHere);
    for (std::size_t byte = 0; byte < row; ++byte) {
      const std::size_t source = byte / 16 * move.sources + below(move.sources);
      const std::size_t at = below(16);
      lookups[source][byte % 16] = static_cast<std::uint8_t>(at);
      for (std::size_t i = 0; i < repeat.count; ++i) {
        for (std::size_t r = 0; r < move.rows; ++r) {
          expected[i * repeat.step + r * row + byte] = sources[source][i * repeat.step + r * row + at];
        }
      }
    }
    move.to = to.data();
    move.from = sources.data();
    move.lookups = lookups.data();
    if (below(2) == 0) move.ahead = ahead.data();
    move_lanes(move, repeat);
    ASSERT_EQ(to, expected) << move.parts << " parts of " << move.sources << " sources";
  }
}

// Of every width, number of rows and choice of lanes: those that are meant, and nothing beside them.
TEST(MergeLanes, WritesTheLanesThatAreMeantAlone) {
  std::mt19937 random(3);
  for (const std::size_t unit : {1U, 2U, 4U}) {
    for (std::size_t rows = 0; rows < 12; ++rows) {
      for (int turn = 0; turn < 20; ++turn) {
        const auto lanes = static_cast<std::uint16_t>(random());
        const Bytes from = random_bytes(rows * 16 * unit, random);
        Bytes to = random_bytes(rows * 16 * unit + 7, random);
        Bytes expected = to;
        for (std::size_t byte = 0; byte < from.size(); ++byte) {
          if ((lanes >> (byte / unit % 16) & 1) != 0) expected[byte] = from[byte];
        }
        merge_lanes(from.data(), to.data(), rows, unit, lanes);
        ASSERT_EQ(to, expected) << rows << " rows of " << unit << ", lanes " << lanes;
      }
    }
  }
}

// What is written past the caches and what is not has the same bytes, wherever it goes.
TEST(MoveLanes, WritesTheSameWhetherItIsReadSoonOrNot) {
  std::mt19937 random(4);
  const Bytes from = random_bytes(4096, random);
  LaneLookup straight{};
  for (std::size_t i = 0; i < straight.size(); ++i) straight[i] = static_cast<std::uint8_t>(i);
  for (const std::size_t parts : {1U, 2U, 4U}) {
    for (const std::size_t shift : {0U, 16U}) {
      alignas(64) std::array<std::byte, 4096 + 64> to{};
      std::vector<const std::byte*> sources;
      for (std::size_t part = 0; part < parts; ++part) sources.push_back(from.data() + part * 16);
      const std::vector<LaneLookup> lookups(parts, straight);
      LanesMove move{.to = to.data() + shift,
                     .rows = 64,
                     .parts = parts,
                     .from = sources.data(),
                     .lookups = lookups.data()};
      for (const bool soon : {false, true}) {
        to.fill({});
        move.read_soon = soon;
        move_lanes(move, {});
        end_moves();
        const std::size_t bytes = 64 * parts * 16;
        ASSERT_TRUE(
            std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(bytes), to.data() + shift));
        ASSERT_EQ(to[shift + bytes], std::byte{});
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::simd
