// Rows of a file as panels: what is read of them is what the file says, whichever instructions repacked it.
#include "simd/panels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "hwy/targets.h"
#include "quant/block_type.h"
#include "random_weights.h"
#include "support/instruction_sets.h"

namespace kvasir::simd {
namespace {

using quant::BlockTypeInfo;
using test::random_weights;
using test::Weights;

std::vector<BlockTypeInfo> types_that_unpack() {
  std::vector<BlockTypeInfo> types;
  for (const BlockTypeInfo& info : quant::block_types()) {
    if (info.unpacks) types.push_back(info);
  }
  return types;
}

class EveryType : public testing::TestWithParam<BlockTypeInfo> {
 protected:
  // Rows of whole blocks whose last block of a panel, or last line, is a part of one where that can be.
  [[nodiscard]] static std::size_t columns() {
    const std::size_t values = GetParam().values;
    return values == 1 ? 3 * 64 + 5 : values < 256 ? 256 + values : 512;
  }
};

TEST_P(EveryType, ReadsWhatTheFileSaysWhicheverInstructionsRepackedIt) {
  kvasir::test::with_each_instruction_set([](std::int64_t target) {
    const Weights weights = random_weights(GetParam().type, 37, columns(), 8);
    std::vector<float> row(columns());
    for (std::size_t r = 0; r < 37; ++r) {
      weights.panels.read_row(r, row);
      ASSERT_EQ(0, std::memcmp(row.data(), weights.values.data() + r * columns(), columns() * sizeof(float)))
          << "row " << r << " by " << hwy::TargetName(target);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Panels, EveryType, testing::ValuesIn(types_that_unpack()),
                         [](const auto& type) { return std::string(type.param.name); });

}  // namespace
}  // namespace kvasir::simd
