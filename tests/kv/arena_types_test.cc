// Every type of keys beside every type of values: what is stored is what quant::pack and the float
// conversions make of each head, and attention over it gives the bits of attention over the floats that it
// means.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kv/arena.h"
#include "kv/cell_twin.h"
#include "simd/naive_attention.h"

namespace kvasir::kv {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Arena make_arena(const Shape& shape, const CacheTypes& types, std::uint32_t frames) {
  auto arena = Arena::create({&shape.layer, 1}, types, shape.page_cells, frames);
  EXPECT_TRUE(arena.has_value());
  return *std::move(arena);
}

Bytes exported(const Arena& arena, const LayerGeometry& layer, FrameCell at) {
  Bytes bytes(arena.cell_bytes(layer));
  arena.export_cells(layer, at, 1, bytes);
  return bytes;
}

class EveryType : public testing::TestWithParam<CacheTypes> {
 protected:
  std::mt19937 random_{1};
};

TEST_P(EveryType, StoresEachHeadAsTheBlocksOrElementsOfItsType) {
  for (const Shape& shape : shapes()) {
    Arena arena = make_arena(shape, GetParam(), 2);
    for (int trial = 0; trial < 30; ++trial) {
      const FrameCell at{pages::FrameId{static_cast<std::uint32_t>(random_() % 2)},
                         static_cast<std::uint32_t>(random_() % shape.page_cells)};
      Floats keys = random_floats(std::size_t{shape.layer.kv_heads} * shape.layer.key_dims, random_);
      const Floats values =
          random_floats(std::size_t{shape.layer.kv_heads} * shape.layer.value_dims, random_);
      if (trial == 0) std::ranges::fill(keys, 0.0F);
      arena.store(shape.layer, at.frame, at.cell, keys, values);
      ASSERT_EQ(exported(arena, shape.layer, at), encode_cell(shape.layer, GetParam(), keys, values).bytes());
    }
  }
}

TEST_P(EveryType, StoresNumbersThatAreNotFiniteAsItsTypeDefines) {
  const Floats odd = {kNan,  kInfinity, -kInfinity, 3e38F,    -3e38F, 1e-45F,    -1e-40F, 0x1p-25F, -0.0F,
                      65504, -65520,    8.4e6F,     -3.4e38F, -kNan,  524032.0F, 1.0F,    -1.0F,    0x1p-24F};
  for (const Shape& shape : shapes()) {
    Arena arena = make_arena(shape, GetParam(), 1);
    for (int trial = 0; trial < 50; ++trial) {
      Floats keys = random_floats(std::size_t{shape.layer.kv_heads} * shape.layer.key_dims, random_);
      Floats values = random_floats(std::size_t{shape.layer.kv_heads} * shape.layer.value_dims, random_);
      for (Floats* numbers : {&keys, &values}) {
        for (float& number : *numbers) {
          if (random_() % 8 == 0) number = odd[random_() % odd.size()];
        }
      }
      arena.store(shape.layer, pages::FrameId{0}, 5, keys, values);
      ASSERT_EQ(exported(arena, shape.layer, {pages::FrameId{0}, 5}),
                encode_cell(shape.layer, GetParam(), keys, values).bytes());
    }
  }
}

// One conversation's cells scattered over frames in runs, everything else poisoned, and the floats they mean.
class Scene {
 public:
  Scene(const Shape& shape, const CacheTypes& types, std::uint64_t first, std::uint64_t cells,
        std::uint32_t variants, std::mt19937& random)
      : shape_(shape), arena_(make_arena(shape, types, kFrames)) {
    std::vector<std::uint32_t> frames(kFrames);
    for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
      frames[frame] = frame;
      arena_.poison_cells(shape.layer, {pages::FrameId{frame}, 0}, shape.page_cells);
    }
    std::shuffle(frames.begin(), frames.end(), random);
    twins_.resize(shape.layer.kv_heads);
    const Floats nothing(std::max(shape.layer.key_dims, shape.layer.value_dims), kNan);
    for (test::NaiveCells& twin : twins_) {
      twin.keys.assign(first, nothing);
      twin.values.assign(first, nothing);
      twin.variants.assign(first, 0);
    }
    std::uint64_t ordinal = first;
    for (const std::uint32_t frame : frames) {
      auto cell = static_cast<std::uint32_t>(random() % (shape.page_cells / 2));
      while (cell < shape.page_cells && ordinal < cells) {
        const auto count = static_cast<std::uint32_t>(
            std::min({1 + random() % 20, std::uint64_t{shape.page_cells - cell}, cells - ordinal}));
        const auto variant = static_cast<std::uint32_t>(random() % variants);
        runs_.push_back({pages::FrameId{frame}, cell, count, ordinal, variant});
        for (std::uint32_t i = 0; i < count; ++i) add(frame, cell + i, variant, types, random);
        ordinal += count;
        cell += count + static_cast<std::uint32_t>(random() % 3);
      }
    }
    EXPECT_EQ(ordinal, cells);
  }

  [[nodiscard]] const test::NaiveCells& twin(std::uint32_t head) const { return twins_[head]; }

  void attend(std::uint32_t head, float scale, std::span<const simd::AttentionQuery> queries) const {
    ResolvedRuns resolved;
    arena_.resolve(shape_.layer, runs_, resolved);
    arena_.attend(shape_.layer, head, {scale}, resolved, queries);
  }

 private:
  static constexpr std::uint32_t kFrames = 90;

