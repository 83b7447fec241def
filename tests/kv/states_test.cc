// Recurrent states in frames: every piece whole in one frame and beside all others, and their numbers the
// same whatever the frames' size.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kv/arena.h"

namespace kvasir::kv {
namespace {

using pages::FrameId;
using Geometries = std::vector<StateGeometry>;

Geometries random_entries(std::mt19937& random) {
  Geometries entries(1 + random() % 6);
  for (StateGeometry& entry : entries)
    entry = {1 + static_cast<std::uint32_t>(random() % 9), 1 + static_cast<std::uint32_t>(random() % 70)};
  return entries;
}

std::size_t least_frame(const Geometries& entries, bool alone) {
  const auto bytes = state_frame_bytes(entries, alone);
  EXPECT_TRUE(bytes.has_value());
  return bytes.value_or(0);
}

// Which piece each 64 bytes of a state's frames belong to; a piece is found by a walk over all before it.
struct WalkedState {
  std::vector<std::vector<StateLayout::Place>> places;  // [entry][piece]
  std::uint32_t frames = 0;
};
WalkedState walk(const Geometries& entries, std::size_t frame_bytes) {
  WalkedState walked;
  std::size_t offset = 0;
  std::uint32_t frame = 0;
  for (const StateGeometry& entry : entries) {
    std::vector<StateLayout::Place>& places = walked.places.emplace_back();
    const std::size_t bytes = (entry.floats * sizeof(float) + 63) / 64 * 64;
    for (std::uint32_t piece = 0; piece < entry.pieces; ++piece) {
      if (offset + bytes > frame_bytes) {
        ++frame;
        offset = 0;
      }
      places.push_back({frame, offset});
      offset += bytes;
    }
  }
  walked.frames = frame + 1;
  return walked;
}

// An arena with room for some states, and the frames of each in an order of its own.
struct States {
  States(const Geometries& entries, std::size_t frame_bytes, std::uint32_t count, std::mt19937& random)
      : layout(entries, frame_bytes) {
    auto made = Arena::create({}, {}, 32, layout.frames() * count, frame_bytes);
    EXPECT_TRUE(made.has_value());
    arena = *std::move(made);
    for (std::uint32_t i = 0; i < layout.frames() * count; ++i) frames.push_back(FrameId{i});
    std::ranges::shuffle(frames, random);
  }
  [[nodiscard]] std::span<const FrameId> state(std::size_t index) const {
    return std::span(frames).subspan(index * layout.frames(), layout.frames());
  }

  StateLayout layout;
  Arena arena;
  std::vector<FrameId> frames;
};

TEST(States, PiecesLieOneBehindTheOtherAndWholeInAFrame) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Geometries entries = random_entries(random);
    const std::size_t bytes = least_frame(entries, random() % 2 == 0) + random() % 5 * 64;
    const StateLayout layout(entries, bytes);
    const WalkedState walked = walk(entries, bytes);
    ASSERT_EQ(layout.frames(), walked.frames) << "round " << round;
    for (std::size_t entry = 0; entry < entries.size(); ++entry) {
      for (std::uint32_t piece = 0; piece < entries[entry].pieces; ++piece) {
        const StateLayout::Place place = layout.place(entry, piece);
        ASSERT_EQ(place.frame, walked.places[entry][piece].frame) << "round " << round;
        ASSERT_EQ(place.offset, walked.places[entry][piece].offset) << "round " << round;
        ASSERT_LE(place.offset + entries[entry].floats * sizeof(float), bytes);
        // Steps store whole lines past the caches (simd::StateStore::kAway).
        ASSERT_EQ(place.offset % 64, 0U) << "round " << round;
      }
    }
  }
}

TEST(States, NumbersAreTheSameInFramesOfAnySize) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    const Geometries entries = random_entries(random);
    States one(entries, least_frame(entries, true), 3, random);
    States other(entries, least_frame(entries, false) + 64, 3, random);
    for (std::size_t entry = 0; entry < entries.size(); ++entry) {
      const std::uint64_t floats = entries[entry].all_floats();
      std::vector<float> numbers(floats);
      for (float& number : numbers) number = static_cast<float>(random());
      numbers.front() = std::numeric_limits<float>::quiet_NaN();
      one.arena.import_state(one.layout, one.state(1), entry, 0, std::as_bytes(std::span(numbers)));
      // Part by part through bytes, into another arena.
      std::uint64_t first = 0;
      while (first < floats) {
        const std::uint64_t some = std::min<std::uint64_t>(floats - first, 1 + random() % 50);
        std::vector<std::byte> bytes(some * sizeof(float));
        one.arena.export_state(one.layout, one.state(1), entry, first, bytes);
        other.arena.import_state(other.layout, other.state(2), entry, first, bytes);
        first += some;
      }
      std::vector<std::byte> back(floats * sizeof(float));
      other.arena.export_state(other.layout, other.state(2), entry, 0, back);
      EXPECT_EQ(std::memcmp(back.data(), numbers.data(), back.size()), 0) << "round " << round;
      for (std::uint32_t piece = 0; piece < entries[entry].pieces; ++piece) {
        const std::span<const float> held =
            std::as_const(other.arena).piece(other.layout, other.state(2), entry, piece);
        EXPECT_EQ(std::memcmp(held.data(), numbers.data() + std::size_t{piece} * entries[entry].floats,
                              held.size_bytes()),
                  0);
      }
    }
  }
}

TEST(States, FillingOneLeavesTheOthersAlone) {
  std::mt19937 random(3);
  const Geometries entries{{3, 20}, {5, 7}, {1, 64}};
  States states(entries, least_frame(entries, false), 3, random);
  for (std::size_t state = 0; state < 3; ++state)
    states.arena.fill_state(states.layout, states.state(state), static_cast<float>(state));
  states.arena.fill_state(states.layout, states.state(1), 0.5F);
  for (std::size_t state = 0; state < 3; ++state) {
    for (std::size_t entry = 0; entry < entries.size(); ++entry) {
      for (std::uint32_t piece = 0; piece < entries[entry].pieces; ++piece) {
        for (const float number : states.arena.piece(states.layout, states.state(state), entry, piece))
          ASSERT_EQ(number, state == 1 ? 0.5F : static_cast<float>(state));
      }
    }
  }
}

TEST(States, AloneAnEntryIsWholeInOneFrame) {
  const Geometries entries{{24, 1000}, {3, 50}};
  EXPECT_EQ(least_frame(entries, true), 24U * 4032);
  EXPECT_EQ(StateLayout(entries, least_frame(entries, true)).frames(), 2U);
}

TEST(States, ALargeStateTakesLargerFrames) {
  const Geometries entries(2000, {64, 16});
  const std::size_t bytes = least_frame(entries, false);
  EXPECT_GT(bytes, 64U);
  EXPECT_LE(StateLayout(entries, bytes).frames(), 2048U);
}

TEST(States, RefusesWhatCannotBeKept) {
  for (const StateGeometry& empty : {StateGeometry{0, 4}, StateGeometry{4, 0}}) {
    const auto refused = state_frame_bytes({&empty, 1}, false);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
  }
  const StateGeometry large{UINT32_MAX, UINT32_MAX};
  const auto refused = state_frame_bytes({&large, 1}, true);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Outcome::kUnsupported);
  EXPECT_EQ(refused.error().numbers().limit, kStateEntryBytesMax / sizeof(float));
}

}  // namespace
}  // namespace kvasir::kv
