// Inside the room: rows of weights as a file has them, into panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/block_type.h"

namespace kvasir::simd {

// Sixteen rows (kPanelRows) as they are in the file, one every `stride` bytes.
struct RawRows {
  const std::uint8_t* data = nullptr;
  std::size_t stride = 0;
};

// Repacks rows of `columns` numbers in whole blocks of a type whose panels are codes.
void put_codes(quant::BlockType type, const RawRows& rows, std::size_t columns, std::uint8_t* panel) noexcept;

// Repacks rows of floats of 16 or 32 bits: number k of all rows goes to the beginning of line k.
void put_halves(const RawRows& rows, std::size_t columns, std::uint8_t* panel) noexcept;
void put_floats(const RawRows& rows, std::size_t columns, std::uint8_t* panel) noexcept;

}  // namespace kvasir::simd