  void add(std::uint32_t frame, std::uint32_t cell, std::uint32_t variant, const CacheTypes& types,
           std::mt19937& random) {
    const LayerGeometry& layer = shape_.layer;
    const Floats keys = random_floats(std::size_t{layer.kv_heads} * layer.key_dims, random);
    const Floats values = random_floats(std::size_t{layer.kv_heads} * layer.value_dims, random);
    arena_.store(layer, pages::FrameId{frame}, cell, keys, values);
    const TwinCell stored = encode_cell(layer, types, keys, values);
    for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
      twins_[head].keys.push_back(decode(types.keys, stored.keys[head], layer.key_dims));
      twins_[head].values.push_back(decode(types.values, stored.values[head], layer.value_dims));
      twins_[head].variants.push_back(variant);
    }
  }

  Shape shape_;
  Arena arena_;
  std::vector<FrameRun> runs_;
  std::vector<test::NaiveCells> twins_;  // [head]
};

TEST_P(EveryType, IsAttendedToWithTheBitsOfTheFloatsThatItMeans) {
  constexpr float kScale = 0.3F;
  for (const Shape& shape : shapes()) {
    const std::uint32_t variants = 1 + static_cast<std::uint32_t>(random_() % 3);
    const std::uint64_t first = random_() % 2 * (random_() % 200);
    const std::uint64_t cells = first + 150 + random_() % 150;
    const Scene scene(shape, GetParam(), first, cells, variants, random_);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2 + random_() % 6}, simd::kQueriesAtOnce}) {
      const std::size_t stride = shape.layer.key_dims;
      const Floats raw = random_floats(count * variants * stride, random_);
      Floats out(count * shape.layer.value_dims, kNan);
      std::vector<simd::AttentionQuery> queries;
      for (std::size_t q = 0; q < count; ++q) {
        const std::uint64_t visible = q == 0 ? cells : first + 1 + random_() % (cells - first);
        queries.push_back({.query = raw.data() + q * variants * stride,
                           .out = out.data() + q * shape.layer.value_dims,
                           .visible = visible,
                           .first = first + (q % 2 == 0 ? 0 : random_() % (visible - first)),
                           .variant_stride = stride});
      }
      for (std::uint32_t head = 0; head < shape.layer.kv_heads; ++head) {
        scene.attend(head, kScale, queries);
        for (const simd::AttentionQuery& query : queries) {
          const Floats exact = test::naive_attention(scene.twin(head), query, {kScale});
          ASSERT_EQ(0, std::memcmp(exact.data(), query.out, exact.size() * sizeof(float)))
              << "heads of " << shape.layer.key_dims << " and " << shape.layer.value_dims << ", page "
              << shape.page_cells << ", head " << head;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::ValuesIn(all_types()), types_name);

TEST(CacheTypesBytes, AreThoseOfBlocksAndElements) {
  const LayerGeometry layer{2, 80, 16};  // 3 blocks and 1
  const auto frame = [&](CacheElement keys, CacheElement values) {
    return *Arena::frame_bytes({&layer, 1}, {keys, values}, 16);
  };
  const std::size_t q8 = 34;
  const std::size_t q4 = 18;
  EXPECT_EQ(frame(CacheElement::kQ8_0, CacheElement::kQ4_0), 16 * 2 * (3 * q8 + q4));
  EXPECT_EQ(frame(CacheElement::kQ4_0, CacheElement::kQ8_0), (16 * 2 * (3 * q4 + q8) + 63) / 64 * 64);
  EXPECT_EQ(frame(CacheElement::kF16, CacheElement::kQ8_0), 16 * 2 * (160 + q8));
  EXPECT_EQ(frame(CacheElement::kF32, CacheElement::kBF16), 16 * 2 * (320 + 32));
  const auto arena = Arena::create({&layer, 1}, {CacheElement::kQ8_0, CacheElement::kQ4_0}, 32, 3);
  ASSERT_TRUE(arena);
  EXPECT_EQ(arena->cell_bytes(layer), 2 * (3 * q8 + q4));
}

TEST(CacheTypesBytes, OfPagesAndHeadsThatCannotBeAreRefused) {
  const auto refusal = [](const LayerGeometry& layer, std::uint32_t page_cells) {
    const auto bytes = Arena::frame_bytes({&layer, 1}, {}, page_cells);
    const auto arena = Arena::create({&layer, 1}, {}, page_cells, 1);
    EXPECT_EQ(bytes.has_value(), arena.has_value());
    return bytes ? Outcome::kDone : bytes.error().code();
  };
  EXPECT_EQ(refusal({1, 1024, 1024}, 256), Outcome::kDone);
  for (const std::uint32_t page_cells : {0U, 1U, 8U, 17U, 272U, UINT32_MAX}) {
    EXPECT_EQ(refusal({1, 16, 16}, page_cells), Outcome::kInvalidArgument) << page_cells;
  }
  EXPECT_EQ(refusal({0, 16, 16}, 32), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal({1, 0, 16}, 32), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal({1, 16, 0}, 32), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal({1, 1025, 16}, 32), Outcome::kUnsupported);
  EXPECT_EQ(refusal({1, 16, 1025}, 32), Outcome::kUnsupported);
}

TEST(CacheTypeNames, OfBlocksAreKnown) {
  for (const CacheElement element : kAllElements) EXPECT_EQ(*parse_element(element_name(element)), element);
  EXPECT_EQ(*parse_element("q8_0"), CacheElement::kQ8_0);
  EXPECT_EQ(*parse_element("q4_0"), CacheElement::kQ4_0);
  const auto refused = parse_element("q4_1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("f32, f16, bf16, q8_0, q4_0"), std::string::npos);
  EXPECT_EQ(refused.error().numbers().setting, "--kv");
}

}  // namespace
}  // namespace kvasir::kv
