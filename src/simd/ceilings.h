// How fast this processor could multiply: loops of nothing but the instruction that products are made of,
// with enough independent sums to keep it busy. What products reach is judged by them. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvasir::simd {

struct CeilingLoop {
  std::string_view name;  // of the instructions
  double operations = 0;  // of a round, a product and its sum counting as two; 0: there is no such loop here
  void (*run)(std::size_t rounds) noexcept = nullptr;
};

// Products of codes with bytes, of BF16 with BF16, and of floats with floats, each by the instructions that
// products here would take.
[[nodiscard]] CeilingLoop byte_ceiling() noexcept;
[[nodiscard]] CeilingLoop bfloat_ceiling() noexcept;
[[nodiscard]] CeilingLoop float_ceiling() noexcept;

// Reads all of `bytes` once, as fast as this processor reads; the answer depends on each of them.
[[nodiscard]] std::uint64_t read_through(std::span<const std::byte> bytes) noexcept;

}  // namespace kvasir::simd
