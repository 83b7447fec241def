#include "text/tokenizer.h"

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/try.h"
#include "text/model.h"
#include "text/pieces.h"
#include "text/special_matcher.h"
#include "text/vocabulary.h"

namespace kvasir::text {
namespace {

// Runs `work`, whose exceptions are those of memory that is not there. The message is short enough to need
// none.
template <class Work>
auto within_memory(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  } catch (const std::length_error&) {
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

Result<std::unique_ptr<const TextModel>> make_model(const Vocabulary& vocabulary, const gguf::File& file) {
  switch (vocabulary.kind) {
    case VocabularyKind::kPairsByScore:
      return make_pairs_by_score(vocabulary);
    case VocabularyKind::kPairsByRank:
      return make_pairs_by_rank(vocabulary, file);
    case VocabularyKind::kUnigram:
      return make_unigram(vocabulary, file);
    case VocabularyKind::kWordPiece:
      return make_word_piece(vocabulary);
    case VocabularyKind::kLongestMatch:
      return make_longest_match(vocabulary);
  }
  return fail(Outcome::kInternal, "a kind of vocabulary without a model");
}

}  // namespace

// The vocabulary first: the others refer to it, and it stays where it is.
struct Tokenizer::Parts {
  explicit Parts(Vocabulary read) : vocabulary(std::move(read)), special(vocabulary), pieces(vocabulary) {}

  const Vocabulary vocabulary;
  const SpecialMatcher special;
  const Pieces pieces;
  std::unique_ptr<const TextModel> model;

  [[nodiscard]] bool has(Token id) const noexcept {
    return id >= 0 && static_cast<std::uint32_t>(id) < vocabulary.size();
  }

  [[nodiscard]] Result<std::string_view> piece(Token id) const {
    if (has(id)) return pieces[id];
    return fail(Outcome::kInvalidArgument,
                "token " + std::to_string(id) + " is not in the vocabulary, which has " +
                    std::to_string(vocabulary.size()) + " tokens",
                {.wanted = {}, .available = {}, .limit = vocabulary.size(), .setting = {}});
  }

  [[nodiscard]] Result<TokenizedText> tokenize(std::string_view text, const TokenizeOptions& options) const {
    TokenizedText out;
    if (options.add_begin_end && vocabulary.adds_begin) out.ids.push_back(*vocabulary.adds_begin);
    for (const Fragment& fragment : special.cut(text, options.parse_special)) {
      if (fragment.token != Fragment::kOrdinary) {
        out.ids.push_back(fragment.token);
      } else {
        KVASIR_TRY(model->tokenize(text.substr(fragment.start, fragment.end - fragment.start), out));
      }
    }
    if (options.add_begin_end && vocabulary.adds_end) out.ids.push_back(*vocabulary.adds_end);
    return out;
  }
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<const Tokenizer>> Tokenizer::load(const gguf::File& file) {
  return within_memory([&]() -> Result<std::unique_ptr<const Tokenizer>> {
    KVASIR_ASSIGN(Vocabulary vocabulary, read_vocabulary(file));
    auto parts = std::make_unique<Parts>(std::move(vocabulary));
    KVASIR_ASSIGN(parts->model, make_model(parts->vocabulary, file));
    return std::unique_ptr<const Tokenizer>(new Tokenizer(std::move(parts)));
  });
}

Result<std::vector<Token>> Tokenizer::tokenize(std::string_view text, const TokenizeOptions& options,
                                               std::uint64_t* left_out) const {
  return within_memory([&]() -> Result<std::vector<Token>> {
    if (text.size() > kMaxTextBytes) {
      return fail(Outcome::kInvalidArgument,
                  "the text has " + std::to_string(text.size()) + " bytes; one call takes " +
                      std::to_string(kMaxTextBytes) + " at most",
                  {.wanted = text.size(), .available = {}, .limit = kMaxTextBytes, .setting = {}});
    }
    KVASIR_ASSIGN(TokenizedText tokenized, parts_->tokenize(text, options));
    if (left_out != nullptr) *left_out = tokenized.left_out;
    return std::move(tokenized.ids);
  });
}

Result<std::string> Tokenizer::detokenize(std::span<const Token> ids,
                                          const DetokenizeOptions& options) const {
  return within_memory([&]() -> Result<std::string> {
    std::string text;
    bool first = !options.continues && parts_->vocabulary.adds_space_prefix;
    for (const Token id : ids) {
      KVASIR_ASSIGN(std::string_view piece, parts_->piece(id));
      if (first && piece.starts_with(' ')) piece.remove_prefix(1);
      first = false;
      text += piece;
    }
    return text;
  });
}

Result<std::string_view> Tokenizer::piece(Token id) const {
  return within_memory([&] { return parts_->piece(id); });
}

std::uint32_t Tokenizer::size() const noexcept {
  return parts_->vocabulary.size();
}

std::optional<Token> Tokenizer::find(std::string_view spelling) const noexcept {
  return parts_->vocabulary.find(spelling);
}

std::optional<Token> Tokenizer::begin_token() const noexcept {
  return parts_->vocabulary.begin;
}
std::optional<Token> Tokenizer::end_token() const noexcept {
  return parts_->vocabulary.end;
}
bool Tokenizer::adds_begin() const noexcept {
  return parts_->vocabulary.adds_begin.has_value();
}
bool Tokenizer::adds_end() const noexcept {
  return parts_->vocabulary.adds_end.has_value();
}

bool Tokenizer::ends_generation(Token id) const noexcept {
  return parts_->has(id) && parts_->vocabulary.ends[static_cast<std::size_t>(id)];
}

bool Tokenizer::is_special(Token id) const noexcept {
  if (!parts_->has(id)) return false;
  const TokenTraits& traits = parts_->vocabulary.traits_of(id);
  return traits.control || traits.unknown;
}

std::string_view Tokenizer::kind() const noexcept {
  return parts_->vocabulary.kind_name;
}
std::string_view Tokenizer::pre_tokenizer() const noexcept {
  return parts_->vocabulary.pre_name;
}

}  // namespace kvasir::text
