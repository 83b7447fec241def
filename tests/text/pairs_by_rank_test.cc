// Byte-pair vocabularies: ids derived by hand, and a naive twin.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/pair_merging.h"
#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;

TEST(PairsByRank, MergesInTheOrderOfTheListWhateverStandsFirst) {
  VocabularyFile file = byte_level("gpt-2");
  file.merge("b", "c").merge("a", "b").merge("a", "bc");  // 256, 257, 258
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "abc"), (Ids{258}));
  EXPECT_EQ(ids_of(*tokenizer, "abab"), (Ids{257, 257}));
  EXPECT_EQ(ids_of(*tokenizer, "abbc"), (Ids{257, 256}));
}

TEST(PairsByRank, WritesEveryByteAsATokenAndReadsItBack) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  std::string bytes;
  Ids expected;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
    expected.push_back(byte);
  }
  EXPECT_EQ(ids_of(*tokenizer, bytes), expected);
  EXPECT_EQ(text_of(*tokenizer, expected), bytes);
}

TEST(PairsByRank, NeverMergesOverTheBorderOfAWord) {
  VocabularyFile file = byte_level("gpt-2");
  file.merge("a", "1").merge("a", "Ġ").merge("Ġ", "a");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a1"), (Ids{'a', '1'}));
  EXPECT_EQ(ids_of(*tokenizer, "a a"), (Ids{'a', file.id("Ġa")}));
}

TEST(PairsByRank, TakesAWholeWordThatIsATokenWhereThePreTokenizerSaysSo) {
  for (const auto& [pre, whole] : {std::pair("llama-bpe", true), std::pair("dbrx", false)}) {
    VocabularyFile file = byte_level(pre);
    file.merge("h", "e").token("hello").token("Ġhello").set_flag("add_bos_token", false);
    const auto tokenizer = file.must_load();
    const Ids spelled = {file.id("he"), 'l', 'l', 'o'};
    EXPECT_EQ(ids_of(*tokenizer, "hello"), whole ? Ids{file.id("hello")} : spelled) << pre;
    EXPECT_EQ(ids_of(*tokenizer, "hellos"), (Ids{file.id("he"), 'l', 'l', 'o', 's'})) << pre;
  }
}

TEST(PairsByRank, APartOfAMergeNeedNotBeAToken) {
  VocabularyFile file = byte_level("gpt-2");
  file.merge("a", "b").merge("ab", "c");
  const gguf::Value merges = gguf::Value::strings(std::vector<std::string>{"x y", "xy z", "x z"});
  file.token("xyz").set("tokenizer.ggml.merges", merges);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "xyz"), (Ids{file.id("xyz")}));
  EXPECT_EQ(ids_of(*tokenizer, "xy"), (Ids{'x', 'y'}));  // merged to what is no token, so spelled in bytes
  EXPECT_EQ(ids_of(*tokenizer, "xzab"), (Ids{'x', 'z', 'a', 'b'}));
}

TEST(PairsByRank, LeavesOutBytesWithoutATokenAndCountsThem) {
  VocabularyFile file("gpt2", "gpt-2");
  file.token("a").token("b").merge("a", "b");
  const auto tokenizer = file.must_load();
  std::uint64_t left_out = 0;
  const auto ids = tokenizer->tokenize("ab é a", {}, &left_out);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, (Ids{2, 0}));
  EXPECT_EQ(left_out, 4U);  // two spaces, two bytes of é
}

TEST(PairsByRank, AnAddedTokenSpelledLikeAByteIsNotThatByte) {
  VocabularyFile file("gpt2", "gpt-2");
  file.token("a").token("ø", 0, Type::kUserDefined);  // the character that stands for byte 0xF8
  const auto tokenizer = file.must_load();
  std::uint64_t left_out = 0;
  EXPECT_EQ(*tokenizer->tokenize("a\xF8", {}, &left_out), (Ids{0}));
  EXPECT_EQ(left_out, 1U);
  EXPECT_EQ(ids_of(*tokenizer, "ø"), (Ids{1}));
  EXPECT_EQ(text_of(*tokenizer, {1}), "ø");
}

TEST(PairsByRank, OrdinaryTextNeverBecomesAControlToken) {
  VocabularyFile file = byte_level("llama-bpe");
  file.merge("S", "T").merge("E", "ND").merge("N", "D").set_flag("add_bos_token", false);
  file.token("STOP", 0, Type::kControl).merge("O", "P").merge("ST", "OP");
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "STOP"), (Ids{file.id("ST"), file.id("OP")}));
  EXPECT_EQ(ids_of(*tokenizer, "STOP", {.parse_special = true}), (Ids{file.id("STOP")}));
}

