// Writes JSON (RFC 8259) piece by piece, strictly valid whatever the strings hold.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::cli {

// Appends to a string, which its owner may print and clear between any two calls. Commas and colons come by
// themselves; the caller closes what it opens, and gives a key before each value of an object. Strings are
// escaped, bytes that are not UTF-8 become U+FFFD; numbers that are not finite become null. One thread at a
// time.
class JsonWriter {
 public:
  // `out` outlives the writer.
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& value(double number);  // the shortest form that reads back the same
  JsonWriter& value(float number);
  JsonWriter& null() { return raw("null"); }
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  JsonWriter& value(T number) {
    return raw(std::to_string(number));
  }

  // key(name).value(value).
  template <class T>
  JsonWriter& member(std::string_view name, const T& of) {
    return key(name).value(of);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view literal);
  void separate();
  void append_quoted(std::string_view text);

  std::string& out_;
  bool comma_ = false;  // whether the next key or element needs one before it
};

}  // namespace kvasir::cli
