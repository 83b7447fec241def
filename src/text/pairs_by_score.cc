// SentencePiece's byte-pair model: characters merge to the token of the best score, what is no token is
// spelled in bytes. Source: Kudo, Richardson (2018), "SentencePiece"; its bpe_model, as llama.cpp follows it.

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "text/model.h"
#include "text/pair_merging.h"
#include "text/sentence_piece.h"

namespace kvasir::text {
namespace {

// Higher scores first: floats ordered by an integer. Scores are never NaN; -0 and 0 are one.
std::uint32_t priority_of(float score) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return ~ascending;
}

// Where a text can be cut without changing its tokens: between two characters that stand beside each other in
// no token, for no merge ever crosses there. Told by the last byte of the one and the first of the other,
// with the written space, where most words part, told apart from other characters.
class Joints {
 public:
  explicit Joints(const Vocabulary& vocabulary) {
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string_view text = vocabulary.spelling(static_cast<Token>(id));
      if (!vocabulary.traits[id].in_text()) continue;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t next = at + character_length(text.substr(at));
        if (next < text.size()) inside_.set(index(text, next));
        at = next;
      }
    }
  }

  // Whether a token may reach over the border before `at`. 0 < at < text.size().
  [[nodiscard]] bool may_merge(std::string_view text, std::size_t at) const noexcept {
    return inside_.test(index(text, at));
  }

 private:
  static constexpr std::size_t kSpaceColumn = 256;
  static constexpr std::size_t kColumns = 257;

  static std::size_t index(std::string_view text, std::size_t at) noexcept {
    const std::size_t column =
        text.substr(at).starts_with(kWrittenSpace) ? kSpaceColumn : static_cast<std::uint8_t>(text[at]);
    return static_cast<std::uint8_t>(text[at - 1]) * kColumns + column;
  }

  std::bitset<256 * kColumns> inside_;
};

class PairsByScore final : public TextModel {
 public:
  explicit PairsByScore(const Vocabulary& vocabulary) : vocabulary_(vocabulary), joints_(vocabulary) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = token_of_byte(static_cast<std::uint8_t>(i));
  }

  [[nodiscard]] Status tokenize(std::string_view text, TokenizedText& out) const override {
    const std::string written = write_spaces(text, vocabulary_.adds_space_prefix);
    PairMerger merger;
    for (std::size_t start = 0; start < written.size();) {
      std::size_t end = start;
      do {
        end += character_length(std::string_view(written).substr(end));
      } while (end < written.size() && joints_.may_merge(written, end));
      tokenize_section(std::string_view(written).substr(start, end - start), merger, out);
      start = end;
    }
    return {};
  }

 private:
  std::optional<Token> token_of_byte(std::uint8_t byte) const {
    if (const std::optional<Token> token = vocabulary_.find_byte(byte)) return token;
    const char itself = static_cast<char>(byte);
    return vocabulary_.find_in_text({&itself, 1});
  }

  void tokenize_section(std::string_view text, PairMerger& merger, TokenizedText& out) const {
    merger.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = character_length(text.substr(at));
      const std::optional<Token> token = vocabulary_.find_in_text(text.substr(at, length));
      merger.append(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                    token ? static_cast<std::uint32_t>(*token) : Symbol::kNobody);
      at += length;
    }
    merger.merge_all([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      const std::size_t length = std::size_t{left.length} + right.length;
      if (length > vocabulary_.longest) return std::nullopt;
      const std::optional<Token> token = vocabulary_.find_in_text(text.substr(left.start, length));
      if (!token) return std::nullopt;
      return Merge{priority_of(vocabulary_.scores[static_cast<std::size_t>(*token)]),
                   static_cast<std::uint32_t>(*token)};
    });
    merger.for_each([&](const Symbol& symbol) {
      if (symbol.id != Symbol::kNobody) {
        out.ids.push_back(static_cast<Token>(symbol.id));
      } else {
        spell_in_bytes(text.substr(symbol.start, symbol.length), out);
      }
    });
  }

  // A character without a token. One unknown token stands for a whole character whose bytes have none.
  void spell_in_bytes(std::string_view character, TokenizedText& out) const {
    const std::size_t before = out.ids.size();
    for (const char byte : character) {
      const std::optional<Token> token = bytes_[static_cast<std::uint8_t>(byte)];
      if (!token) {
        out.ids.resize(before);
        return out.add_unknown(vocabulary_, character.size());
      }
      out.ids.push_back(*token);
    }
  }

  const Vocabulary& vocabulary_;
  Joints joints_;
  std::array<std::optional<Token>, 256> bytes_;
};

}  // namespace

Result<std::unique_ptr<const TextModel>> make_pairs_by_score(const Vocabulary& vocabulary) {
  return std::make_unique<const PairsByScore>(vocabulary);
}

}  // namespace kvasir::text
