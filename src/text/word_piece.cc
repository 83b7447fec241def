// WordPiece: words of normalised text, each spelled greedily in the longest tokens, or unknown as a whole.
// Source: the BERT tokenizer (Devlin et al. 2018; its BasicTokenizer and WordpieceTokenizer); of how files
// write tokens, llama.cpp: one that begins a word has U+2581 before it, one that continues a word has
// nothing.

#include <utf8proc.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "text/byte_trie.h"
#include "text/model.h"
#include "text/sentence_piece.h"

namespace kvasir::text {
namespace {

constexpr std::int32_t kReplacement = 0xFFFD;

enum class CharacterKind { kSpace, kDropped, kAlone, kLetter };

bool is_between(std::int32_t code, std::int32_t first, std::int32_t last) {
  return code >= first && code <= last;
}

// What BERT calls Chinese: ideographs, each a word of its own.
bool is_ideograph(std::int32_t code) {
  return is_between(code, 0x4E00, 0x9FFF) || is_between(code, 0x3400, 0x4DBF) ||
         is_between(code, 0x20000, 0x2A6DF) || is_between(code, 0x2A700, 0x2B73F) ||
         is_between(code, 0x2B740, 0x2B81F) || is_between(code, 0x2B820, 0x2CEAF) ||
         is_between(code, 0xF900, 0xFAFF) || is_between(code, 0x2F800, 0x2FA1F);
}

bool is_ascii_sign(std::int32_t code) {
  return is_between(code, 0x21, 0x2F) || is_between(code, 0x3A, 0x40) || is_between(code, 0x5B, 0x60) ||
         is_between(code, 0x7B, 0x7E);
}

CharacterKind kind_of(std::int32_t code) {
  if (code == ' ' || is_between(code, 0x9, 0xD) || code == 0x85) return CharacterKind::kSpace;
  if (code == 0 || code == kReplacement) return CharacterKind::kDropped;
  if (is_ascii_sign(code) || is_ideograph(code)) return CharacterKind::kAlone;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharacterKind::kSpace;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return CharacterKind::kDropped;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return CharacterKind::kAlone;
    default:
      return CharacterKind::kLetter;
  }
}

void append_utf8(std::int32_t code, std::string& text) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t length = utf8proc_encode_char(code, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

class WordPiece final : public TextModel {
 public:
  explicit WordPiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string_view text = vocabulary.spelling(static_cast<Token>(id));
      if (vocabulary.traits[id].in_text() && !text.empty()) tokens_.add(text, id);
    }
  }

  [[nodiscard]] Status tokenize(std::string_view text, TokenizedText& out) const override {
    std::string word(kWrittenSpace);  // the word being read
    const auto finish = [&] {
      if (word.size() > kWrittenSpace.size()) spell(word, out);
      word = kWrittenSpace;
    };
    for_each_code(text, [&](std::int32_t code) {
      switch (kind_of(code)) {
        case CharacterKind::kSpace:
          finish();
          break;
        case CharacterKind::kDropped:
          break;
        case CharacterKind::kAlone:
          finish();
          append_utf8(code, word);
          finish();
          break;
        case CharacterKind::kLetter:
          append_utf8(code, word);
          break;
      }
    });
    finish();
    return {};
  }

 private:
  // Code points of the normalised text. Bytes that are not UTF-8 are nothing to this kind.
  template <class Visit>
  void for_each_code(std::string_view text, Visit&& visit) const {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = base::utf8_sequence(text.substr(at));
      if (length == 0) {
        ++at;
        continue;
      }
      utf8proc_int32_t code = 0;
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                       static_cast<utf8proc_ssize_t>(length), &code);
      visit_normal(code, visit);
      at += length;
    }
  }

  template <class Visit>
  void visit_normal(std::int32_t code, Visit& visit) const {
    constexpr std::size_t kLongestDecomposition = 32;  // Unicode needs 18, and 4 in the canonical one
    std::array<utf8proc_int32_t, kLongestDecomposition> parts{code};
    utf8proc_ssize_t count = 1;
    if (vocabulary_.strips_accents) {
      int boundary = 0;
      count = utf8proc_decompose_char(code, parts.data(), parts.size(), UTF8PROC_DECOMPOSE, &boundary);
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const utf8proc_int32_t part = parts[static_cast<std::size_t>(i)];
      if (vocabulary_.strips_accents && utf8proc_category(part) == UTF8PROC_CATEGORY_MN) continue;
      visit(vocabulary_.lowercases ? utf8proc_tolower(part) : part);
    }
  }

  void spell(std::string_view word, TokenizedText& out) const {
    const std::size_t before = out.ids.size();
    for (std::string_view rest = word; !rest.empty();) {
      std::uint32_t longest = ByteTrie::kNone;
      std::size_t taken = 0;
      std::uint32_t node = ByteTrie::kRoot;
      for (std::size_t at = 0; at < rest.size();) {
        node = tokens_.child(node, rest[at++]);
        if (node == ByteTrie::kNone) break;
        if (tokens_.value(node) == ByteTrie::kNone) continue;
        longest = tokens_.value(node);
        taken = at;
      }
      if (longest == ByteTrie::kNone) {
        out.ids.resize(before);
        out.add_unknown(vocabulary_, word.size() - kWrittenSpace.size());
        return;
      }
      out.ids.push_back(static_cast<Token>(longest));
      rest.remove_prefix(taken);
    }
  }

  const Vocabulary& vocabulary_;
  ByteTrie tokens_;
};

}  // namespace

Result<std::unique_ptr<const TextModel>> make_word_piece(const Vocabulary& vocabulary) {
  return std::make_unique<const WordPiece>(vocabulary);
}

}  // namespace kvasir::text
