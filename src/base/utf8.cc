#include "base/utf8.h"

#include <cstdint>

namespace kvasir::base {
namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them.
struct Lead {
  std::size_t length;
  std::uint8_t low;
  std::uint8_t high;
};

Lead lead(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {1, 0x80, 0xBF};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

std::uint8_t byte_at(std::string_view text, std::size_t index) noexcept {
  return static_cast<std::uint8_t>(text[index]);
}

// C0, DEL and C1: what a terminal may obey instead of showing it.
bool is_control(std::string_view sequence) noexcept {
  const std::uint8_t first = byte_at(sequence, 0);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && byte_at(sequence, 1) < 0xA0;
}

void append_escaped(std::string& shown, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t byte = byte_at(bytes, i);
    shown += "\\x";
    shown += kDigits[byte >> 4];
    shown += kDigits[byte & 15];
  }
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const Lead expected = lead(byte_at(text, 0));
  if (expected.length == 0 || text.size() < expected.length) return 0;
  for (std::size_t i = 1; i < expected.length; ++i) {
    const std::uint8_t low = i == 1 ? expected.low : 0x80;
    const std::uint8_t high = i == 1 ? expected.high : 0xBF;
    if (byte_at(text, i) < low || byte_at(text, i) > high) return 0;
  }
  return expected.length;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  std::size_t taken = 0;
  while (taken < text.size()) {
    const std::string_view rest = text.substr(taken);
    const std::size_t length = utf8_sequence(rest);
    const std::string_view piece = rest.substr(0, length == 0 ? 1 : length);
    if (taken + piece.size() > limit) return shown + "...";
    if (length == 0 || is_control(piece)) {
      append_escaped(shown, piece);
    } else {
      shown += piece;
    }
    taken += piece.size();
  }
  return shown;
}

}  // namespace kvasir::base
