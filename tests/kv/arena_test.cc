// Cells stored, read back and attended to: bytes by the definition of each float type, attention by a double
// loop over what was stored.

#include "kv/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/half.h"

namespace kvasir::kv {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kPageCells = 48;

std::vector<float> random_floats(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// A number as an element stores it: its bytes, and what they mean.
void append_element(CacheElement element, float value, Bytes& bytes) {
  const std::uint16_t half =
      element == CacheElement::kF16 ? quant::float_to_half(value) : quant::float_to_bfloat(value);
  const auto raw = element == CacheElement::kF32 ? std::as_bytes(std::span(&value, 1))
                                                 : std::as_bytes(std::span(&half, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}
float rounded(CacheElement element, float value) {
  switch (element) {
    case CacheElement::kF16:
      return quant::half_to_float(quant::float_to_half(value));
    case CacheElement::kBF16:
      return quant::bfloat_to_float(quant::float_to_bfloat(value));
    default:
      return value;
  }
}

Bytes cell_bytes(const Arena& arena, const LayerGeometry& layer, std::uint32_t frame, std::uint32_t cell) {
  Bytes bytes;
  arena.append_cell(layer, pages::FrameId{frame}, cell, bytes);
  return bytes;
}

Arena make_arena(const LayerGeometry& layer, const CacheTypes& types, std::uint32_t frames) {
  auto arena = Arena::create({&layer, 1}, types, kPageCells, frames);
  EXPECT_TRUE(arena.has_value());
  return *std::move(arena);
}

class FloatCells : public testing::TestWithParam<CacheTypes> {
 protected:
  std::mt19937 random_{1};
};

TEST_P(FloatCells, AreStoredRoundedOnceHeadByHead) {  // A2
  const LayerGeometry layer{3, 20, 36};
  Arena arena = make_arena(layer, GetParam(), 4);
  for (std::uint32_t frame = 0; frame < 4; ++frame) {
    for (const std::uint32_t cell : {0U, 1U, 15U, 16U, 31U, 47U}) {
      const std::vector<float> keys = random_floats(60, random_);
      const std::vector<float> values = random_floats(108, random_);
      arena.store(layer, pages::FrameId{frame}, cell, keys, values);
      // The order of a cell's bytes: keys head by head, then values head by head.
      Bytes sorted;
      for (const float key : keys) append_element(GetParam().keys, key, sorted);
      for (const float value : values) append_element(GetParam().values, value, sorted);
      Bytes stored = cell_bytes(arena, layer, frame, cell);
      EXPECT_EQ(stored.size(), sorted.size());
      std::ranges::sort(stored);
      std::ranges::sort(sorted);
      EXPECT_EQ(stored, sorted) << "cell " << cell;
    }
  }
}

// Ties, denormals, overflow, zeros of both signs, infinities, NaN.
TEST_P(FloatCells, RoundExtremeNumbersAsTheirTypeDefines) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {0.0F,      -0.0F,      1.0F + 0x1p-11F, 1.0F + 0x1p-8F, 1.0F + 0x3p-11F,
                                      65504.0F,  65519.0F,   65520.0F,        1e38F,          3.4e38F,
                                      0x1p-24F,  0x1p-25F,   0x1.8p-25F,      1e-40F,         -1e-40F,
                                      kInfinity, -kInfinity, 0x1p-14F,        0x1.ffcp-15F,   -65520.0F};
  const LayerGeometry layer{1, static_cast<std::uint32_t>(numbers.size()),
                            static_cast<std::uint32_t>(numbers.size())};
  Arena arena = make_arena(layer, GetParam(), 1);
  arena.store(layer, pages::FrameId{0}, 17, numbers, numbers);
  Bytes expected;
  for (const float number : numbers) append_element(GetParam().keys, number, expected);
  for (const float number : numbers) append_element(GetParam().values, number, expected);
  EXPECT_EQ(cell_bytes(arena, layer, 0, 17), expected);
}

TEST_P(FloatCells, TouchNoOtherCell) {  // A3
  const LayerGeometry layer{2, 16, 24};
  Arena arena = make_arena(layer, GetParam(), 3);
  std::vector<std::vector<Bytes>> before(3, std::vector<Bytes>(kPageCells));
  for (std::uint32_t frame = 0; frame < 3; ++frame) {
    for (std::uint32_t cell = 0; cell < kPageCells; ++cell) {
      arena.store(layer, pages::FrameId{frame}, cell, random_floats(32, random_), random_floats(48, random_));
    }
    for (std::uint32_t cell = 0; cell < kPageCells; ++cell) {
      before[frame][cell] = cell_bytes(arena, layer, frame, cell);
    }
  }
  const std::vector<float> nans(48, std::numeric_limits<float>::quiet_NaN());
  for (const std::uint32_t written : {0U, 15U, 16U, 47U}) {
    arena.store(layer, pages::FrameId{1}, written, std::span(nans).first(32), nans);
    for (std::uint32_t frame = 0; frame < 3; ++frame) {
      for (std::uint32_t cell = 0; cell < kPageCells; ++cell) {
        const bool changed = cell_bytes(arena, layer, frame, cell) != before[frame][cell];
        ASSERT_EQ(changed, frame == 1 && cell == written) << "frame " << frame << ", cell " << cell;
      }
    }
    before[1][written] = cell_bytes(arena, layer, 1, written);
  }
}

// One conversation's cells, scattered over frames, and queries over them.
class Scene {
 public:
  Scene(const LayerGeometry& layer, const CacheTypes& types, std::size_t cells, std::mt19937& random)
      : layer_(layer), types_(types), arena_(make_arena(layer, types, kFrames)) {
    // Whatever is not written is NaN, so that nothing unseen can be read unnoticed.
    const std::vector<float> poison(std::size_t{layer.kv_heads} * std::max(layer.key_dims, layer.value_dims),
                                    NAN);
    for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
      for (std::uint32_t cell = 0; cell < kPageCells; ++cell) {
        arena_.store(layer, pages::FrameId{frame}, cell,
                     std::span(poison).first(std::size_t{layer.kv_heads} * layer.key_dims),
                     std::span(poison).first(std::size_t{layer.kv_heads} * layer.value_dims));
      }
    }
    std::vector<std::uint32_t> frames(kFrames);
    for (std::uint32_t i = 0; i < kFrames; ++i) frames[i] = i;
    std::shuffle(frames.begin(), frames.end(), random);
    for (const std::uint32_t frame : frames) {
      const auto first = static_cast<std::uint32_t>(random() % 20);
      const auto count = static_cast<std::uint32_t>(
          std::min<std::size_t>(1 + random() % (kPageCells - first), cells - keys_.size()));
      if (count == 0) break;
      runs_.push_back({pages::FrameId{frame}, first, count, keys_.size()});
      for (std::uint32_t cell = first; cell < first + count; ++cell) {
        keys_.push_back(random_floats(std::size_t{layer.kv_heads} * layer.key_dims, random));
        values_.push_back(random_floats(std::size_t{layer.kv_heads} * layer.value_dims, random));
        arena_.store(layer, pages::FrameId{frame}, cell, keys_.back(), values_.back());
      }
    }
    EXPECT_EQ(keys_.size(), cells);
  }

  // How far attention is from the double loop, as a part of the largest output.
  double worst_error(std::uint32_t head, std::size_t queries, std::mt19937& random) {
    ResolvedRuns resolved;
    arena_.resolve(layer_, runs_, resolved);
    const std::vector<float> query = random_floats(queries * layer_.key_dims, random);
    std::vector<float> out(queries * layer_.value_dims);
    std::vector<simd::AttentionQuery> asked;
    for (std::size_t q = 0; q < queries; ++q) {
      asked.push_back({.query = query.data() + q * layer_.key_dims,
                       .out = out.data() + q * layer_.value_dims,
                       .visible = q == 0 ? keys_.size() : 1 + random() % keys_.size()});
    }
    arena_.attend(layer_, head, {kScale}, resolved, asked);
    double worst = 0;
    for (std::size_t q = 0; q < queries; ++q) {
      const std::vector<double> exact = attend(head, asked[q]);
      for (std::size_t d = 0; d < exact.size(); ++d) {
        const double error = std::abs(exact[d] - double{asked[q].out[d]});
        worst = error <= worst ? worst : error;  // a NaN stays
      }
    }
    return worst;
  }

 private:
  static constexpr std::uint32_t kFrames = 40;
  static constexpr float kScale = 0.21F;

  [[nodiscard]] std::vector<double> attend(std::uint32_t head, const simd::AttentionQuery& query) const {
    std::vector<double> scores(query.visible);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      for (std::size_t d = 0; d < layer_.key_dims; ++d) {
        const float key = rounded(types_.keys, keys_[i][head * layer_.key_dims + d]);
        scores[i] += double{query.query[d]} * double{key} * double{kScale};
      }
    }
    const double max = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - max);
    std::vector<double> out(layer_.value_dims);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      for (std::size_t d = 0; d < out.size(); ++d) {
        out[d] += scores[i] / sum * double{rounded(types_.values, values_[i][head * layer_.value_dims + d])};
      }
    }
    return out;
  }

  LayerGeometry layer_;
  CacheTypes types_;
  Arena arena_;
  std::vector<FrameRun> runs_;
  std::vector<std::vector<float>> keys_, values_;
};

