#include "text/pieces.h"

#include <optional>

#include "text/byte_alphabet.h"
#include "text/longest_match.h"
#include "text/sentence_piece.h"

namespace kvasir::text {
namespace {

std::string bytes_of(const Vocabulary& vocabulary, Token id) {
  const std::string_view text = vocabulary.spelling(id);
  const TokenTraits& traits = vocabulary.traits_of(id);
  if (vocabulary.kind == VocabularyKind::kLongestMatch) {
    return traits.control || traits.unknown ? std::string(text) : unescape(text);
  }
  if (traits.control || traits.unknown || traits.user_defined) return std::string(text);
  if (const std::optional<std::uint8_t> byte = byte_of_spelling(text); byte && traits.byte) {
    const auto itself = static_cast<char>(*byte);
    return {&itself, 1};
  }
  if (vocabulary.kind == VocabularyKind::kPairsByRank && !vocabulary.pre_tokenizer->spells_like_spm) {
    return bytes_of_characters(text);
  }
  return read_spaces(text);
}

}  // namespace

Pieces::Pieces(const Vocabulary& vocabulary) {
  starts_.reserve(std::size_t{vocabulary.size()} + 1);
  starts_.push_back(0);
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    bytes_ += bytes_of(vocabulary, static_cast<Token>(id));
    starts_.push_back(bytes_.size());
  }
}

}  // namespace kvasir::text
