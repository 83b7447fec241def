#include "text/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/utf8.h"
#include "text/special_tokens.h"

namespace kvasir::text {
namespace {

constexpr std::string_view kKindKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kBeginKey = "tokenizer.ggml.bos_token_id";
constexpr std::string_view kEndKey = "tokenizer.ggml.eos_token_id";
constexpr std::string_view kSeparatorKey = "tokenizer.ggml.seperator_token_id";  // as files spell it
constexpr std::size_t kShownBytes = 60;  // of a name from the file, in a message

// Token types in a file. Source: the GGUF specification, tokenizer.ggml.token_type.
enum class FileType : std::int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

TokenTraits traits_of_type(std::int64_t type) {
  switch (static_cast<FileType>(type)) {
    case FileType::kNormal:
      return {.normal = true};
    case FileType::kUnknown:
      return {.unknown = true};
    case FileType::kControl:
      return {.control = true};
    case FileType::kUserDefined:
      return {.user_defined = true};
    case FileType::kUnused:
      return {.unused = true};
    case FileType::kByte:
      return {.byte = true};
  }
  return {};  // a type of a later day: text like any other
}

std::string quoted(std::string_view text) {
  return "'" + base::printable(text, kShownBytes) + "'";
}

// Where a token is that the file does not give: the one spelled so, or that with this id.
struct Convention {
  std::string_view spelling;
  std::optional<Token> usual;
};
struct Conventions {
  Convention begin, end, unknown;
};

Conventions conventions_of(VocabularyKind kind) {
  switch (kind) {
    case VocabularyKind::kPairsByScore:
      return {{{}, 1}, {{}, 2}, {{}, 0}};
    case VocabularyKind::kUnigram:
      return {{}, {{}, 1}, {{}, 2}};
    case VocabularyKind::kWordPiece:
      return {{"[CLS]", 101}, {"[SEP]", 102}, {"[UNK]", 100}};
    case VocabularyKind::kPairsByRank:
    case VocabularyKind::kLongestMatch:
      break;
  }
  return {};
}

class Reader {
 public:
  explicit Reader(const gguf::File& file) : file_(file) {}

  Result<Vocabulary> run() {
    KVASIR_TRY(read_kind());
    KVASIR_TRY(read_tokens());
    KVASIR_TRY(read_scores());
    KVASIR_TRY(read_types());
    KVASIR_TRY(read_ids());
    KVASIR_TRY(read_flags());
    KVASIR_TRY(apply_special_names(file_, vocabulary_));
    return std::move(vocabulary_);
  }

 private:
  Status read_kind() {
    const gguf::Value* kind = file_.find(kKindKey);
    if (kind == nullptr) return no_vocabulary();
    KVASIR_ASSIGN(const std::string_view name, file_.get_string(kKindKey));
    if (name == "none" || name == "no_vocab") return no_vocabulary();
    if (file_.find(kPreKey) != nullptr) {
      KVASIR_ASSIGN(vocabulary_.pre_name, file_.get_string(kPreKey));
    }
    vocabulary_.kind_name = name;
    if (name == "llama") return with_kind(VocabularyKind::kPairsByScore);
    if (name == "t5") return with_kind(VocabularyKind::kUnigram);
    if (name == "bert") return with_kind(VocabularyKind::kWordPiece);
    if (name == "rwkv") return with_kind(VocabularyKind::kLongestMatch);
    if (name == "gpt2") return with_pre_tokenizer(vocabulary_.pre_name);
    if (name == "gemma4") return with_pre_tokenizer("gemma4");
    return fail(Outcome::kUnsupported, "the tokenizer model " + quoted(name) +
                                           " is not known; known are llama, gpt2, gemma4, t5, bert and rwkv");
  }

  Status with_kind(VocabularyKind kind) {
    vocabulary_.kind = kind;
    return {};
  }

  Status with_pre_tokenizer(std::string_view name) {
    vocabulary_.kind = VocabularyKind::kPairsByRank;
    vocabulary_.pre_tokenizer = find_pre_tokenizer(name);
    if (vocabulary_.pre_tokenizer != nullptr) return {};
    return fail(Outcome::kUnsupported,
                "the pre-tokenizer " + quoted(name) + " is not known; known are " + known_pre_tokenizers());
  }

  static Status no_vocabulary() {
    return fail(Outcome::kNotFound, "the file holds no vocabulary; ids of tokens can be used, text can not");
  }

