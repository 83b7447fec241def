// archive_campaign: every kind of history, in every type of cache, from every size of page to every other,
// through an archive. The exit status is 1 where one goes on otherwise than undisturbed.

#include <iostream>

#include "api/histories.h"

int main() {
  using namespace kvasir;  // NOLINT(google-build-using-namespace)
  constexpr std::uint32_t kStep = 16;
  constexpr std::uint32_t kMost = 128;
  std::uint64_t trips = 0;
  for (const CacheType type :
       {CacheType::kF32, CacheType::kF16, CacheType::kBf16, CacheType::kQ8_0, CacheType::kQ4_0}) {
    for (const test::History& history : test::histories()) {
      for (std::uint32_t from = kStep; from <= kMost; from += kStep) {
        for (std::uint32_t to = kStep; to <= kMost; to += kStep, ++trips) {
          const std::string wrong =
              test::round_trip(history, test::cache_of(type, type, from), test::cache_of(type, type, to));
          if (wrong.empty()) continue;
          std::cout << wrong << "\n";
          return 1;
        }
      }
    }
  }
  std::cout << trips
            << " conversations went on to the bit behind an archive, each with 50 tokens and their "
               "logits, and nothing was computed again\n";
  return 0;
}
