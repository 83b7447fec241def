// Unigram vocabularies (T5): cases derived by hand, and a brute-force twin. There are no recorded ids for
// this kind.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/charsmap.h"
#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using Ids = std::vector<Token>;

// <pad> 0, </s> 1, <unk> 2, then text from 3 on.
VocabularyFile t5() {
  VocabularyFile file("t5");
  file.token("<pad>", 0, Type::kControl).token("</s>", 0, Type::kControl).token("<unk>", 0, Type::kUnknown);
  file.set_flag("add_space_prefix", true).set_flag("remove_extra_whitespaces", true);
  return file;
}

TEST(Unigram, TakesTheSpellingOfTheHighestSum) {
  VocabularyFile file = t5();
  file.token("▁", -1).token("a", -2).token("b", -2).token("c", -10);  // 3 to 6
  file.token("ab", -3).token("bc", -3.5).token("▁a", -2.5);           // 7 to 9
  const auto tokenizer = file.must_load();
  // ▁ ab c: -14; ▁ a bc: -6.5; ▁a bc: -6. The first pair that fits best is not the best spelling.
  EXPECT_EQ(ids_of(*tokenizer, "abc"), (Ids{9, 8}));
  EXPECT_EQ(ids_of(*tokenizer, "ab"), (Ids{3, 7}));
}

TEST(Unigram, MergesAndTrimsSpacesWhereTheVocabularyAsks) {
  VocabularyFile file = t5();
  file.token("▁", -1).token("a", -1);
  const auto merging = file.must_load();
  EXPECT_EQ(ids_of(*merging, "  a   a "), (Ids{3, 4, 3, 4}));
  EXPECT_EQ(ids_of(*merging, "   "), Ids{});
  const auto keeping = file.set_flag("remove_extra_whitespaces", false).must_load();
  EXPECT_EQ(ids_of(*keeping, " a  a "), (Ids{3, 3, 4, 3, 3, 4, 3}));
  const auto bare = file.set_flag("add_space_prefix", false).must_load();
  EXPECT_EQ(ids_of(*bare, "a a"), (Ids{4, 3, 4}));
}

TEST(Unigram, ARunOfUnknownCharactersIsOneUnknownToken) {
  VocabularyFile file = t5();
  file.token("▁", -1).token("a", -1);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "a日本a\xFF"), (Ids{3, 4, 2, 4, 2}));
}

TEST(Unigram, SpellsUnknownCharactersInBytesWhereThereAreTokensForAll) {
  VocabularyFile file = t5();
  for (unsigned byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    file.token(text, 0, Type::kByte);
  }
  file.token("▁", -1).token("a", -1);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "aé"), (Ids{259, 260, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(text_of(*tokenizer, {259, 260, 3 + 0xC3, 3 + 0xA9}), "aé");
}

TEST(Unigram, EndsATextAndPrefersWhatUsersAdded) {
  VocabularyFile file = t5();
  file.token("▁", -1).token("x", -1).token("xx", -1).token("<u>", -50, Type::kUserDefined);
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "xx", {.add_begin_end = true}), (Ids{3, 5, 1}));
  EXPECT_EQ(ids_of(*tokenizer, "x<u>x"), (Ids{3, 4, 6, 3, 4}));
  EXPECT_TRUE(tokenizer->adds_end());
  EXPECT_FALSE(tokenizer->adds_begin());
}

// The naive twin: the best of all spellings, first of equals in the order the product prefers (longer steps
// lose to earlier ones only by score, so scores here are all different).
struct Best {
  double score = -std::numeric_limits<double>::infinity();
  Ids ids;
};

void spell(const std::vector<std::pair<std::string, Token>>& pieces, const VocabularyFile& file,
           const std::string& rest, double score, const Ids& ids, Best& best) {
  if (rest.empty() && score > best.score) best = {score, ids};
  for (const auto& [piece, id] : pieces) {
    if (!rest.starts_with(piece)) continue;
    Ids longer = ids;
    longer.push_back(id);
    spell(pieces, file, rest.substr(piece.size()), score + file.scores()[static_cast<std::size_t>(id)],
          longer, best);
  }
}

TEST(Unigram, SpellsAsABruteForceTwinDoesOverRandomVocabulariesAndTexts) {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    VocabularyFile file = t5();
    file.set_flag("add_space_prefix", false);
    std::vector<std::pair<std::string, Token>> pieces;
    std::map<std::string, bool> seen;
    for (int i = 0; i < 14; ++i) {
      const std::string piece = i < 3 ? std::vector<std::string>{"a", "b", "é"}[static_cast<std::size_t>(i)]
                                      : random.text({"a", "b", "é"}, 2 + random.below(3));
      if (std::exchange(seen[piece], true)) continue;
      pieces.emplace_back(piece, static_cast<Token>(file.tokens().size()));
      // Distinct binary weights: no two sets of tokens sum alike.
      file.token(piece, -1.0F - static_cast<float>(random.below(1U << 20)) / 65536.0F);
    }
    const auto tokenizer = file.must_load();
    for (int i = 0; i < 20; ++i) {
      const std::string text = random.text({"a", "b", "é"}, 1 + random.below(9));
      Best best;
      spell(pieces, file, text, 0, {}, best);
      EXPECT_EQ(ids_of(*tokenizer, text), best.ids) << text;
    }
  }
}