  // An empty token is one that no text becomes. Files have them, in place of tokens that were taken out.
  Status read_tokens() {
    const gguf::Value* tokens = file_.find(kTokensKey);
    if (tokens == nullptr) return no_vocabulary();
    if (!tokens->is_array() || tokens->element_type() != gguf::ValueType::kString) {
      return fail(Outcome::kCorrupt, "'" + std::string(kTokensKey) + "' is not an array of strings");
    }
    const std::uint64_t count = tokens->size();
    if (count == 0) return fail(Outcome::kCorrupt, "the vocabulary has no tokens");
    if (count > static_cast<std::uint64_t>(std::numeric_limits<Token>::max())) {
      return fail(Outcome::kCorrupt,
                  "the vocabulary has " + std::to_string(count) + " tokens, more than ids can name");
    }
    KVASIR_TRY(check_bytes(*tokens, kTokensKey, kMaxSpellingBytes));
    Spellings& spellings = vocabulary_.spellings;
    spellings.reserve(count, 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view text = tokens->string_at(i).value_or("");
      vocabulary_.longest = std::max(vocabulary_.longest, text.size());
      if (text.empty()) {
        spellings.add_hidden(text);
      } else if (const Spellings::Added added = spellings.add(text); !added.is_new) {
        return fail(Outcome::kCorrupt, "the tokens " + std::to_string(added.number) + " and " +
                                           std::to_string(i) + " are both spelled " + quoted(text));
      }
    }
    return {};
  }

  // The values of an array that has one for each token; further ones are ignored.
  Status check_count(const gguf::Value& values, std::string_view key) const {
    if (values.is_array() && values.size() >= vocabulary_.size()) return {};
    return fail(Outcome::kCorrupt,
                "'" + std::string(key) + "' has " + std::to_string(values.size()) + " values for " +
                    std::to_string(vocabulary_.size()) + " tokens",
                {.wanted = vocabulary_.size(), .available = values.size(), .limit = {}, .setting = {}});
  }

  Status read_scores() {
    vocabulary_.scores.assign(vocabulary_.size(), 0.0F);
    const gguf::Value* scores = file_.find(kScoresKey);
    if (scores == nullptr) return {};
    KVASIR_TRY(check_count(*scores, kScoresKey));
    for (std::uint32_t i = 0; i < vocabulary_.size(); ++i) {
      const std::optional<double> score = scores->float_at(i);
      if (!score || !std::isfinite(*score)) {
        return fail(Outcome::kCorrupt, "the score of token " + std::to_string(i) + " is not a number");
      }
      vocabulary_.scores[i] = static_cast<float>(*score);
    }
    return {};
  }

  Status read_types() {
    vocabulary_.traits.assign(vocabulary_.size(), {.normal = true});
    vocabulary_.ends.assign(vocabulary_.size(), false);
    const gguf::Value* types = file_.find(kTypesKey);
    if (types == nullptr) return {};
    KVASIR_TRY(check_count(*types, kTypesKey));
    for (std::uint32_t i = 0; i < vocabulary_.size(); ++i) {
      const std::optional<std::int64_t> type = types->int_at(i);
      if (!type)
        return fail(Outcome::kCorrupt, "the type of token " + std::to_string(i) + " is not a whole number");
      vocabulary_.traits[i] = traits_of_type(*type);
      if (vocabulary_.traits[i].byte && !byte_of_spelling(vocabulary_.spelling(static_cast<Token>(i)))) {
        return fail(Outcome::kCorrupt, "token " + std::to_string(i) + " stands for a byte, but is spelled " +
                                           quoted(vocabulary_.spelling(static_cast<Token>(i))) +
                                           ", not <0xNN>");
      }
    }
    return {};
  }

  // The first of `keys` that gives an id; else the token spelled so; else the usual one, where the vocabulary
  // has it.
  Result<std::optional<Token>> id_of(std::initializer_list<std::string_view> keys,
                                     const Convention& convention) const {
    for (const std::string_view key : keys) {
      KVASIR_ASSIGN(const std::optional<Token> id, read_token_id(file_, key, vocabulary_.size()));
      if (id || file_.find(key) != nullptr) return id;
    }
    if (const std::optional<Token> named = vocabulary_.find(convention.spelling)) return named;
    const std::optional<Token> usual = convention.usual;
    return usual && static_cast<std::uint32_t>(*usual) < vocabulary_.size() ? usual : std::nullopt;
  }

