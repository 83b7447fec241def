// Finding things of a list by their names without a second copy of the names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace kvasir::gguf {

// 0, 1, ... count - 1.
[[nodiscard]] inline std::vector<std::uint32_t> counted(std::size_t count) {
  const auto numbers = std::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(count));
  return {numbers.begin(), numbers.end()};
}

// The indices of `things`, sorted by the member `name` of each; equal names stay in order. Sorting, not
// hashing: no choice of names makes it slow.
template <class T, class Name>
[[nodiscard]] std::vector<std::uint32_t> index_by_name(std::span<const T> things, Name name) {
  std::vector<std::uint32_t> index = counted(things.size());
  std::ranges::sort(index, [&](std::uint32_t a, std::uint32_t b) {
    const int order = std::string_view(std::invoke(name, things[a])).compare(std::invoke(name, things[b]));
    return order != 0 ? order < 0 : a < b;
  });
  return index;
}

// The later one of two things that share a name, or nullptr.
template <class T, class Name>
[[nodiscard]] const T* find_duplicate(std::span<const T> things, std::span<const std::uint32_t> index,
                                      Name name) {
  const auto twin = std::ranges::adjacent_find(index, [&](std::uint32_t a, std::uint32_t b) {
    return std::invoke(name, things[a]) == std::invoke(name, things[b]);
  });
  return twin == index.end() ? nullptr : &things[*(twin + 1)];
}

// The thing of this name, or nullptr.
template <class T, class Name>
[[nodiscard]] const T* find_by_name(std::span<const T> things, std::span<const std::uint32_t> index,
                                    std::string_view wanted, Name name) noexcept {
  const auto at = std::ranges::lower_bound(
      index, wanted, {}, [&](std::uint32_t i) -> std::string_view { return std::invoke(name, things[i]); });
  if (at == index.end() || std::string_view(std::invoke(name, things[*at])) != wanted) return nullptr;
  return &things[*at];
}

}  // namespace kvasir::gguf
