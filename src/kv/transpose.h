// Inside the room: lanes of keys to rows and back, a square of elements at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir::kv {

// Elements of a square's side: as many as sixteen bytes hold.
template <class Element>
inline constexpr std::size_t kSide = 16 / sizeof(Element);

// A row of a square.
template <class Element>
struct SquareRow {
  using Vector [[gnu::vector_size(16)]] = Element;
  Vector lanes;
};

// kSide rows of sixteen bytes, the i-th at row(i), as their columns at `to`, `to_step` bytes apart.
//
// Method: zipping the first half of the rows with the second moves every index by one bit; as many times as
// an index has bits, rows and columns have changed places.
template <class Element, class Row>
inline void transpose_rows(const Row& row, std::byte* to, std::size_t to_step) noexcept {
  constexpr std::size_t kRows = kSide<Element>;
  std::array<SquareRow<Element>, kRows> rows{};
  for (std::size_t i = 0; i < kRows; ++i) std::memcpy(&rows[i], row(i), sizeof(rows[i]));
  for (std::size_t bit = 1; bit < kRows; bit *= 2) {
    std::array<SquareRow<Element>, kRows> zipped{};
    for (std::size_t i = 0; i < kRows / 2; ++i) {
      const auto a = rows[i].lanes;
      const auto b = rows[i + kRows / 2].lanes;
      if constexpr (sizeof(Element) == 1) {
        zipped[2 * i].lanes =
            __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        zipped[2 * i + 1].lanes =
            __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      } else if constexpr (sizeof(Element) == 2) {
        zipped[2 * i].lanes = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        zipped[2 * i + 1].lanes = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      } else {
        zipped[2 * i].lanes = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        zipped[2 * i + 1].lanes = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      }
    }
    rows = zipped;
  }
  for (std::size_t i = 0; i < kRows; ++i) std::memcpy(to + i * to_step, &rows[i], sizeof(rows[i]));
}

// The same for rows `from_step` bytes apart.
template <class Element>
inline void transpose_square(const std::byte* from, std::size_t from_step, std::byte* to,
                             std::size_t to_step) noexcept {
  transpose_rows<Element>([&](std::size_t i) { return from + i * from_step; }, to, to_step);
}

}  // namespace kvasir::kv