TEST(PairsByRank, Gemma4WritesSpacesAndBytesAsSentencePieceDoes) {
  VocabularyFile file("gemma4");
  file.token("<pad>", 0, Type::kControl).token("<bos>", 0, Type::kControl).set_id("bos_token_id", 1);
  for (const std::string character : {"a", "b", "▁", "\n"}) file.token(character);
  file.token("<0xC3>", 0, Type::kByte).token("<0xA9>", 0, Type::kByte).token("\n\n\n");
  file.merge("▁", "a").merge("▁a", "b").set_flag("add_bos_token", false);
  const auto tokenizer = file.must_load();
  const Token word = file.id("▁ab");
  EXPECT_EQ(ids_of(*tokenizer, "b ab", {.add_begin_end = true}), (Ids{1, file.id("b"), word}));
  EXPECT_EQ(ids_of(*tokenizer, " abé"), (Ids{word, file.id("<0xC3>"), file.id("<0xA9>")}));
  EXPECT_EQ(ids_of(*tokenizer, "a\n\n\nb"), (Ids{file.id("a"), file.id("\n\n\n"), file.id("b")}));
  EXPECT_EQ(text_of(*tokenizer, {file.id("b"), word, file.id("<0xC3>"), file.id("<0xA9>")}), "b abé");
}

// The naive twin: of all neighbours in the list, merge those of the lowest rank and leftmost, until none is
// left.
Ids naive(const VocabularyFile& file, std::string_view word) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t i = 0; i < file.merges().size(); ++i) ranks.try_emplace(file.merges()[i], i);
  std::vector<std::string> parts;
  for (const char byte : word) parts.push_back(in_characters(std::string(1, byte)));
  for (;;) {
    std::optional<std::size_t> best;
    std::size_t best_rank = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + " " + parts[i + 1]);
      if (found != ranks.end() && (!best || found->second < best_rank)) best = i, best_rank = found->second;
    }
    if (!best) break;
    parts[*best] += parts[*best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(file.id(part));
  return ids;
}

TEST(PairsByRank, MergesAsANaiveTwinDoesOverRandomVocabulariesAndWords) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    VocabularyFile file = byte_level("gpt-2");
    std::vector<std::string> parts = {"a", "b", "c", "d", "Ã", "©"};
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 40; ++i) {
      const std::string left = parts[random.below(parts.size())];
      const std::string right = parts[random.below(parts.size())];
      merges.emplace_back(left, right);
      parts.push_back(left + right);
    }
    // In the order of the merges, as most files number what they make, or the other way round.
    if (round % 2 == 1) {
      std::set<std::string> made;
      for (const auto& [left, right] : std::views::reverse(merges)) {
        if (made.insert(left + right).second) file.token(left + right);
      }
    }
    for (const auto& [left, right] : merges) file.merge(left, right);
    const auto tokenizer = file.must_load();
    for (int i = 0; i < 40; ++i) {
      const std::string word = random.text({"a", "b", "c", "d", "é"}, random.below(40));
      EXPECT_EQ(ids_of(*tokenizer, word), naive(file, word)) << word;
    }
  }
}

// What is linear whatever the machine: each merge makes at most two new pairs to look up.
TEST(PairMerging, LooksUpAtMostThreePairsForEachSymbol) {
  constexpr std::uint32_t kSymbols = 10'000;
  for (const std::uint32_t keep : {1U, 2U, 3U, 7U, 100U}) {
    PairMerger merger;
    for (std::uint32_t i = 0; i < kSymbols; ++i) merger.append(i, 1, 0);
    std::uint64_t lookups = 0;
    merger.merge_all([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      ++lookups;
      const std::uint32_t length = left.length + right.length;
      if (length > keep) return std::nullopt;
      return Merge{length * 2654435761U % 97, length};
    });
    EXPECT_LE(lookups, 3U * kSymbols);
    std::uint32_t covered = 0;
    merger.for_each([&](const Symbol& symbol) {
      EXPECT_EQ(symbol.start, covered);
      covered += symbol.length;
    });
    EXPECT_EQ(covered, kSymbols);
  }
}

}  // namespace
}  // namespace kvasir::text::test
