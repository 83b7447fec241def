// What the arena's cells must hold, element by element: the naive twin of its layouts and copy jobs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kv/arena.h"
#include "quant/block_type.h"
#include "quant/half.h"

namespace kvasir::kv {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

inline constexpr CacheElement kAllElements[] = {CacheElement::kF32, CacheElement::kF16, CacheElement::kBF16,
                                                CacheElement::kQ8_0, CacheElement::kQ4_0};

// All combinations of a type of keys and a type of values.
inline std::vector<CacheTypes> all_types() {
  std::vector<CacheTypes> types;
  for (const CacheElement keys : kAllElements) {
    for (const CacheElement values : kAllElements) types.push_back({keys, values});
  }
  return types;
}

inline std::string types_name(const testing::TestParamInfo<CacheTypes>& info) {
  return std::string(element_name(info.param.keys)) + "_" + std::string(element_name(info.param.values));
}

// Geometries whose heads fill whole blocks and whose do not, on pages of every kind of size.
struct Shape {
  LayerGeometry layer;
  std::uint32_t page_cells = 0;
};
inline const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{{1, 16, 16}, 16},   {{2, 24, 80}, 32},  {{3, 64, 64}, 48},
                                         {{4, 80, 24}, 64},   {{2, 96, 128}, 16}, {{1, 128, 96}, 256},
                                         {{3, 16, 128}, 112}, {{2, 34, 33}, 32},  {{1, 7, 1}, 16}};
  return all;
}

inline Floats random_floats(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

inline quant::BlockType block_type_of(CacheElement element) {
  return element == CacheElement::kQ8_0 ? quant::BlockType::kQ8_0 : quant::BlockType::kQ4_0;
}

// One head's numbers as its type stores them.
inline Bytes encode(CacheElement element, std::span<const float> values) {
  Bytes bytes;
  if (simd::is_blocks(element)) {
    Floats padded(values.begin(), values.end());
    padded.resize((padded.size() + 31) / 32 * 32);
    bytes.resize(padded.size() / 32 * quant::block_type_info(block_type_of(element)).bytes);
    EXPECT_TRUE(quant::pack(block_type_of(element), padded, bytes));
    return bytes;
  }
  for (const float value : values) {
    const std::uint16_t half =
        element == CacheElement::kF16 ? quant::float_to_half(value) : quant::float_to_bfloat(value);
    const auto raw = element == CacheElement::kF32 ? std::as_bytes(std::span(&value, 1))
                                                   : std::as_bytes(std::span(&half, 1));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  return bytes;
}

// And what these bytes mean.
inline Floats decode(CacheElement element, std::span<const std::byte> bytes, std::size_t dims) {
  Floats values(dims);
  if (simd::is_blocks(element)) {
    values.resize((dims + 31) / 32 * 32);
    EXPECT_TRUE(quant::unpack(block_type_of(element), bytes, values));
    values.resize(dims);
    return values;
  }
  for (std::size_t d = 0; d < dims; ++d) {
    std::uint16_t half = 0;
    if (element == CacheElement::kF32) {
      std::memcpy(&values[d], bytes.data() + d * 4, 4);
    } else {
      std::memcpy(&half, bytes.data() + d * 2, 2);
      values[d] = element == CacheElement::kF16 ? quant::half_to_float(half) : quant::bfloat_to_float(half);
    }
  }
  return values;
}

// The rows of one cell, head by head.
struct TwinCell {
  std::vector<Bytes> keys;
  std::vector<Bytes> values;

  [[nodiscard]] Bytes bytes() const {
    Bytes all;
    for (const auto* rows : {&keys, &values}) {
      for (const Bytes& row : *rows) all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
};

inline TwinCell encode_cell(const LayerGeometry& layer, const CacheTypes& types, const Floats& keys,
                            const Floats& values) {
  TwinCell cell;
  for (std::size_t head = 0; head < layer.kv_heads; ++head) {
    const auto key = std::span(keys).subspan(head * layer.key_dims, layer.key_dims);
    const auto value = std::span(values).subspan(head * layer.value_dims, layer.value_dims);
    cell.keys.push_back(encode(types.keys, key));
    cell.values.push_back(encode(types.values, value));
  }
  return cell;
}

// A key row turned by `turn` positions: every pair by itself, the rest untouched.
inline Bytes turned(CacheElement element, const Bytes& row, std::size_t dims, const simd::RotaryTable& rotary,
                    simd::RopePairing pairing, std::int64_t turn) {
  if (turn == 0 || rotary.dims() == 0) return row;
  const std::size_t pairs = rotary.dims() / 2;
  Floats cosines(pairs);
  Floats sines(pairs);
  rotary.pure_turn_at(turn, cosines, sines);
  Floats values = decode(element, row, dims);
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::size_t at = pairing == simd::RopePairing::kAdjacent ? 2 * i : i;
    const std::size_t partner = pairing == simd::RopePairing::kAdjacent ? 2 * i + 1 : i + pairs;
    const float a = values[at];
    const float b = values[partner];
    values[at] = a * cosines[i] - b * sines[i];
    values[partner] = a * sines[i] + b * cosines[i];
  }
  const Bytes anew = encode(element, values);
  Bytes result = row;
  const std::size_t bytes = simd::is_blocks(element)
                                ? (rotary.dims() + 31) / 32 * (row.size() / ((dims + 31) / 32))
                                : rotary.dims() * (row.size() / dims);
  std::copy_n(anew.begin(), bytes, result.begin());
  return result;
}

}  // namespace kvasir::kv
