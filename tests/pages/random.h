// Numbers that are the same on every machine for one seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace kvasir::pages::test {

// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}

  // In [0, count); count at least 1.
  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return bits_() % count; }
  // In [least, most].
  [[nodiscard]] std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  // True with this chance.
  [[nodiscard]] bool percent(std::uint64_t chance) { return below(100) < chance; }
  template <class T>
  [[nodiscard]] const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(choices.size()))];
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace kvasir::pages::test
