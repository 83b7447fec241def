// Thousands of courses of events, each replayable from its seed.

#include "simulation.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "support/tiny_model.h"
#include "support/tiny_recurrent.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kSeeds = 6'000;
constexpr std::uint64_t kEnough = 1'000;

TEST(Simulation, OfThousandsOfCoursesOfEventsEndsWithTheBitsOfRunsAlone) {
  const auto model = kvasir::test::load(
      kvasir::test::tiny_talker({.layers = 1, .embedding = 32, .heads = 2, .kv_heads = 1}));
  const auto tokenizer = text::Tokenizer::load(*model.file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  test::SimulationCounts counts;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string wrong = test::Simulation(model, **tokenizer, seed, counts).run();
    ASSERT_TRUE(wrong.empty()) << wrong << ", seed " << seed;
  }
  const auto expect_often = [](const char* what, std::uint64_t count) {
    std::printf("%-24s %8llu\n", what, static_cast<unsigned long long>(count));
    EXPECT_GE(count, kEnough) << what;
  };
  expect_often("steps", counts.steps);
  expect_often("suspended", counts.suspended);
  expect_often("stalled", counts.stalled);
  expect_often("waited for room", counts.waited_for_room);
  expect_often("cancelled in a step", counts.cancelled_in_step);
  expect_often("closed in a step", counts.closed_in_step);
  expect_often("forked in a step", counts.forked_in_step);
  expect_often("prompted in a step", counts.prompted_in_step);
  expect_often("tokens generated", counts.generated);
  expect_often("units of passes", counts.units);
  expect_often("beginnings reused", counts.reused);
  expect_often("steps undone", counts.undone);
  expect_often("steps without memory", counts.lacked_memory);
}

// The same where states and windows are kept: fewer courses, as each takes longer.
class SimulationOfKinds : public testing::TestWithParam<const char*> {};

TEST_P(SimulationOfKinds, EndsWithTheBitsOfRunsAlone) {
  const std::string name = GetParam();
  auto draft = name == "Hybrid" ? kvasir::test::tiny_hybrid() : kvasir::test::tiny_mamba2();
  const auto model = kvasir::test::load(kvasir::test::with_vocabulary(draft, 96));
  const auto tokenizer = text::Tokenizer::load(*model.file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  test::SimulationCounts counts;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const std::string wrong = test::Simulation(model, **tokenizer, seed, counts).run();
    ASSERT_TRUE(wrong.empty()) << wrong << ", seed " << seed;
  }
  for (const std::uint64_t count : {counts.behind, counts.undone, counts.forked_in_step, counts.reused,
                                    counts.units, counts.waited_for_room, counts.lacked_memory}) {
    EXPECT_GE(count, 50U);
  }
}

constexpr auto kModelName = [](const auto& one) { return std::string(one.param); };
INSTANTIATE_TEST_SUITE_P(Models, SimulationOfKinds, testing::Values("Mamba2", "Hybrid"), kModelName);

}  // namespace
}  // namespace kvasir::engine
