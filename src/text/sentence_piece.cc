#include "text/sentence_piece.h"

#include <algorithm>

#include "base/utf8.h"

namespace kvasir::text {

std::size_t character_length(std::string_view text) noexcept {
  return std::max<std::size_t>(1, base::utf8_sequence(text));
}

std::string write_spaces(std::string_view text, bool prefix) {
  const auto spaces = static_cast<std::size_t>(std::ranges::count(text, ' '));
  std::string written;
  written.reserve(text.size() + spaces * (kWrittenSpace.size() - 1) + kWrittenSpace.size());
  if (prefix) written += kWrittenSpace;
  for (const char byte : text) {
    if (byte == ' ') {
      written += kWrittenSpace;
    } else {
      written += byte;
    }
  }
  return written;
}

std::string read_spaces(std::string_view text) {
  std::string read;
  read.reserve(text.size());
  while (!text.empty()) {
    const std::size_t at = text.find(kWrittenSpace);
    read += text.substr(0, at);
    if (at == text.npos) break;
    read += ' ';
    text.remove_prefix(at + kWrittenSpace.size());
  }
  return read;
}

}  // namespace kvasir::text
