// Checksums of bytes that are kept or sent: XXH3, by the widest instructions that the processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::base {

// XXH3-64 of the bytes. Any thread. Source: the xxHash specification.
[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept;

}  // namespace kvasir::base
