// Case K54: lines of a million units, on a thread with a small stack. That the time is linear is counted in
// instructions by tools/tokenize_cost.py, and in look-ups by pairs_by_rank_test.cc.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/paths.h"
#include "text/pre_tokenizers.h"
#include "text/splitter.h"
#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;
constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::size_t kUnits = 1'000'000;

// Runs `work` on a thread with a stack of 256 KiB.
void on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

std::string repeated(const std::string& unit, std::size_t count) {
  std::string text;
  text.reserve(unit.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

const std::vector<std::string>& units() {
  static const std::vector<std::string> all = {"A", " ", "\n", "中", "us"};
  return all;
}

// A run of one unit, whose tokens stand for 1, 2, 4, ... units, falls into as many of the largest as fit, and
// the rest largest first: merging goes left to right, level by level.
Ids powers(std::size_t count, const std::vector<Token>& tokens) {
  Ids ids(count >> (tokens.size() - 1), tokens.back());
  for (std::size_t level = tokens.size() - 1; level-- > 0;) {
    if ((count >> level & 1) != 0) ids.push_back(tokens[level]);
  }
  return ids;
}

TEST(LongLines, K54ByteLevelPairsGiveTheIdsThatMergingByHandGives) {
  VocabularyFile file = byte_level("llama-bpe");
  file.set_flag("add_bos_token", false);
  std::vector<std::vector<Token>> tokens;
  for (const std::string& unit : units()) {
    std::string whole = in_characters(unit.substr(0, 1));
    for (std::size_t at = 1; at < unit.size(); ++at) {
      file.merge(whole, in_characters(unit.substr(at, 1)));
      whole += in_characters(unit.substr(at, 1));
    }
    tokens.push_back({file.id(whole)});
    for (int level = 0; level < 4; ++level) {
      file.merge(whole, whole);
      whole += whole;
      tokens.back().push_back(file.id(whole));
    }
  }
  const auto tokenizer = file.must_load();
  on_small_stack([&] {
    for (std::size_t i = 0; i < units().size(); ++i) {
      // An odd number, so that every size of token occurs.
      const std::string line = repeated(units()[i], kUnits + 15);
      EXPECT_TRUE(ids_of(*tokenizer, line) == powers(kUnits + 15, tokens[i])) << units()[i];
    }
  });
}

TEST(LongLines, K54PairsByScoreGiveTheIdsThatMergingByHandGives) {
  VocabularyFile file = sentence_piece().set_flag("add_space_prefix", false);
  std::vector<std::vector<Token>> tokens;
  file.token("u", -99).token("s", -99);
  for (const std::string& unit : units()) {
    std::string whole = unit == " " ? "▁" : unit;
    if (unit == "\n") {
      tokens.push_back({3 + '\n'});  // has no token, so it is its byte
      continue;
    }
    tokens.emplace_back();
    for (int level = 0; level < 5; ++level) {
      tokens.back().push_back(static_cast<Token>(file.tokens().size()));
      file.token(whole, static_cast<float>(-level));
      whole += whole;
    }
  }
  const auto tokenizer = file.must_load();
  on_small_stack([&] {
    for (std::size_t i = 0; i < units().size(); ++i) {
      const std::string line = repeated(units()[i], kUnits + 15);
      EXPECT_TRUE(ids_of(*tokenizer, line) == powers(kUnits + 15, tokens[i])) << units()[i];
    }
  });
}

TEST(LongLines, K54OtherKindsTakeThemToo) {
  VocabularyFile unigram("t5");
  unigram.token("<pad>", 0, Type::kControl)
      .token("</s>", 0, Type::kControl)
      .token("<unk>", 0, Type::kUnknown);
  VocabularyFile word_piece("bert");
  word_piece.token("[UNK]", 0, Type::kUnknown)
      .token("[CLS]", 0, Type::kControl)
      .token("[SEP]", 0, Type::kControl);
  VocabularyFile longest("rwkv");
  longest.token("\\n").token(" ").token("-");
  for (const std::string unit : {"A", "中", "us"}) {
    unigram.token(unit, -1);
    word_piece.token(unit == "A" ? "a" : unit);
    longest.token(unit);
  }
  unigram.token("▁", -1);
  word_piece.token("▁");
  word_piece.token("▁中");
  const auto by_sum = unigram.must_load();
  const auto by_word = word_piece.must_load();
  const auto by_length = longest.must_load();
  on_small_stack([&] {
    EXPECT_TRUE(ids_of(*by_sum, repeated("A", kUnits)) == Ids(kUnits, 3));
    EXPECT_TRUE(ids_of(*by_sum, repeated(" ", kUnits)) == Ids(kUnits, 6));
    EXPECT_TRUE(ids_of(*by_sum, repeated("中", kUnits)) == Ids(kUnits, 4));
    EXPECT_TRUE(ids_of(*by_sum, repeated("us", kUnits)) == Ids(kUnits, 5));
    EXPECT_TRUE(ids_of(*by_sum, repeated("\n", kUnits)) == Ids(1, 2));
    EXPECT_EQ(ids_of(*by_word, repeated("A", kUnits)).size(), kUnits + 1);
    EXPECT_TRUE(ids_of(*by_word, repeated("中", kUnits)) == Ids(kUnits, 7));
    EXPECT_TRUE(ids_of(*by_word, repeated(" \n", kUnits)).empty());
    for (const std::string& unit : units()) {
      EXPECT_TRUE(ids_of(*by_length, repeated(unit, kUnits)) ==
                  Ids(kUnits, by_length->find(unit == "\n" ? "\\n" : unit).value_or(-1)));
    }
  });
}

// Runs in which patterns could run back over what they took, each ended by something that ends the run.
TEST(LongLines, K54EveryPreTokenizerSplitsThemWithoutGivingUp) {
  const std::vector<std::string> runs = {"A",     "a",      " ",    "\n", "\r\n",   "中",      "us", "1",
                                         "\t \r", "\u00A0", "!",    "'s", "\u0301", "A\u0301", "a ", "中A",
                                         "Aa",    " \n",    "\x01", "。", "٣",      "'"};
  constexpr std::size_t kRun = 10'000;
  for (const PreTokenizer& pre : pre_tokenizers()) {
    const auto splitter = Splitter::compile(pre);
    ASSERT_TRUE(splitter) << splitter.error().message();
    on_small_stack([&] {
      for (const std::string& run : runs) {
        for (const std::string end : {"", "x", "1", "!"}) {
          const std::string line = repeated(run, kRun) + end;
          const auto ends = splitter->split(line);
          ASSERT_TRUE(ends) << pre.names[0] << " on '" << run << "': " << ends.error().message();
          EXPECT_EQ(ends->back(), line.size());
        }
      }
    });
  }
}

TEST(LongLines, K54PublicVocabulariesReadBackWhatTheyTook) {
  KVASIR_NEEDS_REFERENCE(folder, "vocabs");
  for (const std::string name : {"llama-spm", "llama-bpe", "gpt-2"}) {
    const auto file = gguf::File::open(base::system_files(), fmt::format("{}/{}.gguf", folder, name));
    ASSERT_TRUE(file) << file.error().message();
    const auto tokenizer = Tokenizer::load(*file);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    on_small_stack([&] {
      for (const std::string& unit : units()) {
        const std::string line = repeated(unit, kUnits);
        const Ids ids = ids_of(**tokenizer, line);
        EXPECT_TRUE(text_of(**tokenizer, ids) == line) << name << ": " << unit;
        // Within a run the ids repeat: what a thousandth of the line gives stands at its start.
        const Ids beginning = ids_of(**tokenizer, line.substr(0, line.size() / 1000));
        EXPECT_TRUE(std::equal(beginning.begin(),
                               beginning.begin() + static_cast<std::ptrdiff_t>(beginning.size() / 2),
                               ids.begin()))
            << name << ": " << unit;
      }
    });
  }
}

}  // namespace
}  // namespace kvasir::text::test
