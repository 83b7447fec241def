// Byte-pair vocabularies: words from the pre-tokenizer, whose bytes (or, spelled as SentencePiece does,
// characters) merge in the order of the file's list of merges. Source: the GPT-2 tokenizer; as llama.cpp
// reads such files.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/model.h"
#include "text/pair_merging.h"
#include "text/sentence_piece.h"
#include "text/splitter.h"

namespace kvasir::text {
namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// What two symbols merge to, by both their numbers. Open addressing, at most two thirds full.
class MergeTable {
 public:
  void reserve(std::size_t merges) {
    slots_.resize(std::bit_ceil(std::max<std::size_t>(16, merges + merges / 2)));
  }

  // The first of several merges of one pair counts. No more than were reserved.
  void add(std::uint32_t left, std::uint32_t right, const Merge& merge) noexcept {
    Slot& slot = slots_[slot_of(left, right)];
    if (slot.pair == kFree) slot = {pair_of(left, right), merge};
  }

  // Has the place of a pair that will be added come from memory.
  void fetch(std::uint32_t left, std::uint32_t right) const noexcept {
    __builtin_prefetch(&slots_[first_slot(pair_of(left, right))], 1);
  }

  [[nodiscard]] std::optional<Merge> find(std::uint32_t left, std::uint32_t right) const noexcept {
    const Slot& slot = slots_[slot_of(left, right)];
    if (slot.pair == kFree) return std::nullopt;
    return slot.merge;
  }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;  // no symbol is numbered UINT32_MAX
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge{};
  };

  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) noexcept {
    return std::uint64_t{left} << 32 | right;
  }
  [[nodiscard]] std::size_t first_slot(std::uint64_t pair) const noexcept {
    std::uint64_t mixed = pair * 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    mixed ^= mixed >> 32;
    return mixed & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t slot_of(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t pair = pair_of(left, right);
    std::size_t at = first_slot(pair);
    while (slots_[at].pair != kFree && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
};

class PairsByRank final : public TextModel {
 public:
  PairsByRank(const Vocabulary& vocabulary, Splitter splitter)
      : vocabulary_(vocabulary),
        splitter_(std::move(splitter)),
        spells_like_spm_(vocabulary.pre_tokenizer->spells_like_spm),
        takes_whole_words_(vocabulary.pre_tokenizer->takes_whole_words) {
    for (std::size_t i = 0; i < 256; ++i) name_byte(static_cast<std::uint8_t>(i));
  }

  Status read_merges(const gguf::File& file) {
    const gguf::Value* merges = file.find(kMergesKey);
    if (merges == nullptr || !merges->is_array() || merges->element_type() != gguf::ValueType::kString) {
      return fail(Outcome::kCorrupt, "a byte-pair vocabulary needs '" + std::string(kMergesKey) +
                                         "', an array of strings, which the file does not have");
    }
    if (merges->size() > kMaxMerges) {
      return fail(Outcome::kUnsupported,
                  "the vocabulary has " + std::to_string(merges->size()) + " merges; at most " +
                      std::to_string(kMaxMerges) + " are taken",
                  {.wanted = merges->size(), .available = {}, .limit = kMaxMerges, .setting = {}});
    }
    KVASIR_TRY(check_bytes(*merges, kMergesKey, kMaxMergeBytes));
    const auto count = static_cast<std::uint32_t>(merges->size());
    merges_.reserve(count);
    for (std::uint32_t rank = 0; rank < count; rank += kMergesAtOnce)
      KVASIR_TRY(add_merges(*merges, rank, std::min(kMergesAtOnce, count - rank)));
    return {};
  }

  [[nodiscard]] Status tokenize(std::string_view text, TokenizedText& out) const override {
    const std::string written = spells_like_spm_ ? write_spaces(text, false) : std::string();
    if (spells_like_spm_) text = written;
    KVASIR_ASSIGN(const std::vector<std::uint32_t> ends, splitter_.split(text));
    PairMerger merger;
    std::string spelled;
    std::uint32_t start = 0;
    for (const std::uint32_t end : ends) {
      const std::string_view word = text.substr(start, end - start);
      if (const std::optional<Token> whole = whole_word(word, spelled)) {
        out.ids.push_back(*whole);
      } else {
        merge_word(word, merger, out);
      }
      start = end;
    }
    return {};
  }

 private:
  void name_byte(std::uint8_t byte) {
    const std::string_view character = character_of_byte(byte);
    std::optional<Token> token =
        spells_like_spm_ ? vocabulary_.find_byte(byte) : vocabulary_.find_in_text(character);
    // An added token of that spelling means the character, not the byte.
    const bool means_itself = character.size() == 1 && static_cast<std::uint8_t>(character[0]) == byte;
    if (token && vocabulary_.traits_of(*token).user_defined && !means_itself) token.reset();
    byte_tokens_[byte] = token;
    byte_symbols_[byte] = token ? static_cast<std::uint32_t>(*token) : symbol_beside(character);
  }

  // The number of a text that is no token, but may become part of one.
  std::uint32_t symbol_beside(std::string_view text) { return vocabulary_.size() + beside_.add(text).number; }

  // Nothing where ordinary text must not become that token.
  std::optional<std::uint32_t> symbol_of(std::string_view text, std::optional<std::uint32_t> token) {
    if (!token) return symbol_beside(text);
    if (!vocabulary_.traits_of(static_cast<Token>(*token)).in_text()) return std::nullopt;
    return token;
  }

  // A merge of the file while it is read.
  struct ReadMerge {
    std::string_view left, right;
    std::uint64_t sought_left = 0, sought_right = 0;
    std::optional<std::uint32_t> left_symbol, right_symbol, merged;
  };
  static constexpr std::uint32_t kMergesAtOnce = 16;

  // Step by step for all of them, so that what one of them waits for comes from memory beside what the others
  // do.
  Status add_merges(const gguf::Value& merges, std::uint32_t first, std::uint32_t count) {
    std::array<ReadMerge, kMergesAtOnce> read;
    for (std::uint32_t i = 0; i < count; ++i) {
      KVASIR_ASSIGN(read[i], split_merge(merges.string_at(first + i).value_or(""), first + i));
    }
    for (ReadMerge& merge : std::span(read).first(count)) {
      find_symbols(merge);
      if (merge.left_symbol && merge.right_symbol) merges_.fetch(*merge.left_symbol, *merge.right_symbol);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const ReadMerge& merge = read[i];
      if (merge.left_symbol && merge.right_symbol && merge.merged)
        merges_.add(*merge.left_symbol, *merge.right_symbol, {first + i, *merge.merged});
    }
    return {};
  }

  // "left right": the first space is not looked for in the first byte, which may be one.
  Result<ReadMerge> split_merge(std::string_view merge, std::uint32_t rank) const {
    const std::size_t space = merge.find(' ', 1);
    if (space == merge.npos || space + 1 == merge.size()) {
      return fail(Outcome::kCorrupt, "merge " + std::to_string(rank) + " of the vocabulary, '" +
                                         base::printable(merge, 60) +
                                         "', is not two texts with a space between");
    }
    ReadMerge read{.left = merge.substr(0, space), .right = merge.substr(space + 1)};
    read.sought_left = vocabulary_.spellings.seek(read.left);
    read.sought_right = vocabulary_.spellings.seek(read.right);
    return read;
  }

  void find_symbols(ReadMerge& merge) {
    const Spellings& spellings = vocabulary_.spellings;
    merge.left_symbol = symbol_of(merge.left, spellings.find(merge.left, merge.sought_left));
    merge.right_symbol = symbol_of(merge.right, spellings.find(merge.right, merge.sought_right));
    joined_.assign(merge.left).append(merge.right);
    // Most files number what merges make in the order of the merges.
    std::optional<std::uint32_t> made = next_made_;
    if (next_made_ >= spellings.size() || spellings[next_made_] != joined_) made = spellings.find(joined_);
    if (made) next_made_ = *made + 1;
    merge.merged = symbol_of(joined_, made);
  }

  std::optional<Token> whole_word(std::string_view word, std::string& spelled) const {
    if (spells_like_spm_) {
      const bool only_line_ends = word.find_first_not_of('\n') == word.npos;
      return only_line_ends || takes_whole_words_ ? vocabulary_.find_in_text(word) : std::nullopt;
    }
    if (!takes_whole_words_ || word.size() > vocabulary_.longest) return std::nullopt;
    spelled.clear();
    for (const char byte : word) spelled += character_of_byte(static_cast<std::uint8_t>(byte));
    return vocabulary_.find_in_text(spelled);
  }

  void merge_word(std::string_view word, PairMerger& merger, TokenizedText& out) const {
    merger.clear();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = spells_like_spm_ ? character_length(word.substr(at)) : 1;
      merger.append(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                    first_symbol(word.substr(at, length)));
      at += length;
    }
    merger.merge_all(
        [this](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
    merger.for_each([&](const Symbol& symbol) {
      if (symbol.id < vocabulary_.size()) {
        out.ids.push_back(static_cast<Token>(symbol.id));
      } else {
        spell_in_bytes(word.substr(symbol.start, symbol.length), out);
      }
    });
  }

  [[nodiscard]] std::uint32_t first_symbol(std::string_view character) const noexcept {
    if (!spells_like_spm_) return byte_symbols_[static_cast<std::uint8_t>(character[0])];
    if (const std::optional<Token> token = vocabulary_.find_in_text(character)) {
      return static_cast<std::uint32_t>(*token);
    }
    const std::optional<std::uint32_t> beside = beside_.find(character);
    return beside ? vocabulary_.size() + *beside : Symbol::kNobody - 1;
  }

  // Byte-pair vocabularies have no use for their unknown token, if they name one: text is left out as in the
  // programs that made them.
  void spell_in_bytes(std::string_view bytes, TokenizedText& out) const {
    for (const char byte : bytes) {
      if (const std::optional<Token> token = byte_tokens_[static_cast<std::uint8_t>(byte)]) {
        out.ids.push_back(*token);
      } else {
        ++out.left_out;
      }
    }
  }

  const Vocabulary& vocabulary_;
  Splitter splitter_;
  bool spells_like_spm_;
  bool takes_whole_words_;
  Spellings beside_;
  MergeTable merges_;
  std::array<std::optional<Token>, 256> byte_tokens_;
  std::array<std::uint32_t, 256> byte_symbols_{};
  // While reading merges: what one makes, and the token behind the one that the last has made.
  std::string joined_;
  std::uint32_t next_made_ = 0;
};

}  // namespace

Result<std::unique_ptr<const TextModel>> make_pairs_by_rank(const Vocabulary& vocabulary,
                                                            const gguf::File& file) {
  KVASIR_ASSIGN(Splitter splitter, Splitter::compile(*vocabulary.pre_tokenizer));
  auto model = std::make_unique<PairsByRank>(vocabulary, std::move(splitter));
  KVASIR_TRY(model->read_merges(file));
  return model;
}

}  // namespace kvasir::text
