#include "every_kind.h"

#include <cstdio>
#include <string>

#include "text/pre_tokenizers.h"

namespace kvasir::text::test {
namespace {

VocabularyFile& with_names(VocabularyFile& file) {
  file.token("<x>", 0, Type::kControl).token("<u>", 0, Type::kUserDefined);
  file.token("<begin>", 0, Type::kControl).token("<end>", 0, Type::kControl);
  file.set_id("bos_token_id", file.id("<begin>")).set_id("eos_token_id", file.id("<end>"));
  return file.set_flag("add_bos_token", true).set_flag("add_eos_token", true);
}

VocabularyFile pairs_by_rank(std::string_view pre) {
  VocabularyFile file = byte_level(pre);
  file.merge("a", "b").merge("ab", "a").merge("Ġ", "a").merge("Ġ", "Ġ").merge("Ċ", "Ċ").merge("æ", "Ĺ");
  file.merge("æĹ", "¥").merge("Ã", "©").merge("1", "2").merge("'", "s").merge("b", "ab").merge("aba", "bab");
  return with_names(file);
}

VocabularyFile pairs_by_score(bool prefix) {
  VocabularyFile file = sentence_piece();
  file.token("▁", -1).token("a", -2).token("b", -2.5).token("ab", -4).token("▁a", -3).token("ba", -3.5);
  file.token("abab", -1.5)
      .token("日", -2)
      .token("日日", -1)
      .token("▁▁", -1)
      .token("\n\n", 0, Type::kUserDefined);
  return with_names(file).set_flag("add_space_prefix", prefix);
}

VocabularyFile written_like_gemma4() {
  VocabularyFile file("gemma4");
  file.token("<pad>", 0, Type::kControl);
  const VocabularyFile bytes = sentence_piece();
  for (const std::string& byte : bytes.tokens()) {
    if (byte.starts_with("<0x")) file.token(byte, 0, Type::kByte);
  }
  for (const std::string character : {"a", "b", "▁", "\n", "日"}) file.token(character);
  file.merge("▁", "a").merge("a", "b").merge("▁", "▁").merge("日", "日").token("\n\n");
  return with_names(file);
}

VocabularyFile unigram() {
  VocabularyFile file("t5");
  file.token("<pad>", 0, Type::kControl).token("</s>", 0, Type::kControl).token("<unk>", 0, Type::kUnknown);
  file.token("▁", -2).token("a", -3).token("b", -3).token("ab", -4).token("▁a", -3.5).token("日", -5);
  file.set_flag("add_space_prefix", true).set_flag("remove_extra_whitespaces", true);
  return with_names(file);
}

VocabularyFile word_piece() {
  VocabularyFile file("bert");
  file.token("[UNK]", 0, Type::kUnknown).token("[SEP]", 0, Type::kControl);
  file.token("▁a").token("▁ab").token("b").token("▁日").token("▁,").token("▁e");
  return with_names(file);
}

VocabularyFile longest_match() {
  VocabularyFile file("rwkv");
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(byte));
    file.token(text);
  }
  file.token("ab").token("abab").token("  ").token("日");
  return with_names(file);
}

}  // namespace

std::vector<KindOfVocabulary> every_kind() {
  std::vector<KindOfVocabulary> all;
  for (const PreTokenizer& pre : pre_tokenizers()) {
    if (!pre.spells_like_spm) all.push_back({pairs_by_rank(pre.names[0]), true});
  }
  all.push_back({pairs_by_score(true), true});
  all.push_back({pairs_by_score(false), true});
  all.push_back({written_like_gemma4(), true});
  all.push_back({longest_match(), true});
  all.push_back({unigram(), false});
  all.push_back({word_piece(), false});
  return all;
}

}  // namespace kvasir::text::test
