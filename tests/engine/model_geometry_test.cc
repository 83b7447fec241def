// The property test of pages over what real models mix: their groups, windows and states, with keys and
// values of their geometry behind them.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "engine/pool_shape.h"
#include "pages/store_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using pages::test::Ground;

constexpr std::uint64_t kOperations = 3'000;

Ground ground_of(const model::Network& network) {
  Ground ground{.real_bytes = true};
  const auto shape = pool_shape(network, {.tokens = 64, .context = 64, .page_cells = 16, .pass_tokens = 16});
  EXPECT_TRUE(shape) << shape.error().message();
  if (!shape) return ground;
  ground.groups = shape->spec.groups;
  ground.positions_can_move = shape->spec.positions_can_move;
  for (const model::CacheGroup& group : network.groups) {
    const bool has_cells = !group.layers.empty();
    ground.geometry.push_back(has_cells ? group.layers.front() : kv::LayerGeometry{1, 4, 4});
    const auto like_first = [&](const kv::LayerGeometry& layer) {
      const kv::LayerGeometry& first = group.layers.front();
      return layer.kv_heads == first.kv_heads && layer.key_dims == first.key_dims &&
             layer.value_dims == first.value_dims;
    };
    EXPECT_TRUE(std::ranges::all_of(group.layers, like_first));
  }
  return ground;
}

class ModelGeometry : public testing::TestWithParam<const char*> {};

TEST_P(ModelGeometry, RandomHistoriesAgreeWithTheNaiveTwin) {  // S1 to S8, K1 to K3
  const auto loaded =
      kvasir::test::load_file(kvasir::test::data_path(std::string("models/") + GetParam() + "/model.gguf"));
  const Ground ground = ground_of(loaded.model->network());
  const std::uint64_t seed = std::hash<std::string>()(GetParam()) % 10'000;
  std::cout << "seed " << seed << ", " << kOperations << " operations\n";
  pages::test::HardStateCounts counts{};
  EXPECT_EQ(run_stores(seed, kOperations, counts, ground), "");
  EXPECT_GT(std::ranges::count_if(counts, [](std::uint64_t times) { return times > 0; }), 20)
      << "so short a history proves little";
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGeometry,
                         testing::Values("llama", "gemma2", "gemma3", "gpt-oss", "cohere2", "deepseek2-v2",
                                         "deepseek2-groups", "mamba", "mamba2", "rwkv6", "rwkv7", "jamba",
                                         "lfm2", "qwen3next", "falcon-h1", "granitehybrid", "nemotron-h",
                                         "t5"),
                         [](const auto& at) {
                           std::string name = at.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kvasir::engine
