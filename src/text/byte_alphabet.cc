#include "text/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "text/sentence_piece.h"

namespace kvasir::text {
namespace {

constexpr std::uint32_t kFirstOther = 0x100;  // where the characters of unprintable bytes begin
constexpr std::uint32_t kOthers = 68;         // how many there are
constexpr std::uint32_t kEnd = kFirstOther + kOthers;

constexpr bool stands_for_itself(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  struct Character {
    char utf8[2];
    std::uint8_t length;
  };
  std::array<Character, 256> characters{};
  std::array<std::uint8_t, kEnd> bytes{};  // by code point
  std::array<bool, kEnd> known{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  std::uint32_t other = kFirstOther;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const std::uint32_t code = stands_for_itself(byte) ? byte : other++;
    auto& character = alphabet.characters[byte];
    if (code < 0x80) {
      character = {{static_cast<char>(code), 0}, 1};
    } else {
      character = {{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))}, 2};
    }
    alphabet.bytes[code] = static_cast<std::uint8_t>(byte);
    alphabet.known[code] = true;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

// The code point of a well-formed character of 1 or 2 bytes, as are all of the alphabet; kEnd for longer
// ones.
std::uint32_t short_code(std::string_view character) noexcept {
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x80 ? first : kEnd;
  if (character.size() == 2) return (first & 0x1FU) << 6 | (static_cast<std::uint8_t>(character[1]) & 0x3FU);
  return kEnd;
}

}  // namespace

std::string_view character_of_byte(std::uint8_t byte) noexcept {
  const Alphabet::Character& character = kAlphabet.characters[byte];
  return {character.utf8, character.length};
}

std::string bytes_of_characters(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_length(text.substr(at)));
    const std::uint32_t code = short_code(character);
    if (code < kEnd && kAlphabet.known[code]) {
      bytes += static_cast<char>(kAlphabet.bytes[code]);
    } else {
      bytes += character;
    }
    at += character.size();
  }
  return bytes;
}

}  // namespace kvasir::text
