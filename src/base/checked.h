// Arithmetic on counts that come from files and callers: the result, or nothing where it does not fit.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

namespace kvasir::base {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) noexcept {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The product of all factors, or nothing where it overflows.
template <std::integral T, std::same_as<T>... Rest>
[[nodiscard]] constexpr std::optional<T> checked_product(T first, Rest... rest) noexcept {
  std::optional<T> product = first;
  ((product = product ? checked_mul(*product, rest) : std::nullopt), ...);
  return product;
}

// `value` as a T, or nothing where T cannot hold it.
template <std::integral T, std::integral From>
[[nodiscard]] constexpr std::optional<T> checked_cast(From value) noexcept {
  if (!std::in_range<T>(value)) return std::nullopt;
  return static_cast<T>(value);
}

// The smallest multiple of `step` that is at least `value`, or nothing where it does not fit. step > 0.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_round_up(T value, T step) noexcept {
  const T rest = value % step;
  if (rest == 0) return value;
  return checked_add<T>(value, step - rest);
}

// ceil(a / b) without overflow. b > 0.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T div_up(T a, T b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace kvasir::base
