// Inside the room: where the numbers of a panel of codes lie.
//
// A panel is a sequence of blocks of 256 numbers of its sixteen rows, so that a product with one column reads
// memory from its start to its end, which is what a processor guesses best. A block begins with what scales
// its codes, for each of its sub-blocks and each row:
//
//   scales        [sub-block][row]                      half floats, or bytes of exponents
//
// or, of codes with sub-scales,
//
//   scale, offset [row]                                 half floats, for all of the block
//   sub-offsets   [sub-block / 2][row][sub-block % 2]   bytes
//   sub-scales    [sub-block][row]                      signed bytes
//
// and goes on, at a multiple of 64 bytes, with the codes, 32 numbers after the other, of `bits` lines of 64
// bytes each. Where sub-blocks have offsets of their own their 32 codes follow a line of [scale,
// offset][row], and nothing begins the block. Four consecutive k share a 32-bit lane (the layout of one int8
// dot-product instruction):
//
//   line          [row][k % 4]             a byte of each
//
// A step, four k, has a code in each of these bytes. A line holds as many steps as fit whole, one above the
// other. What its bytes are left with, of all lines one after the other, holds the steps that are missing: of
// 6 bits, lines hold a step each and a third of another in the two bits above, of 3 bits two steps and two
// bits of others. Codes of 5 bits are those of 4 bits behind a line of their upper bits, those of the first
// step lowest. A signed byte is stored plus 128. A row's last block may be shorter: codes are missing at its
// end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "simd/panel_kind.h"

namespace kvasir::simd {

// Bytes of a line: a load of sixteen rows.
inline constexpr std::size_t kLine = 64;

// Where the parts of a block lie: byte offsets inside it, and inside a panel those for number k. What the
// codes have not is not asked for.
struct BlockLayout {
  std::size_t sub = 0;          // numbers in a sub-block
  std::size_t scale_share = 0;  // numbers that share a scale, and an offset
  std::size_t scale_step = 0;   // bytes from one scale, and one offset, to the next
  std::size_t offsets = 0;      // scales begin the block
  std::size_t sub_offsets = 0;
  std::size_t sub_scales = 0;
  std::size_t codes = 0;
  std::size_t thirty_two = 0;  // bytes from the codes of 32 numbers to those of the next
  std::size_t bytes = 0;       // of a whole block, a multiple of 64

  [[nodiscard]] constexpr std::size_t block(std::size_t k) const noexcept { return k / kSuperBlock * bytes; }
  [[nodiscard]] constexpr std::size_t scale(std::size_t k) const noexcept {
    return block(k) + k % kSuperBlock / scale_share * scale_step;
  }
  [[nodiscard]] constexpr std::size_t offset(std::size_t k) const noexcept { return scale(k) + offsets; }
  [[nodiscard]] constexpr std::size_t sub_scale(std::size_t k) const noexcept {
    return block(k) + sub_scales + k % kSuperBlock / sub * 16;
  }
  // Of the pair of sub-blocks that k is among.
  [[nodiscard]] constexpr std::size_t sub_offset_pair(std::size_t k) const noexcept {
    return block(k) + sub_offsets + k % kSuperBlock / (2 * sub) * 32;
  }
  // A line of the 32 numbers that k is among.
  [[nodiscard]] constexpr std::size_t line(std::size_t k, std::size_t index) const noexcept {
    return block(k) + codes + k % kSuperBlock / 32 * thirty_two + index * kLine;
  }
};

[[nodiscard]] constexpr BlockLayout block_layout(const CodeRecipe& recipe) noexcept {
  BlockLayout layout{.sub = recipe.sub, .thirty_two = recipe.bits * kLine};
  const std::size_t of_subs = kSuperBlock / recipe.sub * 16;
  if (recipe.scale == ScaleForm::kSuper) {
    layout.scale_share = kSuperBlock;
    layout.offsets = 32;
    layout.sub_offsets = recipe.offsets ? 64 : 0;
    layout.sub_scales = recipe.offsets ? 64 + of_subs : 32;
    layout.codes = (layout.sub_scales + of_subs + kLine - 1) / kLine * kLine;
  } else if (recipe.offsets) {
    layout.scale_share = recipe.sub;
    layout.thirty_two += kLine;
    layout.scale_step = layout.thirty_two;
    layout.offsets = 32;
    layout.codes = kLine;
  } else {
    layout.scale_share = recipe.sub;
    layout.scale_step = recipe.scale == ScaleForm::kExponent ? 16 : 32;
    layout.codes = kSuperBlock / recipe.sub * layout.scale_step;
  }
  const std::size_t head = recipe.scale != ScaleForm::kSuper && recipe.offsets ? 0 : layout.codes;
  layout.bytes = head + kSuperBlock / 32 * layout.thirty_two;
  return layout;
}

// Bits [from, from + bits) of the bytes of a line, which are bits [to, to + bits) of codes.
struct CodePiece {
  std::size_t line = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t bits = 0;
};
struct CodePieces {
  std::array<CodePiece, 3> of{};
  std::size_t count = 0;
};

// Where the codes of a step of 32 numbers lie, the lowest bits first.
[[nodiscard]] constexpr CodePieces code_pieces(std::size_t bits, std::size_t step) noexcept {
  if (bits == 5) return {{{{1 + step / 2, step % 2 * 4, 0, 4}, {0, step, 4, 1}}}, 2};
  const std::size_t whole = 8 / bits;
  if (step < whole * bits) return {{{{step / whole, step % whole * bits, 0, bits}}}, 1};
  const std::size_t left = 8 - whole * bits;
  CodePieces pieces;
  std::size_t at = (step - whole * bits) * bits;
  for (std::size_t to = 0; to < bits;) {
    const std::size_t some = std::min(bits - to, left - at % left);
    pieces.of[pieces.count++] = {at / left, 8 - left + at % left, to, some};
    to += some;
    at += some;
  }
  return pieces;
}

// Whether the steps of 32 codes take each bit of their lines once.
[[nodiscard]] constexpr bool fills_lines(std::size_t bits) noexcept {
  std::array<unsigned, 8> lines{};
  for (std::size_t step = 0; step < 8; ++step) {
    const CodePieces pieces = code_pieces(bits, step);
    for (std::size_t i = 0; i < pieces.count; ++i) {
      const CodePiece& piece = pieces.of[i];
      const unsigned taken = ((1U << piece.bits) - 1U) << piece.from;
      if ((lines[piece.line] & taken) != 0 || piece.line >= bits) return false;
      lines[piece.line] |= taken;
    }
  }
  return std::all_of(lines.begin(), lines.begin() + bits, [](unsigned line) { return line == 0xFF; });
}
static_assert(fills_lines(2) && fills_lines(3) && fills_lines(4) && fills_lines(5) && fills_lines(6) &&
              fills_lines(8));

// Bytes of a panel whose rows are `columns` numbers, a multiple of 32.
[[nodiscard]] constexpr std::size_t code_panel_bytes(const CodeRecipe& recipe, std::size_t columns) noexcept {
  const BlockLayout layout = block_layout(recipe);
  const std::size_t blocks = (columns + kSuperBlock - 1) / kSuperBlock;
  return blocks * layout.bytes - (blocks * kSuperBlock - columns) / 32 * layout.thirty_two;
}

}  // namespace kvasir::simd
