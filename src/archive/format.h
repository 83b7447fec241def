// The form of every archive: sections, each with its checksum, and a checksum of the whole. What sections
// hold is known to those who own it; docs/formats/archive.md has all of it, byte by byte.
//
//   8 bytes        "KVASIR", 0, the version
//   sections       one behind the other, the last of them "END "
//   a section      a head of 40 bytes, then its stored bytes
//   a head         u32 kind, u32 flags, u64 stored bytes, u64 size of what they hold, u64 XXH3-64 of the
//                  stored bytes, u64 XXH3-64 of the head so far, with the section's index as seed
//   "END " holds   u64 sections before it, u64 bytes before it, 16 bytes XXH3-128 of the first 8 bytes and of
//                  all heads before it: the heads have the checksums of all the rest
//
// Numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kvasir::archive {

inline constexpr std::array<unsigned char, 7> kMagic = {'K', 'V', 'A', 'S', 'I', 'R', 0};
inline constexpr std::uint8_t kVersion = 2;
inline constexpr std::size_t kBeginningBytes = 8;
inline constexpr std::size_t kHeadBytes = 40;
inline constexpr std::size_t kEndBytes = 32;

// A section holds at most so much, so that nobody takes more memory at once on a file's word.
inline constexpr std::uint64_t kSectionBytesMax = std::uint64_t{64} << 20;

// Pieces that long contents are split into.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// What is stored compressed is at least this part of what it holds; what could be smaller is stored as it is.
inline constexpr std::uint64_t kCompressionMost = 16;

inline constexpr std::uint32_t kCompressed = 1;  // the one flag: stored as one frame of zstd

// Four letters.
enum class Kind : std::uint32_t {};

[[nodiscard]] constexpr Kind kind_of(const char (&letters)[5]) noexcept {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(letters[i])) << (8 * i);
  return Kind{value};
}

inline constexpr Kind kEnd = kind_of("END ");

// The letters, those that are not printable as "?".
[[nodiscard]] inline std::string kind_text(Kind kind) {
  std::string text;
  for (unsigned i = 0; i < 4; ++i) {
    const auto letter = static_cast<unsigned char>(static_cast<std::uint32_t>(kind) >> (8 * i));
    text += letter >= ' ' && letter <= '~' ? static_cast<char>(letter) : '?';
  }
  return text;
}

}  // namespace kvasir::archive
