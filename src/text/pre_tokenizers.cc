#include "text/pre_tokenizers.h"

// Sources: each model's own tokenizer.json, and llama.cpp's table of which file name means which pattern.
// Where the two differ, because a regular expression could not be said there, the model's own holds (tekken,
// gpt-4o: letters by their case in every script). Written so that nothing is tried twice: quantifiers are
// possessive wherever what follows can not begin with what they took.

// White space inside a class. \s would do but for U+180E, which is none and which PCRE2 counts.
#define WHITE R"(\x{9}-\x{D}\x{85}\p{Z})"
#define WHITE_BUT_LINE_ENDS R"(\x{9}\x{B}\x{C}\x{85}\p{Z})"

// \s*[\r\n]+ without running back: white space up to its last line end.
#define LINES "(?:[" WHITE_BUT_LINE_ENDS R"(]*+[\r\n]++)++)"
// \s+(?!\S)|\s+ : all white space but the last, which goes with the word that follows; all of it at the end.
#define SPACES "[" WHITE "]+(?![^" WHITE "])|[" WHITE "]"

#define CONTRACTION "'(?:[stmd]|re|ve|ll)"
#define CONTRACTION_ANY_CASE "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"

#define GPT_2 CONTRACTION R"(| ?+\p{L}++| ?+\p{N}++| ?+[^)" WHITE R"(\p{L}\p{N}]++|)" SPACES

// Letters with the character before them, NUMBERS, other characters with what may follow them, white space.
#define WORDS(NUMBERS, AFTER) \
  R"([^\r\n\p{L}\p{N}]?+\p{L}++|)" NUMBERS R"(| ?+[^)" WHITE R"(\p{L}\p{N}]++)" AFTER "|" LINES "|" SPACES
#define LLAMA_3 CONTRACTION_ANY_CASE "|" WORDS(R"(\p{N}{1,3}+)", R"([\r\n]*+)")
#define QWEN_2 CONTRACTION_ANY_CASE "|" WORDS(R"(\p{N})", R"([\r\n]*+)")

// Words that begin upper-case and go on lower-case; letters without case, and marks, are both.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CASED_WORDS(SUFFIX) \
  R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" SUFFIX R"(|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*" SUFFIX
#define CASED(SUFFIX, NUMBERS) \
  CASED_WORDS(SUFFIX) "|" NUMBERS R"(| ?+[^)" WHITE R"(\p{L}\p{N}]++[\r\n/]*+|)" LINES "|" SPACES

// A letter with its marks, and single spaces between such.
#define SPACED_LETTERS R"((?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++)"

namespace kvasir::text {
namespace {

using Names = std::string_view;

// The letters of deepseek-llm: those with case, as an earlier Unicode knew them, without Georgian.
constexpr char kDeepseekWords[] =
    "[" WHITE
    "]?+["
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943}]++)";
// U+3000 is white space and a mark: alone, it is the mark.
constexpr char kDeepseekMarks[] =
    "[" WHITE R"(]?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]++)";
constexpr char kDeepseekCoderWords[] = "[" WHITE R"(]?+\p{L}++)";
constexpr char kDeepseekCoderMarks[] = "[" WHITE R"(]?+\p{P}++)";
// \s+$ : white space at the very end, looked for once in each run.
constexpr char kTrailingSpaces[] = "(?<![" WHITE "])[" WHITE R"(]++\z)";
constexpr char kDeepseekCjk[] = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]++)";
constexpr char kDeepseek3Cjk[] = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]++)";
constexpr char kDeepseek3Words[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]++|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]++)"
    R"(| ?+[\p{P}\p{S}]++[\r\n]*+|)" LINES "|" SPACES;
constexpr char kBloomWords[] =
    " ?+[^(" WHITE R"(|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]++)";
constexpr char kJais2[] = CONTRACTION_ANY_CASE
    R"(|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?+[^)" WHITE R"(\p{L}\p{N}]++[\r\n]*+|)" LINES "|(?:[" WHITE
    "]{512}|[" WHITE "]{256}|[" WHITE "]{128}|[" WHITE "]{64}|[" WHITE "]{32}|[" WHITE "]{16}|[" WHITE
    "]{8}|[" WHITE "]{4}|[" WHITE "]{1,2})(?![^" WHITE "])|[" WHITE "]";
constexpr char kQwen35[] = CONTRACTION_ANY_CASE R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]++|\p{N}| ?+[^)" WHITE
                                                R"(\p{L}\p{M}\p{N}]++[\r\n]*+|)" LINES "|" SPACES;
constexpr char kExaoneMoe[] =
    CONTRACTION_ANY_CASE R"(|[^\r\n\p{L}\p{N}]?+)" SPACED_LETTERS R"(|\p{N}| ?+[^)" WHITE
                         R"(\p{L}\p{N}]++[\r\n/]?+|)" LINES "|" SPACES;
constexpr char kBailing[] = "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" WORDS(R"(\p{N})", R"([\r\n]*+)");
constexpr char kSeedCoder[] = CONTRACTION_ANY_CASE R"(|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}| ?+[^)" WHITE
                                                   R"(\p{L}\p{N}\r\n]++|)" LINES "|" SPACES;

// What vocabularies of unnamed pre-tokenizers get.
constexpr std::string_view kDefault[] = {R"([\p{P}$+<=>^~|]++)", GPT_2, R"(\p{N}++)", "[0-9]{3}"};
constexpr std::string_view kFalcon[] = {R"([\p{P}$+<=>^~|`]++)", GPT_2, "[0-9]{3}"};
constexpr std::string_view kGpt2[] = {GPT_2};
constexpr std::string_view kStarcoder[] = {R"(\p{N})", GPT_2};
constexpr std::string_view kLlama3[] = {LLAMA_3};
constexpr std::string_view kQwen2[] = {QWEN_2};
constexpr std::string_view kQwen35Only[] = {kQwen35};
constexpr std::string_view kDeepseekLlm[] = {R"([\r\n])",     kDeepseekWords, kDeepseekMarks,
                                             kTrailingSpaces, kDeepseekCjk,   R"(\p{N}++)"};
