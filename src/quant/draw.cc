#include "quant/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/try.h"
#include "quant/codebooks.h"
#include "quant/codec.h"
#include "quant/fit.h"

namespace kvasir::quant {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
constexpr std::uint64_t scramble(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;

// SplitMix64 from a start of its own for each block.
class Stream {
 public:
  Stream(std::uint64_t key, std::uint64_t block) noexcept : state_(mix(key, block)) {}

  std::uint64_t next() noexcept { return scramble(state_ += kGolden); }

  // From 0 up to `bound` - 1, for a small bound.
  int below(int bound) noexcept {
    return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }

  // In [0, 1).
  float fraction() noexcept { return static_cast<float>(next() >> 40) * 0x1p-24F; }

  void fill(std::uint8_t* bytes, std::size_t count) noexcept {
    while (count > 0) {
      std::uint64_t word = next();
      const std::size_t some = std::min<std::size_t>(count, 8);
      for (std::size_t i = 0; i < some; ++i, word >>= 8) *bytes++ = static_cast<std::uint8_t>(word & 0xFF);
      count -= some;
    }
  }

 private:
  std::uint64_t state_;
};

// A number near the normal distribution of deviation 1: the sum of four uniform ones of 16 bits.
float nearly_normal(std::uint64_t word) noexcept {
  const auto sum =
      static_cast<float>((word & 0xFFFF) + ((word >> 16) & 0xFFFF) + ((word >> 32) & 0xFFFF) + (word >> 48));
  constexpr float kMean = 2.0F * 65535.0F;
  constexpr float kInverseDeviation = 1.0F / 37837.23F;  // sqrt(4 * (2^32 - 1) / 12)
  return (sum - kMean) * kInverseDeviation;
}

// A scale near `unit`, so that blocks differ.
float near(Stream& random, float unit) noexcept {
  return unit * (0.75F + 0.5F * random.fraction());
}

void store_scale(std::uint8_t* at, float scale) noexcept {
  store_u16(at, scale_to_half(scale));
}

// Of two neighbouring scales `low` <= unit <= `high`, one or the other, so that the mean square is unit's.
bool choose_high(Stream& random, float low, float high, float unit) noexcept {
  const float room = high * high - low * low;
  return room > 0.0F && random.fraction() * room < unit * unit - low * low;
}

std::uint8_t draw_power_of_two(Stream& random, float unit) noexcept {
  const int low = std::clamp(std::ilogb(unit) + 128, 1, 252);
  const auto low_code = static_cast<std::uint8_t>(low);
  const auto high_code = static_cast<std::uint8_t>(low + 1);
  const bool high = choose_high(random, half_power_of_two(low_code), half_power_of_two(high_code), unit);
  return high ? high_code : low_code;
}

std::uint8_t draw_float8(Stream& random, float unit) noexcept {
  constexpr int kLargest = 126;
  int low = 0;
  while (low < kLargest && half_float8(static_cast<std::uint8_t>(low + 1)) <= unit) ++low;
  const int high = std::min(low + 1, kLargest);
  const bool up = choose_high(random, half_float8(static_cast<std::uint8_t>(low)),
                              half_float8(static_cast<std::uint8_t>(high)), unit);
  return static_cast<std::uint8_t>(up ? high : low);
}

// Types of one half-float scale whose numbers may be any bits. Their numbers lie around -1/2 or so; a scale
// of random sign brings the mean to 0.
void draw_scaled(Stream& random, std::uint8_t* block, std::size_t bytes, std::size_t scale_at,
                 float unit) noexcept {
  random.fill(block, bytes);
  const float scale = near(random, unit);
  store_scale(block + scale_at, (random.next() & 1U) != 0 ? scale : -scale);
}

void draw_q8_0(Stream& random, std::uint8_t* block, float unit) noexcept {
  random.fill(block + 2, 32);
  for (int i = 0; i < 32; ++i)
    block[2 + i] = block[2 + i] == 0x80 ? 0x81 : block[2 + i];  // packers end at -127
  store_scale(block, near(random, unit));
}

// A scale and the offset that puts the middle of the numbers at 0.
void draw_line(Stream& random, std::uint8_t* block, std::size_t bytes, float middle, float unit) noexcept {
  random.fill(block, bytes);
  store_scale(block, near(random, unit));
  store_scale(block + 2, -middle * load_half(block));
}

// A minimum that differs a little from the scale, whose equal would put the mean of the sub-block at 0.
int near_scale(Stream& random, int scale, int by, int highest) noexcept {
  return std::clamp(scale + random.below(2 * by + 1) - by, 0, highest);
}

void draw_q2_k(Stream& random, std::uint8_t* block, float unit) noexcept {
  for (int i = 0; i < 16; ++i) {
    const int scale = 6 + random.below(10);
    block[i] = static_cast<std::uint8_t>(scale | (near_scale(random, scale, 1, 15) << 4));
  }
  random.fill(block + 16, 64);
  store_scale(block + 80, near(random, unit));
  store_scale(block + 82, 1.5F * load_half(block + 80));
}

void draw_six_bit_lines(Stream& random, std::uint8_t* block, std::size_t bytes, float middle,
                        float unit) noexcept {
  random.fill(block + 16, bytes - 16);
  SixBitPairs pairs;
  for (int i = 0; i < 8; ++i) {
    pairs.scales[i] = 24 + random.below(40);
    pairs.mins[i] = near_scale(random, pairs.scales[i], 3, 63);
  }
  store_six_bit_pairs(pairs, block + 4);
  store_scale(block, near(random, unit));
  store_scale(block + 2, middle * load_half(block));
}

void draw_mxfp4(Stream& random, std::uint8_t* block, float unit) noexcept {
  random.fill(block + 1, 16);
  block[0] = draw_power_of_two(random, unit);
}

void draw_nvfp4(Stream& random, std::uint8_t* block, float unit) noexcept {
  random.fill(block + 4, 32);
  for (int i = 0; i < 4; ++i) block[i] = draw_float8(random, near(random, unit));
}

// A byte whose leading ternary digits are those of `number` out of 3^5.
std::uint8_t ternary_byte(int number) noexcept {
  return static_cast<std::uint8_t>((number * 256 + 242) / 243);
}

void draw_tq1_0(Stream& random, std::uint8_t* block, float unit) noexcept {
  for (int i = 0; i < 48; ++i) block[i] = ternary_byte(random.below(243));
  for (int i = 48; i < 52; ++i) block[i] = ternary_byte(3 * random.below(81));
  store_scale(block + 52, near(random, unit));
}

void draw_tq2_0(Stream& random, std::uint8_t* block, float unit) noexcept {
  random.fill(block, 64);
  for (int i = 0; i < 64; ++i) {
    const int threes = block[i] & (block[i] >> 1) & 0x55;  // 3 stands for nothing; 1 instead keeps the mean
    block[i] = static_cast<std::uint8_t>(block[i] & ~(threes << 1));
  }
  store_scale(block + 64, near(random, unit));
}

float draw_float(Stream& random, Spread spread) noexcept {
  return spread.mean + spread.deviation * nearly_normal(random.next());
}

void draw_block(const BlockTypeInfo& info, Stream& random, std::uint8_t* block, Spread spread) noexcept {
  const float unit = spread.deviation;
  switch (info.type) {
    case BlockType::kF32:
      return store_u32(block, std::bit_cast<std::uint32_t>(draw_float(random, spread)));
    case BlockType::kF16:
      return store_u16(block,
                       float_to_half(clamp_to(draw_float(random, spread), -kLargestHalf, kLargestHalf)));
    case BlockType::kBF16:
      return store_u16(block, float_to_bfloat(draw_float(random, spread)));
    case BlockType::kQ8_0:
      return draw_q8_0(random, block, unit);
    case BlockType::kQ4_1:
      return draw_line(random, block, info.bytes, 7.5F, unit);
    case BlockType::kQ5_1:
      return draw_line(random, block, info.bytes, 15.5F, unit);
    case BlockType::kQ2_K:
      return draw_q2_k(random, block, unit);
    case BlockType::kQ4_K:
      return draw_six_bit_lines(random, block, info.bytes, 7.5F, unit);
    case BlockType::kQ5_K:
      return draw_six_bit_lines(random, block, info.bytes, 15.5F, unit);
    case BlockType::kQ3_K:
      return draw_scaled(random, block, info.bytes, 108, unit);
    case BlockType::kQ6_K:
      return draw_scaled(random, block, info.bytes, 208, unit);
    case BlockType::kMXFP4:
      return draw_mxfp4(random, block, unit);
    case BlockType::kNVFP4:
      return draw_nvfp4(random, block, unit);
    case BlockType::kTQ1_0:
      return draw_tq1_0(random, block, unit);
    case BlockType::kTQ2_0:
      return draw_tq2_0(random, block, unit);
    default:  // Q4_0, Q5_0 and the IQ types: the scale comes first
      return draw_scaled(random, block, info.bytes, 0, unit);
  }
}

// The deviation of a type's numbers when blocks are drawn at unit scale, measured on enough of them.
Result<float> deviation_at_unit(const BlockTypeInfo& info) {
  constexpr std::size_t kValues = 1U << 16;
  std::vector<std::byte> blocks(kValues / info.values * info.bytes);
  auto* block = reinterpret_cast<std::uint8_t*>(blocks.data());
  for (std::size_t i = 0; i < kValues / info.values; ++i) {
    Stream random(0, i);
    draw_block(info, random, block + i * info.bytes, {0.0F, 1.0F});
  }
  std::vector<float> values(kValues);
  KVASIR_TRY(unpack(info.type, blocks, values));
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(squares / static_cast<double>(kValues)));
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  return scramble(scramble(a + kGolden) + b * kGolden);
}

Result<BlockDrawer> BlockDrawer::create(BlockType type, Spread spread, std::uint64_t key) {
  const BlockTypeInfo& info = block_type_info(type);
  if (!info.unpacks) {
    return fail(Outcome::kUnsupported,
                "weights of type " + std::string(info.name) + " cannot be drawn by this version");
  }
  if (!std::isfinite(spread.mean) || !std::isfinite(spread.deviation) || !(spread.deviation > 0.0F)) {
    return fail(Outcome::kInvalidArgument,
                "random weights need a finite mean and a positive, finite deviation");
  }
  if (info.values > 1 && spread.mean != 0.0F) {
    return fail(Outcome::kInvalidArgument, "random blocks of " + std::string(info.name) + " have mean 0");
  }
  KVASIR_ASSIGN(const float at_unit, deviation_at_unit(info));
  if (info.values > 1) spread.deviation /= at_unit;
  return BlockDrawer(info, spread, key);
}

void BlockDrawer::draw(std::uint64_t first_block, std::span<std::byte> blocks) const noexcept {
  auto* block = reinterpret_cast<std::uint8_t*>(blocks.data());
  const std::size_t count = blocks.size() / info_->bytes;
  for (std::size_t i = 0; i < count; ++i, block += info_->bytes) {
    Stream random(key_, first_block + i);
    draw_block(*info_, random, block, spread_);
  }
}

}  // namespace kvasir::quant
