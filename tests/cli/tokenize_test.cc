// kvasir tokenize, run as its users do.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/process.h"
#include "vocabulary_file.h"

namespace kvasir::cli {
namespace {

using kvasir::test::ProgramRun;
using kvasir::text::test::Type;
using kvasir::text::test::VocabularyFile;

// <unk>, <s>, </s>, the bytes from 3 on, then 259 "▁a", 260 "<x>".
VocabularyFile vocabulary() {
  VocabularyFile file = kvasir::text::test::sentence_piece();
  file.token("▁a").token("<x>", 0, Type::kControl).set_flag("add_eos_token", true);
  return file;
}

std::string written(const VocabularyFile& file) {
  const std::string path = kvasir::test::scratch_directory() + "/vocabulary.gguf";
  const std::vector<std::byte> bytes = file.bytes();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

ProgramRun tokenize(const std::string& model, std::vector<std::string> flags, std::string_view input) {
  std::vector<std::string> arguments = {"tokenize", "-m", model};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return kvasir::test::run_program(KVASIR_PROGRAM, arguments, input);
}

TEST(TokenizeVerb, PrintsTheIdsOfStandardInputOnOneLine) {
  const std::string model = written(vocabulary());
  EXPECT_EQ(tokenize(model, {}, "a a").out, "259 259\n");
  EXPECT_EQ(tokenize(model, {}, "a<x>\n").out, "259 63 123 65 13\n");
  EXPECT_EQ(tokenize(model, {"--special"}, "a<x>a").out, "259 260 259\n");
  EXPECT_EQ(tokenize(model, {"--bos"}, "a").out, "1 259 2\n");
  EXPECT_EQ(tokenize(model, {"--bos", "--special"}, "<x>").out, "1 260 2\n");
  EXPECT_EQ(tokenize(model, {}, "").out, "\n");
  EXPECT_EQ(tokenize(model, {}, std::string_view("a\0\xFF", 3)).out, "259 3 258\n");
}

TEST(TokenizeVerb, WritesTheBytesOfIdsAndNothingElse) {
  const std::string model = written(vocabulary());
  const ProgramRun run = tokenize(model, {"--detokenize"}, " 259\n259\t260 3 258 2\n");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, std::string("a a<x>\0\xFF</s>", 12));
  EXPECT_EQ(tokenize(model, {"--detokenize"}, "").out, "");
}

TEST(TokenizeVerb, SaysWhatIsWrongInOneSentence) {
  const std::string model = written(vocabulary());
  const auto refused = [](const ProgramRun& run, std::string_view part) {
    EXPECT_EQ(run.status, 1) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  };
  refused(tokenize(model, {"--detokenize"}, "259 261"),
          "token 261 is not in the vocabulary, which has 261 tokens");
  refused(tokenize(model, {"--detokenize"}, "1 -1"), "token -1");
  refused(tokenize(model, {"--detokenize"}, "1 2x"), "'2x', word 2");
  refused(tokenize(model, {"--detokenize"}, "99999999999999999999"), "is not a token id");
  refused(tokenize(model + ".missing", {}, "a"), "missing");
  refused(tokenize("-", {}, "a"), "standard input");
  refused(tokenize(written(kvasir::text::test::byte_level("unheard-of")), {}, "a"), "unheard-of");
}

TEST(TokenizeVerb, TellsHowMuchOfATextHasNoToken) {
  VocabularyFile file("gpt2", "gpt-2");
  file.token("a");
  const ProgramRun run = tokenize(written(file), {}, "aba");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, "0 0\n");
  EXPECT_NE(run.err.find("no token for 1 of the text's 3 bytes"), std::string::npos) << run.err;
}

TEST(TokenizeVerb, RefusesFlagsThatContradict) {
  const std::string model = written(vocabulary());
  EXPECT_EQ(tokenize(model, {"--detokenize", "--bos"}, "").status, 2);
  EXPECT_EQ(tokenize(model, {"--what"}, "").status, 2);
  EXPECT_EQ(kvasir::test::run_program(KVASIR_PROGRAM, {"tokenize"}).status, 2);
}

}  // namespace
}  // namespace kvasir::cli