constexpr std::string_view kDeepseekCoder[] = {R"([\r\n])", kDeepseekCoderWords, kDeepseekCoderMarks,
                                               kDeepseekCjk, R"(\p{N})"};
constexpr std::string_view kDeepseek3[] = {R"(\p{N}{1,3}+)", kDeepseek3Cjk, kDeepseek3Words};
constexpr std::string_view kBloom[] = {kBloomWords};
constexpr std::string_view kViking[] = {kBloomWords, R"(\p{N})"};
constexpr std::string_view kTekken[] = {CASED("", R"(\p{N})")};
constexpr std::string_view kGpt4o[] = {CASED("(?:" CONTRACTION_ANY_CASE ")?+", R"(\p{N}{1,3}+)")};
constexpr std::string_view kJais2Only[] = {kJais2};
constexpr std::string_view kExaoneMoeOnly[] = {kExaoneMoe};
constexpr std::string_view kBailingOnly[] = {kBailing};
constexpr std::string_view kSeedCoderOnly[] = {kSeedCoder};
// Merges run over whole lines; no token holds a line end beside something else.
constexpr std::string_view kGemma4[] = {R"([^\n]++|\n++)"};

constexpr Names kDefaultNames[] = {"default"};
constexpr Names kFalconNames[] = {"falcon"};
constexpr Names kGpt2Names[] = {"gpt-2",    "phi-2",        "mpt",         "olmo",           "jais",
                                "jina-es",  "jina-de",      "jina-v2-es",  "jina-v2-de",     "jina-v1-en",
                                "gigachat", "jina-v2-code", "roberta-bpe", "a.x-4.0",        "mellum",
                                "exaone4",  "modern-bert",  "trillion",    "granite-docling"};
constexpr Names kStarcoderNames[] = {"starcoder", "refact", "command-r",  "smollm",
                                     "codeshell", "exaone", "minerva-7b", "mellum2"};
constexpr Names kLlama3Names[] = {"llama-bpe", "llama3",   "llama-v3", "falcon3",     "falcon-h1",
                                  "pixtral",   "midm-2.0", "lfm2",     "jina-v5-nano"};
constexpr Names kDbrxNames[] = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"};
constexpr Names kQwen2Names[] = {"qwen2",  "deepseek-r1-qwen", "kormo",  "f2llmv2",   "stablelm2",
                                 "megrez", "hunyuan",          "grok-2", "solar-open"};
constexpr Names kQwen35Names[] = {"qwen35"};
constexpr Names kDeepseekLlmNames[] = {"deepseek-llm"};
constexpr Names kDeepseekCoderNames[] = {"deepseek-coder"};
constexpr Names kDeepseek3Names[] = {"deepseek-v3", "hunyuan-dense", "joyai-llm"};
constexpr Names kBloomNames[] = {"bloom", "poro-chat", "gpt3-finnish"};
constexpr Names kVikingNames[] = {"viking"};
constexpr Names kTekkenNames[] = {"tekken"};
constexpr Names kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "minimax-m2"};
constexpr Names kJais2Names[] = {"jais-2"};
constexpr Names kExaoneMoeNames[] = {"exaone-moe"};
constexpr Names kBailingNames[] = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr Names kSeedCoderNames[] = {"seed-coder"};
constexpr Names kGemma4Names[] = {"gemma4"};

constexpr PreTokenizer kPreTokenizers[] = {
    {kDefaultNames, kDefault},
    {kLlama3Names, kLlama3, /*takes_whole_words=*/true, /*adds_begin=*/true},
    {kGpt2Names, kGpt2},
    {kQwen2Names, kQwen2},
    {kQwen35Names, kQwen35Only},
    {kDeepseekLlmNames, kDeepseekLlm},
    {kDeepseekCoderNames, kDeepseekCoder},
    {kDeepseek3Names, kDeepseek3},
    {kFalconNames, kFalcon},
    {kStarcoderNames, kStarcoder},
    {kDbrxNames, kLlama3},
    {kTekkenNames, kTekken, /*takes_whole_words=*/true, /*adds_begin=*/true},
    {kGpt4oNames, kGpt4o},
    {kBloomNames, kBloom},
    {kVikingNames, kViking},
    {kJais2Names, kJais2Only},
    {kExaoneMoeNames, kExaoneMoeOnly},
    {kBailingNames, kBailingOnly},
    {kSeedCoderNames, kSeedCoderOnly},
    {kGemma4Names, kGemma4, /*takes_whole_words=*/false, /*adds_begin=*/true, /*spells_like_spm=*/true},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() noexcept {
  return kPreTokenizers;
}

const PreTokenizer* find_pre_tokenizer(std::string_view name) noexcept {
  if (name.empty()) name = "default";
  for (const PreTokenizer& candidate : kPreTokenizers) {
    for (const std::string_view known : candidate.names) {
      if (known == name) return &candidate;
    }
  }
  return nullptr;
}

std::string known_pre_tokenizers() {
  std::string names;
  for (const PreTokenizer& entry : kPreTokenizers) {
    for (const std::string_view name : entry.names) {
      if (!names.empty()) names += ", ";
      names += name;
    }
  }
  return names;
}

}  // namespace kvasir::text