  Status read_ids() {
    const Conventions usual = conventions_of(vocabulary_.kind);
    KVASIR_ASSIGN(vocabulary_.unknown, id_of({"tokenizer.ggml.unknown_token_id"}, usual.unknown));
    if (vocabulary_.kind == VocabularyKind::kWordPiece) {
      KVASIR_ASSIGN(vocabulary_.begin, id_of({kBeginKey, "tokenizer.ggml.cls_token_id"}, usual.begin));
      KVASIR_ASSIGN(vocabulary_.end, id_of({kSeparatorKey, kEndKey}, usual.end));
    } else {
      KVASIR_ASSIGN(vocabulary_.begin, id_of({kBeginKey}, usual.begin));
      KVASIR_ASSIGN(vocabulary_.end, id_of({kEndKey}, usual.end));
    }
    return {};
  }

  Result<bool> flag(std::string_view key, bool otherwise) const {
    if (file_.find(key) == nullptr) return otherwise;
    return file_.get_bool(key);
  }

  // `token` if it is added to a text: as `key` says, else as the kind does.
  Result<std::optional<Token>> added(std::string_view key, bool otherwise, std::optional<Token> token,
                                     std::string_view id_key) const {
    KVASIR_ASSIGN(const bool wanted, flag(key, otherwise && token.has_value()));
    if (!wanted) return std::nullopt;
    if (token) return token;
    return fail(Outcome::kCorrupt,
                "'" + std::string(key) + "' is set, but '" + std::string(id_key) + "' gives no such token");
  }

  Status read_flags() {
    Vocabulary& v = vocabulary_;
    const bool word_piece = v.kind == VocabularyKind::kWordPiece;
    const bool by_score = v.kind == VocabularyKind::kPairsByScore;
    const bool as_pre_says = v.pre_tokenizer != nullptr && v.pre_tokenizer->adds_begin;
    KVASIR_ASSIGN(v.adds_begin, added("tokenizer.ggml.add_bos_token", word_piece || by_score || as_pre_says,
                                      v.begin, kBeginKey));
    // Early files of this kind say they add none, though the models want it.
    if (v.pre_tokenizer != nullptr && v.pre_tokenizer->spells_like_spm) v.adds_begin = v.begin;
    if (word_piece) {
      KVASIR_ASSIGN(v.adds_end, added("tokenizer.ggml.add_sep_token", true, v.end, kSeparatorKey));
    } else {
      KVASIR_ASSIGN(v.adds_end, added("tokenizer.ggml.add_eos_token", v.kind == VocabularyKind::kUnigram,
                                      v.end, kEndKey));
    }
    KVASIR_ASSIGN(v.adds_space_prefix, flag("tokenizer.ggml.add_space_prefix", by_score));
    KVASIR_ASSIGN(v.merges_spaces, flag("tokenizer.ggml.remove_extra_whitespaces", false));
    KVASIR_ASSIGN(v.lowercases, flag("tokenizer.ggml.normalizer.lowercase", true));
    KVASIR_ASSIGN(v.strips_accents, flag("tokenizer.ggml.normalizer.strip_accents", v.lowercases));
    return {};
  }

  const gguf::File& file_;
  Vocabulary vocabulary_;
};

std::optional<std::uint8_t> hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

}  // namespace

std::optional<Token> Vocabulary::find(std::string_view spelling) const noexcept {
  const std::optional<std::uint32_t> number = spellings.find(spelling);
  if (!number) return std::nullopt;
  return static_cast<Token>(*number);
}

std::optional<Token> Vocabulary::find_in_text(std::string_view spelling) const noexcept {
  const std::optional<Token> id = find(spelling);
  return id && traits_of(*id).in_text() ? id : std::nullopt;
}

std::optional<Token> Vocabulary::find_byte(std::uint8_t byte) const noexcept {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const char spelling[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
  return find({spelling, sizeof spelling});
}

std::optional<std::uint8_t> byte_of_spelling(std::string_view spelling) noexcept {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling.back() != '>') return std::nullopt;
  const std::optional<std::uint8_t> high = hex_digit(spelling[3]);
  const std::optional<std::uint8_t> low = hex_digit(spelling[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<std::uint8_t>(*high << 4 | *low);
}

Status check_bytes(const gguf::Value& strings, std::string_view key, std::uint64_t limit) {
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < strings.size(); ++i) bytes += strings.string_at(i).value_or("").size();
  if (bytes <= limit) return {};
  return fail(Outcome::kUnsupported,
              "the texts of '" + std::string(key) + "' have " + std::to_string(bytes) + " bytes; at most " +
                  std::to_string(limit) + " are taken",
              {.wanted = bytes, .available = {}, .limit = limit, .setting = {}});
}

Result<Vocabulary> read_vocabulary(const gguf::File& file) {
  return Reader(file).run();
}

}  // namespace kvasir::text
