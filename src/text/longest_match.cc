// RWKV's world vocabulary: at each place the longest token, over bytes.
// Source: BlinkDL's rwkv_tokenizer; of the escapes in files, llama.cpp.

#include "text/longest_match.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/byte_trie.h"
#include "text/model.h"

namespace kvasir::text {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class LongestMatch final : public TextModel {
 public:
  explicit LongestMatch(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      if (!vocabulary.traits[id].in_text()) continue;
      const std::string bytes = unescape(vocabulary.spelling(static_cast<Token>(id)));
      if (!bytes.empty()) tokens_.add(bytes, id);
    }
  }

  [[nodiscard]] Status tokenize(std::string_view text, TokenizedText& out) const override {
    while (!text.empty()) {
      std::uint32_t longest = ByteTrie::kNone;
      std::size_t taken = 1;
      std::uint32_t node = ByteTrie::kRoot;
      for (std::size_t at = 0; at < text.size();) {
        node = tokens_.child(node, text[at++]);
        if (node == ByteTrie::kNone) break;
        if (tokens_.value(node) == ByteTrie::kNone) continue;
        longest = tokens_.value(node);
        taken = at;
      }
      if (longest == ByteTrie::kNone) {
        out.add_unknown(vocabulary_, taken);
      } else {
        out.ids.push_back(static_cast<Token>(longest));
      }
      text.remove_prefix(taken);
    }
    return {};
  }

 private:
  const Vocabulary& vocabulary_;
  ByteTrie tokens_;
};

}  // namespace

std::string unescape(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      bytes += text[at];
      continue;
    }
    const char escape = text[++at];
    if (escape == 't') {
      bytes += '\t';
    } else if (escape == 'n') {
      bytes += '\n';
    } else if (escape == 'r') {
      bytes += '\r';
    } else if (escape == 'x' && at + 2 < text.size() && hex_value(text[at + 1]) >= 0 &&
               hex_value(text[at + 2]) >= 0) {
      bytes += static_cast<char>(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
      at += 2;
    } else {
      bytes += escape;
    }
  }
  return bytes;
}

Result<std::unique_ptr<const TextModel>> make_longest_match(const Vocabulary& vocabulary) {
  return std::make_unique<const LongestMatch>(vocabulary);
}

}  // namespace kvasir::text