TEST_P(FloatCells, AreAttendedToAsADoubleLoopDoes) {
  for (const LayerGeometry layer :
       {LayerGeometry{1, 16, 16}, LayerGeometry{3, 40, 24}, LayerGeometry{2, 7, 65}}) {
    for (const std::size_t cells : {1U, 15U, 128U, 129U, 500U}) {
      Scene scene(layer, GetParam(), cells, random_);
      for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
        for (const std::size_t queries : {1U, 3U, 8U}) {
          // Outputs are means of normal values, at most about 4. A score has up to 40 roundings of 2^-24 of a
          // term's size, below 1e-5; it enters the exponent once.
          EXPECT_LT(scene.worst_error(head, queries, random_), 4e-5) << cells << " cells, head " << head;
        }
      }
    }
  }
}

TEST_P(FloatCells, SurviveTheMoveOfTheirArena) {
  const LayerGeometry layer{1, 16, 16};
  Arena arena = make_arena(layer, GetParam(), 2);
  const std::vector<float> numbers = random_floats(16, random_);
  arena.store(layer, pages::FrameId{1}, 3, numbers, numbers);
  const Bytes before = cell_bytes(arena, layer, 1, 3);
  const Arena moved = std::move(arena);
  EXPECT_EQ(cell_bytes(moved, layer, 1, 3), before);
  EXPECT_EQ(moved.types().keys, GetParam().keys);
}