// A double-array trie made by hand. Units as darts-clone packs them: a node for each byte, whose children lie
// at node ^ offset ^ byte, and a leaf at node ^ offset that holds a value.
class CharsmapBlob {
 public:
  void add(const std::string& from, const std::string& to) {
    std::size_t node = 0;
    for (const char c : from) {
      const auto byte = static_cast<std::uint8_t>(c);
      node = children(node) ^ byte;
      units_[node] |= byte;
    }
    units_[node] |= 0x100;
    units_[children(node)] = 0x80000000U | static_cast<std::uint32_t>(texts_.size());
    texts_ += to;
    texts_ += '\0';
  }

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> blob(4 + 4 * units_.size());
    const auto length = static_cast<std::uint32_t>(4 * units_.size());
    std::memcpy(blob.data(), &length, 4);
    std::memcpy(blob.data() + 4, units_.data(), length);
    blob.insert(blob.end(), texts_.begin(), texts_.end());
    return blob;
  }

 private:
  // Where a node's children are: a block of 256 units that no other node has.
  std::size_t children(std::size_t node) {
    if (units_[node] >> 10 == 0) {
      units_[node] |= static_cast<std::uint32_t>(node ^ units_.size()) << 10;
      units_.resize(units_.size() + 256);
    }
    return node ^ (units_[node] >> 10);
  }

  std::vector<std::uint32_t> units_ = std::vector<std::uint32_t>(256);
  std::string texts_;
};

CharsmapBlob some_map() {
  CharsmapBlob blob;
  blob.add("A", "a");
  blob.add("\xEF\xBC\xA1", "a");  // fullwidth A
  blob.add("AB", "ligature");
  blob.add("\t", " ");
  blob.add("\xC2\xAD", "");  // soft hyphen
  return blob;
}

TEST(Charsmap, ReplacesTheLongestSequenceItKnows) {
  const auto map = Charsmap::parse(some_map().bytes());
  ASSERT_TRUE(map) << map.error().message();
  const auto match = [&](std::string_view text) {
    const Charsmap::Replaced replaced = map->match(text);
    return std::pair(std::string(replaced.by), replaced.consumed);
  };
  EXPECT_EQ(match("AC"), std::pair(std::string("a"), std::size_t{1}));
  EXPECT_EQ(match("ABC"), std::pair(std::string("ligature"), std::size_t{2}));
  EXPECT_EQ(match("\xEF\xBC\xA1"), std::pair(std::string("a"), std::size_t{3}));
  EXPECT_EQ(match("\xEF\xBC"), std::pair(std::string(), std::size_t{0}));
  EXPECT_EQ(match("\xC2\xAD"), std::pair(std::string(), std::size_t{2}));
  EXPECT_EQ(match("b"), std::pair(std::string(), std::size_t{0}));
  EXPECT_EQ(match(""), std::pair(std::string(), std::size_t{0}));
}

TEST(Unigram, NormalisesByTheFilesMapOfCharacters) {
  VocabularyFile file = t5();
  file.token("▁", -1).token("a", -1).token("b", -1);
  const std::vector<std::uint8_t> blob = some_map().bytes();
  file.set("tokenizer.ggml.precompiled_charsmap", gguf::Value::array(std::span(blob)));
  const auto tokenizer = file.must_load();
  EXPECT_EQ(ids_of(*tokenizer, "A\tb\xC2\xADＡ"), (Ids{3, 4, 3, 5, 4}));
}

TEST(Unigram, RefusesAMapOfCharactersThatIsNone) {
  VocabularyFile file = t5();
  file.token("a", -1);
  std::vector<std::uint8_t> good = some_map().bytes();
  const auto refuses = [&](const std::vector<std::uint8_t>& blob) {
    file.set("tokenizer.ggml.precompiled_charsmap", gguf::Value::array(std::span(blob)));
    const auto tokenizer = file.load();
    return !tokenizer && tokenizer.error().code() == Outcome::kCorrupt;
  };
  EXPECT_FALSE(refuses(good));
  EXPECT_TRUE(refuses({1, 2, 3}));
  EXPECT_TRUE(refuses({0xFF, 0xFF, 0xFF, 0xFF, 0, 0}));
  EXPECT_TRUE(refuses({4, 0, 0, 0, 1, 2, 3, 4}));  // no texts
  good.pop_back();
  good.push_back('x');  // the last text does not end
  EXPECT_TRUE(refuses(good));
}

TEST(Charsmap, LooksNowhereElseWhateverItsUnitsSay) {
  Random random(8);
  std::vector<std::uint8_t> blob = some_map().bytes();
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> damaged = blob;
    for (int n = 0; n < 8; ++n)
      damaged[4 + random.below(damaged.size() - 5)] = static_cast<std::uint8_t>(random.below(256));
    const auto map = Charsmap::parse(damaged);
    ASSERT_TRUE(map);
    for (const std::string_view text : {"A", "AB", "\xEF\xBC\xA1", "\xC2\xAD", "\t"}) {
      EXPECT_LE(map->match(text).consumed, text.size());
    }
  }
}

}  // namespace
}  // namespace kvasir::text::test
