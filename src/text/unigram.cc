// The unigram model: of all ways to spell a text in tokens, the one whose scores sum highest.
// Source: Kudo (2018), "Subword Regularization", and SentencePiece's unigram_model and normalizer.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/try.h"
#include "base/utf8.h"
#include "text/byte_trie.h"
#include "text/charsmap.h"
#include "text/model.h"
#include "text/sentence_piece.h"

namespace kvasir::text {
namespace {

constexpr std::string_view kCharsmapKey = "tokenizer.ggml.precompiled_charsmap";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr double kUnknownPenalty = 10.0;  // SentencePiece: below the worst token by this

class Unigram final : public TextModel {
 public:
  explicit Unigram(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    double worst = std::numeric_limits<double>::max();
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      const TokenTraits& traits = vocabulary.traits[id];
      const std::string_view text = vocabulary.spelling(static_cast<Token>(id));
      if (traits.normal) worst = std::min<double>(worst, vocabulary.scores[id]);
      if (traits.in_text() && !text.empty()) tokens_.add(text, id);
    }
    if (worst < std::numeric_limits<double>::max()) unknown_score_ = worst - kUnknownPenalty;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const std::optional<Token> token = vocabulary.find_byte(static_cast<std::uint8_t>(i));
      spells_bytes_ = spells_bytes_ && token && vocabulary.traits_of(*token).byte;
      bytes_[i] = token.value_or(0);
    }
  }

  Status read_charsmap(const gguf::File& file) {
    const gguf::Value* value = file.find(kCharsmapKey);
    if (value == nullptr) return {};
    std::span<const std::uint8_t> blob;
    if (const auto bytes = value->elements<std::uint8_t>()) {
      blob = *bytes;
    } else if (const auto signed_bytes = value->elements<std::int8_t>()) {
      blob = {reinterpret_cast<const std::uint8_t*>(signed_bytes->data()), signed_bytes->size()};
    } else {
      return fail(Outcome::kCorrupt, "'" + std::string(kCharsmapKey) + "' is not an array of bytes");
    }
    if (blob.empty()) return {};
    KVASIR_ASSIGN(charsmap_, Charsmap::parse(blob));
    return {};
  }

  [[nodiscard]] Status tokenize(std::string_view text, TokenizedText& out) const override {
    const std::string normal = normalise(text);
    if (normal.empty()) return {};
    if (normal.size() > UINT32_MAX - 1) {
      return fail(Outcome::kInvalidArgument, "the text has " + std::to_string(normal.size()) +
                                                 " bytes when normalised; 4 GiB is the most");
    }
    write_path(normal, best_path(normal), out);
    return {};
  }

 private:
  // The best way to reach a border of the text.
  struct Step {
    double score = -std::numeric_limits<double>::infinity();
    std::uint32_t from = 0;
    std::uint32_t token = ByteTrie::kNone;  // kNone: one character that no token spells
  };

  // The text as the model was trained on it: sequences mapped, what is not UTF-8 as U+FFFD, spaces written.
  std::string normalise(std::string_view text) const {
    std::string normal;
    normal.reserve(text.size() + text.size() / 2);
    SpaceWriter writer{vocabulary_, normal};
    while (!text.empty()) {
      const Charsmap::Replaced replaced = charsmap_.match(text);
      if (replaced.consumed > 0) {
        writer.write(replaced.by);
        text.remove_prefix(replaced.consumed);
        continue;
      }
      const std::size_t length = base::utf8_sequence(text);
      writer.write(length == 0 ? kReplacement : text.substr(0, length));
      text.remove_prefix(length == 0 ? 1 : length);
    }
    return normal;
  }

  // Writes spaces as the vocabulary wants them: one before the text, and runs as they are or as one between
  // words.
  struct SpaceWriter {
    const Vocabulary& vocabulary;
    std::string& normal;
    bool in_word = false;
    bool any_word = false;

    void write(std::string_view text) {
      for (const char byte : text) {
        if (byte == ' ') {
          if (!vocabulary.merges_spaces) normal += kWrittenSpace;
          in_word = false;
          continue;
        }
        if (!in_word) begin_word();
        normal += byte;
      }
    }

    void begin_word() {
      const bool prefix = !any_word && vocabulary.adds_space_prefix;
      const bool between = any_word && vocabulary.merges_spaces;
      if (prefix || between) normal += kWrittenSpace;
      in_word = any_word = true;
    }
  };

  std::vector<Step> best_path(std::string_view text) const {
    std::vector<Step> best(text.size() + 1);
    best[0].score = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = character_length(text.substr(at));
      bool spells_character = false;
      std::uint32_t node = ByteTrie::kRoot;
      for (std::size_t end = at; end < text.size();) {
        node = tokens_.child(node, text[end++]);
        if (node == ByteTrie::kNone) break;
        const std::uint32_t token = tokens_.value(node);
        if (token == ByteTrie::kNone) continue;
        spells_character |= end - at == length;
        improve(best[end], best[at].score + score_of(token), at, token);
      }
      if (!spells_character) improve(best[at + length], best[at].score + unknown_score_, at, ByteTrie::kNone);
      at += length;
    }
    return best;
  }

  static void improve(Step& step, double score, std::size_t from, std::uint32_t token) {
    if (score > step.score) step = {score, static_cast<std::uint32_t>(from), token};
  }

  // Tokens that users added are always preferred.
  double score_of(std::uint32_t token) const {
    return vocabulary_.traits[token].user_defined ? 0.0 : static_cast<double>(vocabulary_.scores[token]);
  }

  // Every border between characters can be reached, for each character has a token or is unknown.
  void write_path(std::string_view text, const std::vector<Step>& best, TokenizedText& out) const {
    std::vector<std::uint32_t> borders;
    for (auto at = static_cast<std::uint32_t>(text.size()); at != 0; at = best[at].from)
      borders.push_back(at);
    std::uint64_t unknown = 0;  // bytes of a run of unknown characters, which is one token
    const auto flush = [&] {
      if (unknown > 0) out.add_unknown(vocabulary_, unknown);
      unknown = 0;
    };
    for (const std::uint32_t border : borders | std::views::reverse) {
      const Step& step = best[border];
      if (step.token != ByteTrie::kNone) {
        flush();
        out.ids.push_back(static_cast<Token>(step.token));
      } else if (spells_bytes_) {
        for (const char byte : text.substr(step.from, border - step.from)) {
          out.ids.push_back(bytes_[static_cast<std::uint8_t>(byte)]);
        }
      } else {
        unknown += border - step.from;
      }
    }
    flush();
  }

  const Vocabulary& vocabulary_;
  Charsmap charsmap_;
  ByteTrie tokens_;
  double unknown_score_ = -kUnknownPenalty;
  std::array<Token, 256> bytes_{};
  bool spells_bytes_ = true;  // all 256 have a token: unknown characters are spelled in bytes
};

}  // namespace

Result<std::unique_ptr<const TextModel>> make_unigram(const Vocabulary& vocabulary, const gguf::File& file) {
  auto model = std::make_unique<Unigram>(vocabulary);
  KVASIR_TRY(model->read_charsmap(file));
  return model;
}

}  // namespace kvasir::text
