// The block types of GGUF weights: what they are called, how large their blocks are, and their numbers as
// floats.
//
// A row of weights is a sequence of blocks; a block holds `values` numbers in `bytes` bytes, little-endian.
// Source of ids and layouts: the GGUF specification (ggml's type table).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::quant {

// The type's number in a GGUF file.
enum class BlockType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
};

struct BlockTypeInfo {
  BlockType type;
  std::string_view name;  // as GGUF tools spell it: "Q4_K", "F16", ...
  std::uint32_t values;   // numbers in a block
  std::uint32_t bytes;    // bytes of a block
  bool unpacks;           // unpack() knows it
  bool packs;             // pack() knows it
};

// All known types, in the order of their numbers. Lives as long as the process.
[[nodiscard]] std::span<const BlockTypeInfo> block_types() noexcept;

// The entry of a type's number in a file, or of its name in any letter case; nullptr where there is none.
[[nodiscard]] const BlockTypeInfo* find_block_type(std::uint32_t number) noexcept;
[[nodiscard]] const BlockTypeInfo* find_block_type(std::string_view name) noexcept;

// The entry of a type of the enum.
[[nodiscard]] const BlockTypeInfo& block_type_info(BlockType type) noexcept;

// Blocks -> floats, exactly as the format defines them. `blocks` holds whole blocks and `values` as many
// floats as they have: kInvalidArgument otherwise; kUnsupported names a type that does not unpack. Any
// thread.
[[nodiscard]] Status unpack(BlockType type, std::span<const std::byte> blocks, std::span<float> values);

// Floats -> blocks. The counts must agree (kInvalidArgument) and the type pack (kUnsupported). Any finite
// input is taken; a NaN is packed as 0. Any thread.
[[nodiscard]] Status pack(BlockType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace kvasir::quant
