// Matrices of random blocks, as panels and as the floats that they stand for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "quant/draw.h"
#include "simd/panels.h"

namespace kvasir::simd::test {

struct Weights {
  Panels panels;
  std::vector<float> values;  // [row][column]
};

// Valid random blocks of `type`.
inline Weights random_weights(quant::BlockType type, std::size_t rows, std::size_t columns, unsigned seed) {
  const quant::BlockTypeInfo& info = quant::block_type_info(type);
  const std::size_t row_bytes = columns / info.values * info.bytes;
  std::vector<float> values(rows * columns);
  std::vector<std::byte> raw(rows * row_bytes);
  const auto drawer = quant::BlockDrawer::create(type, {}, seed);
  EXPECT_TRUE(drawer.has_value());
  if (drawer) drawer->draw(0, raw);
  EXPECT_TRUE(quant::unpack(type, raw, values).has_value());
  auto panels = Panels::allocate(type, rows, columns);
  EXPECT_TRUE(panels.has_value());
  for (std::size_t p = 0; p < panels->panel_count(); ++p) {
    const std::size_t first = p * kPanelRows;
    const std::size_t count = std::min(kPanelRows, rows - first);
    EXPECT_TRUE(panels->fill(p, std::span(raw).subspan(first * row_bytes, count * row_bytes)).has_value());
  }
  return {std::move(*panels), std::move(values)};
}

}  // namespace kvasir::simd::test
