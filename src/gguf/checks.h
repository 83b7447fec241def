// What a GGUF file may hold, judged alike when it is read and when it is written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvasir/result.h"
#include "quant/block_type.h"

namespace kvasir::gguf {

// A key or name for a message: in quotes, cut to a readable length, nothing in it that a terminal would obey.
[[nodiscard]] std::string quoted(std::string_view name);

// A key or a tensor's name: not empty, at most kMaxNameBytes, UTF-8. `refusal` is the code of the error.
[[nodiscard]] Status check_name(std::string_view name, Outcome refusal);

// A power of two from 8 to kMaxAlignment.
[[nodiscard]] Status check_alignment(std::uint64_t alignment, Outcome refusal);

// The bytes of a tensor: 1 to 4 dimensions, none 0, whole blocks in a row, nothing that overflows.
[[nodiscard]] Result<std::uint64_t> tensor_bytes(const quant::BlockTypeInfo& type,
                                                 std::span<const std::uint64_t> dims, Outcome refusal);

}  // namespace kvasir::gguf
