#include "text/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <new>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/utf8.h"

namespace kvasir::text {
namespace {

// A match may try this often, and a few times for each byte of the piece: patterns run back once over a word
// at most.
constexpr std::uint32_t kTriesBeside = 1000;
constexpr std::uint32_t kTriesPerByte = 8;
constexpr std::uint32_t kMostDepth = 1000;         // nested tries; patterns need some ten
constexpr std::uint32_t kMostHeapKib = 16 * 1024;  // what PCRE2 may take for them

struct Free {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const noexcept { pcre2_match_context_free(context); }
};
using Code = std::unique_ptr<pcre2_code, Free>;
using MatchData = std::unique_ptr<pcre2_match_data, Free>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free>;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Bytes from the start of `text` that are all UTF-8, or all not.
std::size_t stretch(std::string_view text, bool valid) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t sequence = base::utf8_sequence(text.substr(length));
    if ((sequence != 0) != valid) break;
    length += sequence == 0 ? 1 : sequence;
  }
  return length;
}

// What one call needs beside the patterns, which threads share.
struct Scratch {
  MatchData data{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
};

}  // namespace

struct Splitter::Pattern {
  Code code;

  // Appends the ends of the pieces that `piece`, which begins at `offset` of the text, falls into.
  Status cut(std::string_view piece, std::size_t offset, Scratch& scratch,
             std::vector<std::uint32_t>& ends) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    const std::uint64_t tries = kTriesBeside + std::uint64_t{kTriesPerByte} * piece.size();
    pcre2_set_match_limit(scratch.context.get(),
                          static_cast<std::uint32_t>(std::min<std::uint64_t>(tries, UINT32_MAX)));
    std::size_t at = 0;
    while (at < piece.size()) {
      const int found = pcre2_match(code.get(), subject, piece.size(), at, PCRE2_NO_UTF_CHECK,
                                    scratch.data.get(), scratch.context.get());
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch.data.get());
      if (found < 0 || range[1] <= range[0]) {
        return fail(Outcome::kInternal, "splitting the text into words gave up at byte " +
                                            std::to_string(offset + at) + ": " + pcre2_message(found));
      }
      if (range[0] > at) ends.push_back(static_cast<std::uint32_t>(offset + range[0]));
      ends.push_back(static_cast<std::uint32_t>(offset + range[1]));
      at = range[1];
    }
    if (at < piece.size()) ends.push_back(static_cast<std::uint32_t>(offset + piece.size()));
    return {};
  }
};

Splitter::Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;
Splitter::~Splitter() = default;

Result<Splitter> Splitter::compile(const PreTokenizer& pre_tokenizer) {
  Splitter splitter;
  for (const std::string_view source : pre_tokenizer.patterns) {
    int error = 0;
    PCRE2_SIZE error_offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &error_offset, nullptr));
    if (code == nullptr) {
      return fail(Outcome::kInternal, "the pattern '" + std::string(source) + "' does not compile at byte " +
                                          std::to_string(error_offset) + ": " + pcre2_message(error));
    }
    splitter.patterns_.push_back({std::move(code)});
  }
  return splitter;
}

Result<std::vector<std::uint32_t>> Splitter::split(std::string_view text) const {
  Scratch scratch;
  if (scratch.data == nullptr || scratch.context == nullptr) throw std::bad_alloc();
  pcre2_set_depth_limit(scratch.context.get(), kMostDepth);
  pcre2_set_heap_limit(scratch.context.get(), kMostHeapKib);

  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> pieces;
  std::vector<std::uint32_t> cut;
  bool valid = true;
  for (std::size_t start = 0; start < text.size(); valid = !valid) {
    const std::size_t end = start + stretch(text.substr(start), valid);
    if (end == start) continue;
    pieces.assign(1, static_cast<std::uint32_t>(end));
    for (std::size_t i = 0; valid && i < patterns_.size(); ++i) {
      cut.clear();
      std::size_t piece_start = start;
      for (const std::uint32_t piece_end : pieces) {
        KVASIR_TRY(
            patterns_[i].cut(text.substr(piece_start, piece_end - piece_start), piece_start, scratch, cut));
        piece_start = piece_end;
      }
      pieces.swap(cut);
    }
    words.insert(words.end(), pieces.begin(), pieces.end());
    start = end;
  }
  return words;
}

}  // namespace kvasir::text
