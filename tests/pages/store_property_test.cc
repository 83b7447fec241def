// Random histories against a naive twin. The long form is the program store_campaign.

#include <gtest/gtest.h>

#include <iostream>

#include "store_run.h"

namespace kvasir::pages::test {
namespace {

constexpr std::uint64_t kSeeds[] = {1, 2, 3, 4, 5, 6, 7};
constexpr std::uint64_t kOperationsPerSeed = 36'000;
constexpr std::uint64_t kSeedsOfRealBytes[] = {101, 102};
constexpr std::uint64_t kOperationsOfRealBytes = 10'000;
constexpr std::uint64_t kLeastOfEachState = 1'000;

TEST(PageStoreProperty, RandomHistoriesAgreeWithTheNaiveTwin) {  // S1, S2
  HardStateCounts counts{};
  for (const std::uint64_t seed : kSeeds) {
    std::cout << "seed " << seed << ", " << kOperationsPerSeed << " operations\n";
    EXPECT_EQ(run_stores(seed, kOperationsPerSeed, counts), "");
  }
  for (const std::uint64_t seed : kSeedsOfRealBytes) {
    std::cout << "seed " << seed << ", " << kOperationsOfRealBytes << " operations on keys and values\n";
    EXPECT_EQ(run_stores(seed, kOperationsOfRealBytes, counts, {.real_bytes = true}), "");
  }
  for (std::size_t state = 0; state < kHardStates; ++state) {
    const std::string_view name = name_of(static_cast<HardState>(state));
    std::cout << counts[state] << " x " << name << "\n";
    EXPECT_GE(counts[state], kLeastOfEachState) << name;
  }
}

}  // namespace
}  // namespace kvasir::pages::test
