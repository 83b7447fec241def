#include "cli/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// A character that must or should not stand in a string as it is, or nothing.
std::string escape_of(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F ? fmt::format("\\u{:04x}", byte) : std::string();
}

template <class Float>
std::string shortest(Float number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(name);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  return raw(shortest(number));
}
JsonWriter& JsonWriter::value(float number) {
  return raw(shortest(number));
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view literal) {
  separate();
  out_ += literal;
  return *this;
}

void JsonWriter::separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

void JsonWriter::append_quoted(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const std::size_t length = base::utf8_sequence(text);
    if (length > 1) {
      out_ += text.substr(0, length);
    } else if (length == 0) {
      out_ += kReplacement;
    } else if (const std::string escape = escape_of(text[0]); !escape.empty()) {
      out_ += escape;
    } else {
      out_ += text[0];
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

}  // namespace kvasir::cli
