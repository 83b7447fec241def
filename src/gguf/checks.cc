#include "gguf/checks.h"

#include <fmt/format.h>

#include <bit>

#include "base/checked.h"
#include "base/utf8.h"
#include "gguf/gguf.h"

namespace kvasir::gguf {
namespace {

constexpr std::size_t kShownNameBytes = 80;
constexpr std::uint64_t kMinAlignment = 8;

}  // namespace

std::string quoted(std::string_view name) {
  return fmt::format("'{}'", base::printable(name, kShownNameBytes));
}

Status check_name(std::string_view name, Outcome refusal) {
  if (name.empty()) return fail(refusal, "the name is empty");
  if (name.size() > kMaxNameBytes) {
    return fail(refusal,
                fmt::format("the name has {} bytes, at most {} are allowed", name.size(), kMaxNameBytes),
                {.wanted = name.size(), .limit = kMaxNameBytes});
  }
  if (!base::is_utf8(name)) return fail(refusal, "the name " + quoted(name) + " is not valid UTF-8");
  return {};
}

Status check_alignment(std::uint64_t alignment, Outcome refusal) {
  if (std::has_single_bit(alignment) && alignment >= kMinAlignment && alignment <= kMaxAlignment) return {};
  return fail(refusal,
              fmt::format("general.alignment is {}; it must be a power of two from {} to {}", alignment,
                          kMinAlignment, kMaxAlignment),
              {.wanted = alignment, .limit = kMaxAlignment});
}

Result<std::uint64_t> tensor_bytes(const quant::BlockTypeInfo& type, std::span<const std::uint64_t> dims,
                                   Outcome refusal) {
  if (dims.empty() || dims.size() > kMaxDimensions) {
    return fail(refusal,
                fmt::format("it has {} dimensions; 1 to {} are allowed", dims.size(), kMaxDimensions),
                {.wanted = dims.size(), .limit = kMaxDimensions});
  }
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return fail(refusal, fmt::format("dimension {} is 0", i));
    const auto product = base::checked_mul(elements, dims[i]);
    if (!product) {
      return fail(refusal, fmt::format("the number of its elements overflows at dimension {}, which is {}", i,
                                       dims[i]));
    }
    elements = *product;
  }
  if (dims[0] % type.values != 0) {
    return fail(refusal,
                fmt::format("its rows have {} numbers, which are not whole {} blocks of {}", dims[0],
                            type.name, type.values),
                {.wanted = dims[0], .limit = type.values});
  }
  const auto bytes = base::checked_mul<std::uint64_t>(elements / type.values, type.bytes);
  if (!bytes)
    return fail(refusal, fmt::format("the bytes of its {} {} numbers overflow", elements, type.name));
  return *bytes;
}

}  // namespace kvasir::gguf