INSTANTIATE_TEST_SUITE_P(Types, FloatCells,
                         testing::Values(CacheTypes{CacheElement::kF32, CacheElement::kF32},
                                         CacheTypes{CacheElement::kF16, CacheElement::kF16},
                                         CacheTypes{CacheElement::kBF16, CacheElement::kBF16},
                                         CacheTypes{CacheElement::kF16, CacheElement::kF32},
                                         CacheTypes{CacheElement::kF32, CacheElement::kBF16}),
                         [](const auto& instance) {
                           return std::string(element_name(instance.param.keys)) + "_" +
                                  std::string(element_name(instance.param.values));
                         });

// Layers of different shapes share frames of one size; none reaches into the next frame.
TEST(Arena, GivesLayersOfDifferentShapesFramesOfOneSize) {
  std::mt19937 random(2);
  const std::vector<LayerGeometry> layers = {{1, 8, 8}, {4, 32, 32}, {2, 64, 16}};
  auto arena = Arena::create(layers, {}, 32, 6);
  ASSERT_TRUE(arena);
  std::vector<Bytes> stored;
  for (std::uint32_t frame = 0; frame < 6; ++frame) {
    const LayerGeometry& layer = layers[frame % 3];
    for (std::uint32_t cell = 0; cell < 32; ++cell) {
      arena->store(layer, pages::FrameId{frame}, cell,
                   random_floats(std::size_t{layer.kv_heads} * layer.key_dims, random),
                   random_floats(std::size_t{layer.kv_heads} * layer.value_dims, random));
      stored.push_back(cell_bytes(*arena, layer, frame, cell));
    }
  }
  for (std::uint32_t i = 0; i < stored.size(); ++i) {
    ASSERT_EQ(cell_bytes(*arena, layers[i / 32 % 3], i / 32, i % 32), stored[i]) << "cell " << i;
  }
  std::size_t largest = 0;
  for (const LayerGeometry& layer : layers) {
    largest = std::max(largest, *Arena::frame_bytes({&layer, 1}, {}, 32));
  }
  EXPECT_EQ(*Arena::frame_bytes(layers, {}, 32), largest);
  EXPECT_EQ(arena->size_bytes(), 6 * largest);
}

TEST(Arena, OfMoreBytesThanThereAreIsRefused) {
  const LayerGeometry layer{4096, 1024, 1024};
  const auto refused = Arena::create({&layer, 1}, {CacheElement::kF32, CacheElement::kF32}, 256, UINT32_MAX);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().code() == Outcome::kInvalidArgument ||
              refused.error().code() == Outcome::kOutOfMemory)
      << refused.error().message();
}

TEST(CacheElements, AreFoundByTheirNames) {
  for (const CacheElement element : {CacheElement::kF32, CacheElement::kF16, CacheElement::kBF16}) {
    EXPECT_EQ(*parse_element(element_name(element)), element);
  }
  for (const char* name : {"", "F16", "f16 ", "f64", "f16:f16"}) {
    const auto refused = parse_element(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
    EXPECT_NE(refused.error().message().find("bf16"), std::string::npos) << "the known ones are listed";
  }
}

}  // namespace
}  // namespace kvasir::kv
