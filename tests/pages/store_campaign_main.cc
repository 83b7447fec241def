// store_campaign [OPERATIONS [SEED]]: longer random histories of the page store. The exit status is 1 where
// one disagrees with its twin; the message names the seed and tells the story.

#include <cstdlib>
#include <iostream>

#include "store_run.h"

int main(int count, char** arguments) {
  using namespace kvasir::pages::test;  // NOLINT(google-build-using-namespace)
  const std::uint64_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1'000'000;
  const std::uint64_t first_seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1000;
  constexpr std::uint64_t kPerSeed = 25'000;
  HardStateCounts counts{};
  for (std::uint64_t done = 0, seed = first_seed; done < operations; done += kPerSeed, ++seed) {
    const std::string wrong =
        run_stores(seed, std::min(kPerSeed, operations - done), counts, {.real_bytes = seed % 4 == 0});
    if (!wrong.empty()) {
      std::cout << wrong;
      return 1;
    }
  }
  for (std::size_t state = 0; state < kHardStates; ++state) {
    std::cout << counts[state] << " x " << name_of(static_cast<HardState>(state)) << "\n";
  }
  std::cout << operations << " operations agree with the naive twin, from seed " << first_seed << " on\n";
  return 0;
}
