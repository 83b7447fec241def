#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/try.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace kvasir::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Whether more bytes could make `text`, which is not empty, one well-formed character. It is completed with
// the lowest continuations that its first byte admits.
bool begins_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || text.size() >= length) return false;
  std::string whole(text);
  if (whole.size() == 1) whole += first == 0xE0 ? '\xA0' : first == 0xF0 ? '\x90' : '\x80';
  whole.resize(length, '\x80');
  return base::utf8_sequence(whole) == length;
}

// Bytes of the maximal part at the start of ill-formed `text` that stands for one U+FFFD.
std::size_t maximal_part(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && begins_character(text.substr(0, length + 1))) ++length;
  return length;
}

// Moves all of `bytes` to the text it answers, but for a character that has only begun.
std::string take_whole_characters(std::string& bytes, bool raw_bytes) {
  std::string text;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t sequence = base::utf8_sequence(rest);
    if (sequence == 0 && begins_character(rest)) break;
    const std::size_t taken = sequence != 0 ? sequence : maximal_part(rest);
    text += sequence != 0 || raw_bytes ? rest.substr(0, taken) : kReplacement;
    rest.remove_prefix(taken);
  }
  bytes.erase(0, bytes.size() - rest.size());
  return text;
}

}  // namespace

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, const StreamOptions& options)
    : tokenizer_(&tokenizer), options_(options), at_start_(options.whole_text) {}

Result<std::string> StreamingDetokenizer::feed(Token id) {
  KVASIR_ASSIGN(const std::string piece, tokenizer_->detokenize({&id, 1}, {.continues = !at_start_}));
  try {
    std::string bytes = pending_ + piece;
    std::string text = take_whole_characters(bytes, options_.raw_bytes);
    pending_ = std::move(bytes);
    at_start_ = false;
    return text;
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

std::string StreamingDetokenizer::finish() {
  std::string rest = std::exchange(pending_, {});
  at_start_ = options_.whole_text;
  return rest.empty() || options_.raw_bytes ? rest : std::string(kReplacement);
}

}  // namespace kvasir::text
